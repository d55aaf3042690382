// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"k8s.io/utils/clock"

	"github.com/etcd-operator/etcd-operator/pkg/fair"
)

// apiLimit is the rate limit of one client of the API server. Requests for the objects of a
// namespace do not wait for those of all others, as they do behind client-go's own limit.
type apiLimit struct{ *fair.Limiter }

func newAPILimit() apiLimit {
	return apiLimit{fair.New(clock.RealClock{}, func() float64 { return apiQPS }, apiBurst)}
}

// TryAccept takes a turn if there is one now.
func (l apiLimit) TryAccept() bool { return l.TryWait() }

// Accept waits for a turn. client-go calls Wait instead, which has a context.
func (l apiLimit) Accept() { l.WaitAlways() }

// Stop ends nothing: the limit holds no resources.
func (apiLimit) Stop() {}

// QPS is the rate.
func (apiLimit) QPS() float32 { return apiQPS }
