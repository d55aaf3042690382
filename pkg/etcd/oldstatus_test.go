// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package etcd_test

import (
	"testing"

	"go.etcd.io/etcd/api/v3/etcdserverpb"

	"github.com/etcd-operator/etcd-operator/pkg/etcd/etcdtest"
)

// etcd before 3.4 reports one index: the last entry that it has applied. Its members
// never counted as caught up.
func TestWhatOldMembersHaveApplied(t *testing.T) {
	for name, c := range map[string]struct {
		says *etcdserverpb.StatusResponse
		want uint64
	}{
		"3.1":                          {&etcdserverpb.StatusResponse{Version: "3.1.20", RaftIndex: 70}, 70},
		"3.3":                          {&etcdserverpb.StatusResponse{Version: "3.3.27", RaftIndex: 70}, 70},
		"3.4 that has applied less":    {&etcdserverpb.StatusResponse{Version: "3.4.44", RaftIndex: 70, RaftAppliedIndex: 60}, 60},
		"3.4 that has applied nothing": {&etcdserverpb.StatusResponse{Version: "3.4.44", RaftIndex: 70}, 0},
		"a version of its own":         {&etcdserverpb.StatusResponse{Version: "unknown", RaftIndex: 70}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			c.says.Header = &etcdserverpb.ResponseHeader{}
			status, err := dial(t, (&etcdtest.Member{Status: c.says}).Start(t)).Status(soon(t))
			if err != nil || status.RaftApplied != c.want {
				t.Errorf("it has applied %d (%v), want %d", status.RaftApplied, err, c.want)
			}
		})
	}
}
