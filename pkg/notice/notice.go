// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package notice reports what happens to the operators' objects: in events, in logs, and in
// the texts of statuses. The caller decides what to report.
package notice

import (
	"fmt"

	"github.com/sirupsen/logrus"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/record"
)

// maxMessage bounds an event's message; the API server accepts at most 1024 bytes.
const maxMessage = 1000

// Board sends notices about one object.
type Board[T runtime.Object] struct {
	Recorder record.EventRecorder
	Log      *logrus.Entry
	// Object is the subject of events; the caller may replace it with a newer state.
	Object T
}

// Normal reports progress.
func (b *Board[T]) Normal(reason, format string, args ...any) {
	b.About(b.Object, corev1.EventTypeNormal, reason, format, args...)
}

// Warning reports a problem that may need action.
func (b *Board[T]) Warning(reason, format string, args ...any) {
	b.About(b.Object, corev1.EventTypeWarning, reason, format, args...)
}

// About reports on another object.
func (b *Board[T]) About(obj runtime.Object, eventType, reason, format string, args ...any) {
	message := fmt.Sprintf(format, args...)
	b.Recorder.Event(obj, eventType, reason, Shorten(message, maxMessage))
	b.Log.WithField("event", reason).Info(message)
}
