// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/etcd-operator/etcd-operator/pkg/loop"
)

// podWrites remembers the API server's answers to this cluster's writes of pods until the
// informer's cache has caught up. So a pass never plans from a state older than its own last
// step.
type podWrites map[string]podWrite

type podWrite struct {
	pod *corev1.Pod
	at  time.Time
}

// doubtAfter is how long the cache may lack a write. Then the operator asks the API server
// whether the pod still exists. Its creation and deletion may both fall between two updates of
// the cache.
const doubtAfter = 5 * time.Second

// record remembers the answer to a write.
func (w podWrites) record(pod *corev1.Pod, now time.Time) { w[pod.Name] = podWrite{pod, now} }

// forget drops a pod that does not exist.
func (w podWrites) forget(name string) { delete(w, name) }

// merge returns the cached pods, replaced by newer answers and sorted by name, and the names
// of pods that the cache should show by now.
func (w podWrites) merge(cached []*corev1.Pod, now time.Time) (pods []*corev1.Pod, doubtful []string) {
	byName := make(map[string]*corev1.Pod, len(cached))
	for _, pod := range cached {
		byName[pod.Name] = pod
	}
	for name, written := range w {
		switch pod := byName[name]; {
		case pod != nil && !loop.Outdated(pod, written.pod):
			delete(w, name)
		case pod == nil && written.pod.DeletionTimestamp != nil:
			delete(w, name) // it was deleted, and is gone
		default:
			if pod == nil && now.Sub(written.at) > doubtAfter {
				doubtful = append(doubtful, name)
			}
			byName[name] = written.pod
		}
	}
	slices.Sort(doubtful)
	return slices.SortedFunc(maps.Values(byName), func(a, b *corev1.Pod) int { return strings.Compare(a.Name, b.Name) }), doubtful
}

// goneUnseen reports whether a pod is gone that the operator has deleted, while the cache does not even show
// the deletion. Otherwise its member would have no pod as long as the watch is lost.
func (c *Cluster) goneUnseen(ctx context.Context, pod *corev1.Pod, now time.Time) bool {
	at, deleted := c.deleted[pod.UID]
	if !deleted || pod.DeletionTimestamp != nil || now.Sub(at) <= doubtAfter {
		return false
	}
	live, err := within(ctx, statusTimeout, func(ctx context.Context) (*corev1.Pod, error) {
		return c.cfg.Kube.CoreV1().Pods(c.obj.Namespace).Get(ctx, pod.Name, metav1.GetOptions{})
	})
	return apierrors.IsNotFound(err) || err == nil && live.UID != pod.UID
}
