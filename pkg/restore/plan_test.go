// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package restore

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/notice"
)

var testNow = time.Date(2026, 11, 21, 18, 0, 0, 0, time.UTC)

// scene makes an observation; the functions below change one thing of it each.
type scene func(*observation)

// seen is what is there when a restore of an EtcdCluster that exists begins.
func seen(scenes ...scene) *observation {
	r := testRestore()
	r.Namespace, r.UID, r.Generation = "ns", "restore", 1
	o := &observation{now: testNow, obj: r, url: "http://s:19999/v1/backup/"}
	there("old", api.ClusterPhaseFailed)(o)
	for _, s := range scenes {
		s(o)
	}
	return o
}

// there puts an EtcdCluster there.
func there(uid types.UID, phase api.ClusterPhase) scene {
	return func(o *observation) {
		c := testCluster(3)
		c.Namespace, c.UID, c.ResourceVersion, c.Generation = "ns", uid, "7", 1
		c.CreationTimestamp = metav1.NewTime(testNow)
		c.Status.Phase, c.Status.CurrentVersion, c.Status.ObservedGeneration = phase, "3.6.16", 1
		o.cluster = &clusterState{live: untyped("etcdclusters", c), spec: c.Spec, status: c.Status}
	}
}

func gone(o *observation) { o.cluster = nil }

func live(change func(*unstructured.Unstructured)) scene {
	return func(o *observation) { change(o.cluster.live) }
}

func deleting(u *unstructured.Unstructured) {
	now := metav1.NewTime(testNow)
	u.SetDeletionTimestamp(&now)
}

func kept(u *unstructured.Unstructured) { u.SetFinalizers([]string{api.RestoreFinalizer}) }

func keptByImport(u *unstructured.Unstructured) {
	u.SetFinalizers(append(u.GetFinalizers(), api.ImportFinalizer))
}

// imports is an EtcdCluster that takes over another etcd.
func imports(method api.ImportMethod, commitDate string) scene {
	return func(o *observation) {
		live(keptByImport)(o)
		o.cluster.status.Phase = api.ClusterPhaseRunning
		if method == api.ImportCopy {
			o.cluster.status.Phase = api.ClusterPhaseCreating
		}
		o.cluster.status.Import = &api.ImportStatus{Method: method, ClusterID: "c1", CommitDate: commitDate}
	}
}

func completed(o *observation) { o.cluster.status.Import.CompletionDate = "2026-11-21T17:59:00Z" }

// annotated is an EtcdCluster that is made for what is on record.
func annotated(o *observation) {
	o.cluster.live.SetAnnotations(map[string]string{api.RestoreAnnotation: o.seed().String()})
}

// from is an EtcdCluster that has begun with the backup on record.
func from(o *observation) {
	o.cluster.status.RestoredFrom = &api.RestoredFrom{RestoreUID: o.obj.UID, Key: "bucket/etcd.backup", SHA256: digest(1)}
}

func members(ready int) scene {
	return func(o *observation) {
		o.cluster.status.Size, o.cluster.status.ReadyMembers = ready, ready
		o.cluster.status.Conditions = isAvailable(true)
	}
}

// onRecord is a restore that is in a phase since its commitment.
func onRecord(phase api.RestorePhase) scene {
	return func(o *observation) {
		m, _ := manifestOf(o.cluster.live)
		o.obj.Finalizers = []string{api.RestoreFinalizer}
		o.obj.Status = api.RestoreStatus{
			Phase: phase, ObservedGeneration: 1, ReplacedUID: "old",
			Backup:  &api.RestoredBackup{Generation: 1, Key: "bucket/etcd.backup", Size: 1001, SHA256: digest(1)},
			Cluster: m.raw(),
		}
		if phase == api.RestorePhaseStarting || phase == api.RestorePhaseGrowing {
			o.obj.Status.ClusterUID = "new"
		}
		o.token = &tokenState{uid: "token", value: "t", ours: true}
	}
}

// replacesNone is a restore to where there was no EtcdCluster.
func replacesNone(o *observation) {
	o.obj.Status.ReplacedUID, o.obj.Spec.ClusterTemplate = "", template()
}

// ofTest makes a restore that of an EtcdBackup that tests a backup. The owner has the UID u.
func ofTest(label string) func(*observation) {
	return func(o *observation) {
		o.obj.Labels = map[string]string{api.RestoreTestLabel: label}
		o.obj.OwnerReferences = []metav1.OwnerReference{{APIVersion: api.SchemeGroupVersion.String(), Kind: api.EtcdBackupResourceKind, Name: "b", UID: "u"}}
	}
}

func edited(o *observation) { o.obj.Generation++ }

