// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package backup

import (
	"cmp"
	"context"
	"crypto/tls"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/certsecret"
	"github.com/etcd-operator/etcd-operator/pkg/etcd"
	"github.com/etcd-operator/etcd-operator/pkg/location"
	"github.com/etcd-operator/etcd-operator/pkg/manifest"
	"github.com/etcd-operator/etcd-operator/pkg/notice"
	"github.com/etcd-operator/etcd-operator/pkg/snapshot"
	"github.com/etcd-operator/etcd-operator/pkg/usersecret"
)

// source finds the members to take a backup from, and what to connect to them
// with. It is looked up for each attempt: members come and go, and certificates
// are renewed.
func (a *attempt) source(ctx context.Context) (snapshot.Source, error) {
	src := snapshot.Source{Connect: a.cfg.Members, Logger: a.log}
	secret, skip, encrypted := a.obj.Spec.ClientTLSSecret, a.obj.Spec.AllowSelfSignedCertificates, false
	user := a.obj.Spec.CredentialsSecret
	if ref := a.obj.Spec.EtcdCluster; ref != nil {
		obj, err := a.cfg.Etcd.EtcdV1beta2().EtcdClusters(a.obj.Namespace).Get(ctx, ref.Name, metav1.GetOptions{})
		switch {
		case apierrors.IsNotFound(err):
			return snapshot.Source{}, fmt.Errorf("there is no EtcdCluster %s in the namespace %s: create it, or fix spec.etcdCluster.name", ref.Name, a.obj.Namespace)
		case err != nil:
			return snapshot.Source{}, fmt.Errorf("look for the EtcdCluster %s: %w", ref.Name, granted(err, "get etcdclusters"))
		}
		if src.Endpoints, err = a.members(ctx, obj); err != nil {
			return snapshot.Source{}, err
		}
		if secret == "" {
			secret = obj.Spec.OperatorSecret()
		}
		user = cmp.Or(user, obj.Spec.CredentialsSecret())
		skip, encrypted = skip || obj.Spec.SkipsVerification(), obj.Spec.ClientTLS()
	}
	for i, text := range a.obj.Spec.EtcdEndpoints {
		endpoint, err := etcd.ParseEndpoint(text, secret != "")
		if err != nil {
			return snapshot.Source{}, fmt.Errorf("spec.etcdEndpoints[%d]: %w", i, err)
		}
		src.Endpoints = append(src.Endpoints, endpoint)
	}
	switch {
	case secret != "":
		id, err := a.identity(ctx, secret)
		if err != nil {
			return snapshot.Source{}, err
		}
		src.TLS = id.ClientConfig(skip)
	case skip || encrypted:
		src.TLS = &tls.Config{MinVersion: tls.VersionTLS12, InsecureSkipVerify: skip}
	}
	if user != "" {
		var err error
		if src.User, err = a.user(ctx, user); err != nil {
			return snapshot.Source{}, err
		}
	}
	return src, nil
}

// user reads the user as which to log in to etcd.
func (a *attempt) user(ctx context.Context, name string) (etcd.Credentials, error) {
	secret, err := secretsOf(a.cfg.Kube).Get(ctx, a.obj.Namespace, name)
	switch {
	case apierrors.IsNotFound(err):
		return etcd.Credentials{}, fmt.Errorf("the Secret %s with the user of etcd does not exist in the namespace %s: create it, %s", name, a.obj.Namespace, usersecret.Wanted)
	case err != nil:
		return etcd.Credentials{}, fmt.Errorf("read the Secret %s with the user of etcd: %w", name, err)
	}
	return usersecret.Of(secret)
}

func (a *attempt) members(ctx context.Context, obj *api.EtcdCluster) ([]etcd.Endpoint, error) {
	pods, err := a.cfg.Kube.CoreV1().Pods(obj.Namespace).List(ctx, metav1.ListOptions{LabelSelector: manifest.PodSelector(obj.Name).String()})
	if err != nil {
		return nil, fmt.Errorf("look for the pods of the EtcdCluster %s: %w", obj.Name, granted(err, "list pods"))
	}
	// Another member may have applied more, and lack what the log of the survivor holds.
	survivor := a.obj.Annotations[api.SurvivorAnnotation]
	if survivor != "" {
		pods.Items = slices.DeleteFunc(pods.Items, func(p corev1.Pod) bool { return p.Name != survivor })
	}
	endpoints := slices.Concat(manifest.ClientEndpoints(obj, pods.Items), manifest.DataEndpoints(obj, pods.Items))
	switch {
	case len(endpoints) == 0 && survivor != "":
		return nil, fmt.Errorf("the member %s of the EtcdCluster %s does not run, and the annotation %s wants its data", survivor, obj.Name, api.SurvivorAnnotation)
	case len(endpoints) == 0:
		return nil, fmt.Errorf("no member of the EtcdCluster %s runs: look at its status (%d pods, phase %q)", obj.Name, len(pods.Items), obj.Status.Phase)
	}
	return endpoints, nil
}

func (a *attempt) identity(ctx context.Context, name string) (*etcd.Identity, error) {
	secret, err := secretsOf(a.cfg.Kube).Get(ctx, a.obj.Namespace, name)
	switch {
	case apierrors.IsNotFound(err):
		return nil, fmt.Errorf("the Secret %s with the certificate for etcd does not exist in the namespace %s: create it, %s", name, a.obj.Namespace, certsecret.Client.Wanted())
	case err != nil:
		return nil, fmt.Errorf("read the Secret %s with the certificate for etcd: %w", name, err)
	}
	return certsecret.ClientIdentity(secret)
}

// advice says what to do after an error that shows that etcd and the operator don't accept
// each other's certificates, or that etcd does not let the operator in.
func (a *attempt) advice(err error) string {
	switch {
	case etcd.AsksForUser(err):
		return "; etcd has authentication enabled: name a Secret " + usersecret.Wanted + " in spec.credentialsSecret, or in spec.auth of the EtcdCluster"
	case etcd.RefusesUser(err):
		return "; correct the user in the Secret that spec.credentialsSecret or spec.auth of the EtcdCluster names"
	case etcd.LacksRole(err):
		return "; grant the role root to the user (etcdctl user grant-role USER root)"
	case !etcd.IsTLSFailure(err):
		return ""
	case a.obj.Spec.ClientTLSSecret != "":
		return "; look at the Secret " + a.obj.Spec.ClientTLSSecret + " that spec.clientTLSSecret names"
	case a.obj.Spec.EtcdCluster != nil:
		return "; look at the operatorSecret of the EtcdCluster " + a.obj.Spec.EtcdCluster.Name
	default:
		return "; name a Secret with the client's certificate and the CA in spec.clientTLSSecret"
	}
}

// secretsOf reads Secrets from an API server.
func secretsOf(kube kubernetes.Interface) location.KubeSecrets {
	return location.KubeSecrets{Kube: kube, Operator: "backup"}
}

// granted adds the remedy to an error of the API server.
func granted(err error, right string) error { return notice.Forbidden(err, "backup", right) }
