// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package definition registers a CustomResourceDefinition and keeps it registered.
package definition

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"time"

	"github.com/blang/semver/v4"
	"github.com/sirupsen/logrus"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apiextensions "k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/utils/clock"

	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

const (
	// establishTimeout bounds one attempt to see the CRD established.
	establishTimeout = 30 * time.Second
	establishPoll    = 100 * time.Millisecond
	// servedPoll is how often discovery is asked for a CRD that somebody else
	// is to register.
	servedPoll = time.Second
	// firstRetry is the wait after a failed attempt; it doubles up to lastRetry.
	firstRetry = time.Second
	lastRetry  = 30 * time.Second
)

// Config is what a Keeper works with.
type Config struct {
	CRDs apiextensions.Interface
	// Want is the CustomResourceDefinition.
	Want *apiextensionsv1.CustomResourceDefinition
	// Create registers it, or updates an older one. If false, Init waits until
	// somebody else has.
	Create bool
	// Version of this operator.
	Version string
	Clock   clock.WithTicker
	Log     *logrus.Entry
	// Waiting receives what Init and Keep wait for, and the end of the wait of Keep;
	// nil: nothing does.
	Waiting Waiting
}

// Waiting is what makes an operator count as not ready.
type Waiting interface {
	For(what string)
	Over()
}

// Keeper registers a CRD and waits until it is served.
type Keeper struct {
	Config
	// missing holds a token when the API server was seen not to know the
	// resource, after it was registered.
	missing chan struct{}
	// reported is true while Waiting shows what the Keeper waits for.
	reported bool
}

// New returns a Keeper; nothing happens before Init.
func New(cfg Config) *Keeper { return &Keeper{Config: cfg, missing: make(chan struct{}, 1)} }

// Init sees to it that the API server serves the resource. Its only error is that
// of ctx.
func (k *Keeper) Init(ctx context.Context) error {
	if !k.Create {
		return k.awaitServed(ctx, discovery.ToDiscoveryInterfaceWithContext(k.CRDs.Discovery()))
	}
	return k.ensure(ctx)
}

// Missing notes that the API server does not know the resource. It does not block.
func (k *Keeper) Missing() {
	select {
	case k.missing <- struct{}{}:
	default:
	}
}

// Keep registers the CRD again when somebody deletes it, until ctx ends. The
// objects went with it and don't come back; but new ones can be made.
func (k *Keeper) Keep(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-k.missing:
		}
		k.Log.Warnf("the API server no longer knows the CustomResourceDefinition %s", k.Want.Name)
		k.reported = false
		if err := k.Init(ctx); err != nil {
			return // ctx has ended
		}
		if k.reported {
			k.Waiting.Over()
		}
	}
}