func deleted(o *observation) {
	now := metav1.NewTime(testNow)
	o.obj.DeletionTimestamp = &now
	o.obj.Generation++
}

// forged is a mark that an earlier EtcdRestore brought along.
func forged(o *observation) {
	o.obj.Annotations = map[string]string{api.RestoredAnnotation: "2026-11-21T17:59:00Z"}
}

func marked(o *observation) {
	forged(o)
	if committed(&o.obj.Status) {
		o.obj.Status.CompletionDate = notice.Timestamp(testNow)
	}
}

// madeBefore is an EtcdRestore that somebody created before a while. Its status was written since.
func madeBefore(d time.Duration) scene {
	return func(o *observation) {
		now := metav1.NewTime(testNow)
		o.obj.CreationTimestamp = metav1.NewTime(testNow.Add(-d))
		o.obj.ManagedFields = append(o.obj.ManagedFields, metav1.ManagedFieldsEntry{Manager: "etcd-restore-operator", Subresource: "status", Time: &now})
	}
}

// writtenBefore is one that somebody wrote to before a while.
func writtenBefore(d time.Duration) scene {
	return func(o *observation) {
		at := metav1.NewTime(testNow.Add(-d))
		o.obj.ManagedFields = append(o.obj.ManagedFields, metav1.ManagedFieldsEntry{Manager: "kubectl-edit", Time: &at})
	}
}

// leftBefore is one that an operator began to look at before a while, and left in a phase.
func leftBefore(d time.Duration, phase api.RestorePhase) scene {
	return func(o *observation) {
		o.obj.Status = api.RestoreStatus{Phase: phase, ObservedGeneration: 1, StartDate: notice.Timestamp(testNow.Add(-d)), Reason: "as it was"}
	}
}

// servedSince is a cluster whose first member served before a while.
func servedSince(d time.Duration) scene {
	return func(o *observation) { o.obj.Status.ServedDate = notice.Timestamp(testNow.Add(-d)) }
}

func read(err error) scene {
	return func(o *observation) {
		o.outcome = &outcome{generation: generation(o.obj), err: err}
		o.outcome.manifest, _ = o.manifest()
		o.outcome.backup = api.RestoredBackup{Generation: o.obj.Generation, Key: "bucket/etcd.backup", Size: 1001, SHA256: digest(1)}
	}
}

func pod(left ...time.Duration) scene {
	return func(o *observation) {
		p := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("c-%d", len(o.leftovers.pods)+1)}}
		if len(left) > 0 {
			t := metav1.NewTime(testNow.Add(left[0]))
			p.DeletionTimestamp = &t
		}
		o.leftovers.pods = append(o.leftovers.pods, p)
	}
}

func volume(o *observation) { o.leftovers.volumes = volumes("v-1") }

func service(o *observation) {
	o.leftovers.services = []corev1.Service{{ObjectMeta: metav1.ObjectMeta{Name: "c-client"}}}
}

func volumes(names ...string) (list []corev1.PersistentVolumeClaim) {
	for _, name := range names {
		list = append(list, corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: name}})
	}
	return list
}

