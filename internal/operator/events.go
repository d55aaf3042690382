// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/tools/record"

	"github.com/etcd-operator/etcd-operator/pkg/generated/clientset/versioned/scheme"
	"github.com/etcd-operator/etcd-operator/pkg/kubeerror"
)

// eventRecorder writes events to the API server until its stop function runs.
//
// client-go by default merges events of one object after ten similar ones, and drops them
// after 25 in a row. A cluster that is upgraded or loses nodes causes more.
func eventRecorder(program string, kube kubernetes.Interface) (record.EventRecorder, func()) {
	broadcaster := record.NewBroadcasterWithCorrelatorOptions(record.CorrelatorOptions{
		BurstSize: 200,
		QPS:       1. / 30,
		MaxEvents: 100,
	})
	broadcaster.StartRecordingToSink(patientSink{&corev1client.EventSinkImpl{Interface: kube.CoreV1().Events(metav1.NamespaceAll)}})
	return broadcaster.NewRecorder(scheme.Scheme, corev1.EventSource{Component: program}), broadcaster.Shutdown
}

// patientSink has client-go try an event again that a busy API server turned away. client-go drops an
// event after any answer, and tries again for two minutes without one. Later events wait
// meanwhile in a queue, which drops what it has no room for; nobody else waits.
type patientSink struct{ record.EventSink }

func (s patientSink) Create(event *corev1.Event) (*corev1.Event, error) {
	result, err := s.EventSink.Create(event)
	return result, noAnswer(err)
}

func (s patientSink) Patch(event *corev1.Event, data []byte) (*corev1.Event, error) {
	result, err := s.EventSink.Patch(event, data)
	return result, noAnswer(err)
}

// noAnswer wraps an error that says nothing about the event: client-go looks at the type alone. A
// webhook may be down for long, and for one namespace: its events do not hold up the others.
func noAnswer(err error) error {
	if kubeerror.IsBusy(err) && !strings.Contains(err.Error(), `webhook "`) {
		return fmt.Errorf("the API server is busy: %w", err)
	}
	return err
}
