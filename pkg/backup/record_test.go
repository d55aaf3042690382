// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package backup

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/backupobject"
	"github.com/etcd-operator/etcd-operator/pkg/location"
	"github.com/etcd-operator/etcd-operator/pkg/snapshot"
	"github.com/etcd-operator/etcd-operator/pkg/store"
)

// What is on record of attempts, of specs and of what is stored, and what follows
// from it for the next attempt.

// dieAfterStoring has the operator die when the backup is stored and the status does
// not report.
func (w *world) dieAfterStoring() {
	w.t.Helper()
	w.store.meddle(nil, func(_ context.Context, operation, _ string) error {
		if operation == "put" {
			w.apiDown.Store(true)
		}
		return nil
	})
	w.run()()
	w.apiDown.Store(false)
	w.store.meddle(nil, nil)
	if st := w.status(); len(w.store.keys()) != 1 || st.Phase != api.BackupPhaseRunning || st.UnfinishedSince == nil {
		w.t.Fatalf("objects %q, status %+v", w.store.keys(), st)
	}
	pass(time.Minute)
}

// setPolicy edits the policy, and keeps the schedule.
func (w *world) setPolicy(change func(*api.BackupPolicy)) {
	w.t.Helper()
	w.edit(func(obj *api.EtcdBackup) {
		policy := &api.BackupPolicy{}
		if obj.Spec.BackupPolicy != nil {
			policy = obj.Spec.BackupPolicy.DeepCopy()
		}
		change(policy)
		obj.Spec.BackupPolicy = policy
	})
}

func TestWhatWasStoredIsFoundWhateverWasShownMeanwhile(t *testing.T) {
	for name, policy := range map[string]*api.BackupPolicy{"once": nil, "on schedule": hourly} {
		for what, meanwhile := range map[string]func(*world){
			"suspended": func(w *world) {
				w.setPolicy(func(p *api.BackupPolicy) { p.Suspend = true })
				stop := w.run()
				pass(time.Minute)
				if st := w.status(); st.Phase != api.BackupPhaseSuspended {
					w.t.Errorf("status %+v", st)
				}
				stop()
				w.setPolicy(func(p *api.BackupPolicy) { p.Suspend = false })
			},
			"no slot and an edit of retention": func(w *world) {
				for range slots {
					w.cfg.Slots.all <- struct{}{}
				}
				w.setPolicy(func(p *api.BackupPolicy) { p.MaxBackups, p.MaxAgeInSecond, p.TimeoutInSecond = 7, 86400, 120 })
				stop := w.run()
				pass(time.Minute)
				stop()
				for range slots {
					<-w.cfg.Slots.all
				}
			},
			"a failure before the store is asked": func(w *world) {
				w.openLocation = func() error { return errors.New("no Secret") }
				stop := w.run()
				pass(time.Second)
				stop()
				w.openLocation = nil
				pass(5 * time.Second)
			},
		} {
			t.Run(name+", "+what, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					w := newWorld(t, testBackup(policy))
					w.dieAfterStoring()
					meanwhile(w)
					defer w.run()()
					pass(time.Minute)
					if st := w.status(); !st.Succeeded || w.store.count("put") != 1 || st.UnfinishedSince != nil || st.ObservedGeneration != w.stored().Generation {
						t.Errorf("%d uploads, status %+v", w.store.count("put"), st)
					}
				})
			})
		}
	}
}

// An edit to and fro asks for a new backup: what the first spec has stored is none.
func TestWhatWasStoredBeforeAnEditToAndFroIsNotTakenForTheBackup(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, testBackup(nil))
		defer w.run()()
		w.store.fail("put", errors.New("down"))
		for _, endpoint := range []string{"http://another:2379", "http://c-client:2379"} {
			w.edit(func(obj *api.EtcdBackup) { obj.Spec.EtcdEndpoints = []string{endpoint} })
			pass(time.Minute)
		}
		if st := w.status(); st.Succeeded || st.EtcdRevision != 2 {
			t.Errorf("status %+v", st)
		}
		w.store.fail("", nil)
		pass(5 * time.Minute)
		if st := w.status(); !st.Succeeded || st.EtcdRevision == 2 || w.Times("could not report it") > 0 {
			t.Errorf("status %+v, events %q", st, w.Events())
		}
	})
}

func TestNothingIsUnfinishedWhereNothingWasSent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, testBackup(nil))
		w.openSnapshot = func(context.Context, snapshot.Source) error { return errors.New("no member answers") }
		stop := w.run()
		pass(time.Hour)
		if st := w.status(); st.Phase != api.BackupPhaseRetrying || st.UnfinishedSince != nil || w.store.count("stat") > 0 {
			t.Errorf("asked for %q, status %+v", w.store.asked, st)
		}
		stop()
	})
}

