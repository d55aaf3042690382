// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"errors"
	"sync/atomic"

	"github.com/etcd-operator/etcd-operator/internal/leader"
)

// readiness is what /readyz answers. An instance is ready if it leads and sees
// all of its objects, or if it stands by: another instance holds the Lease, and
// this one reads it. If only the leader were ready, a rolling update would wait
// for ever: the new pod for the Lease, the old one for the new pod to be ready.
type readiness struct{ parts atomic.Pointer[readyParts] }

type readyParts struct {
	elector *leader.Elector
	ctrl    Controller
}

func (r *readiness) of(e *leader.Elector, c Controller) { r.parts.Store(&readyParts{e, c}) }

func (r *readiness) check() (says string, err error) {
	parts := r.parts.Load()
	switch {
	case parts == nil:
		return "", errors.New("starting")
	case parts.elector.Leading():
		return "ok", parts.ctrl.Ready()
	default:
		return "ok: standing by for " + parts.elector.Watched(), parts.elector.StandingBy()
	}
}
