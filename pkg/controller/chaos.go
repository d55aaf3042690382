// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/sirupsen/logrus"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/utils/clock"

	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/controller/fleet"
)

const (
	chaosInterval    = 30 * time.Second
	chaosProbability = 0.5
)

// chaosVictims is how many pods may be killed at once, for each chaos level.
var chaosVictims = map[int]int{1: 1, 2: 5}

// MaxChaosLevel is the highest level there is; below 1 there is no chaos.
const MaxChaosLevel = 2

// monkey kills members' pods at random, for tests of how clusters recover.
type monkey struct {
	kube  kubernetes.Interface
	pods  corelisters.PodLister
	fleet *fleet.Fleet[*api.EtcdCluster]
	rand  *rand.Rand
	log   *logrus.Entry
}

func (m *monkey) run(ctx context.Context, clock clock.WithTicker, level int) {
	victims := chaosVictims[level]
	if victims == 0 {
		return
	}
	m.log.Warnf("chaos level %d: every %s up to %d pods of members are killed, each with a probability of %v", level, chaosInterval, victims, chaosProbability)
	ticker := clock.NewTicker(chaosInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C():
			m.strike(ctx, victims)
		}
	}
}

// strike chooses some pods of the fleet's clusters and kills each at even odds.
func (m *monkey) strike(ctx context.Context, victims int) {
	pods, err := m.pods.List(labels.Everything())
	if err != nil {
		m.log.WithError(err).Error("chaos: list pods")
		return
	}
	pods = slices.DeleteFunc(slices.Clone(pods), func(p *corev1.Pod) bool {
		owner := ownerOf(p)
		return owner == nil || !m.fleet.Has(owner.UID) || p.DeletionTimestamp != nil
	})
	// A lister's order is random in itself; sorted, the rand alone decides.
	slices.SortFunc(pods, func(a, b *corev1.Pod) int { return strings.Compare(fleet.KeyOf(a).String(), fleet.KeyOf(b).String()) })
	m.rand.Shuffle(len(pods), func(i, j int) { pods[i], pods[j] = pods[j], pods[i] })
	for _, p := range pods[:min(victims, len(pods))] {
		if m.rand.Float64() < chaosProbability {
			m.kill(ctx, p)
		}
	}
}

func (m *monkey) kill(ctx context.Context, p *corev1.Pod) {
	now := int64(0)
	err := m.kube.CoreV1().Pods(p.Namespace).Delete(ctx, p.Name, metav1.DeleteOptions{
		GracePeriodSeconds: &now,
		Preconditions:      &metav1.Preconditions{UID: &p.UID},
	})
	if err != nil {
		m.log.WithError(err).Warnf("chaos: kill pod %s/%s", p.Namespace, p.Name)
		return
	}
	m.log.Warnf("chaos: killed pod %s/%s", p.Namespace, p.Name)
}