func TestPlan(t *testing.T) {
	finalized := func(o *observation) { o.obj.Finalizers = []string{api.RestoreFinalizer} }
	stopping, creating := onRecord(api.RestorePhaseStopping), onRecord(api.RestorePhaseCreating)
	starting, growing := onRecord(api.RestorePhaseStarting), onRecord(api.RestorePhaseGrowing)
	stopped := scene(func(o *observation) { live(deleting)(o); live(kept)(o) })
	createdByUs := func(phase api.ClusterPhase) scene {
		return func(o *observation) { there("new", phase)(o); annotated(o) }
	}
	joining, joined := imports(api.ImportJoin, ""), imports(api.ImportJoin, "2026-11-21T17:50:00Z")
	for name, tc := range map[string]struct {
		o     *observation
		step  string
		phase api.RestorePhase
		says  string
	}{
		"first it looks for the backup":           {seen(), `begin manifest={"size":3,"version":"3.6.16"}`, "Verifying", "the backup is being looked for"},
		"and waits for what is found":             {seen(func(o *observation) { text := "reading 5 of 7"; o.reading = &text }), "", "Verifying", "5 of 7"},
		"what is good is not on record at once":   {seen(read(nil)), "putFinalizer", "Verifying", "the backup is whole"},
		"but when the finalizer is":               {seen(finalized, read(nil)), "", "Stopping", ""},
		"an edit of the cluster meanwhile counts": {seen(finalized, read(nil), live(func(u *unstructured.Unstructured) { u.SetLabels(nil) })), "", "Verifying", "edited"},
		"what fails is tried again":               {seen(read(errors.New("denied"))), "", "Retrying", "denied"},
		"but what is damaged waits for an edit":   {seen(read(errUnfit)), "", "Failed", "nothing was touched"},
		"and continues waiting":                   {seen(func(o *observation) { o.obj.Status.Phase, o.obj.Status.ObservedGeneration = "Failed", 1 }), "", "Failed", ""},
		"until there is one":                      {seen(func(o *observation) { o.obj.Status.Phase, o.obj.Status.ObservedGeneration = "Failed", 0 }), `begin manifest={"size":3,"version":"3.6.16"}`, "Verifying", "the backup is being looked for"},
		"a retry has its time": {seen(func(o *observation) {
			o.obj.Status = api.RestoreStatus{Phase: "Retrying", ObservedGeneration: 1, NextExecutionDate: notice.Timestamp(testNow.Add(time.Minute))}
		}), "", "Retrying", ""},
		"which a clock that was set back can't stretch": {seen(func(o *observation) {
			o.obj.Status = api.RestoreStatus{Phase: "Retrying", ObservedGeneration: 1, NextExecutionDate: notice.Timestamp(testNow.Add(time.Hour))}
		}), `begin manifest={"size":3,"version":"3.6.16"}`, "Verifying", "the backup is being looked for"},
		"one that nobody has seen for a day waits for an edit":  {seen(madeBefore(patience + 1)), "", "Failed", "given up after 24h"},
		"one of the last day begins":                            {seen(madeBefore(patience)), `begin manifest={"size":3,"version":"3.6.16"}`, "Verifying", "the backup is being looked for"},
		"and one that was edited since":                         {seen(madeBefore(patience+1), writtenBefore(time.Hour)), `begin manifest={"size":3,"version":"3.6.16"}`, "Verifying", "the backup is being looked for"},
		"one that an operator has left for a day waits as well": {seen(leftBefore(patience+1, "Verifying")), "", "Failed", "the last time: as it was"},
		"and one that the cluster did not fit":                  {seen(leftBefore(patience+1, "Invalid")), "", "Failed", "the last time: as it was"},
		"but a read that takes a day comes to its end":          {seen(leftBefore(patience+1, "Verifying"), func(o *observation) { text := "reading 5 of 7"; o.reading = &text }), "", "Verifying", "5 of 7"},
		"and counts":                          {seen(finalized, leftBefore(patience+1, "Verifying"), read(nil)), "", "Stopping", ""},
		"nothing to restore":                  {seen(gone), "", "Retrying", "spec.clusterTemplate"},
		"somebody else has the token's name":  {seen(func(o *observation) { o.token = &tokenState{uid: "x"} }), "", "Retrying", "Secret c-restore-token"},
		"what v0.9.4 gave up stays so":        {seen(func(o *observation) { o.obj.Status.Reason = "no" }), "", "Failed", "v0.9.4"},
		"deleted before anything was touched": {seen(deleted), "", "", ""},
		"and with the finalizer":              {seen(finalized, deleted), "release", "", ""},

		"an import that is committed goes to its end":    {seen(joined), "", "Retrying", "kubectl delete etcdcluster c --wait=false"},
		"or ends with a deletion":                        {seen(joined, live(deleting)), `begin manifest={"size":3,"version":"3.6.16"}`, "Verifying", "the backup is being looked for"},
		"for which the restore does not begin again":     {seen(stopping, joined), "holdCluster cluster=old/7", "Stopping", "the old cluster is being stopped"},
		"one that is complete holds nothing up":          {seen(joined, completed), `begin manifest={"size":3,"version":"3.6.16"}`, "Verifying", "the backup is being looked for"},
		"one that is not committed has a way back":       {seen(joining), "", "Retrying", "delete the EtcdCluster"},
		"which takes its time":                           {seen(joining, live(deleting)), "", "Retrying", "remove the finalizer " + api.ImportFinalizer},
		"unless somebody ends it":                        {seen(joining, live(deleting), live(func(u *unstructured.Unstructured) { u.SetFinalizers([]string{"theirs"}) })), `begin manifest={"size":3,"version":"3.6.16"}`, "Verifying", "the backup is being looked for"},
		"a template waits for it":                        {seen(joined, live(deleting), func(o *observation) { o.obj.Spec.ClusterTemplate = template() }), "", "Retrying", "remove the finalizer " + api.ImportFinalizer},
		"a copy has a way back as well":                  {seen(imports(api.ImportCopy, "2026-11-21T17:50:00Z")), "", "Retrying", "delete the EtcdCluster"},
		"and needs none when the new cluster has served": {seen(imports(api.ImportCopy, "2026-11-21T17:50:00Z"), func(o *observation) { o.cluster.status.Phase = api.ClusterPhaseFailed }), `begin manifest={"size":3,"version":"3.6.16"}`, "Verifying", "the backup is being looked for"},

		"a template that nobody would start": {seen(gone, func(o *observation) {
			o.obj.Spec.ClusterTemplate = template()
			o.obj.Spec.ClusterTemplate.Spec.Raw = []byte(`{"size":1,"paused":true}`)
		}), "", "Invalid", "paused"},
		"a token comes first":                         {seen(stopping, func(o *observation) { o.token = nil }), "createToken", "Stopping", "the old cluster is being stopped"},
		"one of a former restore goes":                {seen(stopping, func(o *observation) { o.token = &tokenState{uid: "x", former: true} }), "deleteToken uid=x", "Stopping", "the old cluster is being stopped"},
		"the finalizer that somebody took comes back": {seen(stopping, func(o *observation) { o.obj.Finalizers = nil }), "putFinalizer", "Stopping", ""},
		"the old cluster is held":                     {seen(stopping), "holdCluster cluster=old/7", "Stopping", "the old cluster is being stopped"},
		"then deleted":                                {seen(stopping, live(kept)), "deleteCluster cluster=old/7 unchanged", "Stopping", "the old cluster is being stopped"},
		"unless it was edited":                        {seen(stopping, live(kept), live(func(u *unstructured.Unstructured) { u.SetLabels(nil) })), "", "Stopping", "the old cluster is being stopped"},
		"or paused": {seen(stopping, live(kept), func(o *observation) {
			o.cluster.spec.Paused = true
			_ = unstructured.SetNestedField(o.cluster.live.Object, true, "spec", "paused")
		}), "", "Stopping", "spec.paused"},
		"its volumes are set aside first":     {seen(stopping, stopped, service, volume, pod()), "setAside volumes=[v-1] owner=old", "Stopping", "the old cluster is being stopped"},
		"its Services stay":                   {seen(stopping, stopped, service, pod()), "disownServices services=[c-client] owner=old", "Stopping", "the old cluster is being stopped"},
		"before volumes are deleted":          {seen(stopping, stopped, service, volume, pod(), func(o *observation) { o.obj.Spec.OldVolumes = api.OldVolumesDeleteFirst }), "disownServices services=[c-client] owner=old", "Stopping", "the old cluster is being stopped"},
		"or deleted":                          {seen(stopping, stopped, volume, pod(), func(o *observation) { o.obj.Spec.OldVolumes = api.OldVolumesDeleteFirst }), "deleteVolumes volumes=[v-1]", "Stopping", "the old cluster is being stopped"},
		"its pods end":                        {seen(stopping, stopped, pod(), pod(time.Minute)), "deletePods pods=[c-1]", "Stopping", "the old cluster is being stopped"},
		"and are waited for":                  {seen(stopping, stopped, pod(-29*time.Second)), "", "Stopping", "c-1"},
		"but not forever":                     {seen(stopping, stopped, pod(-31*time.Second)), "letGo cluster=old/7 lost=[c-1]", "Stopping", "the old cluster is being stopped"},
		"then it may go":                      {seen(stopping, stopped), "letGo cluster=old/7", "Stopping", "the old cluster is being stopped"},
		"if others let it":                    {seen(stopping, live(deleting), live(func(u *unstructured.Unstructured) { u.SetFinalizers([]string{"theirs"}) })), "", "Stopping", "theirs"},
		"its committed import keeps it":       {seen(stopping, joined, live(deleting)), "", "Stopping", "to give the import up, remove the finalizer " + api.ImportFinalizer},
		"or one that it takes back":           {seen(stopping, joining, live(deleting)), "", "Stopping", "or remove the finalizer " + api.ImportFinalizer},
		"which says what it waits for":        {seen(stopping, joining, live(deleting), func(o *observation) { o.cluster.status.Reason = "no quorum" }), "", "Stopping", "no quorum"},
		"or others, when it has ended":        {seen(stopping, joined, completed, live(deleting)), "", "Stopping", "somebody else keeps it by the finalizers " + api.ImportFinalizer},
		"it makes pods until then":            {seen(stopping, stopped, joined, pod()), "deletePods pods=[c-1]", "Stopping", "remove the finalizer " + api.ImportFinalizer},
		"which are waited for":                {seen(stopping, stopped, joined, pod(time.Second)), "", "Stopping", "remove the finalizer " + api.ImportFinalizer},
		"also if others keep the EtcdCluster": {seen(stopping, joined, live(deleting), pod()), "deletePods pods=[c-1]", "Stopping", "remove the finalizer " + api.ImportFinalizer},
		"it is gone, its pods are not":        {seen(stopping, gone, pod()), "deletePods pods=[c-1]", "Stopping", "the old cluster is being stopped"},
		"all is gone":                         {seen(stopping, gone), "", "Creating", "the EtcdCluster is being made"},
		"another has its name":                {seen(stopping, there("other", api.ClusterPhaseRunning)), "", "Creating", "the EtcdCluster is being made"},
		"what Kubernetes refuses is reported": {seen(stopping, func(o *observation) { o.trouble = "forbidden" }), "holdCluster cluster=old/7", "Stopping", "forbidden; it is tried again"},

		"the new one is made":          {seen(creating, gone), "createCluster seed=restore/1/1001/http://s:19999/v1/backup/c/c-restore-token/bucket/etcd.backup", "Creating", "the EtcdCluster is being made"},
		"and again, if it is refused":  {seen(creating, gone, func(o *observation) { o.unacceptable, o.trouble = true, "invalid" }), "createCluster seed=restore/1/1001/http://s:19999/v1/backup/c/c-restore-token/bucket/etcd.backup", "Creating", "kubectl edit etcdrestore c --subresource=status); invalid; it is tried again"},
		"and is there":                 {seen(creating, createdByUs(api.ClusterPhaseNone)), "", "Starting", "waiting for the first member to start on the backup"},
		"it serves already":            {seen(creating, there("new", api.ClusterPhaseRunning), from), "", "Starting", "waiting for the first member to start on the backup"},
		"it is for a backup of before": {seen(creating, createdByUs(api.ClusterPhaseNone), func(o *observation) { o.obj.Status.Backup.SHA256 = digest(2) }), `deleteCluster cluster=new/7 unchanged why="it was made for another backup than is now asked for"`, "Creating", "the EtcdCluster is being made"},
		"it is somebody else's":        {seen(creating, there("other", api.ClusterPhaseCreating)), `deleteCluster cluster=other/7 unchanged why="somebody else has made it, without the backup"`, "Creating", "the EtcdCluster is being made"},
		"which serves":                 {seen(creating, there("other", api.ClusterPhaseRunning)), "", "Creating", "kubectl delete etcdcluster c"},
		"or did":                       {seen(creating, there("other", api.ClusterPhaseFailed)), "", "Creating", "kubectl delete etcdcluster c"},
		"or goes":                      {seen(creating, there("other", api.ClusterPhaseRunning), live(deleting)), "", "Creating", "waiting"},
		"or nobody can read it":        {seen(creating, there("other", ""), func(o *observation) { o.cluster.unreadable = "not of the form" }), "", "Creating", "not of the form"},

		"the first member starts":                 {seen(starting, createdByUs(api.ClusterPhaseCreating)), "", "Starting", "waiting for the first member"},
		"it fetches":                              {seen(starting, createdByUs(api.ClusterPhaseCreating), func(o *observation) { o.served = 500 }), "", "Starting", "0.5 KiB of 1.0 KiB"},
		"the store is down":                       {seen(starting, createdByUs(api.ClusterPhaseCreating), func(o *observation) { o.served, o.unserved = 500, "refused" }), "", "Starting", "refused"},
		"the server can't be reached":             {seen(starting, createdByUs(api.ClusterPhaseCreating), func(o *observation) { o.unreached = "no Service" }), "", "Starting", "no Service"},
		"somebody pauses it":                      {seen(starting, createdByUs(api.ClusterPhaseCreating), func(o *observation) { o.cluster.spec.Paused = true }), "", "Starting", "spec.paused"},
		"nobody takes it up":                      {seen(starting, createdByUs(""), func(o *observation) { o.now = testNow.Add(untouched) }), "", "Starting", "no etcd operator"},
		"the annotation is taken off":             {seen(starting, there("new", api.ClusterPhaseCreating)), `deleteCluster cluster=new/7 unchanged why="it was made for another backup than is now asked for"`, "Starting", "waiting for the first member to start on the backup"},
		"the token is lost":                       {seen(starting, createdByUs(api.ClusterPhaseCreating), func(o *observation) { o.token = nil }), "createToken", "Starting", "waiting for the first member to start on the backup"},
		"it runs, and began empty":                {seen(starting, there("new", api.ClusterPhaseRunning), members(3)), "", "Starting", "did not begin with the backup"},
		"it runs, and its operator made it empty": {seen(starting, createdByUs(api.ClusterPhaseRunning), members(3)), "", "Starting", "does not know restores"},
		"it runs":                                         {seen(starting, createdByUs(api.ClusterPhaseRunning), from, members(1)), "", "Growing", "1 of 3"},
		"all data is lost again":                          {seen(growing, createdByUs(api.ClusterPhaseFailed), from), "", "Stopping", "lost"},
		"but not long after it served":                    {seen(growing, createdByUs(api.ClusterPhaseFailed), from, servedSince(repeatWindow)), "", "Growing", "make another"},
		"nor where another clock says when it served":     {seen(growing, createdByUs(api.ClusterPhaseFailed), from, servedSince(-time.Hour)), "", "Growing", "make another"},
		"nor is one recreated that somebody deleted then": {seen(growing, gone, servedSince(repeatWindow)), "", "Growing", "make another"},
		"it refuses writes":                               {seen(growing, createdByUs(api.ClusterPhaseRunning), from, members(3), func(o *observation) { o.cluster.status.Conditions = isAvailable(false) }), "", "Growing", "NOSPACE"},
		"deleted, it leaves the cluster that serves":      {seen(growing, createdByUs(api.ClusterPhaseRunning), from, members(1), servedSince(0), deleted), "unannotate cluster=new/7", "Growing", "deleted before the cluster had all its members: the cluster is left as it is"},
		"whatever was edited, though the cluster is gone": {seen(growing, gone, servedSince(time.Minute), edited, deleted), "release", "Growing", "deleted before the cluster had all its members: the cluster is left as it is"},
		"and its backup can't be read":                    {seen(growing, gone, servedSince(time.Minute), edited, deleted, read(errors.New("down"))), "release", "Growing", "deleted before the cluster had all its members: the cluster is left as it is"},
		"and goes":                                        {seen(growing, there("new", api.ClusterPhaseRunning), from, members(1), servedSince(0), deleted), "release", "Growing", "deleted before the cluster had all its members: the cluster is left as it is"},
		"there is no room for old volumes": {seen(starting, createdByUs(api.ClusterPhaseCreating), func(o *observation) {
			o.setAside, o.obj.Spec.OldVolumes = volumes("aside-1"), api.OldVolumesDeleteFirst
		}), "deleteVolumes volumes=[aside-1]", "Starting", "the old volumes are being deleted"},
		"somebody deletes each one that is made":       {seen(creating, gone, func(o *observation) { o.creations = maxRecreations }), "", "Creating", "ownerReferences"},
		"the record can't be read back":                {seen(stopping, func(o *observation) { o.obj.Status.Cluster.Raw = []byte("{}") }), "", "Stopping", "nothing is touched"},
		"somebody deletes it":                          {seen(growing, createdByUs(api.ClusterPhaseRunning), from, live(deleting)), "", "Growing", "recreated"},
		"and it is gone":                               {seen(growing, gone), "", "Creating", "recreated"},
		"or another one":                               {seen(growing, there("other", api.ClusterPhaseRunning)), "", "Creating", "the EtcdCluster is gone before it was whole: it is recreated"},
		"it has all members, but not of the last edit": {seen(growing, createdByUs(api.ClusterPhaseRunning), from, members(3), live(func(u *unstructured.Unstructured) { u.SetGeneration(2) })), "", "Growing", "the first member serves; 3 of 3 members are healthy"},
		"it has one member too many":                   {seen(growing, createdByUs(api.ClusterPhaseRunning), from, members(4)), "", "Growing", "the first member serves; 4 of 3 members are healthy"},
		"it is whole":                                  {seen(growing, createdByUs(api.ClusterPhaseRunning), from, members(3)), "markRestored cluster=new/7", "Growing", "the first member serves; 3 of 3 members are healthy"},

		"an edit has the backup chosen again":   {seen(starting, createdByUs(api.ClusterPhaseCreating), edited), `begin manifest={"size":3,"version":"3.6.16"}`, "Starting", "the spec was edited"},
		"but not once the first member serves":  {seen(growing, createdByUs(api.ClusterPhaseRunning), from, members(1), edited), "", "Growing", "1 of 3"},
		"a deletion is no edit":                 {seen(starting, createdByUs(api.ClusterPhaseCreating), deleted), "", "Starting", "waiting for the first member to start on the backup"},
		"it wins as long as nothing is touched": {seen(stopping, deleted), "release", "Stopping", ""},
		"whatever was edited before":            {seen(stopping, edited, deleted), "release", "Stopping", ""},
		"the old cluster is let go first":       {seen(stopping, live(kept), deleted), "letGo cluster=old/7", "Stopping", ""},
		"it does not end what was begun":        {seen(stopping, stopped, deleted), "letGo cluster=old/7", "Stopping", "the old cluster is being stopped"},
		"nor where all is gone":                 {seen(stopping, gone, deleted), "", "Creating", "the EtcdCluster is being made"},
		"nor what the restore has made":         {seen(stopping, from, deleted), "holdCluster cluster=old/7", "Stopping", "the old cluster is being stopped"},
		"of a cluster there was none":           {seen(creating, gone, replacesNone, deleted), "release", "Creating", ""},
		"and then there is one":                 {seen(creating, createdByUs(api.ClusterPhaseNone), replacesNone, deleted), "", "Starting", "waiting for the first member to start on the backup"},
		"one before a deletion is one as well":  {seen(starting, createdByUs(api.ClusterPhaseCreating), edited, deleted), `begin manifest={"size":3,"version":"3.6.16"}`, "Starting", "the spec was edited"},
		"but the end of its namespace does":     {seen(stopping, stopped, deleted, func(o *observation) { o.namespaceEnds = true }), "letGo cluster=old/7", "Stopping", "the namespace is being deleted: the restore ends with it"},
		"and it may go too":                     {seen(stopping, gone, deleted, func(o *observation) { o.namespaceEnds = true }), "release", "Stopping", "the namespace is being deleted: the restore ends with it"},

		"the test of a backup ends with its EtcdRestore":    {seen(starting, createdByUs(api.ClusterPhaseCreating), replacesNone, ofTest("u"), deleted), "release", "Starting", "the test of the backup has ended"},
		"but not before that is deleted":                    {seen(starting, createdByUs(api.ClusterPhaseCreating), replacesNone, ofTest("u")), "", "Starting", "waiting for the first member to start on the backup"},
		"a label that somebody copied makes a restore none": {seen(starting, createdByUs(api.ClusterPhaseCreating), replacesNone, ofTest("other"), deleted), "", "Starting", "waiting for the first member to start on the backup"},

		"a mark from elsewhere ends nothing": {seen(growing, createdByUs(api.ClusterPhaseRunning), from, members(1), forged), "", "Growing", "1 of 3"},
		"whole: the annotation goes":         {seen(growing, createdByUs(api.ClusterPhaseRunning), marked), "unannotate cluster=new/7", "Growing", "the cluster is back: what the restore no longer needs is removed"},
		"then the old volumes":               {seen(growing, gone, marked, func(o *observation) { o.setAside = volumes("aside-1") }), "deleteVolumes volumes=[aside-1] restored", "Growing", "the cluster is back: what the restore no longer needs is removed"},
		"unless somebody wants them": {seen(growing, gone, marked, func(o *observation) {
			o.setAside, o.obj.Spec.OldVolumes = volumes("aside-1"), api.OldVolumesKeep
		}), "deleteToken uid=token tidying", "Growing", "the cluster is back: what the restore no longer needs is removed"},
		"or they may not be deleted": {seen(growing, gone, marked, func(o *observation) {
			o.setAside, o.denied = volumes("aside-1"), map[string]bool{deniedVolumes: true}
		}), "deleteToken uid=token tidying", "Growing", "the cluster is back: what the restore no longer needs is removed"},
		"then it is reported":                          {seen(growing, gone, marked, func(o *observation) { o.token = nil }), "", "Succeeded", ""},
		"which is not taken back, whoever tidies more": {seen(growing, createdByUs(api.ClusterPhaseRunning), marked, func(o *observation) { o.obj.Status.Phase = "Succeeded" }), "unannotate cluster=new/7", "Succeeded", ""},
		"then it may be deleted":                       {seen(growing, gone, marked, func(o *observation) { o.token, o.obj.Status.Phase = nil, "Succeeded" }), "release", "Succeeded", ""},
		"it succeeded, and its status is lost":         {seen(marked), "", "Invalid", "reports a success"},
	} {
		t.Run(name, func(t *testing.T) {
			v := plan(tc.o)
			judged(t, tc.o, v)
			step := inFull(t, v.step)
			if step != tc.step || v.status.Phase != tc.phase || !strings.Contains(v.status.Reason, tc.says) || (tc.says == "") != (v.status.Reason == "") {
				t.Errorf("%q in phase %q, which says %q; want %q in %q, with %q", step, v.status.Phase, v.status.Reason, tc.step, tc.phase, tc.says)
			}
			if d, ok := v.step.(deleteCluster); ok && d.why != "" && !d.unchanged {
				t.Error("it is deleted though it may have changed since it was seen")
			}
		})
	}
}

