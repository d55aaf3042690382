//go:build stores

// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cuts

import (
	"context"
	"net"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/etcd-operator/etcd-operator/pkg/manifest"

	"github.com/etcd-operator/etcd-operator/internal/survivor"
	"github.com/etcd-operator/etcd-operator/test/members"
)

// dataServers are what the kubelet runs in ephemeral containers: servers of members' data.
type dataServers struct {
	mu      sync.Mutex
	servers map[string]*survivor.Server // by the name of the pod
	urls    map[string]string           // where they serve, by the URL that operators use
	serving sync.WaitGroup
}

func newDataServers() *dataServers {
	return &dataServers{servers: map[string]*survivor.Server{}, urls: map[string]string{}}
}

// add notes what a container in the pod of a member would serve.
func (d *dataServers) add(name string, m *members.Member, tls *members.TLS, version string) {
	s := &survivor.Server{DataDir: m.Dir(), Metrics: m.Metrics, Version: version}
	if tls != nil {
		s.Cert, s.Key, s.CA = tls.Files()
	}
	d.servers[name] = s
}

// url is where a server of data listens; "": the URL leads to no such server.
func (d *dataServers) url(asked string) string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.urls[asked]
}

// serveData starts the ephemeral containers that the etcd operator has added, as a kubelet does.
func (o *operators) serveData(ctx context.Context, t *testing.T) {
	t.Helper()
	list, err := o.kube.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return // the test ends
	}
	for i := range list.Items {
		pod := &list.Items[i]
		if len(pod.Spec.EphemeralContainers) == 0 || len(pod.Status.EphemeralContainerStatuses) > 0 {
			continue
		}
		listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
		if err != nil {
			t.Error(err)
			return
		}
		s := o.data.servers[pod.Name]
		s.Log = logTo(t)
		scheme := "http"
		if s.Cert != "" {
			scheme = "https"
		}
		pod.Status.EphemeralContainerStatuses = []corev1.ContainerStatus{{
			Name: pod.Spec.EphemeralContainers[0].Name, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}},
		}}
		endpoint := manifest.DataEndpoints(o.cluster(t), []corev1.Pod{*pod})[0].URL
		o.data.mu.Lock()
		o.data.urls[endpoint] = scheme + "://" + listener.Addr().String()
		o.data.mu.Unlock()
		o.data.serving.Go(func() {
			if err := s.Serve(ctx, listener); err != nil {
				t.Error(err)
			}
		})
		if err := o.kube.Tracker().Update(corev1.SchemeGroupVersion.WithResource("pods"), pod, namespace); err != nil {
			t.Error(err)
		}
	}
}
