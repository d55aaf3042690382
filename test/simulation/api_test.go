// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"k8s.io/apimachinery/pkg/util/validation/field"

	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

// kind is a kind that the API server knows.
type kind struct {
	resource, apiVersion, name string
	new                        func() metav1.Object
}

func (k *kind) group() schema.GroupResource {
	gv, _ := schema.ParseGroupVersion(k.apiVersion)
	return schema.GroupResource{Group: gv.Group, Resource: k.resource}
}

// set sets the kind of an object.
func (k *kind) set(obj metav1.Object) {
	obj.(interface {
		GetObjectKind() schema.ObjectKind
	}).GetObjectKind().SetGroupVersionKind(schema.FromAPIVersionAndKind(k.apiVersion, k.name))
}

var kinds = map[string]*kind{}

func init() {
	for _, k := range []*kind{
		{"pods", "v1", "Pod", func() metav1.Object { return &corev1.Pod{} }},
		{"services", "v1", "Service", func() metav1.Object { return &corev1.Service{} }},
		{"persistentvolumeclaims", "v1", "PersistentVolumeClaim", func() metav1.Object { return &corev1.PersistentVolumeClaim{} }},
		{"secrets", "v1", "Secret", func() metav1.Object { return &corev1.Secret{} }},
		{"events", "v1", "Event", func() metav1.Object { return &corev1.Event{} }},
		{"leases", "coordination.k8s.io/v1", "Lease", func() metav1.Object { return &coordinationv1.Lease{} }},
		{"poddisruptionbudgets", "policy/v1", "PodDisruptionBudget", func() metav1.Object { return &policyv1.PodDisruptionBudget{} }},
		{"etcdbackups", api.SchemeGroupVersion.String(), api.EtcdBackupResourceKind, func() metav1.Object { return &api.EtcdBackup{} }},
		{"etcdrestores", api.SchemeGroupVersion.String(), api.EtcdRestoreResourceKind, func() metav1.Object { return &api.EtcdRestore{} }},
		{"etcdclusters", api.SchemeGroupVersion.String(), api.EtcdClusterResourceKind, func() metav1.Object { return &api.EtcdCluster{} }},
		{"customresourcedefinitions", "apiextensions.k8s.io/v1", "CustomResourceDefinition", func() metav1.Object { return &apiextensionsv1.CustomResourceDefinition{} }},
	} {
		kinds[k.resource] = k
	}
}

// apiServer is a model of Kubernetes' API server: its objects, and their history.
type apiServer struct {
	w        *world
	version  int64
	shelves  map[string]*shelf
	watchers []*watcher
	// pinned and refusal are admission: it pins images by their digest, and refuses pods with
	// a reason.
	pinned     bool
	keptImages bool // admission undoes changes of images
	refusal    string
	// noWatchLists is true for an API server without watches that begin with a list.
	noWatchLists bool
	made         int
	sortedPods   []*corev1.Pod // nil: not created yet
}

// shelf holds the objects of one kind.
type shelf struct {
	kind    *kind
	objects map[string]*stored
	past    []change
	// oldest is the oldest version whose changes are kept.
	oldest int64
}

type stored struct {
	obj     metav1.Object
	version int64
	// asJSON and asProto are made when somebody first asks for them.
	asJSON, asProto []byte
}

// change is one change in the history of a kind.
type change struct {
	version       int64
	key           string
	before, after *stored // nil: absent
}

func newAPIServer(w *world) *apiServer {
	a := &apiServer{w: w, version: 100, shelves: map[string]*shelf{}}
	for r, k := range kinds {
		a.shelves[r] = &shelf{kind: k, objects: map[string]*stored{}, oldest: a.version}
	}
	return a
}

func storedKey(namespace, name string) string { return namespace + "/" + name }

