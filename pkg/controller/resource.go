// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

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
	"k8s.io/utils/clock"

	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

// crdVersionAnnotation on a CRD is the version of the operator that wrote it.
const crdVersionAnnotation = "etcd.database.coreos.com/operator-version"

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

// resource registers a CRD and waits until it is served.
type resource struct {
	crds    apiextensions.Interface
	want    *apiextensionsv1.CustomResourceDefinition
	version string // of this operator
	clock   clock.WithTicker
	log     *logrus.Entry
}

// ensure registers the CRD and waits until the API server serves it. What goes
// wrong is tried again until ctx ends; an API server that starts or a role that
// is granted a moment later is nothing that a person should have to mend.
func (r *resource) ensure(ctx context.Context) error {
	for wait := firstRetry; ; wait = min(2*wait, lastRetry) {
		err := r.register(ctx)
		if err == nil {
			err = r.awaitEstablished(ctx)
		}
		if err == nil {
			return nil
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		r.log.WithError(err).Errorf("trying again in %s", wait)
		if err := pause(ctx, r.clock, wait); err != nil {
			return err
		}
	}
}

func (r *resource) register(ctx context.Context) error {
	crds := r.crds.ApiextensionsV1().CustomResourceDefinitions()
	live, err := crds.Get(ctx, r.want.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		_, err = crds.Create(ctx, stamped(r.want.DeepCopy(), r.version), metav1.CreateOptions{})
		if err == nil {
			r.log.Infof("registered the CustomResourceDefinition %s", r.want.Name)
		}
		return wrap(err, "register the CustomResourceDefinition %s (the role of the operator's service account must allow it; or register it yourself and run the operator with -create-crd=false)", r.want.Name)
	}
	if err != nil {
		return fmt.Errorf("read the CustomResourceDefinition %s (the role of the operator's service account must allow it): %w", r.want.Name, err)
	}
	verdict, why := judge(live, r.want, r.version)
	if verdict == keep {
		r.log.Infof("the CustomResourceDefinition %s stays as it is: %s", r.want.Name, why)
		return nil
	}
	_, err = crds.Update(ctx, replaced(live, r.want, r.version), metav1.UpdateOptions{})
	if err == nil {
		r.log.Infof("updated the CustomResourceDefinition %s: %s", r.want.Name, why)
	}
	return wrap(err, "update the CustomResourceDefinition %s", r.want.Name)
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
	stamp, ok := live.Annotations[crdVersionAnnotation]
	if !ok {
		return update, "it was not written by this operator or a later one"
	}
	theirs, err := semver.ParseTolerant(stamp)
	if err != nil {
		return update, fmt.Sprintf("its annotation %s=%q is not a version", crdVersionAnnotation, stamp)
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
	metav1.SetMetaDataAnnotation(&crd.ObjectMeta, crdVersionAnnotation, version)
	return crd
}

// awaitEstablished waits until the API server serves the CRD's resources.
func (r *resource) awaitEstablished(ctx context.Context) error {
	start := r.clock.Now()
	for {
		crd, err := r.crds.ApiextensionsV1().CustomResourceDefinitions().Get(ctx, r.want.Name, metav1.GetOptions{})
		if err != nil {
			return fmt.Errorf("wait until the CustomResourceDefinition %s is established: %w", r.want.Name, err)
		}
		established, why := isEstablished(crd)
		if established {
			return nil
		}
		if r.clock.Since(start) > establishTimeout {
			return fmt.Errorf("the CustomResourceDefinition %s was not established within %s: %s", r.want.Name, establishTimeout, why)
		}
		if err := pause(ctx, r.clock, establishPoll); err != nil {
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

// servedResources is the part of a discovery client that tells what is served.
type servedResources interface {
	ServerResourcesForGroupVersionWithContext(ctx context.Context, groupVersion string) (*metav1.APIResourceList, error)
}

// awaitServed waits until the resource that somebody else registers is served. It
// asks discovery, which needs no rights on CRDs.
func awaitServed(ctx context.Context, served servedResources, c clock.WithTicker, log *logrus.Entry) error {
	logged := ""
	for {
		why := ""
		resources, err := served.ServerResourcesForGroupVersionWithContext(ctx, api.SchemeGroupVersion.String())
		switch {
		case err == nil && serves(resources):
			return nil
		case err == nil || apierrors.IsNotFound(err):
			why = "the API server does not know it yet"
		default:
			why = err.Error()
		}
		if why != logged {
			logged = why
			log.Warnf("waiting until the CustomResourceDefinition %s is registered, which this operator does not do because of -create-crd=false: %s", api.EtcdClusterCRDName, why)
		}
		if err := pause(ctx, c, servedPoll); err != nil {
			return err
		}
	}
}

func serves(resources *metav1.APIResourceList) bool {
	for _, r := range resources.APIResources {
		if r.Name == api.EtcdClusterResourcePlural {
			return true
		}
	}
	return false
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
