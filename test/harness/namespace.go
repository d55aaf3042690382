// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"strings"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilrand "k8s.io/apimachinery/pkg/util/rand"
)

// A Namespace belongs to one test. The end of the test deletes its contents. If the test
// fails, it prints what happened there.
type Namespace struct {
	*Env
	Name string

	t       testing.TB
	record  *record
	crashes atomic.Int64 // of operators, by the test
	// backupCrashes are those of backup operators.
	backupCrashes atomic.Int64
	// restoreCrashes are those of restore operators.
	restoreCrashes atomic.Int64
	granted        []runtime.Object    // to the operator, outside of the namespace
	handles        map[string]*Cluster // the last of a name
	// nodesDown are the nodes that the test has killed or cut off.
	nodesDown map[string]bool
}

// NewNamespace creates a namespace without an operator.
func NewNamespace(t testing.TB) *Namespace {
	t.Helper()
	return newNamespace(t, true)
}

// NewQuiet is New for measurements: it follows no logs, which would affect the results.
func NewQuiet(t testing.TB, flags ...string) *Namespace {
	t.Helper()
	n := newNamespace(t, false)
	n.DeployOperator(flags...)
	return n
}

func newNamespace(t testing.TB, logs bool) *Namespace {
	t.Helper()
	env, err := shared()
	if err != nil {
		t.Fatalf("connect to Kubernetes: %v", err)
	}
	n := &Namespace{Env: env, Name: "e2e-" + label(t.Name()) + "-" + utilrand.String(5), t: t, nodesDown: map[string]bool{}, handles: map[string]*Cluster{}}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: n.Name}}
	if _, err := n.Kube.CoreV1().Namespaces().Create(t.Context(), namespace, metav1.CreateOptions{}); err != nil {
		t.Fatalf("create namespace %s: %v", n.Name, err)
	}
	t.Cleanup(func() {
		ctx, cancel := later(t.Context(), 30*time.Second)
		defer cancel()
		for _, object := range n.granted {
			if err := remove(ctx, n.Kube, object); err != nil && !apierrors.IsNotFound(err) {
				t.Errorf("remove the operator's rights: %v", err)
			}
		}
		if err := n.freeBackups(ctx); err != nil {
			t.Errorf("free the EtcdBackups of namespace %s: %v", n.Name, err)
		}
		if err := n.Kube.CoreV1().Namespaces().Delete(ctx, n.Name, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) { // the test may have deleted it
			t.Errorf("delete namespace %s: %v", n.Name, err)
		}
	})
	n.record = startRecord(n, logs)
	t.Cleanup(func() {
		n.checkOperator()
		if t.Failed() {
			n.explain()
		}
		n.record.stop()
	})
	return n
}

// New creates a namespace with an operator in it, ready to work.
func New(t testing.TB, flags ...string) *Namespace {
	t.Helper()
	n := NewNamespace(t)
	n.DeployOperator(flags...)
	return n
}

// label makes a short DNS label from a test's name.
func label(name string) string {
	name = strings.TrimPrefix(name, "Test")
	short := strings.Map(func(r rune) rune {
		switch {
		case r >= 'A' && r <= 'Z':
			return r + 'a' - 'A'
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9':
			return r
		}
		return '-'
	}, name)
	return strings.Trim(short[:min(len(short), 30)], "-")
}
