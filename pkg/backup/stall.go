// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package backup

import (
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/etcd-operator/etcd-operator/pkg/notice"
	"github.com/etcd-operator/etcd-operator/pkg/watchdog"
)

// errStalled ends an attempt in which nothing moves.
var errStalled = errors.New("nothing has moved")

// progress is how far an attempt has come. Those who make it come on write it.
type progress struct {
	moved    atomic.Int64 // bytes that were read from etcd, or exchanged with the store
	expected atomic.Int64 // bytes of the snapshot, -1: unknown
	read     atomic.Int64 // bytes of it that were read
	begun    atomic.Bool  // the snapshot is there to be read
	waiting  atomic.Bool  // etcd is to send more of it
	whole    atomic.Bool  // it was read to its end
	// stalled is for people who has not moved. It is written before a context ends
	// with errStalled.
	stalled string
}

// watchdogProgress is the progress for the watchdog.
func (p *progress) watchdogProgress() watchdog.Progress {
	return watchdog.Progress{
		Moved:    p.moved.Load,
		Complete: p.whole.Load,
		Stalled: func() error {
			p.stalled = p.who()
			return errStalled
		},
	}
}

// far reports how far it has come.
func (p *progress) far() string {
	if !p.begun.Load() {
		return "and etcd had not even begun to send"
	}
	return fmt.Sprintf("with %s of %s read", notice.Bytes(p.read.Load()), notice.Bytes(p.expected.Load()))
}

// who names what has not moved.
func (p *progress) who() string {
	switch {
	case p.waiting.Load():
		return "etcd has sent nothing"
	case p.begun.Load():
		return "the store has taken nothing"
	}
	return "nobody has answered"
}
