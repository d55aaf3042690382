// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"errors"
	"fmt"
	"net/http"
	"os"

	apiextensions "k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/etcd-operator/etcd-operator/internal/leader"
	"github.com/etcd-operator/etcd-operator/internal/pod"
	"github.com/etcd-operator/etcd-operator/internal/version"
	"github.com/etcd-operator/etcd-operator/pkg/generated/clientset/versioned"
)

// The operator's rate limit for the API server. It is far above what many clusters need at
// once; the API server's own fair queueing protects it.
const (
	apiQPS   = 100
	apiBurst = 200
)

// Clients are clients of the API server, one for each group of kinds.
type Clients struct {
	Kube   kubernetes.Interface
	leases kubernetes.Interface // with a rate limit of its own
	// Etcd is for the kinds of this project.
	Etcd    versioned.Interface
	Dynamic dynamic.Interface
	CRDs    apiextensions.Interface
}

// connect finds the API server and the operator's own pod. It sends no request yet.
func connect(program, kubeconfig string, getenv func(string) string) (*Clients, pod.Pod, error) {
	if kubeconfig == "" {
		self, err := pod.FromEnv(getenv)
		if err != nil {
			return nil, pod.Pod{}, err
		}
		config, err := rest.InClusterConfig()
		if errors.Is(err, rest.ErrNotInCluster) {
			err = errors.New("this is not a pod of a Kubernetes cluster: name a kubeconfig with -kubeconfig")
		}
		if err != nil {
			return nil, pod.Pod{}, fmt.Errorf("find the API server: %w", err)
		}
		c, err := newClients(program, config)
		return c, self, err
	}
	file := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(
		&clientcmd.ClientConfigLoadingRules{ExplicitPath: kubeconfig}, &clientcmd.ConfigOverrides{})
	config, err := file.ClientConfig()
	if err != nil {
		return nil, pod.Pod{}, fmt.Errorf("read -kubeconfig %s: %w", kubeconfig, err)
	}
	self, err := outsider(file, getenv)
	if err != nil {
		return nil, pod.Pod{}, err
	}
	c, err := newClients(program, config)
	return c, self, err
}

// outsider returns a name and namespace for an operator outside of a pod: a random name, in
// the namespace that kubectl would use.
func outsider(file clientcmd.ClientConfig, getenv func(string) string) (pod.Pod, error) {
	self := pod.Pod{Name: getenv(pod.NameEnv), Namespace: getenv(pod.NamespaceEnv)}
	if self.Namespace == "" {
		ns, _, err := file.Namespace()
		if err != nil {
			return pod.Pod{}, fmt.Errorf("find the namespace in -kubeconfig: %w", err)
		}
		self.Namespace = ns
	}
	if self.Name == "" {
		host, err := os.Hostname()
		if err != nil {
			return pod.Pod{}, fmt.Errorf("make up a name for this instance (or set %s): %w", pod.NameEnv, err)
		}
		self.Name = fmt.Sprintf("%s-%d", host, os.Getpid())
	}
	return self, nil
}

// CoreConfig is a copy of the config for Kubernetes' own kinds. It asks for protobuf, which
// custom resources do not support.
func CoreConfig(config *rest.Config) *rest.Config {
	core := rest.CopyConfig(config)
	core.ContentType = runtime.ContentTypeProtobuf
	core.AcceptContentTypes = runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON
	return core
}

func newClients(program string, config *rest.Config) (*Clients, error) {
	config = rest.CopyConfig(config)
	config.UserAgent = program + "/" + version.Version
	core := CoreConfig(config)
	leases := rest.CopyConfig(core)
	leases.Timeout = leader.RenewDeadline / 2 // a hanging call must leave time for another

	pace := newPace()
	leases.Wrap(func(next http.RoundTripper) http.RoundTripper { return measured{pace, next} })
	for _, config := range []*rest.Config{config, core} {
		config.Wrap(func(next http.RoundTripper) http.RoundTripper { return atOnce{pace.slots, next} })
	}

	var c Clients
	var errs [5]error
	c.Kube, errs[0] = kubernetes.NewForConfig(limited(core))
	c.leases, errs[1] = kubernetes.NewForConfig(leases)
	c.CRDs, errs[2] = apiextensions.NewForConfig(limited(core))
	c.Etcd, errs[3] = versioned.NewForConfig(limited(config))
	c.Dynamic, errs[4] = dynamic.NewForConfig(limited(config))
	if err := errors.Join(errs[:]...); err != nil {
		return nil, fmt.Errorf("create clients of the API server at %s: %w", config.Host, err)
	}
	return &c, nil
}

// limited is a copy of the config with a rate limit of its own.
func limited(config *rest.Config) *rest.Config {
	config = rest.CopyConfig(config)
	config.RateLimiter = newAPILimit()
	return config
}
