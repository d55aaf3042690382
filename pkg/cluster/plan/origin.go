// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"

	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/etcd"
)

// InitialVersionAnnotation on an EtcdCluster is a person's statement with which version of
// etcd a cluster of an earlier operator began.
const InitialVersionAnnotation = api.OperatorAnnotations + "initial-version"

// Origin returns the version with which the cluster began, and "" if it is unknown. Earlier
// operators did not record it. The pod of their first member shows it as long as its etcd has
// never restarted: its image was not changed then.
func (o *Observation) Origin() string {
	for _, text := range []string{o.Status.InitialVersion, o.StatedOrigin} {
		if v, err := etcd.ParseVersion(text); err == nil {
			return v.String()
		}
	}
	for _, m := range o.Own() {
		if m.Pod != nil && m.Pod.Seed && m.Pod.Running && m.Pod.Restarts == 0 && m.Status != nil {
			return m.Status.Version
		}
	}
	return ""
}

// checkOrigin returns an error if a cluster with this beginning can't become the target, or if
// its beginning is unknown and matters.
func (o *Observation) checkOrigin(running, target etcd.Version) error {
	first, err := etcd.ParseVersion(o.Origin())
	if err == nil {
		return etcd.CheckOrigin(first, target)
	}
	oldest, err := etcd.ParseVersion("3.1.0")
	if err != nil {
		return err
	}
	if etcd.CheckOrigin(oldest, target) == nil || etcd.CheckOrigin(oldest, running) != nil {
		return nil // the beginning does not matter, or no longer
	}
	if etcd.CheckChange(running, target) != nil {
		return nil // that says why not
	}
	what := "it is not on record with which etcd this cluster began"
	if o.StatedOrigin != "" {
		what = fmt.Sprintf("the annotation %s=%s is no version of etcd", InitialVersionAnnotation, o.StatedOrigin)
	}
	return fmt.Errorf("%s: members of a cluster that began before 3.5 would not start as %s; if it began with 3.5 or later, state that version: "+
		"kubectl annotate etcd %s -n %s --overwrite %s=%s", what, target, o.Names.Cluster, o.Names.Namespace, InitialVersionAnnotation, running)
}
