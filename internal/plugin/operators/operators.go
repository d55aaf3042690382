// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package operators finds the operators that manage a namespace, by their Leases.
package operators

import (
	"context"
	"strings"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/etcd-operator/etcd-operator/internal/plugin/access"
)

// Programs are the operators, by the names of their Leases.
var Programs = []string{"etcd-operator", "etcd-backup-operator", "etcd-restore-operator"}

const (
	// clusterWideSuffix and clusterWideNamespace are those of the Leases of operators
	// with -cluster-wide.
	clusterWideSuffix    = "-cluster-wide"
	clusterWideNamespace = metav1.NamespaceDefault
)

// Operator is an instance that leads, or has led.
type Operator struct {
	Program string
	// Namespace and Pod are those of the instance; empty where none holds the Lease.
	Namespace, Pod string
	ClusterWide    bool
	Renewed        time.Time
	// Lasts is how long after Renewed the Lease holds.
	Lasts time.Duration
}

// Alive reports whether the instance leads.
func (o Operator) Alive(now time.Time) bool {
	return o.Pod != "" && now.Sub(o.Renewed) <= o.Lasts
}

// Find returns the instances that hold the Leases of a program, those of the namespace
// first. One that only follows objects of other namespaces can't be distinguished from them.
func Find(ctx context.Context, a *access.Access, program string) ([]Operator, error) {
	var found []Operator
	for _, place := range []struct {
		namespace, name string
		wide            bool
	}{
		{a.Namespace, program, false},
		{clusterWideNamespace, program + clusterWideSuffix, true},
	} {
		lease, err := a.Kube.CoordinationV1().Leases(place.namespace).Get(ctx, place.name, metav1.GetOptions{})
		switch {
		case err == nil:
			found = append(found, of(lease, program, place.wide))
		case apierrors.IsNotFound(err):
		case place.wide && apierrors.IsForbidden(err): // a user of one namespace
		default:
			return found, err
		}
	}
	return found, nil
}

func of(lease *coordinationv1.Lease, program string, wide bool) Operator {
	o := Operator{Program: program, ClusterWide: wide, Namespace: lease.Namespace}
	if holder := lease.Spec.HolderIdentity; holder != nil {
		o.Pod = *holder
		if namespace, pod, ok := strings.Cut(*holder, "/"); ok {
			o.Namespace, o.Pod = namespace, pod
		}
	}
	if lease.Spec.RenewTime != nil {
		o.Renewed = lease.Spec.RenewTime.Time
	}
	if lease.Spec.LeaseDurationSeconds != nil {
		o.Lasts = time.Duration(*lease.Spec.LeaseDurationSeconds) * time.Second
	}
	return o
}
