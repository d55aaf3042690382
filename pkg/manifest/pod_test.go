// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/certsecret"
	"github.com/etcd-operator/etcd-operator/pkg/etcd"
)

const operatorImage = "etcd-operator/etcd-operator:v1.0.0"

// shape is a pod to build: whose, and which.
type shape struct {
	obj   *api.EtcdCluster
	pod   MemberPod
	certs CertForms
}

func (s shape) build(t *testing.T) *corev1.Pod {
	t.Helper()
	pod, err := BuildPod(s.obj, s.pod, s.certs, operatorImage)
	if err != nil {
		t.Fatal(err)
	}
	return pod
}

func clusterWith(version string, pod *api.PodPolicy) *api.EtcdCluster {
	obj := testCluster()
	obj.Spec.Version, obj.Spec.Pod = version, pod
	return obj
}

// clusterWithTLS has the certificates for which a Secret is named.
func clusterWithTLS(peer, server, operator string) *api.EtcdCluster {
	obj := clusterWith("3.6.16", nil)
	obj.Spec.TLS = &api.TLSPolicy{Static: &api.StaticTLS{
		Member:         &api.MemberSecret{PeerSecret: peer, ServerSecret: server},
		OperatorSecret: operator,
	}}
	return obj
}

// membership is what pods of the cluster c expect.
func membership(members ...string) etcd.InitialCluster {
	return membershipOf(testCluster(), members...)
}

func membershipOf(obj *api.EtcdCluster, members ...string) etcd.InitialCluster {
	ic := etcd.InitialCluster{}
	for _, m := range members {
		ic[NamesOf(obj).PeerURL(m)] = m
	}
	return ic
}

// joiner is the second member of a cluster.
func joiner(obj *api.EtcdCluster) shape {
	return shape{obj: obj, pod: MemberPod{
		Name: "c-joiner", Version: obj.Spec.EffectiveVersion(), InitialCluster: membershipOf(obj, "c-seed", "c-joiner"), Volume: obj.Spec.Persistent(),
	}}
}

func seed(obj *api.EtcdCluster) shape {
	return shape{obj: obj, pod: MemberPod{
		Name: "c-seed", Version: obj.Spec.EffectiveVersion(), Seed: true, Token: "a-token", InitialCluster: membershipOf(obj, "c-seed"), Volume: obj.Spec.Persistent(),
	}}
}

// restored is a seed that starts on a backup.
func restored(obj *api.EtcdCluster) shape {
	s := seed(obj)
	s.pod.Source = testSource()
	return s
}

func testSource() *api.SeedBackup {
	return &api.SeedBackup{
		Restore: "c", RestoreUID: "33333333-3333-3333-3333-333333333333",
		URL: "http://etcd-restore-operator.operators.svc:19999/v1/backup/c", Secret: "c-restore-token",
		Size: 100 << 20, SHA256: strings.Repeat("ab", 32), BumpRevision: 1000, Key: "backups/etcd.backup", EtcdVersion: "3.6.16", EtcdRevision: 42,
	}
}

// rewound is a seed that starts on a backup at an earlier revision.
func rewound(obj *api.EtcdCluster) shape {
	s := restored(obj)
	s.pod.Source.Revision = 40
	return s
}

// copied is a seed that starts on the data of a running etcd.
func copied(obj *api.EtcdCluster) shape {
	s := seed(obj)
	s.pod.Source = &api.SeedBackup{Key: "the data of the etcd 7", Size: 100 << 20, Copy: &api.SeedCopy{
		Endpoints: []string{"https://old-0.old:2379", "https://old-1.old:2379"}, ClientTLSSecret: "old-client", CredentialsSecret: "old-user",
		SkipVerification: true, ClusterID: "7", Owner: "33333333-3333-3333-3333-333333333333",
	}}
	return s
}

func (s shape) with(certs CertForms) shape {
	s.certs = certs
	return s
}

