// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package etcd_test

import (
	"bytes"
	"testing"

	"go.etcd.io/etcd/api/v3/mvccpb"

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
