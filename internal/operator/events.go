// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package operator

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/tools/record"

	"github.com/etcd-operator/etcd-operator/pkg/generated/clientset/versioned/scheme"
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
	broadcaster.StartRecordingToSink(&corev1client.EventSinkImpl{Interface: kube.CoreV1().Events(metav1.NamespaceAll)})
	return broadcaster.NewRecorder(scheme.Scheme, corev1.EventSource{Component: program}), broadcaster.Shutdown
}
