// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Command oss-server runs the simulated Alibaba Cloud OSS as a process. The access key comes
// from the environment: OSS_ACCESS_KEY_ID and OSS_ACCESS_KEY_SECRET.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/etcd-operator/etcd-operator/test/stores/osstest"
)

func main() {
	if err := run(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, "oss-server:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	ctx, cancel := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer cancel()
	listen := flag.String("listen", "127.0.0.1:9080", "address to listen on")
	dir := flag.String("dir", "", "directory to keep the objects in")
	buckets := flag.String("buckets", "", "buckets to make, separated by commas")
	page := flag.Int("page-size", 0, "how many items a page of a list has at most; 0: as many as OSS's")
	flag.Parse()
	id, secret := os.Getenv("OSS_ACCESS_KEY_ID"), os.Getenv("OSS_ACCESS_KEY_SECRET")
	if *dir == "" || id == "" || secret == "" {
		return errors.New("set -dir, and OSS_ACCESS_KEY_ID and OSS_ACCESS_KEY_SECRET in the environment")
	}
	s := &osstest.Server{AccessKeys: map[string]string{id: secret}, PageSize: *page}
	names := strings.FieldsFunc(*buckets, func(r rune) bool { return r == ',' })
	if err := s.Open(*dir, names...); err != nil {
		return fmt.Errorf("open %s: %w", *dir, err)
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", *listen)
	if err != nil {
		return err
	}
	server := &http.Server{Handler: s, ReadHeaderTimeout: time.Minute}
	stop := context.AfterFunc(ctx, func() { server.Close() })
	defer stop()
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}
