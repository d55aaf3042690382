// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package restore

import (
	"context"
	"errors"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

// step is one thing to do. Each names by UID, and where it counts by resourceVersion
// too, what it was decided about: done to anything else it is refused. Each can be
// repeated.
type step interface {
	apply(ctx context.Context, r *Restore) error
}

// errBehind: what a step was decided about is no longer so; it is looked at again.
var errBehind = errors.New("it has changed meanwhile")

type (
	// begin begins an attempt to find a backup for the cluster of a manifest. known is the last
	// revision that its clients are known to have seen.
	begin struct {
		manifest manifest
		known    int64
	}

	// putFinalizer and release put the finalizer on the EtcdRestore and take it off.
	putFinalizer struct{}
	release      struct{}

	// createToken makes the Secret with the token of the restore, deleteToken
	// deletes it.
	createToken struct{}
	deleteToken struct {
		uid     types.UID
		tidying bool
	}

	// holdCluster puts the finalizer on the old EtcdCluster, and letGo takes it off.
	// lost are pods that may still run.
	holdCluster struct{ cluster *unstructured.Unstructured }
	letGo       struct {
		cluster *unstructured.Unstructured
		lost    []corev1.Pod
	}
	// deleteCluster deletes an EtcdCluster; unchanged: only as it was seen. why is
	// the reason where it is not the one to be replaced.
	deleteCluster struct {
		cluster   *unstructured.Unstructured
		unchanged bool
		why       string
	}

	// disownServices takes the Services from the old cluster, for the new one to adopt,
	// so that clients keep their address.
	disownServices struct {
		services []corev1.Service
		owner    types.UID
	}
	// setAside takes the volumes from the old cluster, and from all that look for them
	// by their labels.
	setAside struct {
		volumes []corev1.PersistentVolumeClaim
		owner   types.UID
	}
	deleteVolumes struct {
		volumes []corev1.PersistentVolumeClaim
		// restored means that the new cluster is back.
		restored bool
	}
	deletePods struct{ pods []corev1.Pod }

	// createCluster makes the EtcdCluster that is on record, to begin with a backup.
	createCluster struct{ seed api.SeedBackup }

	// markRestored says, where it outlives the status, that the restore has succeeded.
	markRestored struct{ cluster *unstructured.Unstructured }
	// unannotate takes the annotation off the EtcdCluster that is back.
	unannotate struct{ cluster *unstructured.Unstructured }
)

// What an operator may not be allowed to tidy.
const (
	deniedAnnotation = "annotation"
	deniedVolumes    = "volumes"
	deniedToken      = "token"
)
