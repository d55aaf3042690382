// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package restore

import (
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/types"
	clienttesting "k8s.io/client-go/testing"

	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/selection"
	"github.com/etcd-operator/etcd-operator/test/race"
)

var simulations = flag.Int("simulations", 40, "number of lives that TestSimulatedLives plays; a third under the race detector")

// TestSimulatedLives plays random lives of restores: the operator dies before or after
// any of its requests, answers are lost, the etcd operator comes and goes, the store
// fails, members are lost, and somebody edits, deletes and makes what the restore is
// about. What must always hold is checked with each request; in the end, when the
// trouble is over, the cluster must be back.
func TestSimulatedLives(t *testing.T) {
	lives := *simulations
	if race.Enabled {
		lives = (lives + 2) / 3
	}
	for seed := range lives {
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { newLife(t, uint64(seed)).play() })
		})
	}
}

// life is a world in which things go wrong.
type life struct {
	*world
	rand *rand.Rand
	log  []string

	// deathIn is in how many requests the operator dies; 0: it does not. dead reports
	// that it has: it can do nothing more.
	deathIn int
	dead    bool
	// lossy is how many of a hundred answers to successful requests are lost.
	lossy   int
	backups int // what reading the backup comes to changes
	damaged bool
	down    bool
	// old is the cluster that was there first, "" where there was none.
	old types.UID
	// restored is the EtcdRestore that has the mark of success.
	restored types.UID
	// deletedUntouched means that the EtcdRestore was deleted before anything was touched,
	// or that there was nothing: it may end then, with the old cluster as it was.
	deletedUntouched bool
	// deletedServing means that the EtcdRestore was deleted while its cluster grew: the
	// restore ends then.
	deletedServing bool
	// recorded is the manifest on record.
	recorded string
	// lackingSince is when the operator has lost the rights that it lacks.
	lackingSince time.Time
}

var errDead = errors.New("the operator is dead")

func newLife(t *testing.T, seed uint64) *life {
	l := &life{rand: rand.New(rand.NewPCG(seed, 5)), world: newWorld(t), backups: 1} // lives must be repeatable
	r := testRestore()
	if l.rand.IntN(4) == 0 {
		r.Spec.ClusterTemplate = template()
	} else {
		l.old = l.running(1 + l.rand.IntN(3))
	}
	switch l.rand.IntN(3) {
	case 0:
		r.Spec.OldVolumes = api.OldVolumesKeep
	case 1:
		r.Spec.OldVolumes = api.OldVolumesDeleteFirst
	}
	l.add("etcdrestores", r)
	l.before, l.after = l.request, l.answer
	l.find = func() (selection.Verified, []string, error) {
		l.mu.Lock()
		defer l.mu.Unlock()
		switch {
		case l.down:
			return selection.Verified{}, nil, errors.New("the store is down")
		case l.damaged:
			return selection.Verified{}, nil, selection.ErrDamaged
		}
		return backup(l.backups), nil, nil
	}
	return l
}

func (l *life) note(format string, args ...any) {
	l.log = append(l.log, time.Now().UTC().Format("15:04:05.00 ")+fmt.Sprintf(format, args...))
}

// request is made by the operator, which may die before it.
func (l *life) request(verb, resource, name string, action clienttesting.Action) error {
	if l.dead {
		return errDead
	}
	if l.deathIn > 0 {
		if l.deathIn--; l.deathIn == 0 {
			l.dead = true
			l.note("the operator dies before %s %s", verb, resource)
			return errDead
		}
	}
	if l.rand.IntN(20) == 0 {
		l.tick() // the world moves between a look and a step
	}
	if verb != "get" && verb != "list" {
		l.check(verb, resource, name, action)
	}
	return nil
}

// answer is that to a request that was done: it is lost, or the operator dies before
// it hears it.
func (l *life) answer(verb, resource, name string, _ clienttesting.Action) error {
	if resource == "etcdrestores" && (verb == "update" || verb == "patch") {
		l.checkRestore()
	}
	if verb != "get" && verb != "list" {
		l.note("%s %s %s", verb, resource, name)
		if l.deathIn == 1 {
			l.deathIn, l.dead = 0, true
			l.note("the operator dies after %s %s", verb, resource)
			return errDead
		}
	}
	if l.rand.IntN(100) < l.lossy {
		l.note("the answer to %s %s is lost", verb, resource)
		return errors.New("the answer is lost")
	}
	return nil
}