// keys returns the keys of all objects of a kind, in order.
func (s *shelf) keys() []string {
	keys := make([]string, 0, len(s.objects))
	for k := range s.objects {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

// put stores an object, sets its resourceVersion, and notifies the watchers.
func (a *apiServer) put(s *shelf, obj metav1.Object) *stored {
	a.version++
	obj.SetResourceVersion(strconv.FormatInt(a.version, 10))
	s.kind.set(obj)
	key := storedKey(obj.GetNamespace(), obj.GetName())
	before, after := s.objects[key], &stored{obj: obj, version: a.version}
	s.objects[key] = after
	a.sortedPods = nil
	a.changed(s, change{a.version, key, before, after})
	return after
}

// drop removes an object, and the objects that it owns.
func (a *apiServer) drop(s *shelf, key string) {
	before := s.objects[key]
	if before == nil {
		return
	}
	a.version++
	delete(s.objects, key)
	a.sortedPods = nil
	a.changed(s, change{a.version, key, before.at(a.version), nil})
	uid := before.obj.GetUID()
	a.w.after(500*time.Millisecond, func() { a.collect(uid) })
}

// at returns an object with the version of its deletion, as watchers receive it.
func (o *stored) at(version int64) *stored {
	obj := copied(o.obj)
	obj.SetResourceVersion(strconv.FormatInt(version, 10))
	return &stored{obj: obj, version: version}
}

// collect deletes the objects whose owner is gone.
func (a *apiServer) collect(owner types.UID) {
	for _, r := range []string{"pods", "services", "persistentvolumeclaims", "poddisruptionbudgets", "secrets"} {
		s := a.shelves[r]
		for _, key := range s.keys() {
			if o := metav1.GetControllerOf(s.objects[key].obj); o != nil && o.UID == owner {
				a.remove(s, key, nil)
			}
		}
	}
}

// remove deletes an object as a DELETE does. A pod on a node stays until its kubelet has ended
// it, and a claim until no pod uses it.
func (a *apiServer) remove(s *shelf, key string, grace *int64) {
	obj := s.objects[key].obj
	if obj.GetDeletionTimestamp() != nil && (grace == nil || *grace > 0) {
		return
	}
	if len(obj.GetFinalizers()) > 0 && custom(obj) {
		obj = copied(obj)
		at := metav1.NewTime(time.Now().Truncate(time.Second))
		obj.SetDeletionTimestamp(&at)
		obj.SetGeneration(obj.GetGeneration() + 1)
		a.put(s, obj)
		return
	}
	switch o := obj.(type) {
	case *corev1.Pod:
		seconds := int64(30)
		if o.Spec.TerminationGracePeriodSeconds != nil {
			seconds = *o.Spec.TerminationGracePeriodSeconds
		}
		if grace != nil {
			seconds = *grace
		}
		if o.Spec.NodeName == "" || o.Status.Phase == corev1.PodFailed {
			seconds = 0
		}
		if seconds > 0 {
			o = o.DeepCopy()
			at := metav1.NewTime(time.Now().Add(time.Duration(seconds) * time.Second).Truncate(time.Second))
			o.DeletionTimestamp, o.DeletionGracePeriodSeconds = &at, &seconds
			a.put(s, o)
			return
		}
	case *corev1.PersistentVolumeClaim:
		if a.used(o) {
			o = o.DeepCopy()
			at := metav1.NewTime(time.Now().Truncate(time.Second))
			o.DeletionTimestamp = &at
			o.Finalizers = []string{"kubernetes.io/pvc-protection"}
			a.put(s, o)
			return
		}
		a.w.loseVolume(string(o.UID))
	}
	a.drop(s, key)
	if s.kind.resource == "pods" {
		a.releaseClaims()
	}
}

func (a *apiServer) used(claim *corev1.PersistentVolumeClaim) bool {
	pod := a.shelves["pods"].objects[storedKey(claim.Namespace, claim.Name)]
	return pod != nil && claimOf(pod.obj.(*corev1.Pod)) == claim.Name
}

// releaseClaims removes the claims that only waited for their pod.
func (a *apiServer) releaseClaims() {
	s := a.shelves["persistentvolumeclaims"]
	for _, key := range s.keys() {
		if c := s.objects[key].obj.(*corev1.PersistentVolumeClaim); c.DeletionTimestamp != nil && !a.used(c) {
			a.w.loseVolume(string(c.UID))
			a.drop(s, key)
		}
	}
}

func claimOf(pod *corev1.Pod) string {
	for _, v := range pod.Spec.Volumes {
		if v.PersistentVolumeClaim != nil {
			return v.PersistentVolumeClaim.ClaimName
		}
	}
	return ""
}

func (a *apiServer) pods() []*corev1.Pod {
	if a.sortedPods == nil {
		s := a.shelves["pods"]
		a.sortedPods = []*corev1.Pod{}
		for _, key := range s.keys() {
			a.sortedPods = append(a.sortedPods, s.objects[key].obj.(*corev1.Pod))
		}
	}
	return a.sortedPods
}

func (a *apiServer) pod(name string) *corev1.Pod {
	if s := a.shelves["pods"].objects[storedKey(namespace, name)]; s != nil {
		return s.obj.(*corev1.Pod)
	}
	return nil
}

func (a *apiServer) cluster() *api.EtcdCluster {
	if s := a.shelves["etcdclusters"].objects[storedKey(namespace, clusterName)]; s != nil {
		return s.obj.(*api.EtcdCluster)
	}
	return nil
}

// edit changes an object like a person or a controller of Kubernetes.
func (a *apiServer) edit(resource, name string, change func(metav1.Object)) {
	s := a.shelves[resource]
	old := s.objects[storedKey(namespace, name)]
	if old == nil {
		return
	}
	obj := copied(old.obj)
	change(obj)
	if resource == "etcdclusters" {
		obj.SetGeneration(obj.GetGeneration() + 1)
		a.w.edited = time.Now()
		if c, ok := obj.(*api.EtcdCluster); ok {
			a.w.largest = max(a.w.largest, s.objects[storedKey(namespace, clusterName)].obj.(*api.EtcdCluster).Spec.Size, c.Spec.Size)
		}
	}
	a.put(s, obj)
}

func copied(obj metav1.Object) metav1.Object {
	switch o := obj.(type) {
	case *corev1.Pod:
		return o.DeepCopy()
	case *corev1.Service:
		return o.DeepCopy()
	case *corev1.PersistentVolumeClaim:
		return o.DeepCopy()
	case *corev1.Event:
		return o.DeepCopy()
	case *policyv1.PodDisruptionBudget:
		return o.DeepCopy()
	case *api.EtcdCluster:
		return o.DeepCopy()
	case *api.EtcdBackup:
		return o.DeepCopy()
	case *api.EtcdRestore:
		return o.DeepCopy()
	case *corev1.Secret:
		return o.DeepCopy()
	case *apiextensionsv1.CustomResourceDefinition:
		return o.DeepCopy()
	case *coordinationv1.Lease:
		return o.DeepCopy()
	}
	panic(fmt.Sprintf("no copy of %T", obj))
}

// request is a request to the API server.
type request struct {
	method    string
	shelf     *shelf
	namespace string
	name      string
	status    bool
	discovery bool // resources, by path
	query     url.Values
	selector  labels.Selector
	patch     types.PatchType
	// ephemeral is true for a request to the ephemeral containers of a pod.
	ephemeral bool
	body      []byte
	sent      format // of the body
	accepts   format
	obj       metav1.Object // in the body of a POST or PUT
}

var errPath = errors.New("no such path")

func parseRequest(a *apiServer, r *http.Request, body []byte) (*request, error) {
	parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	if r.URL.Path == "/apis/"+api.SchemeGroupVersion.String() {
		return &request{method: r.Method, query: r.URL.Query(), shelf: a.shelves["etcdclusters"], discovery: true}, nil
	}
	switch {
	case len(parts) > 2 && parts[0] == "api":
		parts = parts[2:]
	case len(parts) > 3 && parts[0] == "apis":
		parts = parts[3:]
	default:
		return nil, errPath
	}
	req := &request{
		method: r.Method, query: r.URL.Query(), body: body, patch: types.PatchType(r.Header.Get("Content-Type")),
		sent: formatOf(r.Header.Get("Content-Type")), accepts: formatOf(r.Header.Get("Accept")),
	}
	selector, err := labels.Parse(req.query.Get("labelSelector"))
	if err != nil {
		return nil, err
	}
	req.selector = selector
	if parts[0] == "namespaces" && len(parts) > 2 {
		req.namespace = parts[1]
		parts = parts[2:]
	}
	if req.shelf = a.shelves[parts[0]]; req.shelf == nil {
		return nil, errPath
	}
	if len(parts) > 1 {
		req.name = parts[1]
	}
	req.status = len(parts) > 2 && parts[2] == "status"
	req.ephemeral = len(parts) > 2 && parts[2] == "ephemeralcontainers"
	if req.method == http.MethodPost || req.method == http.MethodPut {
		req.obj = req.shelf.kind.new()
		if err := req.sent.decode(body, req.obj); err != nil {
			return nil, err
		}
	}
	return req, nil
}

// what describes the request's object for stories.
func (r *request) String() string {
	s := r.method + " " + r.shelf.kind.resource
	if r.query.Get("watch") != "" {
		s = "WATCH " + r.shelf.kind.resource
	}
	name := r.name
	if name == "" && r.obj != nil {
		name = r.obj.GetName()
	}
	if name != "" {
		s += "/" + name
	}
	if r.status {
		s += "/status"
	}
	if r.discovery {
		s += " (discovery)"
	}
	if r.query.Get("dryRun") != "" {
		s += " (dry run)"
	}
	return s
}

// writes reports whether the request changes something.
func (r *request) writes() bool { return r.method != http.MethodGet && r.query.Get("dryRun") == "" }

// handle answers the request.
func (a *apiServer) handle(who *operator, r *request) answer {
	raw, err := a.serve(who, r)
	if err != nil {
		return failure(err)
	}
	code := http.StatusOK
	if r.method == http.MethodPost {
		code = http.StatusCreated
	}
	return answer{code: code, raw: raw, format: r.accepts}
}

func failure(err error) answer {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		status = apierrors.NewInternalError(err)
	}
	s := status.Status()
	s.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}
	return answer{code: int(s.Code), raw: mustJSON(s)}
}