func TestTheRecordIsWhole(t *testing.T) {
	o := seen(func(o *observation) { o.obj.Finalizers = []string{api.RestoreFinalizer} })
	o.cluster.live.SetAnnotations(map[string]string{"note": "keep", api.RestoreAnnotation: "of a restore before"})
	o.cluster.live.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: "owner", UID: "o"}})
	_ = unstructured.SetNestedMap(o.cluster.live.Object, map[string]any{"size": int64(3), "unknown": "kept"}, "spec")
	read(nil)(o)
	st := plan(o).status
	const want = `{"apiVersion":"etcd.database.coreos.com/v1beta2","kind":"EtcdCluster","metadata":{"annotations":{"note":"keep"},"labels":{"team":"a"},` +
		`"name":"c","namespace":"ns","ownerReferences":[{"apiVersion":"v1","kind":"ConfigMap","name":"owner","uid":"o"}]},"spec":{"size":3,"unknown":"kept","version":"3.6.16"}}`
	if got := strings.TrimSpace(string(st.Cluster.Raw)); got != want {
		t.Errorf("on record is\n%s, want\n%s", got, want)
	}
	if st.ReplacedUID != "old" || st.Backup.SHA256 != digest(1) || st.Phase != api.RestorePhaseStopping {
		t.Errorf("status %+v", st)
	}
}