// check is for each write before it is done.
func (l *life) check(verb, resource, name string, action clienttesting.Action) {
	r := l.restore()
	if resource == "etcdrestores" || resource == "secrets" {
		return
	}
	if create, ok := action.(clienttesting.CreateActionImpl); ok && len(create.CreateOptions.DryRun) > 0 {
		return
	}
	what := verb + " " + resource + " " + name
	if r == nil || !committed(&r.Status) {
		l.t.Errorf("%s, and nothing is on record", what)
		return
	}
	success := r.Annotations[api.RestoredAnnotation] != ""
	switch {
	case resource == "etcdclusters" && verb == "create":
		cluster := untyped(resource, action.(clienttesting.CreateAction).GetObject())
		if success || !strings.Contains(cluster.GetAnnotations()[api.RestoreAnnotation], string(r.UID)) {
			l.t.Errorf("%s with %v, success %v", what, cluster.GetAnnotations(), success)
		}
		if l.old != "" && (cluster.GetLabels()["team"] != "a" || cluster.GetAnnotations()["note"] != "keep") {
			l.t.Errorf("%s, which has lost %v", what, cluster.Object["metadata"])
		}
	case resource == "etcdclusters" && verb == "delete":
		c := l.cluster()
		options := action.(clienttesting.DeleteActionImpl).DeleteOptions
		if c == nil || *options.Preconditions.UID != c.UID || options.Preconditions.ResourceVersion != nil && *options.Preconditions.ResourceVersion != c.ResourceVersion {
			return // it is refused
		}
		mine := c.Status.RestoredFrom != nil && c.Status.RestoredFrom.RestoreUID == r.UID
		unserved := c.Status.Phase == api.ClusterPhaseNone || c.Status.Phase == api.ClusterPhaseCreating
		if c.UID == l.old && r.DeletionTimestamp != nil {
			l.t.Errorf("%s, though the EtcdRestore was deleted before", what)
		}
		if success || c.UID != r.Status.ReplacedUID && !unserved && !(mine && c.Status.Phase == api.ClusterPhaseFailed) {
			l.t.Errorf("%s, which serves; success %v", what, success)
		}
	case resource == "persistentvolumeclaims" && verb == "delete" && !success && r.Spec.OldVolumes != api.OldVolumesDeleteFirst:
		l.t.Errorf("%s before the cluster is back", what)
	case resource == "pods" && success:
		l.t.Errorf("%s when the cluster is back", what)
	case resource == "pods" || resource == "persistentvolumeclaims" && verb == "delete":
		u := l.get(resource, name)
		if c := l.cluster(); u != nil && c != nil && len(u.GetOwnerReferences()) > 0 && u.GetOwnerReferences()[0].UID == c.UID && c.UID != r.Status.ReplacedUID {
			l.t.Errorf("%s of the new cluster", what)
		}
	}
}

// checkRestore is for the EtcdRestore after each write to it.
func (l *life) checkRestore() {
	r := l.restore()
	if r == nil {
		return
	}
	st := &r.Status
	l.note("status %s, generation %d of %d: %s", st.Phase, st.ObservedGeneration, r.Generation, st.Reason)
	if st.Cluster != nil {
		if l.recorded == "" && len(l.lacking) > 0 && time.Since(l.lackingSince) > 30*time.Second {
			l.t.Errorf("it begins without the rights that it lacks since %s: %v", l.lackingSince, l.lacking)
		}
		now := string(st.Cluster.Raw)
		if l.recorded != "" && now != l.recorded && l.old != "" {
			l.t.Errorf("the manifest on record has become %s", now)
		}
		l.recorded = now
	} else if l.recorded != "" {
		l.t.Error("the manifest is no longer on record")
	}
	if st.ServedDate != nil && r.DeletionTimestamp != nil {
		l.deletedServing = true
	}
	if st.Succeeded != (st.Phase == api.RestorePhaseSucceeded) || st.Succeeded && r.Annotations[api.RestoredAnnotation] == "" {
		l.t.Errorf("status %+v, annotations %v", st, r.Annotations)
	}
	if r.Annotations[api.RestoredAnnotation] != "" && l.restored == "" {
		l.restored = r.UID
		c := l.cluster()
		if c == nil || c.Status.RestoredFrom == nil || c.Status.RestoredFrom.RestoreUID != r.UID || c.Status.RestoredFrom.SHA256 != st.Backup.SHA256 ||
			!l.whole[c.UID] { // it may have lost a member in this moment
			l.t.Errorf("success, and the cluster is %+v", c)
		}
	}
}

