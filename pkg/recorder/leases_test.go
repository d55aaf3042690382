// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package recorder_test

import (
	"slices"
	"testing"

	"go.etcd.io/etcd/api/v3/mvccpb"
	"google.golang.org/protobuf/proto"

	"github.com/etcd-operator/etcd-operator/pkg/changelog"
	"github.com/etcd-operator/etcd-operator/pkg/recorder"
)

func TestTheLeasesThatASegmentLacks(t *testing.T) {
	s := &changelog.Segment{Leases: []changelog.Lease{{ID: 7, TTL: 70}}}
	for _, lease := range []int64{9, 7, 0, 8, 9} {
		text, err := proto.Marshal(&mvccpb.KeyValue{Key: []byte("key"), Lease: lease})
		if err != nil {
			t.Fatal(err)
		}
		s.Revisions = append(s.Revisions, changelog.Revision{Changes: []changelog.Change{{KeyValue: text}, {KeyValue: []byte{0xff}}}})
	}
	if got := recorder.LeasesLeft(s); !slices.Equal(got, []int64{8, 9}) {
		t.Errorf("it lacks %v", got)
	}
}
