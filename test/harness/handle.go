// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"context"
	"fmt"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/retry"
)

// handle is an object of a test, with the methods of all kinds.
type handle[T metav1.Object] struct {
	Name string

	n       *Namespace
	t       testing.TB
	kind    string
	objects client[T]
	// status describes the object's progress in a failure.
	status func(T) string
}

// client is the part of a generated client that a handle needs.
type client[T metav1.Object] interface {
	Get(ctx context.Context, name string, opts metav1.GetOptions) (T, error)
	Update(ctx context.Context, obj T, opts metav1.UpdateOptions) (T, error)
	Delete(ctx context.Context, name string, opts metav1.DeleteOptions) error
}

func (h *handle[T]) String() string { return h.kind + " " + h.Name }

// Get reads the object.
func (h *handle[T]) Get() T {
	h.t.Helper()
	obj, err := h.objects.Get(h.t.Context(), h.Name, metav1.GetOptions{})
	if err != nil {
		h.t.Fatalf("get %s: %v", h, err)
	}
	return obj
}

// Wait waits until a condition holds and returns the object as of then.
func (h *handle[T]) Wait(what string, within time.Duration, holds func(T) error) T {
	h.t.Helper()
	var last T
	Wait(h.t, h.String()+": "+what, within, func(ctx context.Context) error {
		obj, err := h.objects.Get(ctx, h.Name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		if err := holds(obj); err != nil {
			return fmt.Errorf("%w; %s", err, h.status(obj))
		}
		last = obj
		return nil
	})
	return last
}

// edit changes the object.
func (h *handle[T]) edit(edit func(T)) {
	h.t.Helper()
	err := retry.RetryOnConflict(conflictPatience, func() error { // the operator writes its status meanwhile
		obj, err := h.objects.Get(h.t.Context(), h.Name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		edit(obj)
		_, err = h.objects.Update(h.t.Context(), obj, metav1.UpdateOptions{})
		return err
	})
	if err != nil {
		h.t.Fatalf("edit %s: %v", h, err)
	}
}

// Delete deletes the object and does not wait.
func (h *handle[T]) Delete() {
	h.t.Helper()
	if err := h.objects.Delete(h.t.Context(), h.Name, metav1.DeleteOptions{}); err != nil {
		h.t.Fatalf("delete %s: %v", h, err)
	}
}

// WaitGone waits until the object is gone.
func (h *handle[T]) WaitGone() {
	h.t.Helper()
	Wait(h.t, h.String()+" gone", Settle, func(ctx context.Context) error {
		obj, err := h.objects.Get(ctx, h.Name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		if err != nil {
			return err
		}
		return fmt.Errorf("it is there, with finalizers %v; %s", obj.GetFinalizers(), h.status(obj))
	})
}

// EventMessages returns the messages of the object's events with a reason.
func (h *handle[T]) EventMessages(reason string) []string {
	h.t.Helper()
	events, err := h.n.Kube.CoreV1().Events(h.n.Name).List(h.t.Context(), metav1.ListOptions{
		FieldSelector: "involvedObject.kind=" + h.kind + ",involvedObject.name=" + h.Name + ",reason=" + reason,
	})
	if err != nil {
		h.t.Fatalf("list events: %v", err)
	}
	var messages []string
	for _, event := range events.Items {
		messages = append(messages, event.Message)
	}
	return messages
}
