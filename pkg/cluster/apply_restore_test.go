// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"

	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/cluster/plan"
	"github.com/etcd-operator/etcd-operator/pkg/manifest"
)

// restoredCluster is an EtcdCluster as the restore operator makes it.
func restoredCluster() *api.EtcdCluster {
	obj := testCluster()
	annotate(obj, testSource().String())
	return obj
}

func annotate(obj *api.EtcdCluster, text string) {
	metav1.SetMetaDataAnnotation(&obj.ObjectMeta, api.RestoreAnnotation, text)
}

func TestARestoredClusterBeginsWithItsBackup(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, clock.RealClock{}, restoredCluster())
		c := w.cluster(restoredCluster())
		defer run(t, c)()
		settle(w, c)
		w.checkRestoring(t)
		if !w.Told("Restoring: The first member starts on the backup backups/etcd.backup") || w.Told("Spec Refused") {
			t.Errorf("events %q", w.Events())
		}
	})
}

// The mirror of a cluster of the fork may have no tag with a leading v.
func TestARestoredClusterKeepsTheTagsOfItsImages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		obj := restoredCluster()
		obj.Spec.Repository, obj.Spec.Version = "mirror/etcd", "3.6.16"
		metav1.SetMetaDataAnnotation(&obj.ObjectMeta, api.LiteralTagsAnnotation, "true")
		w := newWorld(t, clock.RealClock{}, obj)
		c := w.cluster(obj)
		defer run(t, c)()
		settle(w, c)
		w.checkRestoring(t)
		if !w.etcdCluster().Status.LiteralTags {
			t.Error("status.literalTags is false")
		}
		spec := w.storedPods()[0].Spec
		for _, container := range slices.Concat(spec.InitContainers, spec.Containers) {
			if strings.HasPrefix(container.Image, "mirror/etcd:") && container.Image != "mirror/etcd:3.6.16" {
				t.Errorf("container %s has the image %s", container.Name, container.Image)
			}
		}
	})
}

// checkRestoring looks at a restored cluster whose seed can't get on.
func (w *world) checkRestoring(t *testing.T) {
	t.Helper()
	st := w.etcdCluster().Status
	from := st.RestoredFrom
	if st.Phase != api.ClusterPhaseCreating || from == nil || from.RestoreUID != testSource().RestoreUID || from.Key != "backups/etcd.backup" || from.EtcdRevision != 42 {
		t.Fatalf("status %+v, from %+v", st, from)
	}
	pods := w.storedPods()
	if len(pods) != 1 || pods[0].Name != st.Members.Unready[0] {
		t.Fatalf("%d pods; the seed on record is %v", len(pods), st.Members.Unready)
	}
	if p := manifest.PodStateOf(&pods[0]); p.Source != manifest.SourceDigest(testSource()) || p.Preparing != manifest.FetchContainer {
		t.Errorf("the seed starts on %q, and is at %q", p.Source, p.Preparing)
	}
}

// As with any bootstrap, another instance carries on from what is on record.
func TestARestoreIsCarriedOnByAnotherInstance(t *testing.T) {
	carriedOn(t, restoredCluster, func(t *testing.T, w *world, _ int) {
		t.Helper()
		w.checkRestoring(t)
	})
}

func TestAnAnnotationThatCannotBeReadStartsNothing(t *testing.T) {
	for text, why := range map[string]string{
		"{":  "unexpected end of JSON input",
		"{}": "has no good restoreUID, url, secret, size, sha256",
		"":   "unexpected end of JSON input",
		strings.Replace(testSource().String(), `"size":104857600`, `"size":"many"`, 1): "cannot unmarshal string",
	} {
		synctest.Test(t, func(t *testing.T) {
			obj := testCluster()
			annotate(obj, text)
			w := newWorld(t, clock.RealClock{}, obj)
			c := w.cluster(obj)
			defer run(t, c)()
			settle(w, c)
			st := w.etcdCluster().Status
			if st.Phase != api.ClusterPhaseNone || len(w.storedPods()) > 0 || !strings.Contains(st.Reason, why) {
				t.Errorf("annotation %q: status %+v, %d pods", text, st, len(w.storedPods()))
			}
			if !w.Told("Restore Held: the operator creates no first member, because it must start on a backup: ") {
				t.Errorf("annotation %q: events %q", text, w.Events())
			}
		})
	}
}

