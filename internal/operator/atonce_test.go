// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

// slowServer is an API server that knows nothing and takes its time to say so.
type slowServer struct {
	connections, now, most atomic.Int64
}

func (s *slowServer) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	if watches(req) {
		w.WriteHeader(http.StatusOK)
		_ = http.NewResponseController(w).Flush()
		<-req.Context().Done()
		return
	}
	now := s.now.Add(1)
	defer s.now.Add(-1)
	for most := s.most.Load(); now > most && !s.most.CompareAndSwap(most, now); most = s.most.Load() {
	}
	time.Sleep(20 * time.Millisecond)
	http.NotFound(w, req)
}

// clients are those of an operator at this server, which accepts as many requests on one
// connection as an API server.
func (s *slowServer) clients(t *testing.T) *Clients {
	t.Helper()
	server := httptest.NewUnstartedServer(s)
	server.EnableHTTP2 = true
	server.Config.HTTP2 = &http.HTTP2Config{MaxConcurrentStreams: 100}
	server.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			s.connections.Add(1)
		}
	}
	server.StartTLS()
	t.Cleanup(server.Close)
	c, err := newClients("test", &rest.Config{Host: server.URL, TLSClientConfig: rest.TLSClientConfig{Insecure: true}})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestManyRequestsShareOneConnection(t *testing.T) {
	const many = 150
	s := &slowServer{}
	c := s.clients(t)
	get := func() {
		_, errCluster := c.Etcd.EtcdV1beta2().EtcdClusters("ns").Get(t.Context(), "c", metav1.GetOptions{})
		_, errPod := c.Kube.CoreV1().Pods("ns").Get(t.Context(), "c", metav1.GetOptions{})
		if errCluster == nil || errPod == nil {
			t.Error("the server knows an object")
		}
	}
	get()
	var asking sync.WaitGroup
	for range many {
		asking.Go(get)
	}
	asking.Wait()
	if connections, most := s.connections.Load(), s.most.Load(); connections != 1 || most > requestsAtOnce {
		t.Errorf("%d connections, and %d requests at once", connections, most)
	}
}

// A slot that nobody gives back would be missing until the operator ends.
func TestWatchesAndFailedRequestsHoldNoSlot(t *testing.T) {
	s := &slowServer{}
	c := s.clients(t)
	for range requestsAtOnce {
		ended, end := context.WithCancel(t.Context())
		end()
		if _, err := c.Kube.CoreV1().Pods("ns").Get(ended, "c", metav1.GetOptions{}); !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
		short, cancel := context.WithTimeout(t.Context(), 5*time.Millisecond)
		if _, err := c.Kube.CoreV1().Pods("ns").Create(short, &corev1.Pod{}, metav1.CreateOptions{}); err == nil {
			t.Error("the server has created a pod")
		}
		cancel()
	}
	for range requestsAtOnce {
		w, err := c.Dynamic.Resource(api.SchemeGroupVersion.WithResource(api.EtcdClusterResourcePlural)).Watch(t.Context(), metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(w.Stop)
	}
	if _, err := c.Kube.CoreV1().Pods("ns").Get(t.Context(), "c", metav1.GetOptions{}); err == nil {
		t.Error("the server knows a pod")
	}
}
