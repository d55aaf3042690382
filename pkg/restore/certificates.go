// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package restore

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

// namedSecrets are the Secrets with certificates that members of a cluster can't start
// without, by the field that names each.
func namedSecrets(spec *api.ClusterSpec) (named [][2]string) {
	for _, s := range [][2]string{
		{"spec.TLS.static.member.peerSecret", spec.PeerSecret()},
		{"spec.TLS.static.member.serverSecret", spec.ServerSecret()},
		{"spec.TLS.static.operatorSecret", spec.OperatorSecret()},
	} {
		if s[1] != "" {
			named = append(named, s)
		}
	}
	return named
}

// certificates looks whether the Secrets are there: pods that run continue without them,
// and those that follow would not start. A Secret that this operator may not read is
// the etcd operator's to judge.
func (a *attempt) certificates(ctx context.Context) error {
	spec, err := a.manifest.spec()
	if err != nil {
		return err
	}
	for _, s := range namedSecrets(spec) {
		_, err := a.cfg.Kube.CoreV1().Secrets(a.obj.Namespace).Get(ctx, s[1], metav1.GetOptions{})
		switch {
		case apierrors.IsNotFound(err):
			return fmt.Errorf("there is no Secret %s, which %s of the EtcdCluster names: without its certificates no member of the new cluster would start; make it, or name another", s[1], s[0])
		case err != nil && !apierrors.IsForbidden(err):
			return fmt.Errorf("look for the Secret %s, which %s of the EtcdCluster names: %w", s[1], s[0], err)
		}
	}
	return nil
}
