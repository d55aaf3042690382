// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"slices"
	"strings"

	"github.com/etcd-operator/etcd-operator/pkg/etcd"
	"github.com/etcd-operator/etcd-operator/pkg/manifest"
)

// mislabelled reports whether the image of a member's pod is known to hold another version
// than its tag says.
func (o *Observation) mislabelled(m MemberState) bool {
	return m.Pod != nil && o.Mislabels[m.Pod.Image] != ""
}

// dataVersion is the version whose image can run a member's data again. For a mislabelled
// image it is the tag's: there may be no image of the version that it holds.
func (o *Observation) dataVersion(m MemberState) string {
	if m.Pod != nil && manifest.Holds(m.Pod.Version, m.Status.Version) {
		return m.Pod.Version
	}
	if !o.mislabelled(m) {
		return m.Status.Version
	}
	tag, err := etcd.ParseVersion(m.Pod.Version)
	runs, runsErr := etcd.ParseVersion(m.Status.Version)
	if err != nil || runsErr != nil || tag.Minor != runs.Minor {
		return m.Status.Version
	}
	return m.Pod.Version
}

// MislabelledTarget says that members have the image that the spec asks for, and do not run
// the version in its tag; zero if they do.
func (o *Observation) MislabelledTarget() Reason {
	if o.Status.Phase == "" || !slices.ContainsFunc(o.Own(), func(m MemberState) bool {
		return o.mislabelled(m) && has(*m.Pod, o.Image(o.Spec.EffectiveVersion()))
	}) {
		return Reason{}
	}
	image := o.Image(o.Spec.EffectiveVersion())
	return Reason{WrongImage, fmt.Sprintf("%s holds etcd %s: the operator changes no further member to it; set spec.repository or spec.version to an image that holds the version of its tag",
		image, o.Mislabels[image])}
}

// Image returns the image of a version of etcd.
func (o *Observation) Image(version string) string {
	return manifest.Image(&o.Spec, version, o.LiteralTags())
}

// LiteralTags reports whether tags of images have no leading v unless the spec's version has
// one. The fork takes the version literally, and its registries may have only such tags.
func (o *Observation) LiteralTags() bool {
	return o.Status.LiteralTags || o.StatedLiteralTags || slices.ContainsFunc(o.Pods, func(p manifest.PodState) bool { return p.LiteralTag })
}

// has reports whether a pod has an image. An earlier operator may have asked for a digest,
// which this one takes for a change by admission.
func has(p manifest.PodState, image string) bool { return p.Image == image || p.Admitted == image }

// tagOf returns the version in the tag of the image that holds a running version: that of the
// spec or of a member, which may have a suffix.
func (o *Observation) tagOf(running string) string {
	if target := o.Spec.EffectiveVersion(); manifest.Holds(target, running) {
		return target
	}
	for _, p := range o.Pods {
		if p.Started && manifest.Holds(p.Version, running) {
			return p.Version
		}
	}
	return strings.TrimPrefix(running, "v")
}

// LowestVersion is the oldest etcd in the cluster, by the members' own reports. A silent
// member may be as old as the recorded cluster version. ok is false if nothing is known.
func (o *Observation) LowestVersion() (lowest etcd.Version, ok bool) {
	for _, m := range o.Members {
		version := o.Status.CurrentVersion
		switch {
		case m.Foreign():
			continue // the operator does not ask it
		case m.Status != nil:
			version = m.Status.Version
		case !m.Joined():
			continue
		}
		v, err := etcd.ParseVersion(version)
		if err == nil && (!ok || v.LT(lowest.Version)) {
			lowest, ok = v, true
		}
	}
	return lowest, ok
}

// Outdated reports whether members run another version than the spec's. A silent member counts
// with the cluster's last known version.
func (o *Observation) Outdated() bool {
	target := o.Spec.EffectiveVersion()
	if o.NobodyAnswers() {
		return o.Status.CurrentVersion != "" && !manifest.Holds(target, o.Status.CurrentVersion)
	}
	return slices.ContainsFunc(o.Own(), func(m MemberState) bool {
		runs := o.Status.CurrentVersion
		if m.Status != nil {
			runs = m.Status.Version
		}
		if o.mislabelled(m) && has(*m.Pod, o.Image(target)) {
			return false // it needs nothing more
		}
		return m.Pod != nil && m.Pod.Version != target || m.Joined() && !manifest.Holds(target, runs)
	})
}

// BehindImage reports whether a member has not followed an edit of spec.repository: its image
// has the spec's version, and another repository.
func (o *Observation) BehindImage(m MemberState) bool {
	target := o.Spec.EffectiveVersion()
	return m.Pod != nil && !m.Pod.Legacy && manifest.SameVersion(m.Pod.Version, target) && !has(*m.Pod, o.Image(target))
}
