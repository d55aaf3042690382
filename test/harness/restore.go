// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

const restoreApp = "etcd-restore-operator"

// DeployRestoreOperator deploys the restore operator from example/ after edit, and waits until
// it leads and the CRD is established.
func (n *Namespace) DeployRestoreOperator(edit func(*appsv1.Deployment)) {
	n.t.Helper()
	n.grant()
	n.deploy("example/etcd-restore-operator/deployment.yaml", func(d *appsv1.Deployment) {
		if edit != nil {
			edit(d)
		}
	})
	n.WaitRestoreOperator()
}

// WaitRestoreOperator waits until a restore operator is ready and the CRD is
// established.
func (n *Namespace) WaitRestoreOperator() {
	n.t.Helper()
	n.waitProgram(restoreApp, v1beta2.EtcdRestoreCRDName)
	n.record.watchRestores()
}

// RestoreOperators returns all pods of the restore operator, by name.
func (n *Namespace) RestoreOperators() []*corev1.Pod { return n.podsOf(restoreApp) }

// AwaitRestoreOperator returns a ready pod of the restore operator. On a busy machine, it may not be ready all the
// time.
func (n *Namespace) AwaitRestoreOperator() *corev1.Pod {
	n.t.Helper()
	return n.await(restoreApp)
}

// ReplaceRestoreOperator deletes the restore operator's pod without grace. Its replacement, at
// another address, must wait for the Lease.
func (n *Namespace) ReplaceRestoreOperator() {
	n.t.Helper()
	for _, pod := range n.RestoreOperators() {
		n.DeletePod(pod)
	}
}

// Restore is an EtcdRestore of a test.
type Restore struct {
	handle[*v1beta2.EtcdRestore]

	mu      sync.Mutex
	phases  []v1beta2.RestorePhase // in the order of the watch
	changed chan struct{}          // closed at the next phase
}

// CreateRestore creates an EtcdRestore with the cluster's name.
func (n *Namespace) CreateRestore(spec v1beta2.RestoreSpec) *Restore {
	n.t.Helper()
	return n.CreateRestoreObject(&v1beta2.EtcdRestore{ObjectMeta: metav1.ObjectMeta{Name: spec.EtcdCluster.Name}, Spec: spec})
}

// CreateRestoreObject creates an EtcdRestore.
func (n *Namespace) CreateRestoreObject(obj *v1beta2.EtcdRestore) *Restore {
	n.t.Helper()
	r := n.AdoptRestore(obj.Name)
	if _, err := n.EtcdClusters.EtcdV1beta2().EtcdRestores(n.Name).Create(n.t.Context(), obj, metav1.CreateOptions{}); err != nil {
		n.t.Fatalf("create EtcdRestore %s: %v", obj.Name, err)
	}
	return r
}

// AdoptRestore returns a handle of an EtcdRestore that somebody else creates. It knows the
// phases from now on.
func (n *Namespace) AdoptRestore(name string) *Restore {
	r := &Restore{handle: handle[*v1beta2.EtcdRestore]{
		Name: name, n: n, t: n.t, kind: v1beta2.EtcdRestoreResourceKind, objects: n.EtcdClusters.EtcdV1beta2().EtcdRestores(n.Name),
		status: func(obj *v1beta2.EtcdRestore) string {
			return fmt.Sprintf("phase %q, reason %q", obj.Status.Phase, obj.Status.Reason)
		},
	}, changed: make(chan struct{})}
	n.t.Cleanup(n.record.restoreHooks.add(func(obj *v1beta2.EtcdRestore) {
		if obj.Name == name {
			r.see(obj.Status.Phase)
		}
	}))
	return r
}

func (r *Restore) see(phase v1beta2.RestorePhase) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.phases) > 0 && r.phases[len(r.phases)-1] == phase {
		return
	}
	r.phases = append(r.phases, phase)
	close(r.changed)
	r.changed = make(chan struct{})
}

// Phases returns the restore's phases so far, in order.
func (r *Restore) Phases() []v1beta2.RestorePhase {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.phases)
}

// AwaitPhase waits until the restore is in a phase, or has been in it.
func (r *Restore) AwaitPhase(phase v1beta2.RestorePhase) {
	r.t.Helper()
	start := time.Now()
	timeout := time.NewTimer(Settle)
	defer timeout.Stop()
	for {
		r.mu.Lock()
		come, changed, phases := slices.Contains(r.phases, phase), r.changed, r.phases
		r.mu.Unlock()
		if come {
			r.t.Logf(note+"EtcdRestore %s: phase %s after %s", r.Name, phase, time.Since(start).Round(time.Millisecond))
			return
		}
		select {
		case <-changed:
		case <-timeout.C:
			r.t.Fatalf("EtcdRestore %s did not come to phase %s within %s: it has gone through %q; status %+v", r.Name, phase, Settle, phases, r.Get().Status)
		case <-r.t.Context().Done():
			r.t.Fatalf("EtcdRestore %s: %v", r.Name, context.Cause(r.t.Context()))
		}
	}
}

// WaitSucceeded waits until the restore has succeeded and its work is done, and checks the
// status of a successful restore.
func (r *Restore) WaitSucceeded() *v1beta2.EtcdRestore {
	r.t.Helper()
	obj := r.Wait("succeeded", Settle, func(obj *v1beta2.EtcdRestore) error {
		switch {
		case !obj.Status.Succeeded:
			return errors.New("it has not succeeded")
		case slices.Contains(obj.Finalizers, v1beta2.RestoreFinalizer):
			return errors.New("it has its finalizer")
		}
		return nil
	})
	if s := obj.Status; s.Phase != v1beta2.RestorePhaseSucceeded || s.CompletionDate == nil || s.StartDate == nil || s.Backup == nil || s.Cluster == nil || s.ClusterUID == "" {
		r.t.Errorf("EtcdRestore %s has succeeded, with status %+v", r.Name, s)
	}
	if obj.Annotations[v1beta2.RestoredAnnotation] == "" {
		r.t.Errorf("EtcdRestore %s has succeeded, with annotations %v", r.Name, obj.Annotations)
	}
	return obj
}

// Edit changes the spec.
func (r *Restore) Edit(edit func(*v1beta2.RestoreSpec)) {
	r.t.Helper()
	r.edit(func(obj *v1beta2.EtcdRestore) { edit(&obj.Spec) })
}
