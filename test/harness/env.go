// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiextensions "k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/etcd-operator/etcd-operator/internal/operator"
	"github.com/etcd-operator/etcd-operator/pkg/generated/clientset/versioned"
)

// An Env is what all tests of a run share.
type Env struct {
	Kube         kubernetes.Interface
	EtcdClusters versioned.Interface
	CRDs         apiextensions.Interface
	REST         *rest.Config
	// Root is the top of the source tree, where example/ and hack/ are.
	Root string
}

// shared connects once for all tests of a run.
var shared = sync.OnceValues(connect)

func connect() (*Env, error) {
	root, err := sourceRoot()
	if err != nil {
		return nil, err
	}
	path, err := Kubeconfig()
	if err != nil {
		return nil, err
	}
	config, err := clientcmd.BuildConfigFromFlags("", path)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", path, err)
	}
	config.QPS, config.Burst = 500, 1000 // many tests share the clients
	env := &Env{REST: config, Root: root}
	if env.Kube, err = kubernetes.NewForConfig(operator.CoreConfig(config)); err != nil {
		return nil, err
	}
	if env.EtcdClusters, err = versioned.NewForConfig(config); err != nil {
		return nil, err
	}
	if env.CRDs, err = apiextensions.NewForConfig(config); err != nil {
		return nil, err
	}
	if _, err := env.Kube.Discovery().ServerVersion(); err != nil {
		return nil, fmt.Errorf("ask the API server of %s for its version: %w; is the local Kubernetes up (hack/kube status)?", path, err)
	}
	return env, nil
}

// sourceRoot returns the nearest parent directory with a go.mod.
func sourceRoot() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for ; ; dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir, nil
		}
		if dir == filepath.Dir(dir) {
			return "", errors.New("no go.mod above the working directory: run the tests inside the source tree")
		}
	}
}

// later returns a context for work after the end of a test, whose own context has ended.
func later(ctx context.Context, within time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), within)
}

// HostIP is the address of this machine for pods, for servers that a test runs beside the
// cluster.
func (e *Env) HostIP(t testing.TB) string {
	t.Helper()
	nodes, err := e.Kube.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
	if err != nil || len(nodes.Items) == 0 {
		t.Fatalf("list the nodes: %v", err)
	}
	for _, address := range nodes.Items[0].Status.Addresses {
		if address.Type != corev1.NodeInternalIP {
			continue
		}
		// This sends nothing: it only asks for the route.
		conn, err := (&net.Dialer{}).DialContext(t.Context(), "udp", net.JoinHostPort(address.Address, "9"))
		if err != nil {
			t.Fatalf("find the way to node %s: %v", nodes.Items[0].Name, err)
		}
		defer conn.Close()
		host, _, err := net.SplitHostPort(conn.LocalAddr().String())
		if err != nil {
			t.Fatal(err)
		}
		return host
	}
	t.Fatalf("node %s has no internal address", nodes.Items[0].Name)
	return ""
}
