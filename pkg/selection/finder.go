// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package selection

import (
	"context"
	"errors"
	"time"

	"github.com/etcd-operator/etcd-operator/pkg/location"
)

// finder looks for a backup.
type finder struct {
	place    *location.Location
	progress func(key string, read, size int64)
}

var errNotYet = errors.New("backups can't be looked for yet")

func (f finder) exact(context.Context, string) (Verified, error) { return Verified{}, errNotYet }

func (f finder) newest(context.Context, time.Time) (Verified, []string, error) {
	return Verified{}, nil, errNotYet
}
