// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package build

import "slices"

// A Component is a pinned module and the programs built from it.
type Component struct {
	Name     string // directory below pins
	Module   string // whose version is the component's
	Programs []Program
	// VersionVar is the variable that the linker sets to the version, if any.
	VersionVar string
}

// A Program is a main package and the name of its binary. Links are further names of the same
// binary, which acts by its name.
type Program struct {
	Package, Binary string
	Links           []string
}

// Names of components.
const (
	Kubernetes = "kubernetes"
	Etcd35     = "etcd-3.5"
	Etcd36     = "etcd-3.6"
	Etcd37     = "etcd-3.7"
)

// Etcds are the components that are releases of etcd. The local Kubernetes itself
// uses Etcd36.
func Etcds() []string { return []string{Etcd36, Etcd35, Etcd37} }

// components lists all components, the longest build first.
func components() []Component {
	list := []Component{{
		Name: Kubernetes, Module: "k8s.io/kubernetes",
		Programs: []Program{
			{Package: "./kube", Binary: "kube", Links: []string{
				"kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubelet", "kube-proxy", "coredns", "local-path-provisioner",
			}},
			// kubectl is a binary of its own: in a shared one, each of its many calls would be
			// slower.
			{Package: "k8s.io/kubernetes/cmd/kubectl", Binary: "kubectl"},
		},
		VersionVar: "k8s.io/component-base/version.gitVersion",
	}}
	for _, name := range Etcds() {
		list = append(list, Component{Name: name, Module: "go.etcd.io/etcd/server/v3", Programs: []Program{
			{Package: "go.etcd.io/etcd/server/v3", Binary: "etcd"},
			{Package: "go.etcd.io/etcd/etcdctl/v3", Binary: "etcdctl"},
			{Package: "go.etcd.io/etcd/etcdutl/v3", Binary: "etcdutl"},
		}})
	}
	return list
}

// named returns the components of these names, in the order of components.
func named(names []string) []Component {
	return slices.DeleteFunc(components(), func(c Component) bool { return !slices.Contains(names, c.Name) })
}
