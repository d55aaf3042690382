// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"context"
	"errors"
	"io"
	"testing"

	"github.com/etcd-operator/etcd-operator/pkg/etcd"
)

// still is a connection that always leads to the same member.
type still struct{ status etcd.Status }

func (s still) Status(context.Context) (etcd.Status, error)     { return s.status, nil }
func (s still) Revision(context.Context) (int64, error)         { return s.status.Revision, nil }
func (s still) Connections() int64                              { return 1 }
func (s still) Snapshot(context.Context) (Stream, int64, error) { return nothing{}, 1024, nil }

type nothing struct{}

func (nothing) Next() ([]byte, error) { return nil, io.EOF }

// Behind a Service, another member may have answered the read, if the connection broke twice.
func TestASnapshotOfAMemberBehindTheReadIsRefused(t *testing.T) {
	member := still{etcd.Status{MemberID: 2, Revision: 90}}
	for agreed, want := range map[int64]error{90: nil, 100: errBehind} {
		s, err := begin(t.Context(), member, answer{status: member.status, agreed: agreed})
		if !errors.Is(err, want) || want == nil && s.Revision != 90 {
			t.Errorf("after a read of revision %d: %+v, error %v, want %v", agreed, s, err, want)
		}
	}
}
