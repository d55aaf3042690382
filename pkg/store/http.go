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

// Transport returns a transport for a store over HTTP. It gives up on a server that it can't
// reach within 10 seconds, or that does not begin to answer a complete request for 30 seconds.
// Contexts bound everything else. The caller must close its idle connections.
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

// WithoutURL returns an error of an HTTP client without its URL: a signed URL or an upload's
// address works like a password.
func WithoutURL(err error) error {
	for {
		var request *url.Error
		if !errors.As(err, &request) {
			return err
		}
		err = request.Err
	}
}

// Excerpt returns the beginning of a server's message in one line.
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
