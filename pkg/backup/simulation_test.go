// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package backup

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"

	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/backupobject"
	"github.com/etcd-operator/etcd-operator/pkg/snapshot"
	"github.com/etcd-operator/etcd-operator/pkg/store"
)

// TestASimulatedLife plays one life, with the race detector too. TestSimulatedLives plays more.
func TestASimulatedLife(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { newLife(t, 0).play() })
}

// life is a world in which things go wrong. The operator dies before or after any of its requests,
// answers are lost, API server, store and etcd fail for a while, and the spec is edited. What must
// always hold is checked with each request; in the end, when the trouble is over, everything must be
// as the spec says.
type life struct {
	*world
	fate sync.Mutex // guards what follows
	rand *rand.Rand
	log  []string

	// deathIn is in how many requests the operator dies; 0: it does not. dead reports
	// that it has: it can do nothing more.
	deathIn int
	dead    bool
	// lossy is how many of a hundred answers to successful requests are lost.
	lossy       int
	storeDown   bool
	etcdDown    bool
	uploads     int               // under way
	keyOfWindow map[string]string // keys by what the spec says and window
	// blind means that an attempt has not heard what was stored before it.
	blind bool
}

var errDead = errors.New("the operator is dead")

func newLife(t *testing.T, seed uint64) *life {
	l := &life{rand: rand.New(rand.NewPCG(seed, 3)), keyOfWindow: map[string]string{}} // lives must be repeatable
	obj := testBackup(l.policy())
	l.world = newWorld(t, obj)
	request := func(action clienttesting.Action) (bool, runtime.Object, error) {
		l.fate.Lock()
		defer l.fate.Unlock()
		if err := l.request(action.GetVerb()); err != nil {
			return true, nil, err
		}
		return false, nil, nil
	}
	// Before all others but the one that is down.
	l.etcd.PrependReactor("*", "*", request)
	for i, r := range l.etcd.ReactionChain {
		if s, ok := r.(*clienttesting.SimpleReactor); ok && s.Verb == "update" {
			inner := s.Reaction
			l.etcd.ReactionChain[i] = &clienttesting.SimpleReactor{Verb: s.Verb, Resource: s.Resource, Reaction: func(action clienttesting.Action) (bool, runtime.Object, error) {
				handled, result, err := inner(action)
				if err == nil {
					l.fate.Lock()
					defer l.fate.Unlock()
					l.checkStatus()
					err = l.answer("status")
				}
				return handled, result, err
			}}
		}
	}
	l.store.meddle(l.before, l.afterwards)
	l.openSnapshot = func(context.Context, snapshot.Source) error {
		l.fate.Lock()
		defer l.fate.Unlock()
		if l.etcdDown {
			return errors.New("etcd is down")
		}
		return nil
	}
	return l
}

func (l *life) note(format string, args ...any) {
	l.log = append(l.log, time.Now().UTC().Format("02 15:04:05 ")+fmt.Sprintf(format, args...))
}

func (l *life) policy() *api.BackupPolicy {
	policy := &api.BackupPolicy{MaxBackups: l.rand.IntN(4), Suspend: l.rand.IntN(8) == 0}
	switch l.rand.IntN(3) {
	case 0:
		policy.BackupIntervalInSecond = 60 * (5 + l.rand.Int64N(90))
	case 1:
		policy.Schedule = fmt.Sprintf("*/%d * * * *", 5+l.rand.IntN(25))
	case 2:
		policy.Schedule = fmt.Sprintf("@every %dm", 5+l.rand.IntN(60))
	}
	if l.rand.IntN(3) == 0 {
		policy.MaxAgeInSecond = 600 + l.rand.Int64N(7200)
	}
	return policy
}

// request is made by the operator, which may die before it.
func (l *life) request(what string) error {
	if l.dead {
		return errDead
	}
	if l.deathIn > 0 {
		if l.deathIn--; l.deathIn == 0 {
			return l.die("before " + what)
		}
	}
	return nil
}

func (l *life) die(when string) error {
	l.note("the operator dies %s", when)
	l.dead = true
	return errDead
}

// answer is that to a request that was done: it is lost, or the operator dies
// before it hears it.
func (l *life) answer(what string) error {
	if l.deathIn == 1 {
		l.deathIn = 0
		return l.die("after " + what)
	}
	if l.rand.IntN(100) < l.lossy {
		l.note("the answer to %s is lost", what)
		return errors.New("the answer is lost")
	}
	return nil
}