func shapes() map[string]shape {
	return map[string]shape{
		"seed":             seed(clusterWith("3.6.16", nil)),
		"seed-volume":      seed(clusterWith("3.6.16", &api.PodPolicy{PersistentVolumeClaimSpec: claimOf("1Gi")})),
		"joiner-3.6.16":    joiner(clusterWith("v3.6.16", nil)),
		"joiner-3.5.35":    joiner(clusterWith("3.5.35", nil)),
		"joiner-3.4.23":    joiner(clusterWith("3.4.23", nil)),
		"joiner-3.3.27":    joiner(clusterWith("3.3.27", nil)),
		"joiner-3.2.13":    joiner(clusterWith("3.2.13", nil)),
		"seed-busybox":     seed(clusterWith("3.6.16", &api.PodPolicy{BusyboxImage: "busybox:1.28", DNSTimeoutInSecond: ptr.To[int64](30)})),
		"joiner-busybox":   joiner(withEveryField(func(p *api.PodPolicy) { p.BusyboxImage = "busybox:1.28" })),
		"joiner-labels":    joiner(clusterWith("3.6.16", &api.PodPolicy{Labels: map[string]api.LabelValue{"team": "storage"}})),
		"joiner-unbounded": joiner(clusterWith("3.6.16", &api.PodPolicy{DNSTimeoutInSecond: ptr.To[int64](0)})),
		// A member whose pod the operator recreates on its volume, without other members.
		"alone": {obj: clusterWith("3.6.16", &api.PodPolicy{PersistentVolumeClaimSpec: claimOf("1Gi")}), pod: MemberPod{
			Name: "c-alone", Version: "3.6.16", InitialCluster: membership("c-alone"), Volume: true, Rejoins: true,
		}},
		"alone-busybox": {obj: clusterWith("3.6.16", &api.PodPolicy{PersistentVolumeClaimSpec: claimOf("1Gi"), BusyboxImage: "busybox:1.28"}), pod: MemberPod{
			Name: "c-alone", Version: "3.6.16", InitialCluster: membership("c-alone"), Volume: true, Rejoins: true,
		}},
		"restored":       restored(clusterWith("3.6.16", nil)),
		"restored-tmpfs": restored(clusterWith("3.4.23", &api.PodPolicy{Tmpfs: true, BusyboxImage: "busybox:1.28"})),
		"restored-all":   rewound(withEveryField(nil)),
		"copied":         copied(clusterWith("3.6.16", nil)),
		"tmpfs":          seed(clusterWith("3.6.16", &api.PodPolicy{Tmpfs: true})),
		"tmpfs-joiner":   joiner(clusterWith("3.6.16", &api.PodPolicy{Tmpfs: true})),
		"anti-affinity":  joiner(clusterWith("3.6.16", &api.PodPolicy{AntiAffinity: true})),
		"cluster-domain": joiner(clusterWith("3.6.16", &api.PodPolicy{ClusterDomain: ".cluster.local"})),
		"every-field":    joiner(withEveryField(nil)),

		"tls-static":       joiner(clusterWithTLS("peer-secret", "server-secret", "operator-secret")),
		"tls-cert-manager": joiner(clusterWithTLS("peer-secret", "server-secret", "operator-secret")).with(CertForms{certsecret.CertManager, certsecret.CertManager, certsecret.CertManager}),
		"tls-mixed":        joiner(clusterWithTLS("peer-secret", "server-secret", "operator-secret")).with(CertForms{Operator: certsecret.CertManager}),
		"tls-peer-only":    joiner(clusterWithTLS("peer-secret", "", "")),
		"tls-client-only":  joiner(clusterWithTLS("", "server-secret", "operator-secret")),
		"tls-import":       importer(clusterWithTLS("peer-secret", "server-secret", "operator-secret")),
		"tls-seed":         seed(clusterWithTLS("peer-secret", "server-secret", "operator-secret")),
	}
}

// importer is a joiner of an etcd that serves elsewhere.
func importer(obj *api.EtcdCluster) shape {
	s := joiner(obj)
	s.pod.Reach = []string{"https://old-0.old:2380", "https://old-1.old:2380"}
	return s
}

func claimOf(size string) *corev1.PersistentVolumeClaimSpec {
	return &corev1.PersistentVolumeClaimSpec{
		StorageClassName: ptr.To("fast"),
		Resources:        corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse(size)}},
	}
}

