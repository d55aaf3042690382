// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

// Settle bounds the time until a cluster matches its spec. It is far above an idle machine's
// need: the tests share two cores, and this is no measurement.
const Settle = 5 * time.Minute

// WaitSettled waits until the cluster exactly matches the spec that the test has written last:
// pods, members and status, with nothing left over. None of the pods in gone may be left.
func (c *Cluster) WaitSettled(gone ...*corev1.Pod) []Member {
	c.n.t.Helper()
	var members []Member
	what := fmt.Sprintf("%s settled at %d × %s", c.Name, c.want.Spec.Size, c.want.Spec.EffectiveVersion())
	Wait(c.n.t, what, Settle, func(ctx context.Context) (err error) {
		for _, pod := range c.Pods() {
			if pod.DeletionTimestamp != nil {
				return fmt.Errorf("pod %s terminates", pod.Name)
			}
		}
		members, err = c.Settled(ctx, gone...)
		return err
	})
	return members
}

// Settled is a single check of WaitSettled that ignores terminating pods.
func (c *Cluster) Settled(ctx context.Context, gone ...*corev1.Pod) ([]Member, error) {
	object := c.Object()
	if object == nil {
		return nil, errors.New("there is no EtcdCluster")
	}
	if object.UID != c.want.UID || object.Generation < c.want.Generation {
		return nil, errors.New("the watch has not brought the last edit")
	}
	if err := c.podsSettled(gone); err != nil {
		return nil, err
	}
	if err := c.statusSettled(object); err != nil {
		return nil, err
	}
	return c.membersSettled(ctx)
}

func (c *Cluster) livePods() []*corev1.Pod {
	return slices.DeleteFunc(c.Pods(), func(pod *corev1.Pod) bool { return pod.DeletionTimestamp != nil })
}

func (c *Cluster) podsSettled(gone []*corev1.Pod) error {
	pods := c.livePods()
	if len(pods) != c.want.Spec.Size {
		return fmt.Errorf("%d pods instead of %d: %v", len(pods), c.want.Spec.Size, podNames(pods))
	}
	unwanted := map[types.UID]bool{}
	for _, pod := range gone {
		unwanted[pod.UID] = true
	}
	version := c.want.Spec.EffectiveVersion()
	image := c.want.Spec.EffectiveRepository() + ":v" + version
	for _, pod := range pods {
		container := etcdContainer(pod)
		switch {
		case unwanted[pod.UID]:
			return fmt.Errorf("pod %s should be gone", pod.Name)
		case container == nil:
			return fmt.Errorf("pod %s has no container etcd", pod.Name)
		case withoutDigest(container.Image) != image:
			return fmt.Errorf("pod %s has image %s instead of %s", pod.Name, container.Image, image)
		case pod.Annotations["etcd.version"] != version:
			return fmt.Errorf("pod %s has annotation etcd.version=%s", pod.Name, pod.Annotations["etcd.version"])
		case !Ready(pod):
			return fmt.Errorf("pod %s is not ready: %s", pod.Name, podLine(pod, false))
		}
	}
	return nil
}

// withoutDigest returns an image's name before admission added its digest.
func withoutDigest(image string) string {
	name, _, _ := strings.Cut(image, "@")
	return name
}

func (c *Cluster) statusSettled(object *v1beta2.EtcdCluster) error {
	status, names := object.Status, podNames(c.livePods())
	ready := slices.Sorted(slices.Values(status.Members.Ready))
	var problem string
	switch {
	case status.ObservedGeneration != object.Generation:
		problem = "the last edit is not observed"
	case status.Phase != v1beta2.ClusterPhaseRunning:
		problem = "phase is not Running"
	case status.Size != object.Spec.Size:
		problem = "size is not that of the spec"
	case !slices.Equal(ready, names) || len(status.Members.Unready) > 0 || status.ReadyMembers != len(names):
		problem = fmt.Sprintf("members ready %v, unready %v, pods %v", status.Members.Ready, status.Members.Unready, names)
	case status.CurrentVersion != object.Spec.EffectiveVersion():
		problem = "currentVersion is not that of the spec"
	case status.TargetVersion != "":
		problem = "targetVersion is not empty"
	case status.ControlPaused != object.Spec.Paused:
		problem = "controlPaused is not what spec.paused says"
	case status.ServiceName != object.Name+"-client" || status.ClientPort != clientPort:
		problem = fmt.Sprintf("service is %s:%d", status.ServiceName, status.ClientPort)
	}
	for _, condition := range status.Conditions {
		if condition.Type == v1beta2.ClusterConditionCertificatesValid {
			continue // the tests of TLS check it
		}
		available := condition.Type == v1beta2.ClusterConditionAvailable
		well := available || condition.Type == v1beta2.ClusterConditionReady
		if (condition.Status == corev1.ConditionTrue) != well {
			problem = fmt.Sprintf("condition %s=%s", condition.Type, condition.Status)
		}
		if available && condition.Reason != "Cluster available" {
			problem = fmt.Sprintf("condition Available has reason %q", condition.Reason)
		}
	}
	if !slices.ContainsFunc(status.Conditions, func(c v1beta2.ClusterCondition) bool { return c.Type == v1beta2.ClusterConditionReady }) {
		problem = "there is no condition Ready"
	}
	if problem != "" {
		return fmt.Errorf("status: %s (%s)", problem, clusterLine(object, false))
	}
	return nil
}

// membersSettled asks each member. All must agree on membership, leader and cluster, and run
// the spec's version.
func (c *Cluster) membersSettled(ctx context.Context) ([]Member, error) {
	members, err := c.Members(ctx)
	if err != nil {
		return nil, err
	}
	for _, m := range members {
		switch {
		case m.Learner:
			return nil, fmt.Errorf("%s is a learner", m.Name)
		case m.Version != c.want.Spec.EffectiveVersion():
			return nil, fmt.Errorf("%s runs %s", m.Name, m.Version)
		case m.Leader == 0 || m.Leader != members[0].Leader:
			return nil, fmt.Errorf("%s follows %x, %s follows %x", m.Name, m.Leader, members[0].Name, members[0].Leader)
		case m.ClusterID != members[0].ClusterID:
			return nil, fmt.Errorf("%s is in cluster %x, %s in %x", m.Name, m.ClusterID, members[0].Name, members[0].ClusterID)
		}
	}
	return members, nil
}
