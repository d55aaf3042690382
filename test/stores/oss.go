// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package stores

import (
	"context"
	"net"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"github.com/etcd-operator/etcd-operator/test/environment"
	"github.com/etcd-operator/etcd-operator/test/stores/osstest"
)

// OSSServer is the simulated Alibaba Cloud OSS of package osstest.
type OSSServer struct {
	Server
	AccessKeyID, AccessKeySecret string
	// PageSize is the maximum of items on a page of a list.
	PageSize int
}

// OSS starts a simulated OSS with buckets. The pages of its lists are short.
func OSS(t testing.TB, options Options, buckets ...string) *OSSServer {
	t.Helper()
	o := &OSSServer{AccessKeyID: "LTAI-stand-in", AccessKeySecret: "oss-stand-in-secret", PageSize: 20}
	o.health = "/"
	path := program(t, "oss-server")
	start(t, &o.Server, options, func(ctx context.Context) *exec.Cmd {
		cmd := exec.CommandContext(ctx, path, "-listen", net.JoinHostPort(o.ip, o.port), "-dir", o.Data,
			"-buckets", strings.Join(buckets, ","), "-page-size", strconv.Itoa(o.PageSize))
		cmd.Env = environment.Bare("OSS_ACCESS_KEY_ID="+o.AccessKeyID, "OSS_ACCESS_KEY_SECRET="+o.AccessKeySecret)
		return cmd
	})
	return o
}

// Unfinished returns the multipart uploads of all buckets that were neither completed nor
// aborted.
func (o *OSSServer) Unfinished(t testing.TB) []string {
	t.Helper()
	found, err := osstest.Unfinished(o.Data)
	if err != nil {
		t.Fatal(err)
	}
	return found
}
