// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package restore

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

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
		"it is on record, and chosen":             {[]scene{onRecord(api.RestorePhaseStopping), recovers, chosen(api.RecoveryRestoring, begun)}, api.RestorePhaseStopping},
		"a quorum is back before the deletion":    {[]scene{onRecord(api.RestorePhaseStopping), recovers, chosen(api.RecoveryFailed, begun)}, api.RestorePhaseFailed},
		"the mode is Manual before the deletion":  {[]scene{onRecord(api.RestorePhaseStopping), recovers, automatic(api.RecoveryManual, "")}, api.RestorePhaseFailed},
		"the deletion has begun":                  {[]scene{onRecord(api.RestorePhaseStopping), recovers, chosen(api.RecoveryFailed, begun), live(deleting)}, api.RestorePhaseStopping},
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

func recovering() *api.EtcdRestore {
	r := testRestore()
	r.Annotations = map[string]string{api.RecoveryAnnotation: begun}
	return r
}

func restoring() *api.RecoveryChoice {
	return &api.RecoveryChoice{Value: "survivor=a", Phase: api.RecoveryRestoring, StartDate: begun}
}

// choose has the etcd operator write a choice, by a clock that is ahead.
func (w *world) choose(choice *api.RecoveryChoice, ahead time.Duration) {
	w.change(func() {
		c := w.cluster()
		c.Status.Recovery = &api.RecoveryStatus{Choice: choice, LastUpdateTime: time.Now().Add(ahead).UTC().Format(time.RFC3339)}
		w.setStatus(c)
	})
}

// replaces checks that the restore replaces a cluster whose loss the etcd operator reports, by a clock
// that is ahead.
func (w *world) replaces(old types.UID, ahead time.Duration) {
	w.t.Helper()
	for range 10 {
		if c := w.cluster(); c != nil && c.UID == old && c.DeletionTimestamp == nil {
			w.choose(restoring(), ahead)
		}
		w.live(time.Minute)
	}
	if c, r := w.cluster(), w.restore(); c == nil || c.UID == old || r.Status.Phase != api.RestorePhaseSucceeded {
		w.t.Errorf("the restore is %s: %s", r.Status.Phase, r.Status.Reason)
	}
}

// The etcd operator ends after it has made the EtcdRestore. A quorum may be back since, and nobody
// says so.
func TestARecoveryWaitsForAnEtcdOperatorThatSeesTheLoss(t *testing.T) {
	for name, reads := range map[string]bool{"while the backup is read": false, "when the backup is on record": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				old := w.running(2)
				w.choose(restoring(), 0)
				w.add("etcdrestores", recovering())
				if reads {
					w.runUntil("delete", "etcdclusters")
				}
				w.live(10 * time.Minute)
				stop := w.run()
				defer stop()
				w.live(10 * time.Minute)
				c, r := w.cluster(), w.restore()
				if c == nil || c.UID != old || c.DeletionTimestamp != nil || !strings.Contains(r.Status.Reason, "no etcd operator") {
					t.Fatalf("the restore is %s: %s", r.Status.Phase, r.Status.Reason)
				}
				w.replaces(old, time.Hour) // the next one sees the loss, by another clock
			})
		})
	}
}

// The operator dies after the commitment. The quorum is back before the next operator.
func TestAQuorumThatIsBackBeforeTheDeletionEndsTheRecovery(t *testing.T) {
	for name, tc := range map[string]struct{ verb, resource string }{
		"before the token is made":              {"create", "secrets"},
		"before the old cluster is held":        {"patch", "etcdclusters"},
		"when all that is left is its deletion": {"delete", "etcdclusters"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				old := w.running(2)
				w.choose(restoring(), 0)
				w.add("etcdrestores", recovering())
				w.runUntil(tc.verb, tc.resource)
				if r := w.restore(); !committed(&r.Status) {
					t.Fatalf("the restore is not committed: %+v", r.Status)
				}
				w.choose(nil, 0)
				stop := w.run()
				defer stop()
				w.live(time.Minute)
				c, r := w.cluster(), w.restore()
				if c == nil || c.UID != old || c.DeletionTimestamp != nil || len(c.Finalizers) > 0 || len(w.all("pods")) != 2 {
					t.Errorf("the cluster is not as it was: %+v", c)
				}
				if committed(&r.Status) || r.Status.Phase != api.RestorePhaseFailed {
					t.Errorf("the restore is %s: %s", r.Status.Phase, r.Status.Reason)
				}
				w.change(func() { w.remove("etcdrestores", "c") })
				w.live(time.Minute)
				if w.restore() != nil {
					t.Error("the EtcdRestore stays after its deletion")
				}
			})
		})
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