// damaging is a store that keeps content of the right size that is not what was
// sent, says so, and can't remove it.
type damaging struct{ *memory }

func (d damaging) Put(ctx context.Context, key string, u store.Upload) (store.Object, error) {
	if _, err := d.memory.Put(ctx, key, u); err != nil {
		return store.Object{}, err
	}
	return store.Object{}, fmt.Errorf("the checksum is another one; %w: access denied", store.ErrLeft)
}

func TestWhatAnAttemptFoundWrongIsNeverTakenForTheBackup(t *testing.T) {
	for name, policy := range map[string]*api.BackupPolicy{"once": nil, "on schedule": hourly} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, testBackup(policy))
				w.cfg.OpenLocation = func(context.Context, string, *api.BackupSpec) (*location.Location, error) {
					return &location.Location{Store: damaging{w.store}, Bucket: "bucket", Key: "etcd"}, nil
				}
				defer w.run()()
				pass(10 * time.Minute)
				if st := w.status(); st.Succeeded || st.Phase != api.BackupPhaseRetrying || st.LastSuccessDate != nil {
					t.Errorf("status %+v", st)
				}
			})
		})
	}
}

func TestTheNextOperatorDoesNotTakeWhatWasFoundWrong(t *testing.T) {
	for name, policy := range map[string]*api.BackupPolicy{"once": nil, "on schedule": hourly} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, testBackup(policy))
				sound := w.cfg.OpenLocation
				w.cfg.OpenLocation = func(context.Context, string, *api.BackupSpec) (*location.Location, error) {
					return &location.Location{Store: damaging{w.store}, Bucket: "bucket", Key: "etcd"}, nil
				}
				stop := w.run()
				pass(2 * time.Second)
				stop()
				if keys, puts := w.store.keys(), w.store.count("put"); len(keys) != 1 || puts != 1 {
					t.Fatalf("objects %q, %d were stored", keys, puts)
				}
				w.cfg.OpenLocation = sound
				defer w.run()()
				pass(time.Minute)
				if st := w.status(); !st.Succeeded || w.store.count("put") != 2 {
					t.Errorf("%d were stored, status %+v", w.store.count("put"), st)
				}
			})
		})
	}
}

// A store that can't be looked into costs some attempts, and not all of them.
func TestAStoreThatCannotListGetsItsBackups(t *testing.T) {
	for name, policy := range map[string]*api.BackupPolicy{"once": nil, "on schedule": hourly} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, testBackup(policy))
				w.store.objects["other"] = object{}
				failed := false
				w.store.meddle(func(_ context.Context, operation, _ string) error {
					switch {
					case operation == "list" || policy == nil && operation == "stat" && failed && w.status().Failures < patientLooks:
						return errors.New("not implemented")
					case operation == "put" && !failed:
						failed = true
						return errors.New("down for a moment")
					}
					return nil
				}, nil)
				defer w.run()()
				pass(2 * time.Minute)
				if st := w.status(); !st.Succeeded {
					t.Errorf("status %+v", st)
				}
			})
		})
	}
}

func TestABackupThatIsMadeOnceIsMadeAgainOnlyWhereAnEditMakesItAnother(t *testing.T) {
	for name, c := range map[string]struct {
		edit         func(*api.BackupSpec)
		uploadsAgain bool
	}{
		"suspend":                {func(s *api.BackupSpec) { s.BackupPolicy = &api.BackupPolicy{Suspend: true} }, false},
		"maxBackups":             {func(s *api.BackupSpec) { s.BackupPolicy = &api.BackupPolicy{MaxBackups: 3} }, false},
		"maxAgeInSecond":         {func(s *api.BackupSpec) { s.BackupPolicy = &api.BackupPolicy{MaxAgeInSecond: 3} }, false},
		"timeoutInSecond":        {func(s *api.BackupSpec) { s.BackupPolicy = &api.BackupPolicy{TimeoutInSecond: 300} }, false},
		"a section of no use":    {func(s *api.BackupSpec) { s.GCS = &api.GCSBackupSource{Path: "bucket/etcd"} }, false},
		"where to":               {func(s *api.BackupSpec) { s.S3.Path = "bucket/elsewhere" }, true},
		"what is backed up":      {func(s *api.BackupSpec) { s.EtcdEndpoints = []string{"http://another:2379"} }, true},
		"the Secret of a store":  {func(s *api.BackupSpec) { s.S3.AWSSecret = "aws" }, true},
		"the Secret of etcd":     {func(s *api.BackupSpec) { s.AllowSelfSignedCertificates = true }, true},
		"the kind of store":      {func(s *api.BackupSpec) { s.StorageType, s.GCS = "GCS", &api.GCSBackupSource{Path: "bucket/etcd"} }, true},
		"an interval, suspended": {func(s *api.BackupSpec) { s.BackupPolicy = &api.BackupPolicy{BackupIntervalInSecond: 60, Suspend: true} }, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, testBackup(nil))
				stop := w.run()
				w.edit(func(obj *api.EtcdBackup) { c.edit(&obj.Spec) })
				pass(time.Minute)
				stop()
				defer w.run()() // nor does a restart change that
				pass(time.Minute)
				st := w.status()
				if uploaded := w.store.count("put") == 2; uploaded != c.uploadsAgain || !st.Succeeded || st.ObservedGeneration != 2 {
					t.Errorf("%d backups, status %+v", w.store.count("put"), st)
				}
			})
		})
	}
}

