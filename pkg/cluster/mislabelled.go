// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/etcd-operator/etcd-operator/pkg/etcd"
)

// restartPatience is how long a ready member whose image was changed may run the version
// of before. Until the kubelet has noticed the change, that is no fault of the image.
const restartPatience = time.Minute

// mislabels are the images of which a member has shown that they hold another version of
// etcd than their tag says, with that version. Waiting for the tag's version is in vain.
type mislabels struct {
	holds map[string]string
	// differs is since when a ready pod's etcd is of another version than its image's
	// tag, by the pod.
	differs map[string]time.Time
}

func newMislabels() mislabels {
	return mislabels{holds: map[string]string{}, differs: map[string]time.Time{}}
}

// learn looks at what runs and gives the images that lie.
func (l mislabels) learn(o *observation) map[string]string {
	seen, used := map[string]bool{}, map[string]bool{}
	for _, m := range o.own() {
		if m.pod == nil {
			continue
		}
		used[m.pod.image] = true
		if m.status == nil {
			continue
		}
		if sameVersion(m.pod.version, m.status.Version) {
			delete(l.holds, m.pod.image)
			continue
		}
		if _, err := etcd.ParseVersion(m.pod.version); err != nil || !m.pod.ready {
			continue
		}
		key := string(m.pod.uid) + " " + m.pod.image
		seen[key] = true
		if _, ok := l.differs[key]; !ok {
			l.differs[key] = o.now
		}
		if m.pod.previous == "" || o.now.Sub(l.differs[key]) >= restartPatience {
			l.holds[m.pod.image] = m.status.Version
		}
	}
	maps.DeleteFunc(l.differs, func(key string, _ time.Time) bool { return !seen[key] })
	maps.DeleteFunc(l.holds, func(image, _ string) bool { return len(o.members) > 0 && !used[image] })
	return maps.Clone(l.holds)
}

// mislabelled reports whether the image of a member's pod is known to hold another
// version than its tag says.
func (o *observation) mislabelled(m memberState) bool {
	return m.pod != nil && o.mislabels[m.pod.image] != ""
}

// dataVersion is the version whose image can run a member's data again: the tag's where
// the image is mislabelled, for there may be no image of the version that it holds.
func (o *observation) dataVersion(m memberState) string {
	if !o.mislabelled(m) {
		return m.status.Version
	}
	tag, err := etcd.ParseVersion(m.pod.version)
	runs, runsErr := etcd.ParseVersion(m.status.Version)
	if err != nil || runsErr != nil || tag.Minor != runs.Minor {
		return m.status.Version
	}
	return m.pod.version
}

// mislabelledTarget says that members have the image that the spec asks for, and do not
// run what it says; "" if they do.
func (o *observation) mislabelledTarget() string {
	if o.status.Phase == "" || !slices.ContainsFunc(o.own(), func(m memberState) bool {
		return o.mislabelled(m) && m.pod.image == o.image(o.spec.EffectiveVersion())
	}) {
		return ""
	}
	image := o.image(o.spec.EffectiveVersion())
	return fmt.Sprintf("%s%s holds etcd %s: no further member is changed to it; set spec.repository or spec.version to an image that holds the version of its tag",
		wrongImage, image, o.mislabels[image])
}

// wrongImage begins what status and events say of an image whose tag is wrong.
const wrongImage = "the tag of an image is wrong: "
