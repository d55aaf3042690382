// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"encoding/json"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// etcd reads its CAs when it starts. After a restart of its container, it may hold those that the
// Secret has got meanwhile.
func TestAPodNotesTheCAsThatItsEtcdHasRead(t *testing.T) {
	const pod, other = "template", "other"
	for name, c := range map[string]struct {
		made     string // the former note
		template string // of the pod
		restarts int32
		unready  bool
		holds    string // "" is unknown
		notes    string // by the next update of its metadata
	}{
		"as it was noted":                      {made: "a", template: pod, holds: "a"},
		"after a restart":                      {made: "a", template: pod, restarts: 2, notes: "a 2"},
		"after a restart that is noted":        {made: "a 2", template: pod, restarts: 2, holds: "a"},
		"after another one":                    {made: "a 2", template: pod, restarts: 3, notes: "a 3"},
		"after a restart, without a quorum":    {made: "a", template: pod, restarts: 2, unready: true},
		"the CAs have changed since":           {made: "b", template: other, holds: "b"},
		"they have, and it has restarted":      {made: "b", template: other, restarts: 1},
		"an earlier operator made it":          {template: pod, notes: "a"},
		"an earlier operator, before a change": {template: other},
	} {
		t.Run(name, func(t *testing.T) {
			p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{PodTemplateAnnotation: c.template}}}
			if c.made != "" {
				p.Annotations[PeerCAsAnnotation] = c.made
			}
			p.Spec.Containers = []corev1.Container{{Name: EtcdContainer, Image: "etcd:v3.6.16"}}
			p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: EtcdContainer, RestartCount: c.restarts, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}}
			if !c.unready {
				p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
			}
			if got := PodStateOf(p).PeerCAs; got != c.holds {
				t.Errorf("it holds %q, want %q", got, c.holds)
			}
			now := Template{Pod: pod, PeerCAs: "a"}
			patch, err := MetadataPatch(testCluster(), p, now, "1")
			if err != nil {
				t.Fatal(err)
			}
			var changed struct {
				Metadata struct{ Annotations map[string]string }
			}
			if err := json.Unmarshal(patch, &changed); err != nil {
				t.Fatal(err)
			}
			if got := changed.Metadata.Annotations[PeerCAsAnnotation]; got != c.notes || MetadataOutdated(testCluster(), p, now) != (c.notes != "") {
				t.Errorf("the operator notes %q, want %q", got, c.notes)
			}
			// Without TLS between peers, and before the Secret was read, nothing is noted.
			if MetadataOutdated(testCluster(), p, Template{Pod: pod}) {
				t.Error("it notes what it does not know")
			}
		})
	}
}