// Those who wait for the backup of an edit must not take the one before for it.
func TestAnEditThatWaitsHasNotSucceeded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, testBackup(nil))
		defer w.run()()
		w.edit(func(obj *api.EtcdBackup) {
			obj.Spec.S3.Path, obj.Spec.BackupPolicy = "bucket/elsewhere", &api.BackupPolicy{Suspend: true}
		})
		synctest.Wait()
		if st := w.status(); st.Succeeded || st.Phase != api.BackupPhaseSuspended || st.ObservedGeneration != 2 || st.Key != "bucket/etcd" {
			t.Errorf("status %+v", st)
		}
	})
}

// Digests are in the status of backups and in stores. Another one for the same spec
// would have every backup that is made once recreated by a new operator.
func TestDigestsOfSpecsNeverChange(t *testing.T) {
	for want, spec := range map[string]api.BackupSpec{
		"64e19ca703a3ddcb": {
			EtcdEndpoints: []string{"http://c-client:2379"}, StorageType: "S3",
			BackupSource: api.BackupSource{S3: &api.S3BackupSource{Path: "bucket/etcd"}},
		},
		"a92e8e6cd566a9ff": {
			EtcdCluster: &api.EtcdClusterRef{Name: "c"}, ClientTLSSecret: "tls", AllowSelfSignedCertificates: true, StorageType: "ABS",
			BackupPolicy: &api.BackupPolicy{Schedule: "@daily", TimeZone: "Europe/Berlin", MaxBackups: 3},
			BackupSource: api.BackupSource{
				S3:  &api.S3BackupSource{Path: "bucket/etcd"},
				ABS: &api.ABSBackupSource{Path: "container/etcd", ABSSecret: "abs", Endpoint: "http://azurite:10000/account"},
			},
		},
	} {
		if got := digestOf(&spec); got != want {
			t.Errorf("%+v has the digest %s, want %s", spec, got, want)
		}
	}
}

func TestWhatV094GaveUpIsLeftAloneUntilItIsEdited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		obj := testBackup(nil)
		obj.Status.Reason = "failed to save snapshot (no endpoint)"
		w := newWorld(t, obj)
		for range 3 {
			stop := w.run()
			pass(time.Hour)
			stop()
		}
		st := w.status()
		if w.store.count("put") != 0 || st.Phase != api.BackupPhaseFailed || st.Succeeded || !strings.HasPrefix(st.Reason, obj.Status.Reason+"; ") ||
			strings.Count(st.Reason, "v0.9.4") != 1 || !strings.Contains(st.Reason, "edit the spec") || w.Times("Backup Failed") != 1 {
			t.Errorf("%d uploads, events %q, status %+v", w.store.count("put"), w.Events(), st)
		}
		defer w.run()()
		w.edit(func(obj *api.EtcdBackup) { obj.Spec.BackupPolicy = &api.BackupPolicy{TimeoutInSecond: 300} })
		synctest.Wait()
		if st := w.status(); !st.Succeeded || st.Phase != api.BackupPhaseSucceeded || st.Reason != "" {
			t.Errorf("status %+v", st)
		}
	})
}

func TestAScheduleThatFailedInV094GoesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		obj := testBackup(hourly)
		obj.Status.Reason = "failed to save snapshot (no endpoint)"
		w := newWorld(t, obj)
		defer w.run()()
		if st := w.status(); !st.Succeeded || st.Reason != "" {
			t.Errorf("status %+v", st)
		}
	})
}

