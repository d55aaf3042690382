// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"time"

	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

// aimed returns faults that meet only if somebody aims them at each other. They are drawn
// apart from the others, so a life without them stays as it is.
func (w *world) aimed() []*fault {
	if w.aim != nil {
		return w.aim.faults(w)
	}
	if !w.api.noWatchLists || !w.life.chance(0.1, "old view") {
		return nil
	}
	return w.oldView()
}

// oldView makes the cluster lose its first member for good. Then the operator restarts, and a
// cache of the API server shows it the bootstrap: no pod, and a status that waits for the seed.
func (w *world) oldView() []*fault {
	l := w.life
	loss := &fault{id: "the first member is lost", at: l.between(30*time.Second, 2*time.Minute, "old view", "loss")}
	loss.begin = func() {
		_, seed := w.bootstrap()
		for _, resource := range []string{"pods", "persistentvolumeclaims"} {
			if s := w.api.shelves[resource]; s.objects[storedKey(namespace, seed)] != nil {
				w.api.remove(s, storedKey(namespace, seed), nil)
			}
		}
	}
	view := &fault{id: "the operator restarts and sees the bootstrap", at: loss.at + l.between(40*time.Second, 100*time.Second, "old view", "at")}
	view.lasts = l.between(30*time.Second, time.Minute, "old view", "lasts")
	resources := []string{"pods", "services", "persistentvolumeclaims", "etcdclusters"}
	view.begin = func() {
		w.impaired()
		w.view, _ = w.bootstrap()
		for _, r := range resources {
			w.lags[r] += view.lasts
		}
		if o := w.operator(); o != nil {
			o.crash()
		}
	}
	view.end = func() {
		w.impaired()
		w.view = 0
		for _, r := range resources {
			w.lags[r] -= view.lasts
		}
	}
	return []*fault{loss, view}
}

// bootstrap returns the version at which the status first named a seed, and the seed.
func (w *world) bootstrap() (version int64, seed string) {
	for _, c := range w.api.shelves["etcdclusters"].past {
		if c.after == nil {
			continue
		}
		st := c.after.obj.(*api.EtcdCluster).Status
		if st.Phase == api.ClusterPhaseCreating && len(st.Members.Unready) == 1 {
			return c.version, st.Members.Unready[0]
		}
	}
	return 0, ""
}
