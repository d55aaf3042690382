// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

func TestMembersAreSpreadAsTheUserSays(t *testing.T) {
	const (
		soft = "kubernetes.io/hostname ScheduleAnyway app=etcd,etcd_cluster=c; topology.kubernetes.io/zone ScheduleAnyway app=etcd,etcd_cluster=c"
		all  = "app=etcd,etcd_cluster=c"
	)
	own := &metav1.LabelSelector{MatchLabels: map[string]string{"team": "storage"}}
	rack := corev1.TopologySpreadConstraint{MaxSkew: 1, TopologyKey: "rack", WhenUnsatisfiable: corev1.DoNotSchedule}
	rackOfTeam := rack
	rackOfTeam.LabelSelector = own
	ofNobody := rack
	ofNobody.LabelSelector = &metav1.LabelSelector{}
	for name, tc := range map[string]struct {
		policy api.PodPolicy
		want   string
	}{
		"by default, softly":        {api.PodPolicy{}, soft},
		"with an affinity, as well": {api.PodPolicy{Affinity: &corev1.Affinity{}}, soft},
		"with antiAffinity, too":    {api.PodPolicy{AntiAffinity: true}, soft},
		"an empty list is none":     {api.PodPolicy{TopologySpreadConstraints: []corev1.TopologySpreadConstraint{}}, ""},
		"the user's alone":          {api.PodPolicy{TopologySpreadConstraints: []corev1.TopologySpreadConstraint{rack}}, "rack DoNotSchedule " + all},
		"with the user's selector":  {api.PodPolicy{TopologySpreadConstraints: []corev1.TopologySpreadConstraint{rackOfTeam}}, "rack DoNotSchedule team=storage"},
		"also if it is for all":     {api.PodPolicy{TopologySpreadConstraints: []corev1.TopologySpreadConstraint{ofNobody}}, "rack DoNotSchedule "},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, c := range joiner(clusterWith("3.6.16", &tc.policy)).build(t).Spec.TopologySpreadConstraints {
				got = append(got, fmt.Sprintf("%s %s %s", c.TopologyKey, c.WhenUnsatisfiable, strings.TrimPrefix(metav1.FormatLabelSelector(c.LabelSelector), "<none>")))
			}
			if all := strings.Join(got, "; "); all != tc.want {
				t.Errorf("%q, want %q", all, tc.want)
			}
		})
	}
}

func TestAntiAffinityIsForThoseWithoutAffinity(t *testing.T) {
	users := &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{}}
	for name, tc := range map[string]struct {
		policy api.PodPolicy
		want   string
	}{
		"neither":           {api.PodPolicy{}, "none"},
		"antiAffinity":      {api.PodPolicy{AntiAffinity: true}, "no two of app=etcd,etcd_cluster=c on one kubernetes.io/hostname"},
		"affinity":          {api.PodPolicy{Affinity: users}, "the user's"},
		"both":              {api.PodPolicy{Affinity: users, AntiAffinity: true}, "the user's"},
		"an empty affinity": {api.PodPolicy{Affinity: &corev1.Affinity{}, AntiAffinity: true}, "empty"},
	} {
		t.Run(name, func(t *testing.T) {
			got := "none"
			switch a := joiner(clusterWith("3.6.16", &tc.policy)).build(t).Spec.Affinity; {
			case a == nil:
			case a.NodeAffinity != nil:
				got = "the user's"
			case a.PodAntiAffinity != nil:
				term := a.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution[0]
				got = fmt.Sprintf("no two of %s on one %s", metav1.FormatLabelSelector(term.LabelSelector), term.TopologyKey)
			default:
				got = "empty"
			}
			if got != tc.want {
				t.Errorf("%s, want %s", got, tc.want)
			}
		})
	}
}
