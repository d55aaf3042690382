// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package noticetest records events for tests.
package noticetest

import (
	"fmt"
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/runtime"
)

// Recorder is an event recorder that keeps all events. A reader need not drain it, unlike
// record.FakeRecorder. Its zero value is empty.
type Recorder struct {
	mu     sync.Mutex
	events []string
}

// Event records an event as "reason: message".
func (r *Recorder) Event(_ runtime.Object, _, reason, message string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.events = append(r.events, reason+": "+message)
}

// Eventf formats the message.
func (r *Recorder) Eventf(obj runtime.Object, eventType, reason, format string, args ...any) {
	r.Event(obj, eventType, reason, fmt.Sprintf(format, args...))
}

// AnnotatedEventf ignores the annotations.
func (r *Recorder) AnnotatedEventf(obj runtime.Object, _ map[string]string, eventType, reason, format string, args ...any) {
	r.Eventf(obj, eventType, reason, format, args...)
}

// Events returns all events so far, in order.
func (r *Recorder) Events() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.events)
}

// Forget drops the events so far.
func (r *Recorder) Forget() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.events = nil
}

// Told reports whether an event has this text.
func (r *Recorder) Told(text string) bool { return r.Times(text) > 0 }

// Times returns how many events have this text.
func (r *Recorder) Times(text string) int {
	n := 0
	for _, event := range r.Events() {
		if strings.Contains(event, text) {
			n++
		}
	}
	return n
}