func (l *life) play() {
	defer func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		if l.t.Failed() {
			l.t.Logf("the life up to here:\n%s", strings.Join(l.log[max(0, len(l.log)-120):], "\n"))
		}
	}()
	stop := l.run()
	defer func() { stop() }()
	for range 25 {
		var while time.Duration
		l.change(func() { while = time.Duration(1+l.rand.IntN(8)) * time.Second })
		l.live(while)
		l.mu.Lock()
		l.trouble()
		ends := l.dead || l.rand.IntN(10) == 0
		l.mu.Unlock()
		if ends {
			stop()
			l.mu.Lock()
			l.dead, l.deathIn = false, 0
			l.note("another operator")
			l.mu.Unlock()
			stop = l.run()
		}
		if l.t.Failed() {
			return
		}
	}
	stop()
	l.calm()
	stop = l.run()
	l.await("the end of what was deleted, or of success", 30*time.Minute, func() bool {
		r := l.restore()
		return r == nil || r.Status.Phase == api.RestorePhaseSucceeded && len(r.Finalizers) == 0
	})
	l.live(5 * time.Second)
	l.mu.Lock()
	defer l.mu.Unlock()
	c := l.cluster()
	if l.recorded == "" {
		if l.old != "" && (c == nil || c.UID != l.old) && l.restored == "" {
			l.t.Errorf("nothing was on record, and the cluster is %+v", c)
		}
		return
	}
	if l.restored == "" {
		if l.restore() != nil || !l.deletedServing && !l.deletedUntouched {
			l.t.Error("it was begun, and has not come to its end")
		}
		return
	}
	for _, v := range l.all("persistentvolumeclaims") {
		if r := l.restore(); r != nil && r.Spec.OldVolumes != api.OldVolumesKeep && v.GetLabels()[replacedByLabel] != "" {
			l.t.Errorf("volume %s is left", v.GetName())
		}
	}
	if len(l.offers) > 0 || l.get("secrets", "c-restore-token") != nil {
		l.t.Errorf("%d offers are left, or the token", len(l.offers))
	}
	if c == nil {
		return // somebody has deleted it since
	}
	if _, annotated := c.Annotations[api.RestoreAnnotation]; annotated && c.UID == l.madeUID() && !l.Told("Not Tidied") || len(c.Finalizers) > 0 {
		l.t.Errorf("the cluster is left with %v, %v", c.Annotations, c.Finalizers)
	}
}

// madeUID is the cluster that is on record as made.
func (l *life) madeUID() types.UID {
	if r := l.restore(); r != nil {
		return r.Status.ClusterUID
	}
	return ""
}

// calm ends all trouble, and fixes what only a person can.
func (l *life) calm() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.note("calm")
	l.dead, l.deathIn, l.lossy = false, 0, 0
	l.etcdOperator, l.down, l.damaged, l.lacking = true, false, false, nil
	l.deadNode = map[string]bool{}
	r := l.restore()
	if r == nil {
		return
	}
	if c := l.cluster(); c != nil && !done(r) && c.UID != l.old && (c.Status.RestoredFrom == nil || c.Status.RestoredFrom.RestoreUID != r.UID) {
		l.remove("etcdclusters", "c")
	}
	if l.cluster() == nil && !committed(&r.Status) {
		r.Spec.ClusterTemplate = template()
		l.old = ""
	}
	r.Spec.BumpRevision++
	l.put("etcdrestores", untyped("etcdrestores", r))
}

// trouble begins or ends some.
func (l *life) trouble() {
	r := l.restore()
	switch n := l.rand.IntN(17); n {
	case 0, 1, 2:
		l.deathIn = 1 + l.rand.IntN(25)
	case 3:
		l.etcdOperator = !l.etcdOperator
		l.note("an etcd operator is there: %v", l.etcdOperator)
	case 4:
		l.lossy = l.rand.IntN(2) * l.rand.IntN(30)
		l.note("%d of a hundred answers are lost", l.lossy)
	case 5:
		l.down = !l.down
	case 6:
		l.damaged = l.rand.IntN(3) == 0
	case 7:
		if r != nil && r.DeletionTimestamp == nil {
			l.note("the EtcdRestore is edited")
			l.backups++
			r.Spec.BumpRevision++
			l.put("etcdrestores", untyped("etcdrestores", r))
		}
	case 8:
		if l.rand.IntN(4) == 0 && l.restore() != nil {
			l.note("the EtcdRestore is deleted")
			c := l.cluster()
			l.deletedUntouched = l.old == "" || c != nil && c.UID == l.old && c.DeletionTimestamp == nil
			l.remove("etcdrestores", "c")
		}
	case 9:
		// Before the record, a cluster that somebody deletes is gone for good.
		if r != nil && committed(&r.Status) && !done(r) {
			l.note("the EtcdCluster is deleted")
			l.remove("etcdclusters", "c")
		}
	case 10:
		if l.cluster() == nil {
			l.note("somebody makes the EtcdCluster")
			l.add("etcdclusters", testCluster(2))
		}
	case 11:
		l.note("all pods are lost")
		for _, p := range l.all("pods") {
			if p.GetDeletionTimestamp() == nil && r != nil && committed(&r.Status) && !done(r) {
				delete(l.objects, named("pods", p.GetName()))
			}
		}
	case 12:
		for _, p := range l.all("pods") {
			l.deadNode[p.GetName()] = l.rand.IntN(3) == 0
		}
	case 13:
		delete(l.objects, named("secrets", "c-restore-token"))
	case 15:
		l.lacking, l.lackingSince = nil, time.Now()
		if l.rand.IntN(2) == 0 {
			rights := needed(testRestore(), false)
			l.lacking = map[string]bool{rights[l.rand.IntN(len(rights))].String(): true}
		}
		l.note("the operator lacks the rights %v", l.lacking)
	case 14:
		if c := l.get("etcdclusters", "c"); c != nil && c.GetDeletionTimestamp() == nil && r != nil && committed(&r.Status) {
			l.note("the annotation is taken off the EtcdCluster")
			c = c.DeepCopy()
			annotations := c.GetAnnotations()
			delete(annotations, api.RestoreAnnotation)
			c.SetAnnotations(annotations)
			l.put("etcdclusters", c)
		}
	}
}
