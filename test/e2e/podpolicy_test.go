//go:build e2e

// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/test/harness"
)

// The example sets every field of the pod policy. The test checks the pods at the API server,
// and then the running processes.
func TestEveryFieldOfThePodPolicy(t *testing.T) {
	t.Parallel()
	n := harness.New(t)
	t.Cleanup(func() {
		// Pods keep the value of their PriorityClass.
		err := n.Kube.SchedulingV1().PriorityClasses().Delete(context.WithoutCancel(t.Context()), n.Name, metav1.DeleteOptions{})
		if err != nil {
			t.Errorf("delete the PriorityClass: %v", err)
		}
	})
	// The PriorityClass has no namespace, and the page that applies the example deletes it.
	n.Shell("sed 's/: example-etcd$/: " + n.Name + "/' example/example-etcd-cluster-with-pod-policy.yaml | kubectl apply -f -")
	cluster := n.Adopt("example-etcd-cluster-with-pod-policy")
	members := cluster.WaitSettled()
	cluster.Put("greeting", "hello")

	policy := cluster.Object().Spec.Pod
	nodes := map[string]bool{}
	for i, pod := range cluster.Pods() {
		nodes[pod.Spec.NodeName] = true
		checkPolicy(t, policy, pod)
		if want := fmt.Sprintf("http://%s.%s.%s.svc.cluster.local:2380", pod.Name, cluster.Name, n.Name); members[i].PeerURL != want {
			t.Errorf("peer URL of %s is %q, want %q", pod.Name, members[i].PeerURL, want)
		}
		if got := metric(t, pod, "etcd_server_quota_backend_bytes"); got != "4.294967296e+09" {
			t.Errorf("%s: the quota is %s", pod.Name, got)
		}
		process := processOf(t, pod)
		if got := process.status("Uid"); !strings.HasPrefix(got, "1000\t") {
			t.Errorf("%s runs as user %s", pod.Name, got)
		}
		if got := process.environment["ETCD_AUTO_COMPACTION_RETENTION"]; got != "1h" {
			t.Errorf("%s: ETCD_AUTO_COMPACTION_RETENTION is %q", pod.Name, got)
		}
		checkClaim(t, n, cluster, pod)
	}
	if len(nodes) != 3 {
		t.Errorf("three members are on the nodes %v", slices.Sorted(maps.Keys(nodes)))
	}
}

// checkPolicy compares a pod with the example's policy.
func checkPolicy(t *testing.T, policy *v1beta2.PodPolicy, pod *corev1.Pod) {
	t.Helper()
	spec, security := pod.Spec, pod.Spec.SecurityContext
	etcd, checkDNS := spec.Containers[0], spec.InitContainers[0]
	for what, ok := range map[string]bool{
		"labels":             pod.Labels["team"] == "storage" && pod.Labels["etcd_node"] == pod.Name,
		"annotations":        pod.Annotations["prometheus.io/port"] == "2381" && pod.Annotations["etcd.version"] == etcd36,
		"nodeSelector":       spec.NodeSelector["kubernetes.io/os"] == "linux",
		"affinity":           spec.Affinity.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution[0].LabelSelector.MatchLabels["etcd_cluster"] == pod.Labels["etcd_cluster"],
		"tolerations":        slices.Contains(spec.Tolerations, policy.Tolerations[0]),
		"topology spread":    len(spec.TopologySpreadConstraints) == 1 && spec.TopologySpreadConstraints[0].LabelSelector.MatchLabels["etcd_cluster"] == pod.Labels["etcd_cluster"],
		"resources":          etcd.Resources.Limits.Memory().String() == "512Mi" && etcd.Resources.Requests.Cpu().String() == "50m",
		"of check-dns":       checkDNS.Resources.Limits.Memory().String() == "512Mi" && checkDNS.Image == policy.BusyboxImage,
		"extraArgs":          etcd.Command[len(etcd.Command)-1] == policy.ExtraArgs[0],
		"securityContext":    *security.RunAsUser == 1000 && *security.RunAsGroup == 1000 && *security.FSGroup == 1000,
		"what is unset":      *security.RunAsNonRoot && security.SeccompProfile.Type == corev1.SeccompProfileTypeRuntimeDefault,
		"imagePullSecrets":   slices.Equal(spec.ImagePullSecrets, policy.ImagePullSecrets),
		"serviceAccountName": spec.ServiceAccountName == pod.Namespace,
		"priorityClassName":  spec.PriorityClassName == pod.Namespace && *spec.Priority == 1000000,
		"no token":           !slices.ContainsFunc(etcd.VolumeMounts, func(m corev1.VolumeMount) bool { return strings.Contains(m.MountPath, "serviceaccount") }),
	} {
		if !ok {
			t.Errorf("pod %s: %s not as in the policy: %+v", pod.Name, what, spec)
		}
	}
}

