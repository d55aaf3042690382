// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"maps"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

const (
	// takenPause is how long an object of somebody else in the place of one that
	// the members can do without is put up with.
	takenPause = time.Minute
	// refusedPause is the time between tries at a write that the API server
	// refuses.
	refusedPause = 10 * time.Second
	// mendPause is the least time between two times that the same is put right:
	// whoever undoes it at once does not get a storm of writes.
	mendPause = 5 * time.Second
)

// belonging is an object that the operator keeps for a cluster besides its pods:
// a Service or the PodDisruptionBudget.
type belonging struct {
	name string
	uid  types.UID
	// owned is true if the object is there and belongs to this EtcdCluster.
	owned bool
	// leaving is true while it is being deleted. A finalizer may take its time;
	// until it is gone nothing can be done, and its end starts a pass.
	leaving bool
	// edited says what of it is not as the operator makes it; empty if all is.
	edited string
	// remake is true where it must be deleted and made anew to be put right.
	remake bool
	// putOff is true while no write of it is tried.
	putOff bool
	// taken is true while somebody else's object was seen in its place. It is tried again
	// after a while.
	taken bool
}

func belongingOf(obj metav1.Object, owner *api.EtcdCluster) belonging {
	return belonging{
		name: obj.GetName(), uid: obj.GetUID(),
		owned:   metav1.IsControlledBy(obj, owner),
		leaving: obj.GetDeletionTimestamp() != nil,
	}
}

// ok tells whether the object is there to be used.
func (b belonging) ok() bool { return b.owned && !b.leaving }

func (c *Cluster) observeBelongings(o *observation) error {
	if err := c.observeServices(o); err != nil {
		return err
	}
	return c.observeBudget(o)
}

// postponed holds until when each of some writes is put off.
type postponed map[string]time.Time

// holds reports whether a write is put off.
func (p postponed) holds(what string, now time.Time) bool { return now.Before(p[what]) }

// forget drops each write that is put off no longer. Nobody may ask about it again: its
// pod is gone, or its Service has another generation.
func (p postponed) forget(now time.Time) {
	maps.DeleteFunc(p, func(_ string, until time.Time) bool { return !now.Before(until) })
}

// writeEnded puts off further tries at a write that failed, and tells of it where
// the API server refuses it for a reason that a person can mend.
func (c *Cluster) writeEnded(what string, err error) {
	if err == nil {
		delete(c.notices.refused, what)
		return
	}
	c.postponed[what] = c.cfg.Clock.Now().Add(refusedPause)
	if refused(err) {
		c.notices.writeRefused(what, err)
	}
}

// refused tells whether the API server understood a request and says no: a quota,
// a policy, a webhook, a right that is missing. The same request may be taken
// later, when somebody has changed that.
func refused(err error) bool {
	return apierrors.IsForbidden(err) || apierrors.IsInvalid(err) || apierrors.IsBadRequest(err)
}

// belongsToOthers tells whether an object is somebody else's: neither this
// cluster's nor left from an earlier EtcdCluster of its name.
func belongsToOthers(obj metav1.Object, owner *api.EtcdCluster) bool {
	ref := metav1.GetControllerOfNoCopy(obj)
	if ref == nil {
		return obj.GetLabels()[clusterLabel] != owner.Name
	}
	return ref.Kind != ownerOf(owner).Kind || ref.Name != owner.Name
}

// differences are what of an object is not as the operator wants it.
type differences []string

func (d *differences) note(what string, same bool) {
	if !same {
		*d = append(*d, what)
	}
}