func TestAnEditThatCameTooLateIsTold(t *testing.T) {
	o := seen(onRecord(api.RestorePhaseStarting), there("new", api.ClusterPhaseRunning), from)
	o.obj.Status.Backup.SHA256 = digest(2)
	if got := plan(o).status.Backup; got.SHA256 != digest(1) || got.Generation != 1 {
		t.Errorf("the cluster is said to have begun with %+v", got)
	}
}

// The content is the same: only the revisions differ that the cluster began with.
func TestALateEditOfTheRevisionIsTold(t *testing.T) {
	taken := notice.Timestamp(testNow.Add(-time.Hour))
	for name, tc := range map[string]struct {
		change              func(*observation)
		tells               bool
		revision, increased int64
	}{
		"none": {func(*observation) {}, false, 100, 1_000_000_000},
		"on record": {func(o *observation) {
			o.obj.Generation, o.obj.Spec.Revision = 2, 90
			o.obj.Status.Backup.Generation, o.obj.Status.Backup.Revision, o.obj.Status.Backup.BumpRevision = 2, 90, 1_000_000_010
		}, true, 100, 1_000_000_000},
		"of the raise alone": {func(o *observation) { o.obj.Status.Backup.BumpRevision = 5 }, true, 100, 1_000_000_000},
		"not read yet":       {func(o *observation) { o.obj.Generation, o.obj.Spec.Revision = 2, 90 }, true, 100, 1_000_000_000},
		"of the raise of all that the backup holds": {func(o *observation) {
			o.obj.Status.Backup.Revision, o.obj.Status.Backup.BumpRevision, o.obj.Spec.BumpRevision = 0, 0, 7
			o.cluster.status.RestoredFrom.Revision, o.cluster.status.RestoredFrom.BumpRevision = 0, 0
		}, true, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			o := seen(onRecord(api.RestorePhaseStarting), there("new", api.ClusterPhaseRunning), from)
			b, began := o.obj.Status.Backup, o.cluster.status.RestoredFrom
			b.Revision, b.BumpRevision, b.Taken, b.ClusterID = 100, 1_000_000_000, taken, "c1"
			began.Revision, began.BumpRevision = 100, 1_000_000_000
			tc.change(o)
			v := plan(o)
			got := v.status.Backup
			if got.Revision != tc.revision || got.BumpRevision != tc.increased || !got.Taken.Equal(taken) || got.ClusterID != "c1" || got.Generation != b.Generation {
				t.Errorf("the cluster is said to have begun with %+v", got)
			}
			if (v.late != "") != tc.tells || tc.revision > 0 && tc.tells && !strings.Contains(v.late, "revision 100") {
				t.Errorf("the user learns %q", v.late)
			}
		})
	}
}

