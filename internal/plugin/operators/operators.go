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
// first. The result may hold an instance that follows only objects of other namespaces: its Lease
// looks the same.
func Find(ctx context.Context, a *access.Access, program string) ([]Operator, error) {
	var found []Operator
	for _, wide := range []bool{false, true} {
		o, err := OfScope(ctx, a, program, wide)
		switch {
		case wide && apierrors.IsForbidden(err): // a user of one namespace
		case err != nil:
			return found, err
		case o != nil:
			found = append(found, *o)
		}
	}
	return found, nil
}

// OfScope returns the instance that holds the Lease of a program for the namespace, or for all
// namespaces; nil if there is no such Lease.
func OfScope(ctx context.Context, a *access.Access, program string, wide bool) (*Operator, error) {
	namespace, name := a.Namespace, program
	if wide {
		namespace, name = clusterWideNamespace, program+clusterWideSuffix
	}
	lease, err := a.Kube.CoordinationV1().Leases(namespace).Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	o := of(lease, program, wide)
	return &o, nil
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
