// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"context"
	"errors"

	"github.com/etcd-operator/etcd-operator/pkg/cluster"
	"github.com/etcd-operator/etcd-operator/pkg/etcd"
)

// errNoImports is the answer to what only an import asks for: no life imports an etcd.
var errNoImports = errors.New("the model has no imports")

func (reach) ShareLogin(cluster.Members) {}

func (reach) PeerHashKV(context.Context, etcd.Endpoint, int64) (etcd.Hash, error) {
	return etcd.Hash{}, errNoImports
}

func (way) HashKV(context.Context, int64) (etcd.Hash, error) { return etcd.Hash{}, errNoImports }

func (way) Keys(context.Context, int64) (etcd.Keys, error) { return etcd.Keys{}, errNoImports }

func (way) ConnectedTo(context.Context, uint64) (bool, error) { return false, errNoImports }
