// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"

	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/cluster/plan"
)

// Reasons of the condition Updating, for the volumes of members (they grow, or one of them can't), and
// for members that must not restart.
const (
	updateHeld       = "Update held"
	volumesGrowing   = "Volumes growing"
	expansionRefused = "Volume expansion refused"
)

// updating returns how far the members and their volumes follow an edit of their template; the status is "" if
// there is nothing to report.
func updating(o *plan.Observation) (status corev1.ConditionStatus, reason, message string) {
	own := o.Own()
	behind := plan.Count(own, func(m plan.MemberState) bool { return o.BehindTemplate(m) || o.BehindImage(m) })
	switch {
	case behind == 0:
		return growing(o)
	case o.UpdateRefused != "":
		return corev1.ConditionFalse, "Update refused", "Kubernetes refuses the pods that the spec describes; the members stay as they are: " + o.UpdateRefused
	}
	message = fmt.Sprintf("%d of %d members follow the spec", len(own)-behind, len(own))
	if o.PeersRefuse() {
		if !o.MayRestartRefusing() {
			return corev1.ConditionFalse, updateHeld, "the members stay as they are: " + o.Certificates.MembersHeld
		}
		message += "; " + o.Certificates.MembersHeld
	}
	return corev1.ConditionTrue, "Cluster updating", message + strings.Join(joiningTroubles(o), "") + editAdvice(o)
}

// editAdvice says what a person can do about a member that has not served since an edit, because the operator
// does not replace it; "" if there is none. It may open a large database, so nobody should give it up before
// the operator would.
func editAdvice(o *plan.Observation) string {
	for _, m := range o.Voters() {
		if !o.TriesEdit(m) || m.Pod.Deleting || m.SilentFor(o.Now) < standstillAfter {
			continue
		}
		giveUp := "; if not, delete its pod"
		switch {
		case !o.Quorum, m.SilentFor(o.Now) <= plan.WedgeDeadline:
			giveUp = ""
		case m.KeepsData():
			giveUp = "; if not, delete its PersistentVolumeClaim (kubectl delete pvc " + m.PodName + " --wait=false) and then its pod"
		}
		return "; " + m.PodName + " has not served since the edit of the spec, and the operator does not replace it: " +
			"if its logs blame the edit, take the edit back, and the operator repairs the member with its data" + giveUp
	}
	return ""
}

// growing returns how far the members' volumes have grown; the status is "" if all have. The API server
// accepts a larger request before anybody knows whether the volume can grow.
func growing(o *plan.Observation) (status corev1.ConditionStatus, reason, message string) {
	want, ok := o.Storage()
	if !ok {
		return "", "", ""
	}
	for _, v := range o.Volumes {
		if v.RefusedSize != "" && o.Grows(v) {
			return corev1.ConditionFalse, expansionRefused, v.RefusedSize
		}
	}
	var volumes, grow int
	var wait []string
	for _, v := range o.Volumes {
		if v.Deleting || v.Capacity.IsZero() || !o.Grows(v) {
			continue
		}
		volumes++
		switch {
		case v.Capacity.Cmp(want) >= 0: // drivers round up
			continue
		case v.ResizeProblem != "":
			return corev1.ConditionFalse, expansionRefused, fmt.Sprintf("volume %s can't grow to %s: %s", v.Name, want.String(), v.ResizeProblem)
		case v.ResizePending:
			wait = append(wait, v.Name)
		}
		grow++
	}
	if grow == 0 {
		return "", "", ""
	}
	message = fmt.Sprintf("%d of %d volumes have grown to %s", volumes-grow, volumes, want.String())
	if len(wait) > 0 {
		way := "delete one of these pods after the other, each when all members are ready"
		if !o.Quorum { // they may crash because they are full
			way = "delete those of these pods that do not run: their data stays on the volumes"
		}
		message += "; the file systems of " + strings.Join(wait, ", ") + " grow next: if that takes minutes, " + way
	}
	return corev1.ConditionTrue, volumesGrowing, message
}

// joiningTroubles says why pods of new members are stuck, a clause for each.
func joiningTroubles(o *plan.Observation) []string {
	var troubles []string
	pods := o.Planned()
	for _, m := range o.Learners() {
		if m.Pod != nil && !m.Joined() && !m.Pod.Started && !m.Pod.Deleting {
			pods = append(pods, *m.Pod)
		}
	}
	for _, p := range pods {
		if p.Problem != "" {
			trouble := "; the new " + p.Name + " waits: " + p.Problem
			if p.Crowded > 0 {
				trouble += "; " + o.WayToRoom(p)
			}
			troubles = append(troubles, trouble)
		}
	}
	return troubles
}

func setUpdating(st *api.ClusterStatus, o *plan.Observation, set func(api.ClusterConditionType, corev1.ConditionStatus, string, string)) {
	status, reason, message := updating(o)
	if o.NobodyAnswers() {
		// How far the members follow is unknown. Their volumes can grow, and that may be what they wait for.
		told := st.Condition(api.ClusterConditionUpdating).Reason
		if status == "" && told != volumesGrowing && told != expansionRefused {
			return
		}
	}
	if status == "" {
		clearCondition(st, api.ClusterConditionUpdating)
		return
	}
	set(api.ClusterConditionUpdating, status, reason, message)
}
