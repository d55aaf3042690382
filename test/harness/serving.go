// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Serving follows how many members of a cluster take part in it, as what is done
// to their pods tells: one that was ready counts until it is deleted or given
// another image. Whether it is slow to answer, or looks for a leader, depends on the
// machine and on nobody's decision.
type Serving struct {
	release func()

	mu     sync.Mutex
	images map[types.UID]string // with which a pod was ready
	fewest int
}

// WatchServing starts to follow the pods of a cluster whose members are all ready.
func (c *Cluster) WatchServing() *Serving {
	s := &Serving{images: map[types.UID]string{}}
	for _, pod := range c.livePods() {
		s.images[pod.UID] = etcdContainer(pod).Image
	}
	s.fewest = len(s.images)
	s.release = c.OnPod(s.see)
	return s
}

func (s *Serving) see(pod *corev1.Pod) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch image, served := s.images[pod.UID]; {
	case pod.DeletionTimestamp != nil || served && etcdContainer(pod).Image != image:
		delete(s.images, pod.UID)
	case Ready(pod) && runsItsImage(pod):
		s.images[pod.UID] = etcdContainer(pod).Image
	}
	s.fewest = min(s.fewest, len(s.images))
}

// Fewest ends the watch and returns how many members took part when they were
// fewest.
func (s *Serving) Fewest() int {
	s.release()
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.fewest
}
