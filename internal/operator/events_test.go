// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

// The API server may answer without having looked at an event. client-go repeats only what got no answer.
func TestAnEventOutlivesAnAPIServerThatIsBusy(t *testing.T) {
	events := corev1.Resource("events")
	for name, tt := range map[string]struct {
		err   error
		again bool
	}{
		"etcd timed out":      {&apierrors.StatusError{ErrStatus: metav1.Status{Code: 500, Message: "etcdserver: request timed out"}}, true},
		"an internal error":   {apierrors.NewInternalError(errors.New("etcdserver: leader changed")), true},
		"a bad gateway":       {apierrors.NewGenericServerResponse(502, "POST", events, "", "", 0, true), true},
		"it stops":            {apierrors.NewServiceUnavailable("apiserver is shutting down"), true},
		"too slow":            {apierrors.NewTimeoutError("request did not complete within the allotted timeout", 0), true},
		"try again":           {apierrors.NewServerTimeout(events, "create", 0), true},
		"too many requests":   {apierrors.NewTooManyRequestsError("limit reached on type Namespace for key ns"), true},
		"a webhook is down":   {apierrors.NewInternalError(errors.New(`failed calling webhook "w.example.com": connection refused`)), false},
		"a webhook denies it": {&apierrors.StatusError{ErrStatus: metav1.Status{Code: 500, Message: `admission webhook "w.example.com" denied the request: no`}}, false},
		"it is there already": {apierrors.NewAlreadyExists(events, "c.1"), false},
		"forbidden":           {apierrors.NewForbidden(events, "c.1", errors.New("no right")), false},
	} {
		for _, verb := range []string{"create", "patch"} {
			t.Run(name+"/"+verb, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					kube := fake.NewClientset()
					var tries, wrote atomic.Int64
					kube.PrependReactor("*", "events", func(a clienttesting.Action) (bool, runtime.Object, error) {
						if a.GetVerb() == verb && tries.Add(1) <= 3 {
							return true, nil, tt.err
						}
						wrote.Add(1)
						return true, &corev1.Event{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "c.1"}}, nil
					})
					recorder, stop := eventRecorder("etcd-operator", kube)
					defer stop()
					obj := &api.EtcdCluster{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "c"}}
					want := int64(0)
					if verb == "patch" { // the second of the same kind
						recorder.Event(obj, corev1.EventTypeNormal, "Member Upgraded", "m")
						want++
					}
					recorder.Event(obj, corev1.EventTypeNormal, "Member Upgraded", "m")
					time.Sleep(time.Minute)
					synctest.Wait()
					wantTries := int64(1)
					if tt.again {
						want, wantTries = want+1, 4
					}
					if wrote.Load() != want || tries.Load() != wantTries {
						t.Errorf("%d events were written after %d tries, want %d after %d", wrote.Load(), tries.Load(), want, wantTries)
					}
				})
			})
		}
	}
}

// The event that a patch would count on may have gone: client-go then makes a new one.
func TestAnEventIsMadeAnewThatHasExpired(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kube := fake.NewClientset()
		var created atomic.Int64
		kube.PrependReactor("*", "events", func(a clienttesting.Action) (bool, runtime.Object, error) {
			if a.GetVerb() == "patch" {
				return true, nil, apierrors.NewNotFound(corev1.Resource("events"), "c.1")
			}
			created.Add(1)
			return true, &corev1.Event{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "c.1"}}, nil
		})
		recorder, stop := eventRecorder("etcd-operator", kube)
		defer stop()
		for range 2 {
			recorder.Event(&api.EtcdCluster{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "c"}}, corev1.EventTypeNormal, "Member Upgraded", "m")
		}
		synctest.Wait()
		if created.Load() != 2 {
			t.Errorf("%d events were made, want 2", created.Load())
		}
	})
}

// An API server that answers no event for long must not hold up the operator, nor its end.
func TestEventsThatWaitHoldNobodyUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kube := fake.NewClientset()
		kube.PrependReactor("*", "events", func(clienttesting.Action) (bool, runtime.Object, error) {
			return true, nil, apierrors.NewServiceUnavailable("down")
		})
		recorder, stop := eventRecorder("etcd-operator", kube)
		began := time.Now()
		for range 3000 { // the queue has room for fewer
			recorder.Event(&api.EtcdCluster{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "c"}}, corev1.EventTypeNormal, "Member Upgraded", "m")
		}
		synctest.Wait()
		stop()
		if took := time.Since(began); took > 0 {
			t.Errorf("it took %s", took)
		}
	})
}
