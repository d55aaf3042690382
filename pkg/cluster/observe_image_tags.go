// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"maps"
	"time"

	"github.com/etcd-operator/etcd-operator/pkg/cluster/plan"
	"github.com/etcd-operator/etcd-operator/pkg/etcd"
	"github.com/etcd-operator/etcd-operator/pkg/manifest"
)

// restartPatience is how long a ready member may run the old version after a change of its
// image. Until the kubelet has noticed the change, the image is not at fault.
const restartPatience = time.Minute

// mislabels are the images that hold another etcd version than their tag says, as a member has
// shown, with that version. The operator must not wait for the tag's version.
type mislabels struct {
	holds map[string]string
	// differs is since when a ready pod's etcd has had another version than its image's tag,
	// by pod.
	differs map[string]time.Time
}

func newMislabels() mislabels {
	return mislabels{holds: map[string]string{}, differs: map[string]time.Time{}}
}

// learn compares running versions with their tags and returns the mislabelled images.
func (l mislabels) learn(o *plan.Observation) map[string]string {
	seen, used := map[string]bool{}, map[string]bool{}
	for _, m := range o.Own() {
		if m.Pod == nil {
			continue
		}
		used[m.Pod.Image] = true
		if m.Status == nil {
			continue
		}
		if manifest.Holds(m.Pod.Version, m.Status.Version) {
			delete(l.holds, m.Pod.Image)
			continue
		}
		if _, err := etcd.ParseVersion(m.Pod.Version); err != nil || !m.Pod.Ready {
			continue
		}
		key := string(m.Pod.UID) + " " + m.Pod.Image
		seen[key] = true
		if _, ok := l.differs[key]; !ok {
			l.differs[key] = o.Now
		}
		if m.Pod.Previous == "" || o.Now.Sub(l.differs[key]) >= restartPatience {
			l.holds[m.Pod.Image] = m.Status.Version
		}
	}
	maps.DeleteFunc(l.differs, func(key string, _ time.Time) bool { return !seen[key] })
	maps.DeleteFunc(l.holds, func(image, _ string) bool { return len(o.Members) > 0 && !used[image] })
	return maps.Clone(l.holds)
}
