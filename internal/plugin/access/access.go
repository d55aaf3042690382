// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package access opens the Kubernetes cluster that the flags and the kubeconfig of
// kubectl name.
package access

import (
	"cmp"
	"fmt"
	"io"

	"github.com/spf13/pflag"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/etcd-operator/etcd-operator/internal/plugin/hint"
	"github.com/etcd-operator/etcd-operator/internal/version"
	"github.com/etcd-operator/etcd-operator/pkg/generated/clientset/versioned"
)

// Access is a Kubernetes cluster, and a namespace in it.
type Access struct {
	Config    *rest.Config
	Kube      kubernetes.Interface
	Etcd      versioned.Interface
	Dynamic   dynamic.Interface
	Namespace string
	// Chosen are the flags of the command line that choose the Kubernetes cluster.
	Chosen []string
	// Target names the Kubernetes cluster to people.
	Target string
}

// Place is where recommended commands work.
func (a *Access) Place() hint.Place { return hint.Place{Namespace: a.Namespace, Chosen: a.Chosen} }

// In returns the same Kubernetes cluster with another namespace.
func (a *Access) In(namespace string) *Access {
	in := *a
	in.Namespace = namespace
	return &in
}

// Flags are the flags of kubectl that choose a cluster, a user and a namespace.
type Flags struct {
	// Warnings is where warnings of the API server are printed, as kubectl prints them.
	Warnings io.Writer

	kubeconfig string
	overrides  clientcmd.ConfigOverrides
	set        *pflag.FlagSet
}

// choosing are the flags that choose a Kubernetes cluster. None contains a secret.
var choosing = []string{
	clientcmd.RecommendedConfigPathFlag, clientcmd.FlagContext, clientcmd.FlagClusterName, clientcmd.FlagAuthInfoName, clientcmd.FlagAPIServer,
}

// chosen returns those of the flags that the command line has.
func (f *Flags) chosen() []string {
	var flags []string
	for _, name := range choosing {
		if flag := f.set.Lookup(name); flag != nil && flag.Changed {
			flags = append(flags, "--"+name+"="+flag.Value.String())
		}
	}
	return flags
}

// Bind adds the flags to a set, under the names that kubectl has for them.
func (f *Flags) Bind(set *pflag.FlagSet) {
	set.StringVar(&f.kubeconfig, clientcmd.RecommendedConfigPathFlag, "", "path to the kubeconfig file")
	names := clientcmd.RecommendedConfigOverrideFlags("")
	for _, flag := range []struct {
		info  *clientcmd.FlagInfo
		usage string
	}{
		{&names.ContextOverrideFlags.Namespace, "namespace of the EtcdCluster"},
		{&names.CurrentContext, "context of the kubeconfig"},
		{&names.ContextOverrideFlags.ClusterName, "cluster of the kubeconfig"},
		{&names.ContextOverrideFlags.AuthInfoName, "user of the kubeconfig"},
		{&names.Timeout, "time that one request to the API server may take, such as 10s; 0 for no limit"},
	} {
		flag.info.Description = flag.usage
	}
	names.ClusterOverrideFlags.APIServer.ShortName = "s"
	clientcmd.BindOverrideFlags(&f.overrides, set, names)
	f.set = set
}

// Open reads the kubeconfig. It sends no request.
func (f *Flags) Open() (*Access, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = f.kubeconfig
	loader := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, &f.overrides)
	namespace, _, err := loader.Namespace()
	if err != nil {
		return nil, fmt.Errorf("read the kubeconfig: %w", err)
	}
	config, err := loader.ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("read the kubeconfig: %w", err)
	}
	config.WarningHandler = rest.NewWarningWriter(f.Warnings, rest.WarningWriterOptions{Deduplicate: true})
	a, err := New(config, namespace)
	if err != nil {
		return nil, err
	}
	a.Chosen = f.chosen()
	if raw, err := loader.RawConfig(); err == nil {
		if context := cmp.Or(f.overrides.CurrentContext, raw.CurrentContext); context != "" {
			a.Target = context + " (" + config.Host + ")"
		}
	}
	return a, nil
}

// New opens the cluster of a configuration.
func New(config *rest.Config, namespace string) (*Access, error) {
	config = rest.CopyConfig(config)
	// One command reads many objects at once. The limits of client-go are those of
	// a controller.
	config.QPS, config.Burst = 50, 200
	config.UserAgent = "kubectl-etcd/" + version.Version
	kube, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("open Kubernetes: %w", err)
	}
	etcd, err := versioned.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("open Kubernetes: %w", err)
	}
	objects, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("open Kubernetes: %w", err)
	}
	return &Access{Config: config, Kube: kube, Etcd: etcd, Dynamic: objects, Namespace: namespace, Target: config.Host}, nil
}
