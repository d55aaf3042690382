//go:build stores

// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package oss

import (
	"context"
	"net"
	"net/http"
	"net/url"
	"testing"

	"github.com/aliyun/alibabacloud-oss-go-sdk-v2/oss"

	"github.com/etcd-operator/etcd-operator/pkg/store"
	"github.com/etcd-operator/etcd-operator/pkg/store/storetest"
	"github.com/etcd-operator/etcd-operator/test/stores"
)

// The server is the stand-in of test/stores/osstest. Requests go to it as they go to
// Alibaba Cloud: signed by V4, with the bucket in the host name. Those of the other
// tests are signed by V1, with the bucket in the path.
func TestConformance(t *testing.T) {
	server := stores.OSS(t, stores.Options{}, "backups")
	right := Config{Bucket: "backups", Endpoint: "http://oss-cn-hangzhou.aliyuncs.com", AccessKeyID: server.AccessKeyID, AccessKeySecret: server.AccessKeySecret}
	opener := func(change func(*Config)) storetest.Opener {
		return func(t *testing.T) store.Store {
			cfg := right
			change(&cfg)
			s, err := open(cfg, transportTo(t, server.Endpoint))
			if err != nil {
				t.Fatal(err)
			}
			return s
		}
	}
	storetest.Run(t, opener(func(*Config) {}), storetest.Options{
		Denied: map[string]storetest.Opener{
			"unknown access key": opener(func(c *Config) { c.AccessKeyID = "LTAI-nobody" }),
			"wrong secret":       opener(func(c *Config) { c.AccessKeySecret = "not-the-secret" }),
		},
		NoBucket:            opener(func(c *Config) { c.Bucket = "no-such-bucket" }),
		Secrets:             []string{server.AccessKeyID, server.AccessKeySecret, "LTAI-nobody", "not-the-secret"},
		PageSize:            server.PageSize,
		LateMetadataOfSmall: true,
		Unfinished:          func(t *testing.T) []string { return server.Unfinished(t) },
		Abandon: func(t *testing.T, key string) {
			s := opener(func(*Config) {})(t).(*Store)
			defer s.Close()
			_, err := s.client.InitiateMultipartUpload(t.Context(), &oss.InitiateMultipartUploadRequest{Bucket: &s.bucket, Key: &key})
			if err != nil {
				t.Fatalf("begin an upload: %v", err)
			}
		},
		Kill:    func(t *testing.T) { server.Kill(t) },
		Restart: func(t *testing.T) { server.Restart(t) },
		Freeze:  func(t *testing.T) { server.Freeze(t) },
		Thaw:    func(t *testing.T) { server.Thaw(t) },
	})
}

// transportTo is a store's own, but for the names, all of which are those of one
// server.
func transportTo(t *testing.T, endpoint string) *http.Transport {
	at, err := url.Parse(endpoint)
	if err != nil {
		t.Fatal(err)
	}
	transport := store.Transport()
	dial := transport.DialContext
	transport.DialContext = func(ctx context.Context, network, _ string) (net.Conn, error) { return dial(ctx, network, at.Host) }
	return transport
}