func TestRetriesComeLessAndLessOften(t *testing.T) {
	o := seen()
	var pauses []time.Duration
	for range 9 {
		read(errors.New("down"))(o)
		o.obj.Status = plan(o).status
		pauses = append(pauses, o.obj.Status.NextExecutionDate.Sub(testNow))
	}
	if got := fmt.Sprint(pauses); got != "[5s 10s 20s 40s 1m20s 2m40s 5m0s 5m0s 5m0s]" {
		t.Error(got)
	}
}

// Before, the volumes would go with the EtcdCluster.
func TestTheFinalizerOfAnImportIsNamedOnceTheVolumesAreSetAside(t *testing.T) {
	for name, tc := range map[string]struct {
		change scene
		names  bool
	}{
		"nothing else keeps the EtcdCluster": {func(*observation) {}, false},
		"the restore keeps it":               {live(kept), true},
	} {
		t.Run(name, func(t *testing.T) {
			o := seen(onRecord(api.RestorePhaseStopping), tc.change, imports(api.ImportJoin, "2026-11-21T17:50:00Z"), live(deleting), volume, pod())
			v := plan(o)
			if _, ok := v.step.(setAside); !ok || strings.Contains(v.status.Reason, api.ImportFinalizer) != tc.names {
				t.Errorf("%v, which says %q", v.step, v.status.Reason)
			}
		})
	}
}
