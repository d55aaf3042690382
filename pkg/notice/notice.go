// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package notice tells people what happens to the objects of the operators: in events,
// in logs, and in the texts of statuses. What is worth telling is up to those who use
// it.
package notice

import (
	"fmt"

	"github.com/sirupsen/logrus"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/record"
)

// maxMessage is how much of an event's message is told; the API server takes at most
// 1024 bytes.
const maxMessage = 1000

// Board is where notices about one object go.
type Board[T runtime.Object] struct {
	Recorder record.EventRecorder
	Log      *logrus.Entry
	// Object is what events are about; it may be replaced by a newer state.
	Object T
}

// Normal tells of something that goes as it should.
func (b *Board[T]) Normal(reason, format string, args ...any) {
	b.About(b.Object, corev1.EventTypeNormal, reason, format, args...)
}

// Warning tells of something that somebody may have to look at.
func (b *Board[T]) Warning(reason, format string, args ...any) {
	b.About(b.Object, corev1.EventTypeWarning, reason, format, args...)
}

// About tells of another object.
func (b *Board[T]) About(obj runtime.Object, eventType, reason, format string, args ...any) {
	message := fmt.Sprintf(format, args...)
	b.Recorder.Event(obj, eventType, reason, Shorten(message, maxMessage))
	b.Log.WithField("event", reason).Info(message)
}
