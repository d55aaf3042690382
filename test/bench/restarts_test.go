//go:build bench

// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/etcd-operator/etcd-operator/test/harness"
)

// restartEach changes the image of one static member after another. The next one follows as soon
// as etcd itself says that the last one takes part in the quorum again. No upgrade that restarts one
// member at a time can be faster.
func (b *bench) restartEach(set string, version string) {
	b.t.Helper()
	start := time.Now()
	for i := range 3 {
		name := fmt.Sprintf("%s-%d", set, i)
		patch := fmt.Sprintf(`{"spec":{"containers":[{"name":"etcd","image":"quay.io/coreos/etcd:v%s"}]}}`, version)
		if _, err := b.n.Kube.CoreV1().Pods(b.n.Name).Patch(b.t.Context(), name, types.StrategicMergePatchType, []byte(patch), metav1.PatchOptions{}); err != nil {
			b.t.Fatal(err)
		}
		harness.Wait(b.t, name+" restarted", time.Minute, func(ctx context.Context) error { return b.restarted(ctx, name) })
	}
	b.table.add("R: three restarts of static members, one after another", aim{}, time.Since(start))
}

// restarted returns an error unless the kubelet has restarted the etcd of a pod, and etcd serves.
func (b *bench) restarted(ctx context.Context, name string) error {
	for _, pod := range b.n.Pods() {
		if pod.Name != name {
			continue
		}
		for _, s := range pod.Status.ContainerStatuses {
			if s.RestartCount == 0 || s.State.Running == nil {
				return fmt.Errorf("the kubelet has not restarted etcd")
			}
		}
		return serves(ctx, pod)
	}
	return fmt.Errorf("there is no pod")
}

func serves(ctx context.Context, pod *corev1.Pod) error {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+net.JoinHostPort(pod.Status.PodIP, "2381")+"/readyz", nil)
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("etcd answers %s", response.Status)
	}
	return nil
}