// The annotation that the cache shows may be an old one.
func TestTheAnnotationIsReadBeforeASeedIsMade(t *testing.T) {
	other := testSource()
	other.SHA256 = strings.Repeat("cd", 32)
	for name, change := range map[string]func(*api.EtcdCluster){
		"it is gone":            func(obj *api.EtcdCluster) { obj.Annotations = nil },
		"it can't be read":      func(obj *api.EtcdCluster) { annotate(obj, "{") },
		"it names another":      func(obj *api.EtcdCluster) { annotate(obj, other.String()) },
		"it came just now":      func(obj *api.EtcdCluster) { annotate(obj, testSource().String()) },
		"it has another server": func(obj *api.EtcdCluster) { o := testSource(); o.URL += "x"; annotate(obj, o.String()) },
	} {
		t.Run(name, func(t *testing.T) {
			obj, p := restoredCluster(), seedPod("a")
			p.Source = testSource()
			if name == "it came just now" {
				obj, p.Source = testCluster(), nil
			}
			w := newWorld(t, clocktesting.NewFakeClock(noon), obj)
			c := w.cluster(w.edit(creating("a")))
			w.edit(change)
			if err := c.apply(t.Context(), plan.CreatePods{Pods: []manifest.MemberPod{p}}); !errors.Is(err, errSuperseded) || len(w.storedPods()) > 0 {
				t.Errorf("error %v, %d pods", err, len(w.storedPods()))
			}
		})
	}
}

// Without the record, the backup of the seed would be unknown, and the operator would choose
// another again and again.
func TestARecordThatTheAPIServerDropsStopsTheRestore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, clock.RealClock{}, restoredCluster())
		w.clusters.PrependReactor("update", "etcdclusters", func(a clienttesting.Action) (bool, runtime.Object, error) {
			if handled, obj, err := w.lock(a); err != nil {
				return handled, obj, err
			}
			obj := a.(clienttesting.UpdateAction).GetObject().(*api.EtcdCluster)
			return true, w.edit(func(live *api.EtcdCluster) {
				live.Status = obj.Status
				live.Status.RestoredFrom = nil
			}), nil
		})
		c := w.cluster(restoredCluster())
		defer run(t, c)()
		for range 20 {
			w.watch()
			c.Update(w.etcdCluster())
			synctest.Wait()
			time.Sleep(Period)
		}
		if len(w.storedPods()) > 0 || w.count("update", "etcdclusters") > 60 || !w.Told("drops status.restoredFrom") {
			t.Errorf("%d pods, %d writes, events %q", len(w.storedPods()), w.count("update", "etcdclusters"), w.Events())
		}
	})
}

func TestAStraySeedOfAClusterThatRunsIsLeftAlone(t *testing.T) {
	w := newWorld(t, clocktesting.NewFakeClock(noon), testCluster())
	c := w.cluster(w.edit(creating("a")))
	pod := w.makePod(memberPod(t, c.obj, "b"))
	w.edit(func(obj *api.EtcdCluster) { obj.Status.Phase = api.ClusterPhaseRunning })
	if err := c.apply(t.Context(), plan.DeletePod{Name: "b", UID: pod.UID, Creating: true}); !errors.Is(err, errSuperseded) || len(w.storedPods()) != 1 {
		t.Errorf("error %v, %d pods", err, len(w.storedPods()))
	}
	w.edit(creating("a"))
	if err := c.apply(t.Context(), plan.DeletePod{Name: "b", UID: pod.UID, Creating: true}); err != nil || len(w.storedPods()) != 0 {
		t.Errorf("error %v, %d pods", err, len(w.storedPods()))
	}
}

func TestAServiceIsNotTakenOverForAClusterThatGoes(t *testing.T) {
	w := newWorld(t, clocktesting.NewFakeClock(noon), testCluster())
	detached := manifest.BuildClientService(testCluster())
	detached.OwnerReferences = nil
	w.makeService(detached)
	c := w.cluster(testCluster())
	at := metav1.NewTime(noon)
	w.edit(func(obj *api.EtcdCluster) {
		obj.DeletionTimestamp, obj.Finalizers = &at, []string{api.RestoreFinalizer}
	})
	if err := c.apply(t.Context(), plan.CreateService{Client: true}); !errors.Is(err, errSuperseded) {
		t.Errorf("error %v", err)
	}
	if svc := w.service("c-client"); len(svc.OwnerReferences) > 0 {
		t.Errorf("owners %v: it goes with the cluster", svc.OwnerReferences)
	}
}

// restoredSeed is the pod of a first member that starts on a backup.
func restoredSeed(t *testing.T, obj *api.EtcdCluster, source *api.SeedBackup) *corev1.Pod {
	t.Helper()
	pod, err := manifest.BuildPod(obj, manifest.MemberPod{Name: "c-seed", Version: obj.Spec.EffectiveVersion(), Seed: true, Token: "a-token", Source: source}, manifest.CertForms{}, operatorImage)
	if err != nil {
		t.Fatal(err)
	}
	return pod
}

