// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package restore

import (
	"context"
	"errors"
	"io"
	"sync/atomic"

	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/backupserver"
	"github.com/etcd-operator/etcd-operator/pkg/notice"
	"github.com/etcd-operator/etcd-operator/pkg/store"
)

// anotherBackup is what to do where the backup on record is no longer there.
const anotherBackup = "; the EtcdCluster waits, and edits of the EtcdRestore are followed: name another backup in its spec, or state there what is the default, such as pick: Exact, to have the object read again that is there now"

// offer is the backup at the server, for the first member to fetch.
type offer struct {
	of       offered
	withdraw func()
	served   atomic.Int64
	failure  atomic.Pointer[string]
}

// offered is what distinguishes offers.
type offered struct {
	token, sha256 string
	generation    int64
}

// why is the last failure of the store to give the backup; "" where it could.
func (o *offer) why() string {
	if text := o.failure.Load(); text != nil {
		return *text
	}
	return ""
}

// offeredBy is what is to be offered with a status; false: nothing.
func offeredBy(obj *api.EtcdRestore, token *tokenState) (offered, bool) {
	st := &obj.Status
	waiting := st.Phase == api.RestorePhaseCreating || st.Phase == api.RestorePhaseStarting
	current := committed(st) && st.Backup.Generation >= generation(obj)
	if done(obj) || !waiting || !current || token == nil || token.value == "" {
		return offered{}, false
	}
	return offered{token.value, st.Backup.SHA256, generation(obj)}, true
}

// keepOffer sees to it that what is offered is what is on record.
func (r *Restore) keepOffer(ctx context.Context, token *tokenState) {
	want, ok := offeredBy(r.obj, token)
	if ok && r.offer != nil && r.offer.of == want {
		return
	}
	r.dropOffer()
	if !ok {
		return
	}
	o, obj, backup := &offer{of: want}, r.obj, r.obj.Status.Backup
	sent, log := r.cfg.Metrics.sent(obj), newLogList(ctx, r.cfg.OpenLocation, obj, backup, r.cfg.Clock)
	withdraw := r.cfg.Server.Offer(obj.Name, want.token, backupserver.Backup{
		Size: backup.Size, SHA256: backup.SHA256,
		Open: func(ctx context.Context, offset int64) (io.ReadCloser, error) { return openAt(ctx, log, offset) },
		Served: func(upTo int64) {
			before := o.served.Swap(upTo)
			sent(max(upTo-before, 0))
			o.failure.Store(nil)
		},
		Failed: func(err error) {
			text := notice.Shorten(err.Error(), 500)
			if errors.Is(err, backupserver.ErrReplaced) || errors.Is(err, store.ErrNotFound) {
				o.served.Store(0) // whatever was sent, it counts for nothing
				text += anotherBackup
				log.forget()
			}
			o.failure.Store(&text)
		},
	})
	o.withdraw = func() {
		log.end(errWithdrawn) // requests may wait for it
		withdraw()
		log.stop()
	}
	r.offer = o
}

func (r *Restore) dropOffer() {
	if r.offer != nil {
		r.offer.withdraw()
		r.offer = nil
	}
}
