// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package recorder

import (
	"context"

	"github.com/etcd-operator/etcd-operator/pkg/etcd"
)

// Of returns the member behind a connection.
func Of(conn *etcd.Conn) Member { return member{conn} }

type member struct{ *etcd.Conn }

func (m member) Changes(ctx context.Context, from int64) (Stream, error) {
	stream, err := m.Conn.Changes(ctx, from)
	if err != nil {
		return nil, err
	}
	return stream, nil
}
