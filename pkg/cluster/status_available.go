// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/cluster/plan"
	"github.com/etcd-operator/etcd-operator/pkg/etcd"
)

// Reasons of Available for etcd's alarms. Other reasons are declared at their use.
const (
	reasonNoSpace = "Out of space"
	reasonCorrupt = "Data corrupt"
)

// reasonImporting is the reason of Available while clients are served by the members of an imported
// etcd alone.
const reasonImporting = "Importing"

// availability returns whether the cluster serves reads and writes, and if not, the problem of
// each member and the remedy.
//
// The linearizable read of the membership decides: it succeeds only after a majority of the
// voters has confirmed its leader. A leader that serves reads can still lack the disks that a
// write needs. The members' own words do not count. A member without a
// connection to the others claims a leader for a while. A member that the operator can't reach
// may serve.
func availability(o *plan.Observation, phase api.ClusterPhase) (status corev1.ConditionStatus, reason, message string) {
	if reason, message := o.Contradiction(); reason != "" {
		return corev1.ConditionFalse, reason, message
	}
	voters := o.Voters()
	healthy, answering := plan.Count(voters, plan.MemberState.Healthy), plan.Count(voters, plan.MemberState.Answers)
	if o.Quorum {
		if o.Fenced() {
			return corev1.ConditionFalse, reasonImporting, "the cluster holds a copy of another etcd, and refuses writes until the operator has compared it"
		}
		if reason, message := blocked(o); reason != "" {
			return corev1.ConditionFalse, reason, message
		}
		if message := importedOnly(o); message != "" {
			return corev1.ConditionFalse, reasonImporting, message
		}
		if o.Unconfirmed() {
			return corev1.ConditionFalse, "Quorum lost", fmt.Sprintf("%d of %d voting members confirm reads, %d are needed: writes fail until more do%s",
				healthy, len(voters), etcd.Quorum(len(voters)), troubles(o))
		}
		if hidden(o) {
			return corev1.ConditionFalse, "Pods unlabelled", unlabelled(o).String()
		}
		if healthy < etcd.Quorum(len(voters)) {
			return corev1.ConditionTrue, "Cluster available", fmt.Sprintf("a quorum serves, but only %d of %d voting members answer the operator%s", healthy, len(voters), troubles(o))
		}
		return corev1.ConditionTrue, "Cluster available", fmt.Sprintf("%d of %d voting members are healthy", healthy, len(voters))
	}
	if status, reason, message, blind := withoutSight(o); blind {
		return status, reason, message
	}
	switch {
	case o.Copying() && len(o.Members) == 0:
		return corev1.ConditionFalse, reasonImporting, "the cluster has no copy of the other etcd's data yet" + troubles(o)
	case o.Importing() && len(o.Members) == 0 && o.Spec.ImportFrom == nil:
		return corev1.ConditionUnknown, reasonImporting, "spec.importFrom is gone, and the operator asks no member of the imported etcd" + troubles(o)
	case o.Importing() && len(o.Members) == 0:
		return corev1.ConditionFalse, reasonImporting, "no member of the cluster has joined the etcd to import yet"
	case o.Invalid != "" && len(o.Pods) == 0:
		return corev1.ConditionFalse, "Spec refused", o.Invalid
	case len(o.Pods) == 0 && !plan.CertificatesHold(o).IsZero():
		return corev1.ConditionFalse, "Certificates unusable", plan.CertificatesHold(o).String()
	case len(o.Pods) == 0 && len(o.Volumes) > 0:
		return corev1.ConditionFalse, "Quorum lost", "all pods are gone; the operator recreates them on their volumes"
	case phase == api.ClusterPhaseFailed || phase == api.ClusterPhaseRunning && len(o.Pods) == 0:
		return corev1.ConditionFalse, "All members lost", plan.NoMembersLeft
	case phase != api.ClusterPhaseRunning:
		return corev1.ConditionFalse, "Cluster creating", "the first member does not serve yet" + troubles(o)
	case len(voters) > 0 && answering >= etcd.Quorum(len(voters)):
		return corev1.ConditionFalse, "Quorum lost", "the members have no leader that answers: reads and writes fail until they have elected one" + troubles(o)
	case len(voters) > 0:
		return corev1.ConditionFalse, "Quorum lost", fmt.Sprintf("%d of %d voting members answer, %d are needed: reads and writes fail until more are back%s",
			answering, len(voters), etcd.Quorum(len(voters)), troubles(o))
	default:
		return corev1.ConditionFalse, "Quorum lost", "no member answers the operator" + troubles(o)
	}
}