// withEveryField sets every field that goes together with the others, and then
// what edit does.
func withEveryField(edit func(*api.PodPolicy)) *api.EtcdCluster {
	policy := &api.PodPolicy{
		Labels:       map[string]api.LabelValue{"team": "storage"},
		Annotations:  map[string]string{"example.com/scrape": "true"},
		NodeSelector: map[string]string{"disk": "ssd"},
		Affinity: &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{
				LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"etcd_cluster": "c"}},
				TopologyKey:   "rack",
			}},
		}},
		AntiAffinity:              true, // the affinity wins
		Tolerations:               []corev1.Toleration{{Key: "dedicated", Operator: corev1.TolerationOpEqual, Value: "etcd", Effect: corev1.TaintEffectNoSchedule}},
		TopologySpreadConstraints: []corev1.TopologySpreadConstraint{{MaxSkew: 1, TopologyKey: "rack", WhenUnsatisfiable: corev1.DoNotSchedule}},
		Resources: corev1.ResourceRequirements{
			Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("100m"), corev1.ResourceMemory: resource.MustParse("128Mi")},
			Limits:   corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("512Mi")},
		},
		EtcdEnv:                   []corev1.EnvVar{{Name: "ETCD_AUTO_COMPACTION_RETENTION", Value: "1"}, {Name: "ETCD_SNAPSHOT_COUNT", Value: "5000"}},
		ExtraArgs:                 []string{"--quota-backend-bytes=8589934592"},
		PersistentVolumeClaimSpec: claimOf("8Gi"),
		SecurityContext:           &corev1.PodSecurityContext{RunAsUser: ptr.To[int64](1000), RunAsGroup: ptr.To[int64](1000), FSGroup: ptr.To[int64](2000)},
		ImagePullSecrets:          []corev1.LocalObjectReference{{Name: "registry"}},
		ServiceAccountName:        "etcd",
		PriorityClassName:         "important",
		DNSTimeoutInSecond:        ptr.To[int64](60),
		ClusterDomain:             "cluster.local",
	}
	if edit != nil {
		edit(policy)
	}
	obj := clusterWith("3.6.16", policy)
	obj.Spec.Repository = "registry.example.com/etcd"
	return obj
}

// TestPodsAndServicesInFull compares what is built with testdata/pods. Rewrite
// with go test ./pkg/manifest -run InFull -rewrite, and read the difference.
func TestPodsAndServicesInFull(t *testing.T) {
	objects := map[string]any{
		"volume":         BuildVolume(withEveryField(nil), "c-joiner"),
		"service-peer":   BuildPeerService(testCluster()),
		"service-client": BuildClientService(testCluster()),
	}
	for name, s := range shapes() {
		objects[name] = s.build(t)
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
			pod := s.build(t)
			for what, pair := range map[string][2]string{
				"label app":          {pod.Labels["app"], "etcd"},
				"label etcd_cluster": {pod.Labels["etcd_cluster"], "c"},
				"label etcd_node":    {pod.Labels["etcd_node"], s.pod.Name},
				"etcd.version":       {pod.Annotations["etcd.version"], s.pod.Version},
				"hostname":           {pod.Spec.Hostname, s.pod.Name},
				"subdomain":          {pod.Spec.Subdomain, "c"},
				"image":              {pod.Spec.Containers[0].Image, s.obj.Spec.EffectiveRepository() + ":v" + s.pod.Version},
				"container":          {pod.Spec.Containers[0].Name, "etcd"},
				"init container":     {pod.Spec.InitContainers[len(pod.Spec.InitContainers)-1].Name, "check-dns"},
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
			checkCommand(t, s, ofEtcd(pod.Spec.Containers[0]))
		})
	}
}