func (a *apiServer) serve(who *operator, r *request) ([]byte, error) {
	if r.discovery {
		r.accepts = format{}
		return mustJSON(&metav1.APIResourceList{GroupVersion: api.SchemeGroupVersion.String(), APIResources: []metav1.APIResource{
			{Name: api.EtcdClusterResourcePlural, Kind: api.EtcdClusterResourceKind, Namespaced: true},
			{Name: api.EtcdClusterResourcePlural + "/status", Kind: api.EtcdClusterResourceKind, Namespaced: true},
			{Name: api.EtcdBackupResourcePlural, Kind: api.EtcdBackupResourceKind, Namespaced: true},
			{Name: api.EtcdBackupResourcePlural + "/status", Kind: api.EtcdBackupResourceKind, Namespaced: true},
			{Name: api.EtcdRestoreResourcePlural, Kind: api.EtcdRestoreResourceKind, Namespaced: true},
			{Name: api.EtcdRestoreResourcePlural + "/status", Kind: api.EtcdRestoreResourceKind, Namespaced: true},
		}}), nil
	}
	s := r.shelf
	key := storedKey(r.namespace, r.name)
	live := s.objects[key]
	who.asks(r)
	if r.name != "" && live == nil {
		return nil, apierrors.NewNotFound(s.kind.group(), r.name)
	}
	switch r.method {
	case http.MethodGet:
		if r.name != "" {
			who.sees(r, live)
			return live.in(r.accepts, s.kind), nil
		}
		return a.list(who, r)
	case http.MethodPost:
		return a.create(who, r)
	case http.MethodPut:
		return a.update(r, live)
	case http.MethodPatch:
		if r.ephemeral && a.w.backups != nil {
			return nil, apierrors.NewForbidden(s.kind.group(), r.name, errors.New("the Role lacks patch on pods/ephemeralcontainers"))
		}
		return a.patch(who, r, live)
	case http.MethodDelete:
		var options metav1.DeleteOptions
		if len(r.body) > 0 {
			if err := r.sent.decode(r.body, &options); err != nil {
				return nil, apierrors.NewBadRequest(err.Error())
			}
		}
		if p := options.Preconditions; p != nil && p.UID != nil && *p.UID != live.obj.GetUID() {
			return nil, apierrors.NewConflict(s.kind.group(), r.name, fmt.Errorf("the UID in the precondition is %s, that of the object is %s", *p.UID, live.obj.GetUID()))
		}
		if p := options.Preconditions; p != nil && p.ResourceVersion != nil && *p.ResourceVersion != live.obj.GetResourceVersion() {
			return nil, apierrors.NewConflict(s.kind.group(), r.name, errors.New("the resourceVersion in the precondition is another"))
		}
		a.w.checks.precise(who, r, options.Preconditions)
		a.w.checks.deletes(who, s.kind.resource, live.obj)
		a.remove(s, key, options.GracePeriodSeconds)
		r.accepts = format{}
		return []byte(`{"kind":"Status","apiVersion":"v1","status":"Success"}`), nil
	}
	return nil, apierrors.NewMethodNotSupported(s.kind.group(), r.method)
}

