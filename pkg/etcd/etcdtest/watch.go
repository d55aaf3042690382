// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package etcdtest

import "go.etcd.io/etcd/api/v3/etcdserverpb"

// watches serves watches of all keys.
type watches struct {
	etcdserverpb.UnimplementedWatchServer
	m *Member
}

// Watch confirms the first watch of a stream and sends the events of the member.
func (w watches) Watch(stream etcdserverpb.Watch_WatchServer) error {
	if _, err := stream.Recv(); err != nil {
		return err
	}
	if err := stream.Send(&etcdserverpb.WatchResponse{Created: true}); err != nil {
		return err
	}
	for _, events := range w.m.Fragments {
		if err := stream.Send(&etcdserverpb.WatchResponse{Events: events, Fragment: true}); err != nil {
			return err
		}
	}
	if len(w.m.Events) > 0 {
		if err := stream.Send(&etcdserverpb.WatchResponse{Events: w.m.Events}); err != nil {
			return err
		}
	}
	<-stream.Context().Done()
	return stream.Context().Err()
}
