// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package backup

import (
	"context"
	"errors"
	"time"

	"github.com/etcd-operator/etcd-operator/pkg/etcd"
	"github.com/etcd-operator/etcd-operator/pkg/recorder"
	"github.com/etcd-operator/etcd-operator/pkg/snapshot"
)

// OpenMember connects to a member that has a quorum. It must be closed.
type OpenMember func(ctx context.Context, source snapshot.Source) (recorder.Member, etcd.Position, func(), error)

// memberLimit is how long one member may take to answer.
const memberLimit = 5 * time.Second

// openMember connects to the first member of a real etcd that answers.
func openMember(ctx context.Context, source snapshot.Source) (recorder.Member, etcd.Position, func(), error) {
	client := etcd.NewClient(source.TLS)
	client.SetCredentials(source.User)
	var failures []error
	for _, ep := range source.Endpoints {
		conn, err := client.Conn(ep)
		if err == nil {
			member := recorder.Of(conn)
			var at etcd.Position
			if at, err = position(ctx, member); err == nil {
				client.Retain(map[etcd.Endpoint]bool{ep: true})
				return member, at, client.Close, nil
			}
		}
		failures = append(failures, err)
		if ctx.Err() != nil {
			break
		}
	}
	client.Close()
	return nil, etcd.Position{}, nil, errors.Join(failures...)
}

func position(ctx context.Context, member recorder.Member) (etcd.Position, error) {
	ctx, cancel := context.WithTimeout(ctx, memberLimit)
	defer cancel()
	return member.Position(ctx)
}
