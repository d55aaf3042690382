//go:build e2e

// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/etcd"
	"github.com/etcd-operator/etcd-operator/test/environment"
	"github.com/etcd-operator/etcd-operator/test/harness"
	"github.com/etcd-operator/etcd-operator/test/workload"
)

// A former etcd is a StatefulSet that no operator made.
type former struct {
	t    *testing.T
	n    *harness.Namespace
	name string
	size int
	pki  *pki             // nil: plain text
	user etcd.Credentials // zero: nobody logs in
	// autoTLS makes the members trust each other by certificates of their own, for which there is no CA.
	autoTLS bool
}

// secure makes a former etcd serve with certificates of the EtcdCluster's CA.
func (f *former) secure() {
	f.pki = newPKI(f.t, f.n)
	f.pki.names = append(f.pki.names, "*."+f.name+"."+f.n.Name+".svc", "*."+f.name+"."+f.n.Name+".svc.cluster.local")
	f.pki.writeAll()
}

func (f *former) scheme() string {
	if f.pki != nil {
		return "https://"
	}
	return "http://"
}

func (f *former) start(version string) {
	t, n, size := f.t, f.n, f.size
	t.Helper()
	labels := map[string]string{"former": f.name}
	var initial []string
	for i := range size {
		initial = append(initial, fmt.Sprintf("%s-%d=%s%s:2380", f.name, i, f.scheme(), f.host(i)))
	}
	_, err := n.Kube.CoreV1().Services(n.Name).Create(t.Context(), &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: f.name},
		Spec:       corev1.ServiceSpec{ClusterIP: corev1.ClusterIPNone, PublishNotReadyAddresses: true, Selector: labels},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	_, err = n.Kube.CoreV1().Services(n.Name).Create(t.Context(), &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: f.name + "-client"},
		Spec:       corev1.ServiceSpec{Selector: labels, Ports: []corev1.ServicePort{{Name: "etcd-client", Port: 2379}}},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	host := f.scheme() + fmt.Sprintf("$(NAME).%s.%s.svc", f.name, n.Name)
	command := []string{
		"/usr/local/bin/etcd", "--name=$(NAME)", "--data-dir=/var/etcd/data", "--listen-metrics-urls=http://0.0.0.0:2381",
		"--initial-advertise-peer-urls=" + host + ":2380", "--listen-peer-urls=" + f.scheme() + "0.0.0.0:2380",
		"--advertise-client-urls=" + host + ":2379", "--listen-client-urls=" + f.scheme() + "0.0.0.0:2379",
		"--initial-cluster=" + strings.Join(initial, ","), "--initial-cluster-state=new",
		"--bcrypt-cost=4", // the cheapest passwords: writers log in again and again
	}
	volumes := []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}}
	mounts := []corev1.VolumeMount{{Name: "data", MountPath: "/var/etcd"}}
	if f.pki != nil {
		command = append(command,
			"--client-cert-auth=true", "--cert-file=/tls/server/server.crt", "--key-file=/tls/server/server.key", "--trusted-ca-file=/tls/server/server-ca.crt")
		peers := []string{
			"--peer-client-cert-auth=true", "--peer-cert-file=/tls/peer/peer.crt", "--peer-key-file=/tls/peer/peer.key", "--peer-trusted-ca-file=/tls/peer/peer-ca.crt",
		}
		if f.autoTLS {
			peers = []string{"--peer-auto-tls"}
		}
		command = append(command, peers...)
		for _, use := range []string{"server", "peer"} {
			volumes = append(volumes, corev1.Volume{Name: use, VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: tlsSecrets[use].secret}}})
			mounts = append(mounts, corev1.VolumeMount{Name: use, MountPath: "/tls/" + use})
		}
	}
	_, err = n.Kube.AppsV1().StatefulSets(n.Name).Create(t.Context(), &appsv1.StatefulSet{
		ObjectMeta: metav1.ObjectMeta{Name: f.name},
		Spec: appsv1.StatefulSetSpec{
			ServiceName: f.name, Replicas: new(int32(size)), PodManagementPolicy: appsv1.ParallelPodManagement, // at most 7
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec: corev1.PodSpec{
					TerminationGracePeriodSeconds: new(int64(1)),
					Containers: []corev1.Container{{
						Name: "etcd", Image: "quay.io/coreos/etcd:v" + version,
						Env:            []corev1.EnvVar{{Name: "NAME", ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.name"}}}},
						Command:        command,
						ReadinessProbe: &corev1.Probe{ProbeHandler: corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: "/health", Port: intstr.FromInt32(2381)}}, PeriodSeconds: 1, TimeoutSeconds: 5},
						VolumeMounts:   mounts,
					}},
					Volumes: volumes,
				},
			},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	harness.Wait(t, "the former etcd serves", harness.Settle, func(context.Context) error {
		if got := len(slices.DeleteFunc(f.pods(), func(p *corev1.Pod) bool { return !harness.Ready(p) })); got != size {
			return fmt.Errorf("%d of %d pods are ready", got, size)
		}
		return nil
	})
}

func (f *former) host(i int) string {
	return fmt.Sprintf("%s-%d.%s.%s.svc", f.name, i, f.name, f.n.Name)
}

// endpoints are the client URLs as pods use them.
func (f *former) endpoints() (urls []string) {
	for i := range f.size {
		urls = append(urls, f.scheme()+f.host(i)+":2379")
	}
	return urls
}

func (f *former) pods() []*corev1.Pod {
	return slices.DeleteFunc(f.n.Pods(), func(p *corev1.Pod) bool { return p.Labels["former"] != f.name })
}

// addresses are the client URLs of the pods for this machine.
func (f *former) addresses() (urls []string) {
	for _, pod := range f.pods() {
		urls = append(urls, f.scheme()+pod.Status.PodIP+":2379")
	}
	return urls
}

// connect is client, until it succeeds: to log in takes long on a busy machine.
func (f *former) connect(endpoints []string) (client *clientv3.Client) {
	f.t.Helper()
	harness.Wait(f.t, "a client of the former etcd", harness.Settle, func(context.Context) (err error) {
		client, err = f.client(endpoints)
		return err
	})
	return client
}

// client connects to some endpoints.
func (f *former) client(endpoints []string) (*clientv3.Client, error) {
	cfg := clientv3.Config{Endpoints: endpoints, DialTimeout: 5 * time.Second, Logger: zap.NewNop(), Username: f.user.Username, Password: f.user.Password}
	if f.pki != nil {
		pair, err := tls.X509KeyPair(f.pki.data["operator"]["etcd-client.crt"], f.pki.data["operator"]["etcd-client.key"])
		if err != nil {
			return nil, err
		}
		roots := x509.NewCertPool()
		roots.AppendCertsFromPEM(f.pki.ca.PEM)
		cfg.TLS = &tls.Config{
			Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12,
			InsecureSkipVerify: true, // it is verified below: the addresses are not in the certificates
			VerifyConnection: func(state tls.ConnectionState) error {
				_, err := state.PeerCertificates[0].Verify(x509.VerifyOptions{Roots: roots, DNSName: f.host(0)})
				return err
			},
		}
	}
	return clientv3.New(cfg)
}

// leased returns a client, after it has put a key that a lease keeps for an hour.
func (f *former) leased(ctx context.Context) *clientv3.Client {
	f.t.Helper()
	client := f.connect(f.addresses())
	lease, err := client.Grant(ctx, 3600)
	if err == nil {
		_, err = client.Put(ctx, "leased", "yes", clientv3.WithLease(lease.ID))
	}
	if err != nil {
		_ = client.Close()
		f.t.Fatal(err)
	}
	return client
}

// members are the lines of etcd's list of members.
func (f *former) members() (lines []string) {
	f.t.Helper()
	client := f.connect(f.addresses())
	defer client.Close()
	ctx, cancel := context.WithTimeout(f.t.Context(), harness.Settle)
	defer cancel()
	list, err := client.MemberList(ctx)
	if err != nil {
		f.t.Fatal(err)
	}
	for _, m := range list.Members { // each publishes its client URLs in its own time
		lines = append(lines, fmt.Sprintf("%016x %s %s", m.ID, m.Name, m.PeerURLs))
	}
	slices.Sort(lines)
	return lines
}

// importing is an EtcdCluster that takes over the former etcd.
func (f *former) importing(size int, version string) *v1beta2.EtcdCluster {
	obj := &v1beta2.EtcdCluster{ObjectMeta: metav1.ObjectMeta{Name: "etcd"}, Spec: v1beta2.ClusterSpec{Size: size, Version: version}}
	if f.pki != nil {
		obj = f.pki.cluster(size, version, nil)
	}
	if f.user.Username != "" {
		obj.Spec.Auth = &v1beta2.AuthPolicy{CredentialsSecret: "user"}
	}
	obj.Spec.ImportFrom = &v1beta2.ImportSource{Endpoints: f.endpoints()}
	obj.Spec.Service = &v1beta2.ServicePolicy{Bridges: []v1beta2.ServiceBridge{{Name: f.name + "-client"}, {Name: f.name}}}
	for i := range f.size {
		obj.Spec.Service.Bridges[1].Hostnames = append(obj.Spec.Service.Bridges[1].Hostnames, fmt.Sprint(f.name, "-", i))
	}
	return obj
}

// service is the URL of the Service that clients of the former etcd know.
func (f *former) service() string {
	return f.scheme() + f.n.Service(f.name+"-client").Spec.ClusterIP + ":2379"
}

// checkBridged waits until the Services of the former etcd lead to members of the EtcdCluster, or
// no longer do.
func (f *former) checkBridged(cluster *harness.Cluster, want bool) {
	f.t.Helper()
	var services []string
	if want {
		services = []string{f.name, f.name + "-client"}
	}
	harness.Wait(f.t, fmt.Sprintf("bridges of %q", services), harness.Settle, func(ctx context.Context) error {
		list, err := f.n.Kube.DiscoveryV1().EndpointSlices(f.n.Name).List(ctx, metav1.ListOptions{LabelSelector: v1beta2.ClusterLabel + "=" + cluster.Name + ",endpointslice.kubernetes.io/managed-by=operator.etcd.database.coreos.com"})
		if err != nil {
			return err
		}
		var found []string
		for _, s := range list.Items {
			found = append(found, s.Labels["kubernetes.io/service-name"])
		}
		slices.Sort(found)
		if found = slices.Compact(found); !slices.Equal(found, services) {
			return fmt.Errorf("there are slices of %q", found)
		}
		return nil
	})
}

// checkNames waits until the host names of the former members lead to those of the EtcdCluster.
func (f *former) checkNames() {
	f.t.Helper()
	resolver, err := f.n.Resolver()
	if err != nil {
		f.t.Fatal(err)
	}
	own := map[string]bool{}
	for _, pod := range f.n.Pods() {
		if pod.Labels[v1beta2.ClusterLabel] != "" {
			own[pod.Status.PodIP] = true
		}
	}
	for i := range f.size {
		harness.Wait(f.t, "the name "+f.host(i), harness.Settle, func(ctx context.Context) error {
			addresses, err := resolver.LookupHost(ctx, f.host(i)+".cluster.local.")
			if err != nil {
				return err
			}
			if slices.ContainsFunc(addresses, func(ip string) bool { return !own[ip] }) {
				return fmt.Errorf("it leads to %q, and members are at %v", addresses, own)
			}
			return nil
		})
	}
}

// askForUsers makes the former etcd ask its clients for a user.
func (f *former) askForUsers(ctx context.Context, client *clientv3.Client) {
	f.t.Helper()
	f.user = etcd.Credentials{Username: "root", Password: "a-password-that-nobody-tells"}
	f.n.SetSecret("user", map[string][]byte{"username": []byte(f.user.Username), "password": []byte(f.user.Password)})
	_, err := client.UserAdd(ctx, f.user.Username, f.user.Password)
	if err == nil {
		_, err = client.UserGrantRole(ctx, f.user.Username, "root")
	}
	if err == nil {
		_, err = client.AuthEnable(ctx)
	}
	if err != nil {
		f.t.Fatal(err)
	}
}

// fill puts as many MiB into the former etcd as IMPORT_MIB says, in values of 16 KiB. Default: none.
func (f *former) fill(ctx context.Context, client *clientv3.Client) {
	f.t.Helper()
	value := make([]byte, 16<<10)
	for i := range largeImport(f.t) {
		var puts []clientv3.Op
		for j := range 64 {
			_, _ = rand.Read(value)
			puts = append(puts, clientv3.OpPut(fmt.Sprintf("filling/%05d/%02d", i, j), string(value)))
		}
		if _, err := client.Txn(ctx).Then(puts...).Commit(); err != nil {
			f.t.Fatal(err)
		}
	}
}

// importTime bounds each stage of an import: each MiB of IMPORT_MIB is read ten times.
func importTime(t *testing.T) time.Duration {
	t.Helper()
	return harness.Settle + time.Duration(largeImport(t))*time.Second/2
}

// largeImport is the number in IMPORT_MIB. Default: 0.
func largeImport(t *testing.T) uint64 {
	t.Helper()
	return environment.Number(t, "IMPORT_MIB", 0)
}

// waitImport waits for one of the phases of an import.
func waitImport(t *testing.T, cluster *harness.Cluster, phases ...v1beta2.ImportPhase) {
	t.Helper()
	harness.Wait(t, fmt.Sprintf("an import that is %v", phases), importTime(t), func(context.Context) error {
		status := cluster.Status()
		if st := status.Import; st == nil || !slices.Contains(phases, st.Phase) {
			return fmt.Errorf("the import is %+v: %s", st, status.Reason)
		}
		return nil
	})
}

// Clients write all the time, and the operator is killed again and again. First the import is
// taken back, then it goes to its end. The watch of a client misses nothing, and leases stay.
func TestAnEtcdIsImportedWhileItServes(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name         string
		former, size int
		version      string
		secured      bool
	}{
		{"three to one, with TLS and a user", 3, 1, etcd36, true},
		{"one to three", 1, 3, etcd35, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			n := harness.New(t)
			f := &former{t: t, n: n, name: "old", size: c.former}
			if c.secured {
				f.secure()
			}
			f.start(c.version)
			ctx, cancel := context.WithTimeout(t.Context(), harness.Settle)
			defer cancel()
			client := f.leased(ctx)
			defer client.Close()
			if c.secured {
				f.fill(ctx, client)
				f.askForUsers(ctx, client)
			}
			before := f.members()
			var endpoints atomic.Pointer[[]string]
			endpoints.Store(new(f.addresses()))
			writer := workload.Start(t.Context(), workload.Config{
				Prefix: "writer/", Pace: 150 * time.Millisecond,
				Dial: func(context.Context) (workload.Conn, error) { return f.client(*endpoints.Load()) },
			})
			t.Cleanup(func() { writer.Stop() })
			// Some clients learn nothing: they know a Service of the former etcd.
			service := f.service()
			follower := workload.Start(t.Context(), workload.Config{
				Prefix: "follower/", Pace: 150 * time.Millisecond,
				Dial: func(context.Context) (workload.Conn, error) { return f.client([]string{service}) },
			})
			t.Cleanup(func() { follower.Stop() })

			cluster := n.CreateObject(f.importing(c.size, c.version))
			waitImport(t, cluster, v1beta2.ImportJoined)
			if st := cluster.Status(); len(st.Import.Members) != c.former || st.Reason == "" {
				t.Errorf("the status is %+v", st)
			}
			if got, want := len(f.members()), c.former+min(c.size, c.former); got != want {
				t.Errorf("%d members, want %d", got, want)
			}
			f.checkBridged(cluster, c.former > 1)
			cluster.Delete()
			cluster.WaitGone(harness.Settle)
			f.checkBridged(cluster, false)
			if after := f.members(); !slices.Equal(after, before) {
				t.Errorf("taken back, the members are\n%s\nand were\n%s", strings.Join(after, "\n"), strings.Join(before, "\n"))
			}

			cluster = n.CreateObject(f.importing(c.size, c.version))
			waitImport(t, cluster, v1beta2.ImportJoining, v1beta2.ImportJoined)
			n.ReplaceOperator()
			waitImport(t, cluster, v1beta2.ImportJoined)
			n.CrashOperator()
			// Clients learn the Service. It leads to the members that vote.
			own := n.Service(cluster.Name + "-client")
			endpoints.Store(new(append(f.addresses(), f.scheme()+own.Spec.ClusterIP+":2379")))
			cluster.Update(func(spec *v1beta2.ClusterSpec) { spec.ImportFrom.Commit = true })
			waitImport(t, cluster, v1beta2.ImportMoving, v1beta2.ImportCompleted)
			n.ReplaceOperator()
			waitImport(t, cluster, v1beta2.ImportCompleted)
			cluster.WaitSettled()
			err := n.Kube.AppsV1().StatefulSets(n.Name).Delete(t.Context(), f.name, metav1.DeleteOptions{})
			if err != nil && !apierrors.IsNotFound(err) {
				t.Fatal(err)
			}
			cluster.Put("after", "the import")
			history := cluster.VerifyWrites(writer)
			for _, gap := range history.Gaps(time.Second) {
				t.Logf("clients of the former pods waited %s at %s", gap.Took, gap.From.Format(time.StampMilli))
			}
			if len(history.Acks) == 0 {
				t.Error("no write was acknowledged")
			}
			if got := cluster.Get("leased"); got != "yes" {
				t.Errorf("the key with a lease is %q", got)
			}
			obj := cluster.Object()
			if len(obj.Finalizers) != 0 {
				t.Errorf("finalizers are left: %v", obj.Finalizers)
			}
			cluster.Update(func(spec *v1beta2.ClusterSpec) { spec.ImportFrom = nil })
			cluster.WaitSettled()
			// The bridge outlasts the former pods, and the import.
			f.checkBridged(cluster, true)
			f.checkNames()
			if history := cluster.VerifyWrites(follower); len(history.Acks) == 0 {
				t.Error("no write through the former Service was acknowledged")
			}
			last := f.connect([]string{service})
			defer last.Close()
			harness.Wait(t, "a write through the former Service", harness.Settle, func(ctx context.Context) error {
				_, err := last.Put(ctx, "after", "the former pods")
				return err
			})
			if c.secured {
				n.CheckNoSecretIsTold()
			}
		})
	}
}