// list lists the current objects, or with resourceVersion=0 those of some time ago.
func (a *apiServer) list(who *operator, r *request) ([]byte, error) {
	objects, version := r.shelf.objects, a.version
	if v := r.query.Get("resourceVersion"); v == "0" {
		objects, version = a.someTimeAgo(r.shelf, 0)
	}
	list := selected(r, objects)
	who.sees(r, list...)
	return listIn(r.accepts, r.shelf.kind, version, list), nil
}

func selected(r *request, objects map[string]*stored) []*stored {
	var list []*stored
	for _, o := range objects {
		if r.matches(o) {
			list = append(list, o)
		}
	}
	slices.SortFunc(list, func(a, b *stored) int { return cmp.Compare(a.obj.GetName(), b.obj.GetName()) })
	return list
}

func (r *request) matches(o *stored) bool {
	if o == nil || r.namespace != "" && o.obj.GetNamespace() != r.namespace {
		return false
	}
	return r.selector.Matches(labels.Set(o.obj.GetLabels()))
}

// someTimeAgo returns what a cache of the API server shows: a state that is not older than a
// version.
func (a *apiServer) someTimeAgo(s *shelf, notBefore int64) (map[string]*stored, int64) {
	back := a.w.stale(s.kind.resource)
	then := max(notBefore, s.oldest)
	i := len(s.past)
	for ; i > 0 && s.past[i-1].version > then && (back > 0 || a.w.view > 0 && s.past[i-1].version > a.w.view); i-- {
		back--
	}
	if i == len(s.past) {
		return s.objects, a.version
	}
	objects := map[string]*stored{}
	for k, o := range s.objects {
		objects[k] = o
	}
	version := s.past[i].version - 1
	for j := len(s.past) - 1; j >= i; j-- {
		if c := s.past[j]; c.before == nil {
			delete(objects, c.key)
		} else {
			objects[c.key] = c.before
		}
	}
	return objects, version
}