// importedOnly says that the clients of the cluster's Service reach no member, because none of its
// own with a vote serves; "" otherwise.
func importedOnly(o *plan.Observation) string {
	voters := slices.DeleteFunc(o.Own(), func(m plan.MemberState) bool { return m.Learner })
	switch {
	case !o.Importing() || slices.ContainsFunc(voters, plan.MemberState.Healthy):
		return ""
	case len(voters) > 0:
		return "no own member with a vote is healthy: clients are served by the members of the imported etcd" + troubles(o)
	}
	return "only members of the imported etcd have votes: its clients are served there"
}

// blocked says which alarm makes a cluster with a quorum refuse requests, and the remedy. A
// removed member's alarm holds like any other.
func blocked(o *plan.Observation) (reason, message string) {
	noSpace, corrupt := alarmed(o, etcd.AlarmNoSpace), alarmed(o, etcd.AlarmCorrupt)
	switch {
	case corrupt != "":
		return reasonCorrupt, "writes are refused, and no pod is ready, since an alarm CORRUPT was raised for " + corrupt + corruptWay(o)
	case noSpace != "":
		return reasonNoSpace, "writes are refused since an alarm NOSPACE was raised by " + noSpace +
			", whose database has reached its quota: free space (etcdctl compact --physical, then etcdctl defrag member by member) or raise ETCD_QUOTA_BACKEND_BYTES in spec.pod.etcdEnv, then lift the alarm (etcdctl alarm disarm)"
	}
	return "", ""
}

// corruptWay says what to do about an alarm CORRUPT. etcd raises it for the member 0 if no majority has the same
// data, or too few members answer the comparison. An alarm outlasts its member, and the others may all be right.
func corruptWay(o *plan.Observation) string {
	const (
		compare = "compare the members (etcdctl endpoint hashkv --cluster --command-timeout=5m)"
		replace = "delete the PersistentVolumeClaim, if there is one, and then the pod of the one that differs, so that the operator replaces it"
		lift    = "lift the alarm (etcdctl alarm disarm)"
	)
	left := true
	for _, a := range o.Alarms() {
		switch {
		case a.Type != etcd.AlarmCorrupt:
		case a.MemberID == 0:
			return ": no majority had the same data: " + compare + ", if a majority agrees now, " + replace + ", and " + lift + "; otherwise restore a backup (EtcdRestore)"
		case slices.ContainsFunc(o.Members, func(m plan.MemberState) bool { return m.ID == a.MemberID }):
			left = false
		}
	}
	if left {
		return ": " + compare + ", and if all agree, " + lift + "; otherwise " + replace + ", and then " + lift
	}
	return ", whose data differs from the others': " + compare + ", " + replace + ", and " + lift
}

// alarmed names the members with an alarm.
func alarmed(o *plan.Observation, alarm string) string {
	var names []string
	for _, a := range o.Alarms() {
		if a.Type != alarm {
			continue
		}
		name := "former member " + etcd.FormatID(a.MemberID)
		if a.MemberID == 0 {
			name = "no member in particular"
		}
		for _, m := range o.Members {
			if m.ID == a.MemberID {
				name = m.Title()
			}
		}
		names = append(names, name)
	}
	return strings.Join(names, ", ")
}

// troubles lists the problems: a clause for each member, and then for each pod that is no
// member yet.
func troubles(o *plan.Observation) string {
	var list []string
	told := map[string]bool{}
	for _, m := range knownMembers(o) {
		if !m.Healthy {
			told[m.Name] = true
			list = append(list, cmp.Or(m.Name, "member "+m.ID)+": "+m.Problem)
		}
	}
	for _, p := range o.Pods {
		if p.Problem != "" && !told[p.Name] {
			list = append(list, p.Name+": "+p.Problem)
		}
	}
	if why := podsRefusal(o); !why.IsZero() {
		list = append(list, why.String())
	}
	if len(list) == 0 {
		return ""
	}
	return "; " + strings.Join(list, "; ")
}
