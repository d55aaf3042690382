// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"context"
	"errors"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/etcd-operator/etcd-operator/internal/plugin/access"
	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/certsecret"
	"github.com/etcd-operator/etcd-operator/pkg/etcd"
)

// Certificate is one of the certificates of a cluster.
type Certificate struct {
	// Use is peer, server or operator.
	Use    string
	Secret string
	// Identity is what the Secret holds, if Err is nil.
	Identity *etcd.Identity
	Err      error

	version string
}

// Certificates reads the Secrets that the spec names. Errors never quote their content.
func Certificates(ctx context.Context, a *access.Access, obj *api.EtcdCluster) []Certificate {
	var list []Certificate
	for _, use := range []struct {
		name, secret string
		files        certsecret.Files
	}{
		{"peer", obj.Spec.PeerSecret(), certsecret.Peer},
		{"server", obj.Spec.ServerSecret(), certsecret.Server},
		{"operator", obj.Spec.OperatorSecret(), certsecret.Client},
	} {
		if use.secret == "" {
			continue
		}
		c := Certificate{Use: use.name, Secret: use.secret}
		secret, err := a.Kube.CoreV1().Secrets(a.Namespace).Get(ctx, use.secret, metav1.GetOptions{})
		if err == nil {
			c.version = string(secret.UID) + "/" + secret.ResourceVersion
			c.Identity, _, err = use.files.Identity(secret)
		}
		if err != nil {
			c.Err = fmt.Errorf("read Secret %s: %w", use.secret, err)
		}
		list = append(list, c)
	}
	return list
}

var errNoOperatorSecret = errors.New("the spec names no operatorSecret")

// trust makes the client use the operator's certificate. The error is why members can't
// be asked.
func (o *Observer) trust(obj *api.EtcdCluster, list []Certificate) error {
	if !obj.Spec.ClientTLS() {
		return nil
	}
	for _, c := range list {
		if c.Use != "operator" {
			continue
		}
		if c.Err != nil {
			return c.Err
		}
		version := fmt.Sprint(c.version, obj.Spec.SkipsVerification())
		if version != o.secretVersion {
			o.client.SetTLS(c.Identity.ClientConfig(obj.Spec.SkipsVerification()))
			o.secretVersion = version
		}
		return nil
	}
	return errNoOperatorSecret
}
