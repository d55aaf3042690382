// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package loop

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/resourceversion"
)

// Object is a pointer to an object of the API server.
type Object[T any] interface {
	metav1.Object
	DeepCopy() T
}

// Mailbox holds what the goroutine of an object has not seen yet. Its methods never block.
type Mailbox[T Object[T]] struct {
	updates chan T // holds the newest object, if any
	wake    chan struct{}
}

// NewMailbox returns an empty Mailbox.
func NewMailbox[T Object[T]]() *Mailbox[T] {
	return &Mailbox[T]{updates: make(chan T, 1), wake: make(chan struct{}, 1)}
}

// Update hands over a copy of a newer state of the object. It replaces a state that the
// goroutine has not taken yet. Calls must not be concurrent.
func (m *Mailbox[T]) Update(obj T) {
	obj = obj.DeepCopy()
	select {
	case <-m.updates:
	default:
	}
	m.updates <- obj
}

// Wake starts a pass.
func (m *Mailbox[T]) Wake() {
	select {
	case m.wake <- struct{}{}:
	default:
	}
}

// WakeAfter starts a pass when done closes.
func (m *Mailbox[T]) WakeAfter(done <-chan struct{}) {
	go func() {
		<-done
		m.Wake()
	}()
}

// Closed reports whether a channel is closed, without waiting for it.
func Closed(done <-chan struct{}) bool {
	select {
	case <-done:
		return true
	default:
		return false
	}
}

// Outdated reports whether an object is an earlier state than the known one. Resource
// versions that cannot be compared count as newer.
func Outdated(obj, known metav1.Object) bool {
	order, err := resourceversion.CompareResourceVersion(obj.GetResourceVersion(), known.GetResourceVersion())
	return err == nil && order < 0
}