// The new cluster has no pods yet that show the form of the tags.
func TestTheNewClusterKeepsTheTagsOfTheOldOne(t *testing.T) {
	for _, literal := range []bool{true, false} {
		o := seen()
		if err := unstructured.SetNestedField(o.cluster.live.Object, literal, "status", "literalTags"); err != nil {
			t.Fatal(err)
		}
		m, err := manifestOf(o.cluster.live)
		if err != nil {
			t.Fatal(err)
		}
		made, err := m.cluster("")
		if err != nil {
			t.Fatal(err)
		}
		if value, there := made.GetAnnotations()[api.LiteralTagsAnnotation]; there != literal || literal && value != "true" {
			t.Errorf("status.literalTags is %v: the annotations are %v", literal, made.GetAnnotations())
		}
	}
}

// The members return and take writes, and the etcd operator died before it could see that. Its last
// report is new enough.
func TestARecoveryWaitsWhileAQuorumOfTheMembersIsReady(t *testing.T) {
	for name, reads := range map[string]bool{"while the backup is read": false, "when the backup is on record": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				old := w.running(3)
				w.choose(restoring(), 0)
				w.add("etcdrestores", recovering())
				if reads {
					w.runUntil("delete", "etcdclusters")
				}
				w.ready(old, 2)
				stop := w.run()
				defer stop()
				for range 5 {
					w.live(time.Minute)
					w.choose(restoring(), 0)
				}
				c, r := w.cluster(), w.restore()
				if c == nil || c.UID != old || c.DeletionTimestamp != nil || !strings.Contains(r.Status.Reason, "2 of 3 members of the EtcdCluster are ready") {
					t.Fatalf("the restore is %s: %s", r.Status.Phase, r.Status.Reason)
				}
				w.ready(old, 1)
				w.replaces(old, 0)
			})
		})
	}
}

// ready makes so many members of a cluster ready, and the others not.
func (w *world) ready(cluster types.UID, n int) {
	w.change(func() {
		for _, p := range w.all("pods") {
			if ref := metav1.GetControllerOf(p); ref == nil || ref.UID != cluster {
				continue
			}
			is := "False"
			if n > 0 {
				is = "True"
			}
			n--
			p = p.DeepCopy()
			if err := unstructured.SetNestedSlice(p.Object, []any{map[string]any{"type": "Ready", "status": is}}, "status", "conditions"); err != nil {
				w.t.Fatal(err)
			}
			w.put("pods", p)
		}
	})
}

// A learner is on record, and has no vote: two of three voters are a quorum.
func TestARecoveryWaitsForAQuorumBesideALearner(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		old := w.running(3)
		w.change(func() {
			c := w.cluster()
			c.Status.Record = &api.ClusterRecord{Members: []api.RecordedMember{{ID: "1"}, {ID: "2"}, {ID: "3"}, {ID: "4"}}}
			c.Status.MemberStatuses = []api.MemberStatus{{ID: "4", Learner: true}}
			w.setStatus(c)
		})
		w.choose(restoring(), 0)
		w.add("etcdrestores", recovering())
		w.ready(old, 2)
		stop := w.run()
		defer stop()
		w.live(time.Minute)
		if c, r := w.cluster(), w.restore(); c == nil || c.UID != old || c.DeletionTimestamp != nil || !strings.Contains(r.Status.Reason, "2 of 3 members of the EtcdCluster are ready") {
			t.Fatalf("the restore is %s: %s", r.Status.Phase, r.Status.Reason)
		}
	})
}
