// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package build

import (
	"cmp"
	"path/filepath"
	"strings"
)

// A Component is a pinned module and the programs built from it.
type Component struct {
	Name     string // directory below pins
	Module   string // whose version is the component's
	Programs []Program
	// Mod is the file that pins it; go.mod if empty.
	Mod string
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

// components lists all components as this builder pins them.
func (b Builder) components() []Component {
	list := components()
	for i := range list {
		if list[i].Name == Kubernetes && b.Kubernetes != "" {
			list[i].Mod = b.Kubernetes + ".mod"
		}
	}
	return list
}

// mod is the file that pins a component. Its checksums are in sum, beside it.
func (c Component) mod() string { return cmp.Or(c.Mod, "go.mod") }

func (c Component) sum() string { return strings.TrimSuffix(c.mod(), "mod") + "sum" }

// Minors lists the other minor versions of Kubernetes that are pinned, such as 1.34.
func (b Builder) Minors() ([]string, error) {
	files, err := filepath.Glob(filepath.Join(b.Pins, Kubernetes, "1.*.mod"))
	for i, file := range files {
		files[i] = strings.TrimSuffix(filepath.Base(file), ".mod")
	}
	return files, err
}
