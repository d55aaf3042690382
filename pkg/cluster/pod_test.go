// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/etcd"
)

const operatorImage = "etcd-operator/etcd-operator:v1.0.0"

// shape is a pod to build: whose, and which.
type shape struct {
	obj *api.EtcdCluster
	pod newPod
}

func clusterWith(version string, pod *api.PodPolicy) *api.EtcdCluster {
	obj := testCluster()
	obj.Spec.Version, obj.Spec.Pod = version, pod
	return obj
}

// membership is what pods of the cluster c expect.
func membership(members ...string) etcd.InitialCluster {
	ic := etcd.InitialCluster{}
	for _, m := range members {
		ic[names{namespace: "ns", cluster: "c"}.peerURL(m)] = m
	}
	return ic
}

func shapes() map[string]shape {
	joiner := func(version string) newPod {
		return newPod{name: "c-joiner", version: version, initialCluster: membership("c-seed", "c-joiner")}
	}
	seed := newPod{name: "c-seed", version: "3.6.16", seed: true, token: "a-token", initialCluster: membership("c-seed")}
	return map[string]shape{
		"seed":             {clusterWith("3.6.16", nil), seed},
		"joiner-3.6.16":    {clusterWith("v3.6.16", nil), joiner("3.6.16")},
		"joiner-3.5.35":    {clusterWith("3.5.35", nil), joiner("3.5.35")},
		"joiner-3.4.23":    {clusterWith("3.4.23", nil), joiner("3.4.23")},
		"joiner-3.3.27":    {clusterWith("3.3.27", nil), joiner("3.3.27")},
		"joiner-3.2.13":    {clusterWith("3.2.13", nil), joiner("3.2.13")},
		"seed-busybox":     {clusterWith("3.6.16", &api.PodPolicy{BusyboxImage: "busybox:1.28", DNSTimeoutInSecond: ptr.To[int64](30)}), seed},
		"joiner-labels":    {clusterWith("3.6.16", &api.PodPolicy{Labels: map[string]api.LabelValue{"team": "storage"}}), joiner("3.6.16")},
		"joiner-unbounded": {clusterWith("3.6.16", &api.PodPolicy{DNSTimeoutInSecond: ptr.To[int64](0)}), joiner("3.6.16")},
	}
}