func TestABackupOfMoreIsNotReplacedByOneOfLess(t *testing.T) {
	of := func(uid, revision string) map[string]string {
		return map[string]string{backupobject.MetaUID: uid, backupobject.MetaRevision: revision, backupobject.MetaName: "ns/lost"}
	}
	whole := func(metadata map[string]string) map[string]string {
		metadata[backupobject.MetaSize] = "4"
		return metadata
	}
	for name, c := range map[string]struct {
		metadata   map[string]string
		annotation string
		stat       error
		refused    bool
	}{
		"another's of a higher revision":                 {metadata: of("another", "1000"), refused: true},
		"the same, and the annotation says nothing":      {metadata: of("another", "1000"), annotation: "false", refused: true},
		"the same, and the annotation allows it":         {metadata: of("another", "1000"), annotation: "true"},
		"the same, and it may not be looked at":          {metadata: of("another", "1000"), stat: fmt.Errorf("stat: %w", store.ErrDenied)},
		"the same, and there are no credentials to look": {metadata: of("another", "1000"), stat: fmt.Errorf("stat: %w", store.ErrNoCredentials), refused: true},
		"another's of a lower revision":                  {metadata: of("another", "1")},
		"its own":                                        {metadata: whole(of(string(testUID), "1000")), refused: true},
		"its own, and the annotation allows it":          {metadata: whole(of(string(testUID), "1000")), annotation: "true"},
		"its own of a lower revision":                    {metadata: whole(of(string(testUID), "1"))},
		"its own, which is not whole":                    {metadata: of(string(testUID), "1000")},
		"one of v0.9.4":                                  {},
		"something whose revision is not one of ours":    {metadata: of("another", "many")},
		"what can't be reported while the store is down": {metadata: of("another", "1000"), stat: errors.New("down"), refused: true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				obj := testBackup(nil)
				if c.annotation != "" {
					obj.Annotations = map[string]string{api.BackupReplaceAnnotation: c.annotation}
				}
				w := newWorld(t, obj)
				w.store.objects["etcd"] = object{[]byte("data"), store.Object{Key: "etcd", Size: 4, Modified: at(t, "1999-12-31 00:00"), Metadata: c.metadata}}
				w.store.fail("stat", c.stat)
				defer w.run()()
				pass(20 * time.Second)
				st := w.status()
				if st.Succeeded == c.refused || (w.store.count("put") == 0) != c.refused {
					t.Errorf("%d uploads, status %+v", w.store.count("put"), st)
				}
				if c.refused && c.stat == nil {
					for _, part := range []string{"bucket/etcd", "revision 1000", "1999-12-31T00:00:00Z", "ns/lost", "another path", api.BackupReplaceAnnotation + `: "true"`} {
						if !strings.Contains(st.Reason, part) {
							t.Errorf("the reason %q does not report %s", st.Reason, part)
						}
					}
				}
				if !c.refused || c.stat != nil {
					return
				}
				// When somebody has acted, the next attempt finds that out.
				w.edit(func(obj *api.EtcdBackup) {
					metav1.SetMetaDataAnnotation(&obj.ObjectMeta, api.BackupReplaceAnnotation, "true")
				})
				pass(time.Minute)
				if st := w.status(); !st.Succeeded {
					t.Errorf("status %+v", st)
				}
			})
		})
	}
}

// The cluster is lost and recreated, and somebody corrects the credentials afterwards.
func TestAnEditDoesNotReplaceABackupByOneOfLess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, testBackup(nil))
		w.revision.Store(99)
		defer w.run()()
		w.revision.Store(0)
		w.edit(func(obj *api.EtcdBackup) { obj.Spec.S3.AWSSecret = "aws" })
		pass(time.Minute)
		st := w.status()
		if got := w.store.objects["etcd"].Metadata[backupobject.MetaRevision]; got != "100" || st.Succeeded || st.Phase != api.BackupPhaseRetrying ||
			!strings.Contains(st.Reason, "by this EtcdBackup, ns/b") || !strings.Contains(st.Reason, api.BackupReplaceAnnotation) || w.Times("Backup Failed") != 1 {
			t.Errorf("the object has revision %s, events %q, status %+v", got, w.Events(), st)
		}
	})
}

// A recovery of a lost quorum decides by both.
func TestTheStatusNamesTheClusterAndTheRaftEntries(t *testing.T) {
	for name, found := range map[string]bool{"by the attempt": false, "by the one after a crash": true} {
		for _, certain := range []bool{true, false} {
			t.Run(fmt.Sprint(name, certain), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					w := newWorld(t, testBackup(nil))
					open := w.cfg.OpenSnapshot
					w.cfg.OpenSnapshot = func(ctx context.Context, source snapshot.Source) (*Snapshot, error) {
						s, err := open(ctx, source)
						if err == nil {
							s.ClusterID, s.RaftApplied, s.Unapplied, s.Linearizable = 0xabc, 1234, 5, certain
						}
						return s, err
					}
					if found {
						w.dieAfterStoring()
					}
					defer w.run()()
					pass(time.Minute)
					if st := w.status(); !st.Succeeded || st.ClusterID != "0000000000000abc" || st.RaftIndex != 1234 ||
						(st.UnappliedEntries == nil) != certain || !certain && *st.UnappliedEntries != 5 || len(w.store.keys()) != 1 {
						t.Errorf("%+v", st)
					}
				})
			})
		}
	}
}
