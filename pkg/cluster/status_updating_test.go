// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/cluster/plan"
	"github.com/etcd-operator/etcd-operator/pkg/manifest"
)

func TestUpdatingTellsHowFarAnEditIs(t *testing.T) {
	const (
		volumes = "\nvolume a\nvolume b refused"
		larger  = "cluster template=t storage=2Gi size=2\nmember a leader\nmember b\n"
	)
	for name, tc := range map[string]struct{ world, status, reason, message string }{
		"nothing to follow":    {world: "cluster template=t size=2\nmember a leader\nmember b"},
		"under way":            {"cluster template=t size=2\nmember a leader template=old\nmember b", "True", "Cluster updating", "1 of 2 members follow the spec"},
		"a member that starts": {"cluster template=t size=3\nmember a leader template=old\nmember b down=59s guarded\nmember c template=old", "True", "Cluster updating", "1 of 3 members follow the spec"},
		"a member that crashes": {
			"cluster template=t size=3\nmember a leader template=old\nmember b down=60s guarded\nmember c template=old", "True", "Cluster updating",
			"1 of 3 members follow the spec; b has not served since the edit of the spec, and the operator does not replace it: " +
				"if its logs blame the edit, take the edit back, and the operator repairs the member with its data",
		},
		"a member that opens a large database": {
			"cluster template=t size=3 storage=1Gi\nmember a leader template=old\nmember b down=10m guarded startingup\nmember c template=old\nvolume a\nvolume b\nvolume c",
			"True", "Cluster updating", "1 of 3 members follow the spec; b has not served since the edit of the spec, and the operator does not replace it: " +
				"if its logs blame the edit, take the edit back, and the operator repairs the member with its data",
		},
		"a member that crashes for long": {
			"cluster template=t size=3\nmember a leader template=old\nmember b down=11m guarded\nmember c template=old", "True", "Cluster updating",
			"1 of 3 members follow the spec; b has not served since the edit of the spec, and the operator does not replace it: " +
				"if its logs blame the edit, take the edit back, and the operator repairs the member with its data; if not, delete its pod",
		},
		"a member that may be well": {
			"cluster template=t size=3\nmember a leader template=old\nmember b down=11m guarded ready\nmember c template=old", "True", "Cluster updating",
			"1 of 3 members follow the spec",
		},
		"a member that refuses the operator": {
			"cluster template=t size=3\nmember a leader template=old\nmember b unheard guarded notready\nmember c template=old", "True", "Cluster updating",
			"1 of 3 members follow the spec",
		},
		"a member that receives the database": {
			"cluster template=t size=3\nmember a leader template=old\nmember b down=11m received=5s guarded\nmember c template=old", "True", "Cluster updating",
			"1 of 3 members follow the spec",
		},
		"a member that opens what it has received": {
			"cluster template=t size=3\nmember a leader template=old\nmember b down=11m received=2m guarded\nmember c template=old", "True", "Cluster updating",
			"1 of 3 members follow the spec",
		},
		"a new pod that waits":             {"cluster template=t size=1\nmember a leader template=old\npod n stuck", "True", "Cluster updating", "0 of 1 members follow the spec; the new n waits: no node"},
		"pods are refused":                 {"cluster template=t update-refused size=1\nmember a leader template=old", "False", "Update refused", "Kubernetes refuses the pods that the spec describes; the members stay as they are: no"},
		"a volume can't grow":              {"cluster template=t storage=2Gi size=2\nmember a leader\nmember b" + volumes, "False", "Volume expansion refused", "no"},
		"an edit, and a volume":            {"cluster template=t storage=2Gi size=2\nmember a leader template=old\nmember b" + volumes, "True", "Cluster updating", "1 of 2 members follow the spec"},
		"volumes grow":                     {larger + "volume a size=2Gi capacity=3Gi\nvolume b size=2Gi capacity=1Gi", "True", "Volumes growing", "1 of 2 volumes have grown to 2Gi"},
		"members refuse their certificate": {"cluster template=t certificates=refused size=2\nmember a leader template=old\nmember b", "False", "Update held", "the members stay as they are: refused"},
		"members refuse their certificate, and restart": {
			"cluster template=t storage=1Gi certificates=refused accepting=a,b refusing=c\nmember a leader\nmember b\nmember c template=old\nvolume a\nvolume b\nvolume c",
			"True", "Cluster updating", "2 of 3 members follow the spec; refused",
		},
		"members refuse their certificate, and one crashes since an edit": {
			"cluster template=t storage=1Gi certificates=refused accepting=a refusing=c\nmember a leader template=old\nmember b down=2m guarded crashing\nmember c template=old\nvolume a\nvolume b\nvolume c",
			"True", "Cluster updating", "1 of 3 members follow the spec; refused; b has not served since the edit of the spec, and the operator does not replace it: " +
				"if its logs blame the edit, take the edit back, and the operator repairs the member with its data",
		},
		"file systems grow next": {
			larger + "volume a size=2Gi capacity=1Gi resize-pending\nvolume b size=2Gi capacity=1Gi resize-pending", "True", "Volumes growing",
			"0 of 2 volumes have grown to 2Gi; the file systems of a, b grow next: if that takes minutes, delete one of these pods after the other, each when all members are ready",
		},
		"an expansion that fails":      {larger + "volume a size=2Gi capacity=1Gi\nvolume b size=2Gi capacity=1Gi resize-problem=full", "False", "Volume expansion refused", "volume b can't grow to 2Gi: full"},
		"a size that nobody wants now": {"cluster template=t storage=1Gi size=1\nmember a leader\nvolume a size=2Gi capacity=1Gi resize-problem=full", "", "", ""},
		"nobody answers": {
			"cluster template=t storage=2Gi size=2 no-quorum\npod a started crashing\npod b started crashing\nvolume a size=2Gi capacity=2Gi\nvolume b size=2Gi capacity=1Gi",
			"True", "Volumes growing", "1 of 2 volumes have grown to 2Gi",
		},
		"nobody answers, and file systems grow next": {
			"cluster template=t storage=2Gi size=1 no-quorum\npod a started crashing\nvolume a size=2Gi capacity=1Gi resize-pending",
			"True", "Volumes growing", "0 of 1 volumes have grown to 2Gi; the file systems of a grow next: if that takes minutes, delete those of these pods that do not run: their data stays on the volumes",
		},
		"nobody answers, and a volume can't grow": {"cluster template=t storage=2Gi size=1 no-quorum\npod a started crashing\nvolume a refused", "False", "Volume expansion refused", "no"},
		"volumes of others":                       {larger + "volume a size=2Gi capacity=2Gi\nvolume b size=2Gi capacity=2Gi\nvolume x size=2Gi capacity=1Gi", "", "", ""},
		"a volume that is not bound":              {larger + "volume a size=2Gi capacity=2Gi\nvolume b size=2Gi", "", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			o, err := parseWorld(tc.world)
			if err != nil {
				t.Fatal(err)
			}
			status, reason, message := updating(o)
			if string(status) != tc.status || reason != tc.reason || message != tc.message {
				t.Errorf("%s, %q, %q", status, reason, message)
			}
		})
	}
}

