// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package etcd_test

import (
	"bytes"
	"errors"
	"slices"
	"testing"

	"go.etcd.io/etcd/api/v3/mvccpb"

	"github.com/etcd-operator/etcd-operator/pkg/etcd"
	"github.com/etcd-operator/etcd-operator/pkg/etcd/etcdtest"
)

// etcd sends messages of as many bytes as --max-request-bytes allows a request.
func TestAChangeMayBeLargerThanAMessageOfGRPC(t *testing.T) {
	value := bytes.Repeat([]byte("x"), 10<<20)
	m := (&etcdtest.Member{Events: []*mvccpb.Event{{Kv: &mvccpb.KeyValue{Key: []byte("key"), Value: value, ModRevision: 2}}}}).Start(t)
	stream, err := dial(t, m).Changes(soon(t), 2)
	if err != nil {
		t.Fatal(err)
	}
	changes, err := stream.Next()
	if err != nil || len(changes) != 1 || changes[0].Revision != 2 || len(changes[0].KeyValue) < len(value) {
		t.Errorf("%d changes, %v", len(changes), err)
	}
}

// Who deletes all keys at once makes a revision with more changes than an operator has memory for. It would end
// at that revision again and again, and make no other backup.
func TestATransactionBeyondTheMemoryEndsTheStream(t *testing.T) {
	value := bytes.Repeat([]byte("x"), 1<<20)
	part := func(revision int64) (events []*mvccpb.Event) {
		for range 4 {
			events = append(events, &mvccpb.Event{Kv: &mvccpb.KeyValue{Key: []byte("key"), Value: value, ModRevision: revision}})
		}
		return events
	}
	m := &etcdtest.Member{Fragments: [][]*mvccpb.Event{part(2), part(2), part(2)}} // 12 MiB are no reason
	for range 17 {
		m.Fragments = append(m.Fragments, part(3))
	}
	stream, err := dial(t, m.Start(t)).Changes(soon(t), 2)
	if err != nil {
		t.Fatal(err)
	}
	changes, err := stream.Next()
	if err != nil || len(changes) != 12 || changes[0].Revision != 2 {
		t.Errorf("first %d changes, %v", len(changes), err)
	}
	var tooLarge etcd.TooLargeError
	if changes, err = stream.Next(); !errors.As(err, &tooLarge) || tooLarge.Revision != 3 {
		t.Errorf("then %d changes, %v", len(changes), err)
	}
}

// For a reader that is behind, etcd puts a thousand revisions into one response. The operator must not
// hold all of them before it passes on the first.
func TestARevisionDoesNotWaitForTheRestOfItsResponse(t *testing.T) {
	at := func(revisions ...int64) (events []*mvccpb.Event) {
		for _, revision := range revisions {
			events = append(events, &mvccpb.Event{Kv: &mvccpb.KeyValue{Key: []byte("key"), ModRevision: revision}})
		}
		return events
	}
	read := func(m *etcdtest.Member, times int) (got [][]int64) {
		stream, err := dial(t, m.Start(t)).Changes(soon(t), 2)
		if err != nil {
			t.Fatal(err)
		}
		for range times {
			changes, err := stream.Next()
			if err != nil {
				t.Fatal(err)
			}
			var revisions []int64
			for _, c := range changes {
				revisions = append(revisions, c.Revision)
			}
			got = append(got, revisions)
		}
		return got
	}
	// The rest of the first response never comes.
	got := read(&etcdtest.Member{Fragments: [][]*mvccpb.Event{at(2, 2), at(2, 3, 4), at(4)}}, 1)
	if want := [][]int64{{2, 2, 2, 3}}; !slices.EqualFunc(got, want, slices.Equal) {
		t.Errorf("changes of the revisions %v, want %v", got, want)
	}
	got = read(&etcdtest.Member{Fragments: [][]*mvccpb.Event{at(2), at(3, 4), at(4), at(4)}, Events: at(4, 5)}, 2)
	if want := [][]int64{{2, 3}, {4, 4, 4, 4, 5}}; !slices.EqualFunc(got, want, slices.Equal) {
		t.Errorf("changes of the revisions %v, want %v", got, want)
	}
}