func (a *apiServer) create(who *operator, r *request) ([]byte, error) {
	s, obj := r.shelf, copied(r.obj)
	if obj.GetName() == "" {
		obj.SetName(fmt.Sprintf("%s%d", obj.GetGenerateName(), a.version))
	}
	if s.objects[storedKey(obj.GetNamespace(), obj.GetName())] != nil {
		return nil, apierrors.NewAlreadyExists(s.kind.group(), obj.GetName())
	}
	if err := a.admit(s, obj); err != nil {
		return nil, err
	}
	if r.query.Get("dryRun") != "" {
		return (&stored{obj: obj}).in(r.accepts, s.kind), nil
	}
	a.made++
	obj.SetUID(types.UID(fmt.Sprintf("00000000-0000-4000-8000-%012d", a.made)))
	obj.SetCreationTimestamp(metav1.NewTime(time.Now().Truncate(time.Second)))
	obj.SetGeneration(1)
	switch o := obj.(type) {
	case *corev1.Pod:
		o.Status = corev1.PodStatus{Phase: corev1.PodPending}
		a.w.checks.creates(who, o)
	case *corev1.PersistentVolumeClaim:
		o.Status = corev1.PersistentVolumeClaimStatus{Phase: corev1.ClaimBound, Capacity: o.Spec.Resources.Requests}
	case *corev1.Service:
		if o.Spec.ClusterIP == "" {
			o.Spec.ClusterIP = fmt.Sprintf("10.96.0.%d", a.made%250+1)
		}
	case *api.EtcdCluster:
		o.Status = api.ClusterStatus{}
		a.w.edited = time.Now()
	case *api.EtcdBackup:
		a.w.checks.recovers(who, "the EtcdBackup "+o.Name)
	case *api.EtcdRestore:
		o.Status = api.RestoreStatus{}
		a.w.checks.chooses(who)
	case *apiextensionsv1.CustomResourceDefinition:
		o.Status.Conditions = []apiextensionsv1.CustomResourceDefinitionCondition{{Type: apiextensionsv1.Established, Status: apiextensionsv1.ConditionTrue}}
	case *corev1.Event:
		a.w.narrate("event", "%s: %s", o.Reason, o.Message)
	}
	made := a.put(s, obj)
	who.sees(r, made)
	return made.in(r.accepts, s.kind), nil
}