// The API server accepts a larger request before anybody knows whether the volume can grow. The disk
// filled up, and the cluster was as specified.
func TestAnExpansionThatFailsLaterIsTold(t *testing.T) {
	o, err := parseWorld("cluster template=t storage=2Gi size=1\nmember a leader")
	if err != nil {
		t.Fatal(err)
	}
	claim := manifest.BuildVolume(clusterWith("3.6.16", &api.PodPolicy{PersistentVolumeClaimSpec: claimOf("2Gi")}), "a")
	claim.Status = corev1.PersistentVolumeClaimStatus{
		Phase: corev1.ClaimBound, Capacity: claimOf("1Gi").Resources.Requests,
		Conditions: []corev1.PersistentVolumeClaimCondition{
			{Type: corev1.PersistentVolumeClaimNodeResizeError, Status: corev1.ConditionFalse, Message: "no more"},
			{Type: corev1.PersistentVolumeClaimControllerResizeError, Status: corev1.ConditionTrue, Message: "quota exceeded"},
		},
	}
	o.Volumes = append(o.Volumes, manifest.VolumeStateOf(claim))
	st := statusAfter(o, plan.Plan(o), 1)
	if got := conditionOf(st, api.ClusterConditionUpdating); got != "False / Volume expansion refused / volume a can't grow to 2Gi: quota exceeded" {
		t.Errorf("Updating is %q", got)
	}
	if stalled := st.Condition(api.ConditionStalled); stalled.Reason != "VolumeExpansionRefused" {
		t.Errorf("Stalled is %+v", stalled)
	}
}

// Full volumes took the quorum. The condition was not written while nobody answered, so the status did not say
// whether the volumes grow.
func TestVolumesThatGrowWithoutAQuorumAreTold(t *testing.T) {
	const nobody = "cluster template=t storage=2Gi size=1 no-quorum\npod a started crashing\n"
	for name, tc := range map[string]struct {
		before api.ClusterCondition
		volume string
		want   string
	}{
		"they grow":              {volume: "volume a size=2Gi capacity=1Gi", want: "True / Volumes growing / 0 of 1 volumes have grown to 2Gi"},
		"one can't":              {volume: "volume a refused", want: "False / Volume expansion refused / no"},
		"they have grown":        {api.ClusterCondition{Status: "True", Reason: "Volumes growing"}, "volume a size=2Gi capacity=2Gi", ""},
		"an edit has not rolled": {api.ClusterCondition{Status: "True", Reason: "Cluster updating"}, "volume a size=2Gi capacity=2Gi", "True / Cluster updating / "},
	} {
		t.Run(name, func(t *testing.T) {
			o, err := parseWorld(nobody + tc.volume)
			if err != nil {
				t.Fatal(err)
			}
			if tc.before.Status != "" {
				tc.before.Type = api.ClusterConditionUpdating
				o.Status.Conditions = append(o.Status.Conditions, tc.before)
			}
			if got := conditionOf(statusAfter(o, plan.Plan(o), 1), api.ClusterConditionUpdating); got != tc.want {
				t.Errorf("Updating is %q", got)
			}
		})
	}
}