// ensure registers the CRD and waits until the API server serves it. What goes
// wrong is tried again until ctx ends; an API server that starts or a role that
// is granted a moment later is nothing that a person should have to fix.
func (k *Keeper) ensure(ctx context.Context) error {
	for wait := firstRetry; ; wait = min(2*wait, lastRetry) {
		err := k.register(ctx)
		if err == nil {
			err = k.awaitEstablished(ctx)
		}
		if err == nil {
			return nil
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		k.Log.WithError(err).Errorf("trying again in %s", wait)
		k.waitsFor(fmt.Sprintf("the CustomResourceDefinition %s: %v", k.Want.Name, err))
		if err := pause(ctx, k.Clock, wait); err != nil {
			return err
		}
	}
}

// waitsFor makes the operator count as not ready, and says why.
func (k *Keeper) waitsFor(what string) {
	if k.Waiting != nil {
		k.reported = true
		k.Waiting.For(what)
	}
}

func (k *Keeper) register(ctx context.Context) error {
	crds := k.CRDs.ApiextensionsV1().CustomResourceDefinitions()
	live, err := crds.Get(ctx, k.Want.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		_, err = crds.Create(ctx, stamped(k.Want.DeepCopy(), k.Version), metav1.CreateOptions{})
		if err == nil {
			k.Log.Infof("registered the CustomResourceDefinition %s", k.Want.Name)
		}
		return wrap(err, "register the CustomResourceDefinition %s (the role of the operator's service account must allow it; or register it yourself and run the operator with -create-crd=false)", k.Want.Name)
	}
	if err != nil {
		return fmt.Errorf("read the CustomResourceDefinition %s (the role of the operator's service account must allow it): %w", k.Want.Name, err)
	}
	verdict, why := judge(live, k.Want, k.Version)
	if verdict == keep {
		k.Log.Infof("the CustomResourceDefinition %s stays as it is: %s", k.Want.Name, why)
		return nil
	}
	_, err = crds.Update(ctx, replaced(live, k.Want, k.Version), metav1.UpdateOptions{})
	if err == nil {
		k.Log.Infof("updated the CustomResourceDefinition %s: %s", k.Want.Name, why)
	}
	return wrap(err, "update the CustomResourceDefinition %s", k.Want.Name)
}

type verdict bool

const (
	keep   verdict = false
	update verdict = true
)

// judge decides whether a registered CRD is to become ours. Operators of several
// versions may share a cluster, each in its namespace, and each registers the
// CRD when it starts: the newest one's wins, whatever the order. A CRD that no
// operator has stamped is older than the stamp, or was applied by a person who
// left the operator its flag -create-crd.
func judge(live, want *apiextensionsv1.CustomResourceDefinition, version string) (verdict, string) {
	same, err := sameSpec(live, want)
	if err != nil {
		return update, fmt.Sprintf("it can't be compared with the operator's: %v", err)
	}
	if same {
		return keep, "it is what this operator registers"
	}
	stamp, ok := live.Annotations[api.OperatorVersionAnnotation]
	if !ok {
		return update, "it was not written by this operator or a later one"
	}
	theirs, err := semver.ParseTolerant(stamp)
	if err != nil {
		return update, fmt.Sprintf("its annotation %s=%q is not a version", api.OperatorVersionAnnotation, stamp)
	}
	if ours, err := semver.ParseTolerant(version); err == nil && theirs.GT(ours) {
		return keep, fmt.Sprintf("it is that of operator %s, which is newer than this one, %s", stamp, version)
	}
	return update, fmt.Sprintf("it is that of operator %s, or was edited since", stamp)
}

// sameSpec compares what the operator cares about, in the form in which the API
// server would store it. How versions are converted is left to whoever set it.
func sameSpec(live, want *apiextensionsv1.CustomResourceDefinition) (bool, error) {
	l, err := canonical(live.Spec)
	if err != nil {
		return false, err
	}
	w, err := canonical(want.Spec)
	if err != nil {
		return false, err
	}
	return reflect.DeepEqual(l, w), nil
}

func canonical(spec apiextensionsv1.CustomResourceDefinitionSpec) (any, error) {
	spec = *spec.DeepCopy()
	apiextensionsv1.SetDefaults_CustomResourceDefinitionSpec(&spec)
	spec.Conversion = nil
	text, err := json.Marshal(spec)
	if err != nil {
		return nil, err
	}
	var c any
	return c, json.Unmarshal(text, &c)
}

// replaced is live with our spec. Annotations and labels of others stay, as does
// the conversion.
func replaced(live, want *apiextensionsv1.CustomResourceDefinition, version string) *apiextensionsv1.CustomResourceDefinition {
	crd := live.DeepCopy()
	crd.Spec = *want.Spec.DeepCopy()
	crd.Spec.Conversion = live.Spec.Conversion.DeepCopy()
	for k, v := range want.Annotations {
		metav1.SetMetaDataAnnotation(&crd.ObjectMeta, k, v)
	}
	for k, v := range want.Labels {
		metav1.SetMetaDataLabel(&crd.ObjectMeta, k, v)
	}
	return stamped(crd, version)
}

func stamped(crd *apiextensionsv1.CustomResourceDefinition, version string) *apiextensionsv1.CustomResourceDefinition {
	metav1.SetMetaDataAnnotation(&crd.ObjectMeta, api.OperatorVersionAnnotation, version)
	return crd
}

// awaitEstablished waits until the API server serves the CRD's resources.
func (k *Keeper) awaitEstablished(ctx context.Context) error {
	start := k.Clock.Now()
	for {
		crd, err := k.CRDs.ApiextensionsV1().CustomResourceDefinitions().Get(ctx, k.Want.Name, metav1.GetOptions{})
		if err != nil {
			return fmt.Errorf("wait until the CustomResourceDefinition %s is established: %w", k.Want.Name, err)
		}
		established, why := isEstablished(crd)
		if established {
			return nil
		}
		if k.Clock.Since(start) > establishTimeout {
			return fmt.Errorf("the CustomResourceDefinition %s was not established within %s: %s", k.Want.Name, establishTimeout, why)
		}
		if err := pause(ctx, k.Clock, establishPoll); err != nil {
			return err
		}
	}
}

func isEstablished(crd *apiextensionsv1.CustomResourceDefinition) (bool, string) {
	why := "the API server has not looked at it yet"
	for _, c := range crd.Status.Conditions {
		switch {
		case c.Type == apiextensionsv1.Established && c.Status == apiextensionsv1.ConditionTrue:
			return true, ""
		case c.Type == apiextensionsv1.NamesAccepted && c.Status == apiextensionsv1.ConditionFalse:
			return false, fmt.Sprintf("its names conflict with those of another one: %s: %s", c.Reason, c.Message)
		case c.Status == apiextensionsv1.ConditionFalse:
			why = fmt.Sprintf("%s is False: %s: %s", c.Type, c.Reason, c.Message)
		}
	}
	return false, why
}

// servedResources is the part of a discovery client that shows what is served.
type servedResources interface {
	ServerResourcesForGroupVersionWithContext(ctx context.Context, groupVersion string) (*metav1.APIResourceList, error)
}

// awaitServed waits until the resource that somebody else registers is served. It
// asks discovery, which needs no rights on CRDs.
func (k *Keeper) awaitServed(ctx context.Context, served servedResources) error {
	logged := ""
	for {
		why := ""
		resources, err := served.ServerResourcesForGroupVersionWithContext(ctx, k.groupVersion())
		switch {
		case err == nil:
			if why = k.lacks(resources); why == "" {
				return nil
			}
		case apierrors.IsNotFound(err):
			why = notServed
		default:
			why = err.Error()
		}
		if why != logged {
			logged = why
			k.Log.Warnf("waiting until the CustomResourceDefinition %s is registered, which this operator does not do because of -create-crd=false: %s", k.Want.Name, why)
			k.waitsFor(fmt.Sprintf("the CustomResourceDefinition %s, which this operator does not register because of -create-crd=false: %s", k.Want.Name, why))
		}
		if err := pause(ctx, k.Clock, servedPoll); err != nil {
			return err
		}
	}
}

func (k *Keeper) groupVersion() string {
	return schema.GroupVersion{Group: k.Want.Spec.Group, Version: k.Want.Spec.Versions[0].Name}.String()
}

const notServed = "the API server does not know it yet"

// lacks says what of the resource is not served; "" if all is. Without the status
// subresource every write of a status fails, and the operator can do nothing: it acts on
// no decision that is not on record.
func (k *Keeper) lacks(resources *metav1.APIResourceList) string {
	served := map[string]bool{}
	for _, r := range resources.APIResources {
		served[r.Name] = true
	}
	plural := k.Want.Spec.Names.Plural
	switch {
	case !served[plural]:
		return notServed
	case !served[plural+"/status"]:
		return "it lacks the status subresource, as that of an older operator does: apply the CustomResourceDefinition of this release"
	}
	return ""
}

// pause waits for d, or returns the error of ctx when that ends first.
func pause(ctx context.Context, c clock.WithTicker, d time.Duration) error {
	timer := c.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C():
		return nil
	}
}

// wrap adds to an error what was tried, and leaves nil alone.
func wrap(err error, format string, args ...any) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf(format+": %w", append(args, err)...)
}
