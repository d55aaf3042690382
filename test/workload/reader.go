// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"context"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// Linearizable reads through a quorum: a key that it does not return does not exist.
func Linearizable(name string, kv clientv3.KV) Reader {
	return &etcdReader{name: name + ", linearizable", kv: kv}
}

// Serializable reads from the one member that kv is connected to, which may lag.
func Serializable(name string, kv clientv3.KV) Reader {
	return &etcdReader{name: name + ", serializable", kv: kv, opts: []clientv3.OpOption{clientv3.WithSerializable()}}
}

type etcdReader struct {
	name string
	kv   clientv3.KV
	opts []clientv3.OpOption
}

func (r *etcdReader) String() string { return r.name }

func (r *etcdReader) Read(ctx context.Context, prefix string) (*Snapshot, error) {
	resp, err := r.kv.Get(ctx, prefix, append([]clientv3.OpOption{clientv3.WithPrefix()}, r.opts...)...)
	if err != nil {
		return nil, err
	}
	snapshot := &Snapshot{Revision: resp.Header.Revision, KVs: make(map[string]KV, len(resp.Kvs))}
	for _, kv := range resp.Kvs {
		snapshot.KVs[string(kv.Key)] = KV{Value: string(kv.Value), ModRevision: kv.ModRevision}
	}
	return snapshot, nil
}

// pause waits for a moment before another try.
func pause(ctx context.Context) error {
	timer := time.NewTimer(50 * time.Millisecond)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