func (l *life) before(ctx context.Context, operation, key string) error {
	l.fate.Lock()
	defer l.fate.Unlock()
	if err := l.request(operation + " " + key); err != nil {
		return err
	}
	if l.storeDown {
		l.noteLostAnswer(operation)
		return errors.New("the store is down")
	}
	switch operation {
	case "put":
		if l.uploads++; l.uploads > 1 {
			l.t.Errorf("%d uploads at once", l.uploads)
		}
		defer func() { l.uploads-- }()
		upload := time.NewTimer(time.Duration(l.rand.IntN(20)) * time.Second)
		defer upload.Stop()
		l.fate.Unlock()
		select {
		case <-upload.C:
		case <-ctx.Done():
		}
		l.fate.Lock()
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if l.dead {
			return errDead
		}
	case "delete":
		l.checkDelete(key)
	}
	return nil
}

func (l *life) afterwards(_ context.Context, operation, key string) error {
	l.fate.Lock()
	defer l.fate.Unlock()
	if operation == "put" {
		l.note("stored %s", key)
		l.checkPut(key)
	}
	if operation == "delete" {
		l.note("deleted %s", key)
	}
	err := l.answer(operation + " " + key)
	if err != nil {
		l.noteLostAnswer(operation)
	}
	return err
}

// noteLostAnswer notes that an attempt may not be able to report what was stored before it,
// and has failed often enough to continue nevertheless.
func (l *life) noteLostAnswer(operation string) {
	st := l.status()
	if (operation == "list" || operation == "stat") && st.Phase == api.BackupPhaseRunning && st.Failures >= patientLooks {
		l.blind = true
	}
}

// checkPut is for each object that has become visible.
func (l *life) checkPut(key string) {
	obj := l.stored()
	if st := obj.Status; st.Phase != api.BackupPhaseRunning {
		l.t.Errorf("%s is stored while the status says %q", key, st.Phase)
	}
	if len(obj.Finalizers) == 0 {
		l.t.Errorf("%s is stored without the finalizer", key)
	}
	l.store.mu.Lock()
	metadata := l.store.objects[key].Metadata
	l.store.mu.Unlock()
	window := metadata[backupobject.MetaSpec] + " " + metadata[backupobject.MetaScheduled]
	if other, there := l.keyOfWindow[window]; there && !l.blind {
		l.t.Errorf("the window %s is doubled: %s and %s", window, other, key)
	}
	l.keyOfWindow[window] = key
	l.blind = false
}

// checkStatus is for each status that was written.
func (l *life) checkStatus() {
	st := l.status()
	l.note("status %s, succeeded %v, failures %d, done %v, next %v, key %s: %s", st.Phase, st.Succeeded, st.Failures, st.LastScheduleDate, st.NextExecutionDate, st.Key, st.Reason)
	if st.Succeeded != (st.Reason == "") && (st.LastSuccessDate != nil || st.Failures > 0) {
		l.t.Errorf("succeeded is %v, and the reason %q", st.Succeeded, st.Reason)
	}
	if st.Phase == api.BackupPhaseRetrying && (st.NextExecutionDate == nil || st.Succeeded) {
		l.t.Errorf("status %+v", st)
	}
	if st.Succeeded && st.Failures > 0 {
		l.t.Errorf("status %+v", st)
	}
	if st.LastSuccessDate != nil && !slices.Contains(l.store.keys(), strings.TrimPrefix(st.Key, "bucket/")) {
		l.t.Errorf("the newest backup, %s, is not there", st.Key)
	}
}

// checkDelete is for each object that is to be deleted.
func (l *life) checkDelete(key string) {
	l.store.mu.Lock()
	defer l.store.mu.Unlock()
	victim := l.store.objects[key]
	if victim.Metadata[backupobject.MetaUID] != string(testUID) {
		l.t.Errorf("%s of another is deleted", key)
	}
	for _, o := range l.store.objects {
		if o.Metadata[backupobject.MetaUID] == string(testUID) && o.Modified.After(victim.Modified) {
			return
		}
	}
	l.t.Errorf("the newest backup, %s, is deleted", key)
}