// admit is admission: it refuses pods, or pins their images by digests.
func (a *apiServer) admit(s *shelf, obj metav1.Object) error {
	pod, ok := obj.(*corev1.Pod)
	if !ok {
		return nil
	}
	if a.refusal != "" {
		return apierrors.NewForbidden(s.kind.group(), pod.Name, errors.New(a.refusal))
	}
	if a.pinned {
		for i := range pod.Spec.Containers {
			if image := pod.Spec.Containers[i].Image; !strings.Contains(image, "@") {
				pod.Spec.Containers[i].Image = fmt.Sprintf("%s@sha256:%064x", image, life{}.number(image))
			}
		}
	}
	return nil
}

func (a *apiServer) update(r *request, live *stored) ([]byte, error) {
	return a.replace(r, live, copied(r.obj))
}

// replace stores a new state of an object, within the limits of the request.
func (a *apiServer) replace(r *request, live *stored, obj metav1.Object) ([]byte, error) {
	s := r.shelf
	if v := obj.GetResourceVersion(); v != "" && v != live.obj.GetResourceVersion() {
		return nil, apierrors.NewConflict(s.kind.group(), obj.GetName(), errors.New("the object has been modified; apply your changes to the latest version and try again"))
	}
	if obj.GetUID() != "" && obj.GetUID() != live.obj.GetUID() {
		return nil, apierrors.NewConflict(s.kind.group(), obj.GetName(), fmt.Errorf("the UID in the precondition is %s, that of the object is %s", obj.GetUID(), live.obj.GetUID()))
	}
	switch o := obj.(type) {
	case *api.EtcdCluster:
		old := live.obj.(*api.EtcdCluster)
		if r.status {
			next := old.DeepCopy()
			next.Status = o.Status
			obj = next
			a.w.checks.records(old, next)
			a.w.imports.commits(next.Status.Import)
		} else {
			o.Status = *old.Status.DeepCopy()
			if !equality.Semantic.DeepEqual(o.Spec, old.Spec) {
				o.Generation = old.Generation + 1
			}
		}
	case *api.EtcdBackup:
		old := live.obj.(*api.EtcdBackup)
		if r.status {
			next := old.DeepCopy()
			next.Status = o.Status
			obj = next
			a.w.backups.reports(old, next)
		} else {
			o.Status = *old.Status.DeepCopy()
		}
	case *api.EtcdRestore:
		old := live.obj.(*api.EtcdRestore)
		if r.status {
			next := old.DeepCopy()
			next.Status = o.Status
			obj = next
			a.w.backups.restoreReports(old, next)
		} else {
			o.Status = *old.Status.DeepCopy()
		}
	case *corev1.Pod:
		old := live.obj.(*corev1.Pod)
		if !r.status {
			o.Status = *old.Status.DeepCopy()
			if a.keptImages && !slices.EqualFunc(o.Spec.Containers, old.Spec.Containers, func(a, b corev1.Container) bool { return a.Image == b.Image }) {
				o.Spec.Containers = copied(old).(*corev1.Pod).Spec.Containers
			}
			if err := a.admit(s, o); err != nil {
				return nil, err
			}
			if err := onlyImages(o, old, r.ephemeral); err != nil {
				return nil, err
			}
		}
	}
	obj.SetUID(live.obj.GetUID())
	obj.SetCreationTimestamp(live.obj.GetCreationTimestamp())
	obj.SetResourceVersion(live.obj.GetResourceVersion())
	if custom(obj) && obj.GetDeletionTimestamp() != nil && len(obj.GetFinalizers()) == 0 {
		key := storedKey(obj.GetNamespace(), obj.GetName())
		last := a.put(s, obj).in(r.accepts, s.kind)
		a.drop(s, key)
		return last, nil
	}
	if unchanged(obj, live) {
		return live.in(r.accepts, s.kind), nil
	}
	return a.put(s, obj).in(r.accepts, s.kind), nil
}