// TestPodsAndServicesInFull compares what is built with testdata/pods. Rewrite
// with go test ./pkg/cluster -run InFull -rewrite, and read the difference.
func TestPodsAndServicesInFull(t *testing.T) {
	objects := map[string]any{
		"service-peer":   buildPeerService(testCluster()),
		"service-client": buildClientService(testCluster()),
	}
	for name, s := range shapes() {
		pod, err := buildPod(s.obj, s.pod, certForms{}, operatorImage)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		objects[name] = pod
	}
	for name, obj := range objects {
		got, err := yaml.Marshal(obj)
		if err != nil {
			t.Fatal(err)
		}
		file := filepath.Join("testdata", "pods", name+".yaml")
		if *rewrite {
			if err := os.WriteFile(file, got, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if string(got) != string(want) {
			t.Errorf("%s is now\n%s", file, got)
		}
	}
	files, err := filepath.Glob("testdata/pods/*.yaml")
	if err != nil || len(files) != len(objects) {
		t.Errorf("files %v, %v: one of them is no longer compared", files, err)
	}
}

// TestPodsKeepTheNamesThatScriptsKnow holds every pod to the names of v0.9.4.
func TestPodsKeepTheNamesThatScriptsKnow(t *testing.T) {
	for name, s := range shapes() {
		t.Run(name, func(t *testing.T) {
			pod, err := buildPod(s.obj, s.pod, certForms{}, operatorImage)
			if err != nil {
				t.Fatal(err)
			}
			for what, pair := range map[string][2]string{
				"label app":          {pod.Labels["app"], "etcd"},
				"label etcd_cluster": {pod.Labels["etcd_cluster"], "c"},
				"label etcd_node":    {pod.Labels["etcd_node"], s.pod.name},
				"etcd.version":       {pod.Annotations["etcd.version"], s.pod.version},
				"hostname":           {pod.Spec.Hostname, s.pod.name},
				"subdomain":          {pod.Spec.Subdomain, "c"},
				"image":              {pod.Spec.Containers[0].Image, "quay.io/coreos/etcd:v" + s.pod.version},
				"container":          {pod.Spec.Containers[0].Name, "etcd"},
				"init container":     {pod.Spec.InitContainers[0].Name, "check-dns"},
				"volume":             {pod.Spec.Volumes[0].Name, "etcd-data"},
				"mount":              {pod.Spec.Containers[0].VolumeMounts[0].MountPath, "/var/etcd"},
			} {
				if pair[0] != pair[1] {
					t.Errorf("%s is %q, want %q", what, pair[0], pair[1])
				}
			}
			if !metav1.IsControlledBy(pod, s.obj) || pod.OwnerReferences[0].APIVersion != "etcd.database.coreos.com/v1beta2" || pod.OwnerReferences[0].Kind != "EtcdCluster" {
				t.Errorf("owners %v", pod.OwnerReferences)
			}
			if token := pod.Spec.AutomountServiceAccountToken; token == nil || *token {
				t.Error("a service account token is mounted")
			}
			checkCommand(t, s.pod, pod.Spec.Containers[0].Command)
		})
	}
}

func checkCommand(t *testing.T, p newPod, command []string) {
	t.Helper()
	if command[0] != "/usr/local/bin/etcd" {
		t.Errorf("etcd runs as %s", command[0])
	}
	flags := map[string]string{}
	for _, arg := range command[1:] {
		name, value, ok := strings.Cut(arg, "=")
		if _, twice := flags[name]; !ok || twice {
			t.Errorf("argument %q has no value or comes twice", arg)
		}
		flags[name] = value
	}
	host := p.name + ".c.ns.svc"
	want := map[string]string{
		"--data-dir":                    "/var/etcd/data",
		"--name":                        p.name,
		"--initial-advertise-peer-urls": "http://" + host + ":2380",
		"--listen-peer-urls":            "http://0.0.0.0:2380",
		"--listen-client-urls":          "http://0.0.0.0:2379",
		"--advertise-client-urls":       "http://" + host + ":2379",
		"--initial-cluster":             p.initialCluster.String(),
		"--initial-cluster-state":       "existing",
	}
	if p.seed {
		want["--initial-cluster-state"], want["--initial-cluster-token"] = "new", p.token
	}
	if !strings.HasPrefix(p.version, "3.2.") {
		want["--listen-metrics-urls"] = "http://0.0.0.0:2381"
	}
	if !maps.Equal(flags, want) {
		t.Errorf("flags %v, want %v", flags, want)
	}
}

func TestReservedLabelsAlwaysWin(t *testing.T) {
	// The schema refuses these; an object may be older than the schema.
	obj := clusterWith("3.6.16", &api.PodPolicy{Labels: map[string]api.LabelValue{
		"app": "web", "etcd_cluster": "another", "etcd_node": "another", "team": "storage",
	}})
	pod, err := buildPod(obj, newPod{name: "c-a", version: "3.6.16"}, certForms{}, operatorImage)
	if err != nil {
		t.Fatal(err)
	}
	if want := map[string]string{"app": "etcd", "etcd_cluster": "c", "etcd_node": "c-a", "team": "storage"}; !maps.Equal(pod.Labels, want) {
		t.Errorf("labels %v, want %v", pod.Labels, want)
	}
	if len(obj.Spec.Pod.Labels) != 4 || obj.Spec.Pod.Labels["app"] != "web" {
		t.Errorf("the spec was changed to %v", obj.Spec.Pod.Labels)
	}
}

func TestBuildPodRefusesAVersionThatIsNone(t *testing.T) {
	if pod, err := buildPod(testCluster(), newPod{name: "c-a", version: "latest"}, certForms{}, operatorImage); err == nil {
		t.Errorf("pod %v", pod)
	}
}

func TestAPodSaysWhatItWasBuiltFor(t *testing.T) {
	for name, s := range shapes() {
		pod, err := buildPod(s.obj, s.pod, certForms{}, operatorImage)
		if err != nil {
			t.Fatal(err)
		}
		p := podStateOf(pod)
		if p.seed != s.pod.seed || p.version != s.pod.version || !maps.Equal(p.initialCluster, s.pod.initialCluster) || !p.manyLearners {
			t.Errorf("%s: %+v was read from the pod of %+v", name, p, s.pod)
		}
	}
}

func TestProbesByVersion(t *testing.T) {
	const tcp = "tcp"
	for version, want := range map[string][2]string{ // readiness, liveness
		"3.2.13": {tcp, tcp},
		"3.3.27": {"/health", tcp},
		"3.4.23": {"/health", tcp},
		"3.4.29": {"/readyz", "/livez"},
		"3.5.10": {"/health", tcp},
		"3.5.35": {"/readyz", "/livez"},
		"3.6.16": {"/readyz", "/livez"},
		"3.7.3":  {"/readyz", "/livez"},
	} {
		pod, err := buildPod(clusterWith(version, nil), newPod{name: "c-a", version: version}, certForms{}, operatorImage)
		if err != nil {
			t.Fatal(err)
		}
		c := pod.Spec.Containers[0]
		asks := func(p *corev1.Probe) string {
			switch {
			case p.HTTPGet != nil && p.HTTPGet.Port.IntValue() == metricsPort:
				return p.HTTPGet.Path
			case p.TCPSocket != nil && p.TCPSocket.Port.IntValue() == clientPort:
				return tcp
			}
			return "something else"
		}
		if got := [2]string{asks(c.ReadinessProbe), asks(c.LivenessProbe)}; got != want {
			t.Errorf("%s: readiness and liveness ask %v, want %v", version, got, want)
		}
		if asks(c.StartupProbe) != want[1] {
			t.Errorf("%s: the startup probe asks for %s", version, asks(c.StartupProbe))
		}
		if slices.ContainsFunc([]*corev1.Probe{c.ReadinessProbe, c.LivenessProbe, c.StartupProbe}, func(p *corev1.Probe) bool { return p.Exec != nil }) {
			t.Errorf("%s: a probe runs a program, and the image has no shell", version)
		}
	}
}