func checkCommand(t *testing.T, s shape, command []string) {
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
	p, spec := s.pod, s.obj.Spec
	host := p.Name + ".c.ns.svc" + spec.ClusterDomain()
	peer, client := "http://", "http://"
	want := map[string]string{}
	if spec.PeerTLS() {
		peer = "https://"
		want["--peer-client-cert-auth"] = "true"
		want["--peer-trusted-ca-file"] = "/etc/etcdtls/member/peer-tls/peer-ca.crt"
		want["--peer-cert-file"] = "/etc/etcdtls/member/peer-tls/peer.crt"
		want["--peer-key-file"] = "/etc/etcdtls/member/peer-tls/peer.key"
	}
	if spec.ClientTLS() {
		client = "https://"
		want["--client-cert-auth"] = "true"
		want["--trusted-ca-file"] = "/etc/etcdtls/member/server-tls/server-ca.crt"
		want["--cert-file"] = "/etc/etcdtls/member/server-tls/server.crt"
		want["--key-file"] = "/etc/etcdtls/member/server-tls/server.key"
	}
	maps.Copy(want, map[string]string{
		"--data-dir":                    "/var/etcd/data",
		"--name":                        p.Name,
		"--initial-advertise-peer-urls": peer + host + ":2380",
		"--listen-peer-urls":            peer + "0.0.0.0:2380",
		"--listen-client-urls":          client + "0.0.0.0:2379",
		"--advertise-client-urls":       client + host + ":2379",
		"--initial-cluster":             p.InitialCluster.String(),
		"--initial-cluster-state":       "existing",
	})
	if p.Seed {
		want["--initial-cluster-state"], want["--initial-cluster-token"] = "new", p.Token
	}
	if !strings.HasPrefix(p.Version, "3.2.") {
		want["--listen-metrics-urls"] = "http://0.0.0.0:2381"
	}
	if spec.Pod != nil {
		for _, arg := range spec.Pod.ExtraArgs {
			name, value, _ := strings.Cut(arg, "=")
			want[name] = value
		}
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
	pod, err := BuildPod(obj, MemberPod{Name: "c-a", Version: "3.6.16"}, CertForms{}, operatorImage)
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

func TestTheOperatorsAnnotationsAreNotTheUsers(t *testing.T) {
	pod := joiner(clusterWith("3.6.16", &api.PodPolicy{Annotations: map[string]string{
		"etcd.version": "3.4.0", "etcd.database.coreos.com/previous-version": "3.4.0", "example.com/a": "b",
	}})).build(t)
	if want := map[string]string{"etcd.version": "3.6.16", "example.com/a": "b"}; !maps.Equal(pod.Annotations, want) {
		t.Errorf("annotations %v, want %v", pod.Annotations, want)
	}
}

// The caller may change a built pod; the cluster stays as it is.
func TestAPodSharesNothingWithItsCluster(t *testing.T) {
	obj := withEveryField(nil)
	before := obj.DeepCopy()
	pod, volume := joiner(obj).build(t), BuildVolume(obj, "c-joiner")
	for key := range pod.Annotations {
		pod.Annotations[key] = "changed"
	}
	pod.Spec.Affinity.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution[0].TopologyKey = "changed"
	pod.Spec.Tolerations[0].Key = "changed"
	pod.Spec.TopologySpreadConstraints[0].TopologyKey = "changed"
	pod.Spec.Containers[0].Env[1].Value = "changed"
	pod.Spec.Containers[0].Resources.Limits[corev1.ResourceMemory] = resource.MustParse("1")
	pod.Spec.NodeSelector["disk"] = "changed"
	*pod.Spec.SecurityContext.RunAsUser = 0
	volume.Spec.Resources.Requests[corev1.ResourceStorage] = resource.MustParse("1")
	if !reflect.DeepEqual(obj, before) {
		t.Errorf("the cluster is now %+v", obj)
	}
	if init := pod.Spec.InitContainers[0].Resources.Limits[corev1.ResourceMemory]; init.String() != "512Mi" {
		t.Errorf("the init container's limit changed with the other's to %s", &init)
	}
}

// Every field of the policy changes the pod or its volume. The operator would silently ignore a
// forgotten field.
func TestEveryFieldOfThePodPolicyIsFollowed(t *testing.T) {
	full := withEveryField(func(p *api.PodPolicy) { p.BusyboxImage, p.Tmpfs = "busybox", true }).Spec.Pod
	fields := reflect.TypeFor[api.PodPolicy]()
	for i := range fields.NumField() {
		policy := &api.PodPolicy{}
		value := reflect.ValueOf(full).Elem().Field(i)
		if value.IsZero() {
			t.Fatalf("withEveryField lacks %s", fields.Field(i).Name)
		}
		reflect.ValueOf(policy).Elem().Field(i).Set(value)
		with, without := joiner(clusterWith("3.6.16", policy)), joiner(clusterWith("3.6.16", nil))
		if reflect.DeepEqual(with.build(t), without.build(t)) {
			t.Errorf("%s makes no difference", fields.Field(i).Name)
		}
	}
}

func TestBuildPodRefusesAVersionThatIsNone(t *testing.T) {
	if pod, err := BuildPod(testCluster(), MemberPod{Name: "c-a", Version: "latest"}, CertForms{}, operatorImage); err == nil {
		t.Errorf("pod %v", pod)
	}
}

func TestAPodSaysWhatItWasBuiltFor(t *testing.T) {
	for name, s := range shapes() {
		p := PodStateOf(s.build(t))
		if p.Seed != s.pod.Seed || p.Version != s.pod.Version || !maps.Equal(p.InitialCluster, s.pod.InitialCluster) || !p.ManyLearners {
			t.Errorf("%s: %+v was read from the pod of %+v", name, p, s.pod)
		}
	}
}

func TestProbesByVersion(t *testing.T) {
	const tcp = "tcp"
	// A defragmentation blocks reads, and must not count as the end of etcd.
	const process = "/livez?exclude=serializable_read"
	for version, want := range map[string][3]string{ // readiness, liveness, startup
		"3.2.13": {tcp, tcp, tcp},
		"3.3.27": {"/health?exclude=NOSPACE", tcp, tcp},
		"3.4.23": {"/health?exclude=NOSPACE", tcp, tcp},
		"3.4.29": {"/readyz", process, "/livez"},
		"3.5.10": {"/health?exclude=NOSPACE", tcp, tcp},
		"3.5.35": {"/readyz", process, "/livez"},
		"3.6.16": {"/readyz", process, "/livez"},
		"3.7.3":  {"/readyz", process, "/livez"},
	} {
		pod, err := BuildPod(clusterWith(version, nil), MemberPod{Name: "c-a", Version: version}, CertForms{}, operatorImage)
		if err != nil {
			t.Fatal(err)
		}
		c := pod.Spec.Containers[0]
		asks := func(p *corev1.Probe) string {
			switch {
			case p.HTTPGet != nil && p.HTTPGet.Port.IntValue() == MetricsPort:
				return p.HTTPGet.Path
			case p.TCPSocket != nil && p.TCPSocket.Port.IntValue() == ClientPort:
				return tcp
			}
			return "something else"
		}
		if got := [3]string{asks(c.ReadinessProbe), asks(c.LivenessProbe), asks(c.StartupProbe)}; got != want {
			t.Errorf("%s: readiness, liveness and startup ask %v, want %v", version, got, want)
		}
		if slices.ContainsFunc([]*corev1.Probe{c.ReadinessProbe, c.LivenessProbe, c.StartupProbe}, func(p *corev1.Probe) bool { return p.Exec != nil }) {
			t.Errorf("%s: a probe runs a program, and the image has no shell", version)
		}
	}
}

// People use the operator's certificate in a pod, and etcd does not. The spec may name another Secret while
// the pod runs. If the former one is gone when the node reboots, the member must start even so.
func TestAMemberStartsWithoutTheOperatorsCertificate(t *testing.T) {
	pod, err := BuildPod(clusterWithTLS("peers", "servers", "operators"), MemberPod{Name: "c-a", Version: "3.6.16", Seed: true}, CertForms{}, operatorImage)
	if err != nil {
		t.Fatal(err)
	}
	optional := map[string]bool{}
	for _, v := range pod.Spec.Volumes {
		if v.Secret != nil {
			optional[v.Secret.SecretName] = v.Secret.Optional != nil && *v.Secret.Optional
		}
	}
	if want := (map[string]bool{"peers": false, "servers": false, "operators": true}); !maps.Equal(optional, want) {
		t.Errorf("the pod starts without Secrets: %v, want %v", optional, want)
	}
}