// unchanged reports whether an object is what is stored.
func unchanged(obj metav1.Object, live *stored) bool {
	if m, ok := obj.(message); ok {
		raw, err := m.Marshal()
		must(err)
		return bytes.Equal(raw, live.proto())
	}
	return bytes.Equal(mustJSON(obj), live.json())
}

// custom reports whether an object is of this project's kinds, which have finalizers here.
func custom(obj metav1.Object) bool {
	switch obj.(type) {
	case *api.EtcdCluster, *api.EtcdBackup, *api.EtcdRestore:
		return true
	}
	return false
}

// onlyImages refuses changes to a pod's immutable fields. Ephemeral containers have a subresource.
func onlyImages(pod, old *corev1.Pod, ephemeral bool) error {
	next := old.Spec.DeepCopy()
	if ephemeral {
		next.EphemeralContainers = pod.Spec.EphemeralContainers
	}
	for i := range next.Containers {
		if i < len(pod.Spec.Containers) {
			next.Containers[i].Image = pod.Spec.Containers[i].Image
		}
	}
	if !equality.Semantic.DeepEqual(next, &pod.Spec) {
		return apierrors.NewInvalid(schema.GroupKind{Kind: "Pod"}, pod.Name, field.ErrorList{field.Forbidden(field.NewPath("spec"), "pod updates may not change fields other than images")})
	}
	return nil
}

func mustJSON(v any) []byte {
	raw, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return raw
}

func (a *apiServer) patch(who *operator, r *request, live *stored) ([]byte, error) {
	a.w.checks.patches(who, r)
	var raw []byte
	var err error
	switch r.patch {
	case types.MergePatchType:
		raw, err = jsonpatch.MergePatch(live.json(), r.body)
	case types.StrategicMergePatchType:
		raw, err = strategicpatch.StrategicMergePatch(live.json(), r.body, r.shelf.kind.new())
	default:
		err = fmt.Errorf("no patches of type %s", r.patch)
	}
	if err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	obj := r.shelf.kind.new()
	if err := json.Unmarshal(raw, obj); err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	if pod, ok := obj.(*corev1.Pod); ok && r.ephemeral {
		a.w.checks.recovers(who, "the container that serves the data of "+pod.Name)
	}
	return a.replace(r, live, obj)
}
