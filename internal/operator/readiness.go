// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"errors"
	"sync/atomic"

	"github.com/etcd-operator/etcd-operator/internal/leader"
)

// readiness is the answer of /readyz. An instance is ready if it leads and its caches are in
// sync. A standby is ready too, if it reads the Lease and sees another holder. If only the
// leader were ready, a rolling update would deadlock: the new pod waits for the Lease, and the
// old pod for the new pod's readiness.
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
