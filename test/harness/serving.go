// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Serving follows how many members take part in a cluster, according to changes of their pods:
// a ready pod counts until it is deleted or gets another image. Slow answers and elections do
// not count, because they depend on the machine and not on an operator's decision.
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

// Fewest ends the watch and returns the smallest number of members that took part.
func (s *Serving) Fewest() int {
	s.release()
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.fewest
}
