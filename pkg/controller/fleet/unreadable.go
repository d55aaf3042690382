// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/notice"
	"github.com/etcd-operator/etcd-operator/pkg/readiness"
)

// writeTimeout bounds one write to an object that can't be read.
const writeTimeout = 10 * time.Second

// maxMessage bounds the message of a condition in bytes. The API server refuses long ones.
const maxMessage = 4000

// unreadable replaces, in the informer's store, an object that is not of the
// types' form.
type unreadable struct {
	metav1.TypeMeta
	metav1.ObjectMeta
	err    error
	reason string // in the status, as it is
	bound  string // why it must not go; "": it may
}

// DeepCopyObject makes it an object that events can be about.
func (u *unreadable) DeepCopyObject() runtime.Object {
	return &unreadable{u.TypeMeta, *u.ObjectMeta.DeepCopy(), u.err, u.reason, u.bound}
}

// decode is the informer's transformation: what is stored and handed on is a T or
// an *unreadable. It never fails, as that would drop the object.
func (s *Source[T]) decode(obj any) any {
	u, ok := obj.(*unstructured.Unstructured)
	if !ok { // a cache.DeletedFinalStateUnknown, or decoded before
		return obj
	}
	u.SetManagedFields(nil)
	readable := s.New()
	err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, readable)
	if err == nil {
		return readable
	}
	reason, _, _ := unstructured.NestedString(u.Object, "status", s.ReasonField) // nor need the status be readable
	bound := ""
	if s.Bound != nil {
		bound = s.Bound(u)
	}
	return &unreadable{
		reason:   reason,
		bound:    bound,
		TypeMeta: metav1.TypeMeta{APIVersion: u.GetAPIVersion(), Kind: u.GetKind()},
		ObjectMeta: metav1.ObjectMeta{
			Namespace: u.GetNamespace(), Name: u.GetName(), UID: u.GetUID(),
			ResourceVersion: u.GetResourceVersion(), Annotations: u.GetAnnotations(),
			DeletionTimestamp: u.GetDeletionTimestamp(), Finalizers: u.GetFinalizers(),
		},
		err: fmt.Errorf("%s %s/%s is not of the form that the operator knows: %w", s.Kind, u.GetNamespace(), u.GetName(), s.whichField(u, err)),
	}
}

// advice is what to do about an object that can't be read.
func (s *Source[T]) advice(obj *unreadable) string {
	switch {
	case obj.bound == "":
		return "edit the object or delete it: until then its spec is not followed"
	case obj.DeletionTimestamp == nil:
		return "edit it back, and do not delete it: " + obj.bound + "; until then its spec is not followed"
	}
	return "edit it back: " + obj.bound + "; until then its deletion waits; to give that up, remove the finalizer " + s.Finalizer
}

// whichField replaces an error of the converter, which does not say where it met
// what it can't convert, by that of package json, which does.
func (s *Source[T]) whichField(u *unstructured.Unstructured, err error) error {
	text, errText := u.MarshalJSON()
	if errText != nil {
		return err
	}
	if errField := json.Unmarshal(text, s.New()); errField != nil {
		return errField
	}
	return err
}

// writeReason shows in the status of an object that can't be read why that is so:
// an event is gone after an hour. What fails is left at that, and in the log.
func (s *Source[T]) writeReason(ctx context.Context, obj *unreadable, reason string) {
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	if err := s.tryWriteReason(ctx, obj, reason); err != nil && ctx.Err() == nil {
		s.Log.WithField("object", KeyOf(obj)).WithError(err).Warnf("write status.%s of an %s that can't be read", s.ReasonField, s.Kind)
	}
}

func (s *Source[T]) tryWriteReason(ctx context.Context, obj *unreadable, reason string) error {
	client := s.Dynamic.Resource(s.Resource).Namespace(obj.Namespace)
	live, err := client.Get(ctx, obj.Name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	if live.GetUID() != obj.UID || live.GetResourceVersion() != obj.ResourceVersion {
		return nil // it is another one by now, and will be seen
	}
	if err := unstructured.SetNestedField(live.Object, reason, "status", s.ReasonField); err != nil {
		return fmt.Errorf("its status: %w", err)
	}
	// Without it the reason would seem to be that of an operator before ours.
	if err := unstructured.SetNestedField(live.Object, live.GetGeneration(), "status", "observedGeneration"); err != nil {
		return fmt.Errorf("its status: %w", err)
	}
	if err := stall(live, reason, s.Clock.Now()); err != nil {
		return fmt.Errorf("its status: %w", err)
	}
	_, err = client.UpdateStatus(ctx, live, metav1.UpdateOptions{})
	return err
}

// stall puts into the conditions of an object that can't be read that it needs a person, and leaves
// what else they say. Those of an earlier spec would seem to be about this one.
func stall(live *unstructured.Unstructured, reason string, now time.Time) error {
	conditions, _, err := unstructured.NestedSlice(live.Object, "status", "conditions")
	if err != nil {
		conditions = nil // nor need they be readable
	}
	written := now.UTC().Format(time.RFC3339)
	verdict := readiness.Verdict{True: api.ConditionStalled, Reason: "SpecRefused", Message: notice.Shorten(reason, maxMessage)}
	for _, c := range verdict.Conditions() {
		var next map[string]any
		for _, old := range conditions {
			if old, ok := old.(map[string]any); ok && old["type"] == c.Type {
				next = old
			}
		}
		if next == nil {
			next = map[string]any{"type": c.Type}
			conditions = append(conditions, next)
		}
		if next["status"] != string(c.Status) || next["lastTransitionTime"] == nil {
			next["lastTransitionTime"] = written
		}
		next["status"], next["reason"], next["message"] = string(c.Status), c.Reason, c.Message
		// Not all kinds have these fields.
		if next["lastUpdateTime"] != nil {
			next["lastUpdateTime"] = written
		}
		if next["observedGeneration"] != nil {
			next["observedGeneration"] = live.GetGeneration()
		}
	}
	return unstructured.SetNestedSlice(live.Object, conditions, "status", "conditions")
}

// release takes the finalizer off an object under deletion that can't be read, and
// leaves those of others. If that fails, the next change of the object or the next
// operator tries again.
func (s *Source[T]) release(ctx context.Context, obj *unreadable) {
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"resourceVersion": obj.ResourceVersion,
		"finalizers":      slices.DeleteFunc(slices.Clone(obj.Finalizers), func(f string) bool { return f == s.Finalizer }),
	}})
	if err == nil {
		_, err = s.Dynamic.Resource(s.Resource).Namespace(obj.Namespace).Patch(ctx, obj.Name, types.MergePatchType, patch, metav1.PatchOptions{})
	}
	if err != nil && ctx.Err() == nil && !apierrors.IsNotFound(err) {
		s.Log.WithField("object", KeyOf(obj)).WithError(err).Warnf("take the finalizer %s off an %s that can't be read and is being deleted", s.Finalizer, s.Kind)
	}
}
