// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"sync"
	"time"
)

// serve refuses all requests until ctx ends, and writes a line for each connection and
// for each request. The line is written before the client gets an answer.
func serve(ctx context.Context, listener net.Listener, asked io.Writer) error {
	var mu sync.Mutex
	note := func(format string, args ...any) {
		mu.Lock()
		defer mu.Unlock()
		fmt.Fprintf(asked, format+"\n", args...)
	}
	type client struct{}
	var protocols http.Protocols
	protocols.SetHTTP1(true)
	protocols.SetUnencryptedHTTP2(true) // of etcd's clients
	server := &http.Server{
		Protocols:         &protocols,
		ReadHeaderTimeout: time.Minute,
		ErrorLog:          log.New(io.Discard, "", 0),
		ConnContext: func(ctx context.Context, connection net.Conn) context.Context {
			who := asker(connection)
			note("connection by %s", who)
			return context.WithValue(ctx, client{}, who)
		},
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			note("%s %s (%s) by %s", r.Method, r.URL, r.UserAgent(), r.Context().Value(client{}))
			http.Error(w, "this is the tripwire of hack/test: nobody may ask it anything", http.StatusForbidden)
		}),
	}
	stop := context.AfterFunc(ctx, func() { server.Close() })
	defer stop()
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}
