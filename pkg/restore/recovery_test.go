// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package restore

import (
	"strings"
	"testing"

	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

const begun = "2026-11-21T17:59:30Z"

// recovers makes the restore follow a chosen way out.
func recovers(o *observation) { o.obj.Annotations = map[string]string{api.RecoveryAnnotation: begun} }

// chosen is an EtcdCluster with a choice.
func chosen(phase api.RecoveryPhase, start string) scene {
	return func(o *observation) {
		o.cluster.status.Recovery = &api.RecoveryStatus{Choice: &api.RecoveryChoice{Value: "survivor=a", Phase: phase, StartDate: start}}
	}
}

// automatic is a choice of the automatic recovery.
func automatic(mode api.RecoveryMode, annotation string) scene {
	return func(o *observation) {
		chosen(api.RecoveryRestoring, begun)(o)
		o.cluster.status.Recovery.Choice.Automatic = true
		o.cluster.spec.Recovery = &api.RecoveryPolicy{Mode: mode}
		if annotation != "" {
			o.cluster.live.SetAnnotations(map[string]string{api.RecoverAnnotation: annotation})
		}
	}
}

func held(o *observation) { o.obj.Finalizers = []string{api.RestoreFinalizer} }

// A quorum that is back may have taken writes.
func TestARecoveryBeginsOnlyWhileItIsChosen(t *testing.T) {
	for name, test := range map[string]struct {
		scenes []scene
		phase  api.RestorePhase
	}{
		"chosen":                   {[]scene{recovers, held, chosen(api.RecoveryRestoring, begun), read(nil)}, api.RestorePhaseStopping},
		"chosen, and not yet read": {[]scene{recovers, chosen(api.RecoveryRestoring, begun)}, api.RestorePhaseVerifying},
		"nobody chose, and the mode is Automatic": {[]scene{recovers, held, automatic(api.RecoveryAutomatic, ""), read(nil)}, api.RestorePhaseStopping},
		"the mode is Manual now":                  {[]scene{recovers, held, automatic(api.RecoveryManual, ""), read(nil)}, api.RestorePhaseFailed},
		"a person chooses now":                    {[]scene{recovers, held, automatic(api.RecoveryAutomatic, "backup=b"), read(nil)}, api.RestorePhaseFailed},
		"no recovery":                             {[]scene{held, read(nil)}, api.RestorePhaseStopping},
		"a quorum is back":                        {[]scene{recovers, held, chosen(api.RecoveryFailed, begun), read(nil)}, api.RestorePhaseFailed},
		"another choice":                          {[]scene{recovers, held, chosen(api.RecoveryRestoring, "2026-11-21T18:00:00Z"), read(nil)}, api.RestorePhaseFailed},
		"nothing is chosen":                       {[]scene{recovers, held, read(nil)}, api.RestorePhaseFailed},
		"the EtcdCluster is gone":                 {[]scene{recovers, held, gone}, api.RestorePhaseFailed},
		"it is too late to go back":               {[]scene{recovers, onRecord(api.RestorePhaseStopping), chosen(api.RecoveryFailed, begun)}, api.RestorePhaseStopping},
	} {
		v := plan(seen(test.scenes...))
		if v.status.Phase != test.phase {
			t.Errorf("%s: the restore is %s (%s), want %s", name, v.status.Phase, v.status.Reason, test.phase)
		}
		if failed := v.status.Phase == api.RestorePhaseFailed; failed && (v.step != nil || v.status.Cluster != nil || !strings.Contains(v.status.Reason, "no longer asks")) {
			t.Errorf("%s: the step is %v, the reason %q", name, v.step, v.status.Reason)
		}
	}
}

// The new cluster must not begin with the choice of the old one.
func TestTheChoiceEndsWithTheOldCluster(t *testing.T) {
	o := seen()
	o.cluster.live.SetAnnotations(map[string]string{api.RecoverAnnotation: "survivor=a", "kept": "yes"})
	m, err := manifestOf(o.cluster.live)
	if err != nil || strings.Contains(string(m), api.RecoverAnnotation) || !strings.Contains(string(m), "kept") {
		t.Errorf("the manifest is %s: %v", m, err)
	}
}