func TestALimitOnEphemeralStorageLeavesRoomForTheBackup(t *testing.T) {
	obj := clusterWith("3.6.16", &api.PodPolicy{Resources: corev1.ResourceRequirements{Limits: corev1.ResourceList{
		corev1.ResourceEphemeralStorage: resource.MustParse("1Gi"), corev1.ResourceMemory: resource.MustParse("1Gi"),
	}}})
	source := testSource()
	source.Size = 2 << 30
	pod := restoredSeed(t, obj, source)
	fetch, etcd := pod.Spec.InitContainers[0].Resources.Limits, pod.Spec.Containers[0].Resources.Limits
	if got := fetch.StorageEphemeral().Value(); got != 5<<30+128<<20 {
		t.Errorf("fetch-backup may take %d bytes", got)
	}
	if fetch.Memory().Value() != 1<<30 || etcd.StorageEphemeral().Value() != 1<<30 || obj.Spec.Pod.Resources.Limits.StorageEphemeral().Value() != 1<<30 {
		t.Errorf("fetch-backup has %v, etcd %v, the spec %v", fetch, etcd, obj.Spec.Pod.Resources.Limits)
	}
}

func TestTheStatusTellsHowFarTheFirstMemberIs(t *testing.T) {
	made := restoredSeed(t, clusterWith("3.6.16", nil), testSource())
	init := func(name string, state corev1.ContainerState) corev1.ContainerStatus {
		return corev1.ContainerStatus{Name: name, Image: "an-image", State: state}
	}
	backOff := func(name, message string) corev1.ContainerStatus {
		s := init(name, waiting("CrashLoopBackOff", "back-off 10s"))
		s.LastTerminationState = ended(1, message)
		return s
	}
	for name, c := range map[string]struct {
		node string
		init []corev1.ContainerStatus
		says string
	}{
		"no node yet": {"", nil, "member c-seed starts on the backup backups/etcd.backup"},
		"it fetches": {"node1", []corev1.ContainerStatus{init("fetch-backup", runs())},
			"member c-seed fetches the backup backups/etcd.backup; kubectl logs c-seed -c fetch-backup shows the progress"},
		"its disk is full": {"node1", []corev1.ContainerStatus{backOff("fetch-backup", "the backup needs 3000 MiB")},
			"member c-seed can't start on the backup backups/etcd.backup: container fetch-backup ended with exit code 1: the backup needs 3000 MiB"},
		"it restores": {"node1", []corev1.ContainerStatus{init("fetch-backup", ended(0, "")), init("restore-backup", runs())},
			"member c-seed restores the backup backups/etcd.backup"},
		"etcd's image is unavailable": {"node1", []corev1.ContainerStatus{init("fetch-backup", ended(0, "")), init("restore-backup", waiting("ErrImagePull", "not found"))},
			"member c-seed can't start on the backup backups/etcd.backup: container restore-backup (quay.io/coreos/etcd:v3.6.16) is waiting: ErrImagePull: not found"},
		"the tool fails": {"node1", []corev1.ContainerStatus{init("fetch-backup", ended(0, "")), backOff("restore-backup", "etcdutl can't restore the backup (exit status 1): Error: snapshot missing hash")},
			"member c-seed can't start on the backup backups/etcd.backup: container restore-backup ended with exit code 1: etcdutl can't restore the backup (exit status 1): Error: snapshot missing hash"},
		"it waits for its name": {"node1", []corev1.ContainerStatus{init("fetch-backup", ended(0, "")), init("restore-backup", ended(0, "")), init("check-dns", runs())},
			"member c-seed starts on the backup backups/etcd.backup"},
	} {
		t.Run(name, func(t *testing.T) {
			pod := made.DeepCopy()
			pod.Spec.NodeName, pod.Status.InitContainerStatuses = c.node, c.init
			o := &plan.Observation{Now: noon, Names: manifest.NamesOf(testCluster()), Spec: testCluster().Spec, Source: testSource(), NewNames: []string{"c-new"}}
			o.Status.Phase, o.Status.RestoredFrom, o.Status.Members.Unready = api.ClusterPhaseCreating, manifest.RestoredFrom(o.Source), []string{"c-seed"}
			o.PeerService.Owned = true
			o.Pods = []manifest.PodState{manifest.PodStateOf(pod)}
			if st := statusAfter(o, plan.Plan(o), 1); st.Reason != c.says {
				t.Errorf("it says\n%s, want\n%s", st.Reason, c.says)
			}
			o.Quorum = true
			if st := statusAfter(o, plan.Plan(o), 1); st.Reason != "" || st.Phase != api.ClusterPhaseRunning || st.RestoredFrom == nil {
				t.Errorf("when it serves, it says %+v", st)
			}
		})
	}
}
