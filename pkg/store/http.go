// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package store

import (
	"errors"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"
	"unicode"
)

// Transport is one for the requests to a store over HTTP. It gives up on a server
// that can't be reached within 10 seconds, or that has a whole request and does not
// begin to answer it for 30 seconds; what takes longer is bounded by the contexts.
// Whoever makes it closes its idle connections.
func Transport() *http.Transport {
	return &http.Transport{
		Proxy:                 http.ProxyFromEnvironment,
		DialContext:           Watched((&net.Dialer{Timeout: 10 * time.Second, KeepAlive: 30 * time.Second}).DialContext),
		TLSHandshakeTimeout:   10 * time.Second,
		ResponseHeaderTimeout: 30 * time.Second,
		ExpectContinueTimeout: time.Second,
		IdleConnTimeout:       90 * time.Second,
		MaxIdleConnsPerHost:   16,
		ForceAttemptHTTP2:     true,
	}
}

// WithoutURL is what an error of an HTTP client has to say but for the URL, since
// that of an upload or a signed one works as a password does.
func WithoutURL(err error) error {
	for {
		var request *url.Error
		if !errors.As(err, &request) {
			return err
		}
		err = request.Err
	}
}

// Excerpt is the beginning of a server's message, fit to be shown in one line.
func Excerpt(message string) string {
	const longest = 300
	printable := strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return ' '
	}, message)
	printable = strings.Join(strings.Fields(printable), " ")
	if runes := []rune(printable); len(runes) > longest {
		return string(runes[:longest]) + "…"
	}
	return printable
}
