// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package etcd

import (
	"context"
	"fmt"
	"net"
	"testing"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"
)

// served answers the ranges of a digest. Its counts are read between two requests.
type served struct {
	etcdserverpb.UnimplementedKVServer
	kvs      []*mvccpb.KeyValue
	answered map[string]int // by the first key of a request: the bytes of the last answer
}

func (s *served) Range(_ context.Context, r *etcdserverpb.RangeRequest) (*etcdserverpb.RangeResponse, error) {
	resp := &etcdserverpb.RangeResponse{}
	for _, kv := range s.kvs {
		if string(kv.Key) < string(r.Key) || string(r.RangeEnd) != noEnd && string(kv.Key) >= string(r.RangeEnd) {
			continue
		}
		if resp.Count++; resp.Count <= r.Limit {
			resp.Kvs = append(resp.Kvs, kv)
		}
	}
	s.answered[string(r.Key)] = proto.Size(resp)
	return resp, nil
}

// A page is sized by the one before it. The objects of an API server are small, and then come hundreds
// of Secrets of Helm's releases.
func TestADigestTakesNoPageThatIsTooLarge(t *testing.T) {
	s := &served{answered: map[string]int{}}
	for i := range 1100 {
		s.kvs = append(s.kvs, &mvccpb.KeyValue{Key: fmt.Appendf(nil, "/registry/roles/%04d", i), Value: []byte("small"), ModRevision: int64(i)})
	}
	value := make([]byte, 1<<20)
	for i := range 60 {
		s.kvs = append(s.kvs, &mvccpb.KeyValue{Key: fmt.Appendf(nil, "/registry/secrets/%04d", i), Value: value, ModRevision: int64(i)})
	}
	// A single value may be as large as --max-request-bytes allows.
	s.kvs = append(s.kvs, &mvccpb.KeyValue{Key: []byte("/z"), Value: make([]byte, mostPage+1)})

	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer()
	etcdserverpb.RegisterKVServer(server, s)
	go server.Serve(listener) //nolint:errcheck // the requests show it
	t.Cleanup(server.Stop)
	client := NewClient(nil)
	t.Cleanup(client.Close)
	conn, err := client.Conn(Endpoint{URL: "http://" + listener.Addr().String()})
	if err != nil {
		t.Fatal(err)
	}
	digest, err := conn.Digest(t.Context(), 2000)
	if err != nil {
		t.Fatal(err)
	}
	if digest.Keys != int64(len(s.kvs)) {
		t.Errorf("the digest is of %d keys, want %d", digest.Keys, len(s.kvs))
	}
	server.Stop() // nothing writes the counts now
	for from, size := range s.answered {
		if size > mostPage && from < "/registry/secrets/0059" {
			t.Errorf("the page from %q on was taken with %d MiB", from, size>>20)
		}
	}
}