func checkClaim(t *testing.T, n *harness.Namespace, cluster *harness.Cluster, pod *corev1.Pod) {
	t.Helper()
	claim, err := n.Kube.CoreV1().PersistentVolumeClaims(n.Name).Get(t.Context(), pod.Name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	labels := map[string]string{"app": "etcd", "etcd_cluster": cluster.Name, "etcd_node": pod.Name, "team": "storage"}
	if claim.Status.Phase != corev1.ClaimBound || !maps.Equal(claim.Labels, labels) || !ownedBy(claim.OwnerReferences, cluster.Object()) {
		t.Errorf("the volume of %s is %s, its labels %v, its owners %v", pod.Name, claim.Status.Phase, claim.Labels, claim.OwnerReferences)
	}
	if v := pod.Spec.Volumes[0]; v.PersistentVolumeClaim == nil || v.PersistentVolumeClaim.ClaimName != pod.Name {
		t.Errorf("%s keeps its data on %+v", pod.Name, v)
	}
}

// Fields that the example can't set together with others.
func TestMembersInMemoryWithoutSpread(t *testing.T) {
	t.Parallel()
	n := harness.New(t)
	// For a Service named etcd..., Kubernetes would set variables ETCD_... in pods with
	// enableServiceLinks.
	_, err := n.Kube.CoreV1().Services(n.Name).Create(t.Context(), &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: "etcd-of-others"},
		Spec:       corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 2379}}},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	want := object("etcd", 3, etcd37)
	want.Spec.Pod = &v1beta2.PodPolicy{
		Tmpfs:                     true,
		AntiAffinity:              true,
		TopologySpreadConstraints: []corev1.TopologySpreadConstraint{},
	}
	cluster := n.CreateObject(want)
	cluster.WaitSettled()
	nodes := map[string]bool{}
	for _, pod := range cluster.Pods() {
		nodes[pod.Spec.NodeName] = true
		if len(pod.Spec.TopologySpreadConstraints) > 0 {
			t.Errorf("%s is spread by %v", pod.Name, pod.Spec.TopologySpreadConstraints)
		}
		process := processOf(t, pod)
		if got := process.filesystem("/var/etcd"); got != "tmpfs" {
			t.Errorf("%s: /var/etcd is on %q", pod.Name, got)
		}
		for name := range process.environment {
			if strings.HasPrefix(name, "ETCD_OF_OTHERS") {
				t.Errorf("%s: %s is in the environment", pod.Name, name)
			}
		}
	}
	if len(nodes) != 3 {
		t.Errorf("three members are on the nodes %v", slices.Sorted(maps.Keys(nodes)))
	}
}

// The operator, and members with default settings, satisfy the restricted Pod Security
// Standard: in a namespace that enforces it, the API server refuses all other pods.
func TestRestrictedNamespace(t *testing.T) {
	t.Parallel()
	n := harness.NewNamespace(t)
	label := []byte(`{"metadata":{"labels":{"pod-security.kubernetes.io/enforce":"restricted"}}}`)
	if _, err := n.Kube.CoreV1().Namespaces().Patch(t.Context(), n.Name, types.MergePatchType, label, metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	privileged := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "refused"}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "c"}}}}
	harness.Wait(t, "the namespace takes no longer any pod", harness.Settle, func(ctx context.Context) error {
		_, err := n.Kube.CoreV1().Pods(n.Name).Create(ctx, privileged, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		switch {
		case err == nil:
			return errors.New("it takes one without restrictions")
		case !strings.Contains(err.Error(), "violates PodSecurity"):
			return err
		}
		return nil
	})
	n.DeployOperator()
	for name, policy := range map[string]*v1beta2.PodPolicy{
		"defaults": nil,
		"busybox":  {BusyboxImage: "docker.io/library/busybox:1.35"},
	} {
		want := object(name, 3, etcd36)
		want.Spec.Pod = policy
		cluster := n.CreateObject(want)
		cluster.WaitSettled()
		cluster.Put("greeting", "hello")
		cluster.Delete()
	}
}

// process is a running etcd, as /proc of this machine shows it.
type process struct {
	t           *testing.T
	dir         string
	environment map[string]string
}

func processOf(t *testing.T, pod *corev1.Pod) process {
	t.Helper()
	pid, err := harness.Process(pod, "etcd")
	if err != nil {
		t.Fatal(err)
	}
	p := process{t: t, dir: fmt.Sprintf("/proc/%d", pid), environment: map[string]string{}}
	for variable := range strings.SplitSeq(p.read("environ"), "\x00") {
		name, value, _ := strings.Cut(variable, "=")
		p.environment[name] = value
	}
	return p
}

func (p process) read(file string) string {
	p.t.Helper()
	text, err := os.ReadFile(filepath.Join(p.dir, file))
	if err != nil {
		p.t.Fatal(err)
	}
	return string(text)
}

// status returns the value of a line of /proc/<pid>/status.
func (p process) status(key string) string {
	p.t.Helper()
	for line := range strings.Lines(p.read("status")) {
		if value, ok := strings.CutPrefix(line, key+":"); ok {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

// filesystem returns the type of the file system at a path.
func (p process) filesystem(path string) string {
	p.t.Helper()
	for line := range strings.Lines(p.read("mounts")) {
		if fields := strings.Fields(line); len(fields) > 2 && fields[1] == path {
			return fields[2]
		}
	}
	return ""
}

// metric reads one of a member's metrics.
func metric(t *testing.T, pod *corev1.Pod, name string) string {
	t.Helper()
	var value string
	harness.Wait(t, name+" of "+pod.Name, harness.Settle, func(ctx context.Context) error {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+pod.Status.PodIP+":2381/metrics", nil)
		if err != nil {
			return err
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			return err
		}
		defer resp.Body.Close()
		text, err := io.ReadAll(resp.Body)
		if err != nil {
			return err
		}
		for line := range strings.Lines(string(text)) {
			if v, ok := strings.CutPrefix(line, name+" "); ok {
				value = strings.TrimSpace(v)
				return nil
			}
		}
		return errors.New("it is not among the metrics")
	})
	return value
}
