// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package restore

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/notice"
	"github.com/etcd-operator/etcd-operator/pkg/readiness"
)

// maxReason bounds a reason in bytes.
const maxReason = 4000

// write puts the status of a verdict on record, and reports whether it had to. Where
// somebody else has written meanwhile, what was decided counts no more: errBehind.
func (r *Restore) write(ctx context.Context, now time.Time, v *verdict) (bool, error) {
	v.status.Reason = notice.Shorten(v.status.Reason, maxReason)
	r.setReady(v, now)
	if equality.Semantic.DeepEqual(v.status, r.obj.Status) {
		return false, nil
	}
	if v.step == nil && !v.consumed && now.Sub(r.statusWrittenAt) >= 0 && now.Sub(r.statusWrittenAt) < reasonInterval && onlyReason(&v.status, &r.obj.Status) {
		return false, nil // it is reported a little later
	}
	before := r.obj.Status.DeepCopy()
	next := r.obj.DeepCopy()
	next.Status = v.status
	updated, err := r.cfg.Etcd.EtcdV1beta2().EtcdRestores(next.Namespace).UpdateStatus(ctx, next, metav1.UpdateOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return false, fmt.Errorf("write the status: %w: %w", r.notFound(ctx), err)
	case apierrors.IsConflict(err):
		return false, fmt.Errorf("write the status: %w: %w", errBehind, err)
	case err != nil:
		return false, fmt.Errorf("write the status: %w", granted(err, "update etcdrestores/status"))
	}
	r.statusWrittenAt = now
	r.dropsConditions = len(updated.Status.Conditions) == 0
	r.know(updated)
	r.cfg.Metrics.changed(updated, before)
	r.notices.changed(before, &updated.Status, now)
	if v.late != "" {
		r.notices.late(v.late)
	}
	return true, nil
}

// notFound looks for the object after an answer that says it is not there: that answer may be about
// its status.
func (r *Restore) notFound(ctx context.Context) error {
	if err := r.read(ctx); err != nil {
		return err
	}
	if r.cfg.StatusMissing != nil {
		r.cfg.StatusMissing()
	}
	return notice.NoStatusSubresource(api.EtcdRestoreResourcePlural)
}

func onlyReason(a, b *api.RestoreStatus) bool {
	next := b.DeepCopy()
	next.Reason = a.Reason
	if readiness.SameStates(next.Conditions, a.Conditions) {
		next.Conditions = a.Conditions
	}
	return equality.Semantic.DeepEqual(a, next)
}

// reportBlind writes to the status why the operator can't observe anything.
func (r *Restore) reportBlind(ctx context.Context, now time.Time, blind error) error {
	if ctx.Err() != nil || done(r.obj) || waitsForEdit(r.obj) {
		return nil
	}
	o := &observation{now: now, obj: r.obj}
	phase := api.RestorePhaseRetrying
	if committed(&r.obj.Status) {
		phase = o.phase()
	}
	_, err := r.write(ctx, now, o.at(phase, blind.Error()+"; it is tried again"))
	if errors.Is(err, errBehind) {
		return nil
	}
	return err
}