func (l *life) play() {
	defer func() {
		l.fate.Lock()
		defer l.fate.Unlock()
		if l.t.Failed() {
			l.t.Logf("the life up to here:\n%s", strings.Join(l.log[max(0, len(l.log)-80):], "\n"))
		}
	}()
	stranger := "etcd_v1_1999-01-01-00:00:00"
	l.store.objects[stranger] = object{nil, store.Object{Key: stranger, Modified: time.Unix(0, 0)}}
	stop := l.run()
	defer func() { stop() }()
	for range 60 {
		pass(l.while())
		l.trouble()
		synctest.Wait()
		if l.ends() {
			stop()
			l.live()
			stop = l.run()
		}
		if l.t.Failed() {
			return
		}
	}
	stop()
	l.live()
	l.calm()
	l.edit(func(obj *api.EtcdBackup) { obj.Spec.BackupPolicy.Suspend = false })
	stop = l.run()
	pass(5 * time.Minute)
	obj := l.stored()
	s, err := scheduleOf(obj)
	if err != nil {
		l.t.Fatal(err)
	}
	// No window is skipped while all is well.
	from := time.Now()
	windows := 0
	for w := s.next(from); windows < 5; w = s.next(w) {
		windows++
		pass(time.Until(w) + 25*time.Second)
		l.fate.Lock()
		_, there := l.keyOfWindow[fmt.Sprintf("%s %s", digestOf(&obj.Spec), w.UTC().Format(time.RFC3339))]
		l.fate.Unlock()
		if !there {
			l.t.Fatalf("the window %s was skipped", w.UTC())
		}
	}
	st := l.status()
	if st.Phase != api.BackupPhaseWaiting || !st.Succeeded || st.ObservedGeneration != obj.Generation {
		l.t.Errorf("in the end: %+v", st)
	}
	keys := l.store.keys()
	if !slices.Contains(keys, stranger) {
		l.t.Error("the stranger's backup is gone")
	}
	kept := obj.Spec.BackupPolicy.MaxBackups
	if own := len(keys) - 1; own != int(st.Backups) || kept > 0 && own > kept || own == 0 {
		l.t.Errorf("%d backups are there, %d in the status, and %d are to be kept", own, st.Backups, kept)
	}
	if len(l.cfg.Slots.all) > 0 {
		l.t.Errorf("%d slots are taken", len(l.cfg.Slots.all))
	}
}

// while is some time.
func (l *life) while() time.Duration {
	l.fate.Lock()
	defer l.fate.Unlock()
	return time.Duration(1+l.rand.IntN(900)) * time.Second
}

// ends reports whether the operator is dead, or must end.
func (l *life) ends() bool {
	l.fate.Lock()
	defer l.fate.Unlock()
	ends := l.dead || l.rand.IntN(10) == 0
	if ends {
		l.note("the operator ends")
	}
	return ends
}

// live is for another operator.
func (l *life) live() {
	l.fate.Lock()
	defer l.fate.Unlock()
	l.dead, l.deathIn = false, 0
}

// calm ends all trouble.
func (l *life) calm() {
	l.fate.Lock()
	defer l.fate.Unlock()
	l.note("calm")
	l.lossy, l.storeDown, l.etcdDown = 0, false, false
	l.apiDown.Store(false)
}

// trouble begins or ends some.
func (l *life) trouble() {
	l.fate.Lock()
	defer l.fate.Unlock()
	switch l.rand.IntN(10) {
	case 0:
		l.deathIn = 1 + l.rand.IntN(12)
	case 1:
		l.storeDown = !l.storeDown
		l.note("store down: %v", l.storeDown)
	case 2:
		l.etcdDown = !l.etcdDown
		l.note("etcd down: %v", l.etcdDown)
	case 3:
		l.apiDown.Store(!l.apiDown.Load())
		l.note("API server down: %v", l.apiDown.Load())
	case 4:
		l.lossy = l.rand.IntN(2) * l.rand.IntN(40)
		l.note("%d of a hundred answers are lost", l.lossy)
	case 5:
		policy := l.policy()
		l.note("the policy is edited: %+v", *policy)
		l.edit(func(obj *api.EtcdBackup) { obj.Spec.BackupPolicy = policy })
	case 6:
		l.storeDown, l.etcdDown = false, false
		l.apiDown.Store(false)
	}
}
