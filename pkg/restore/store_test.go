// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package restore

import "github.com/etcd-operator/etcd-operator/pkg/store"

// nothingStored is a store that is only closed.
type nothingStored struct{ store.Store }

func (nothingStored) Close() error { return nil }
