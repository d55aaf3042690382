// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"slices"

	"github.com/etcd-operator/etcd-operator/pkg/etcd"
)

// accepts reports whether a healthy member is sure to accept the certificate that all members show, while others
// refuse it.
func (o *Observation) accepts(m MemberState) bool {
	return m.Healthy() && slices.Contains(o.Certificates.Accepting, m.PodName)
}

// RestartsRefusing returns the pods of the members that refuse the others, if their restart ends that: they keep
// their data, and each makes a quorum with those that are sure to accept it. nil: none may restart.
func (o *Observation) RestartsRefusing() []string {
	var pods []string
	voters := o.Voters()
	for _, m := range voters {
		if slices.Contains(o.Certificates.Refusing, m.PodName) && m.KeepsData() && m.Pod != nil && o.podOutdated(*m.Pod) && !o.volumeOutdated(m) {
			pods = append(pods, m.PodName)
		}
	}
	if !o.Quorum || o.Importing() || slices.ContainsFunc(voters, MemberState.Foreign) || Count(voters, o.accepts)+1 < etcd.Quorum(len(voters)) {
		return nil
	}
	slices.Sort(pods)
	return pods
}

// MayRestartRefusing reports whether a restart of members that refuse the others ends that, and Kubernetes has not
// refused it just now.
func (o *Observation) MayRestartRefusing() bool {
	return len(o.RestartsRefusing()) > 0 && !o.UpdatePutOff
}

// restartRefusing restarts a member that refuses the others with their CAs, while all are healthy. A member that
// accepts leads before: one that refuses would not reach the restarted one.
func (o *Observation) restartRefusing() Step {
	if !o.MayRestartRefusing() {
		return nil
	}
	if s := o.unsettled(); s != nil {
		return s
	}
	if why := o.returning(); why != "" {
		return Wait{why}
	}
	for _, m := range o.Voters() {
		if m.leader() && !o.accepts(m) {
			return o.handOver(m)
		}
	}
	for _, name := range o.RestartsRefusing() {
		if p := o.Pod(name); !p.DeletePutOff {
			return recycle(*p, "it refuses the certificate of the others, because it has read other CAs")
		}
	}
	return nil
}
