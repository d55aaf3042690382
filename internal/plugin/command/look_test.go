// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/version"
	fakediscovery "k8s.io/client-go/discovery/fake"
	k8stesting "k8s.io/client-go/testing"
	"k8s.io/utils/ptr"

	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/etcd/etcdtest"
)

func secretOf(name string, ca *etcdtest.CA, prefix string, until time.Time) *corev1.Secret {
	cert, key := ca.Issue(etcdtest.Leaf{Name: name, DNS: []string{"*.orders.default.svc"}, From: now.AddDate(-1, 0, 0), To: until})
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default", UID: "s", ResourceVersion: "1"},
		Data:       map[string][]byte{prefix + ".crt": cert, prefix + ".key": key, prefix + "-ca.crt": ca.PEM},
	}
}

// serverConfig is that of a member which asks clients for certificates.
func serverConfig(t *testing.T, ca *etcdtest.CA, until time.Time) *tls.Config {
	t.Helper()
	cert, key := ca.Issue(etcdtest.Leaf{DNS: []string{"*.orders.default.svc"}, From: now.AddDate(-1, 0, 0), To: until})
	pair, err := tls.X509KeyPair(cert, key)
	if err != nil {
		t.Fatal(err)
	}
	clients := x509.NewCertPool()
	clients.AppendCertsFromPEM(ca.PEM)
	return &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{pair}, ClientCAs: clients, ClientAuth: tls.RequireAndVerifyClientCert}
}

func withTLS(c *api.EtcdCluster) {
	c.Spec.TLS = &api.TLSPolicy{Static: &api.StaticTLS{Member: &api.MemberSecret{ServerSecret: "server"}, OperatorSecret: "client"}}
}

func TestCertificatesAreListed(t *testing.T) {
	ca := etcdtest.NewCAUntil(t, "the CA", now.AddDate(5, 0, 0))
	w := newWorld(t, secretOf("server", ca, "server", now.AddDate(0, 0, 12)), secretOf("client", ca, "etcd-client", now.AddDate(0, 0, -1)))
	w.update(withTLS)
	code, out, errOut := w.run("certs", "orders")
	if code != 0 {
		t.Errorf("exit code %d: %s", code, errOut)
	}
	contains(t, out, "server     server   2026-12-04T12:00:00Z   12 d !      the certificate   *.orders.default.svc", "operator   client   2026-11-21T12:00:00Z   EXPIRED !")
	if strings.Contains(out, "PRIVATE") {
		t.Errorf("it shows a key: %s", out)
	}
}

func TestCertificatesThatAreMissing(t *testing.T) {
	w := newWorld(t)
	if _, out, _ := w.run("certs", "orders"); out != "EtcdCluster orders uses no TLS.\n" {
		t.Errorf("printed %q", out)
	}
	w.update(withTLS)
	_, out, _ := w.run("certs", "orders")
	contains(t, out, `secrets "server" not found`, `secrets "client" not found`)
	_, out, _ = w.run("status", "orders")
	contains(t, out, "the members were not asked (read Secret client")
}

func TestStatusOverTLS(t *testing.T) {
	ca := etcdtest.NewCAUntil(t, "the CA", now.AddDate(50, 0, 0))
	far := now.AddDate(40, 0, 0)
	w := newWorld(t, nightly(), secretOf("server", ca, "server", far), secretOf("client", ca, "etcd-client", far))
	w.update(withTLS)
	for _, name := range names {
		config := serverConfig(t, ca, far)
		old := w.members[name]
		m := (&etcdtest.Member{Agreed: old.Agreed, Remembered: old.Remembered, Status: old.Status, TLS: config}).Start(t)
		w.members[name] = m
		w.ports[name+":2379"] = m.IP + ":" + m.Port
	}
	code, out, errOut := w.run("status", "orders")
	if code != 0 {
		t.Errorf("exit code %d: %s", code, errOut)
	}
	contains(t, out, "SERVING   3 of 3 voters healthy", "Certs      server 14")
}

func TestTopCountsWhatHappensInBetween(t *testing.T) {
	w := newWorld(t)
	w.tick()
	var scrapes atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(out http.ResponseWriter, _ *http.Request) {
		n := scrapes.Add(1)
		fmt.Fprintf(out, "process_cpu_seconds_total %d\netcd_server_proposals_applied_total %d\ngrpc_server_handled_total{a=\"b\"} %d\n", 100+n, 1000+n*20, 5000+n*60)
		fmt.Fprintf(out, "process_resident_memory_bytes 1.048576e+08\netcd_debugging_mvcc_keys_total 7\n")
	}))
	t.Cleanup(server.Close)
	w.ports["orders-a:2381"] = strings.TrimPrefix(server.URL, "http://")
	code, out, errOut := w.run("top", "orders", "--interval", "2s")
	if code != 0 {
		t.Errorf("exit code %d: %s", code, errOut)
	}
	contains(t, out, "orders-a   leader     500m   100.0Mi   30      10         0         0          7      -           -")
}

func TestLogsOfAllMembers(t *testing.T) {
	w := newWorld(t)
	code, out, errOut := w.run("logs", "orders") // the fake client logs the same of all
	if code != 0 || out != "orders-a  fake logs\norders-b  fake logs\norders-c  fake logs\n" {
		t.Errorf("exit code %d: %s%s", code, out, errOut)
	}
	asked := 0
	w.kube.PrependReactor("get", "pods", func(a k8stesting.Action) (bool, runtime.Object, error) {
		if a.GetSubresource() == "log" {
			asked++
		}
		return asked == 2, nil, errors.New("its node is gone")
	})
	code, out, errOut = w.run("logs", "orders")
	if code != 1 || out != "orders-a  fake logs\norders-c  fake logs\n" || !strings.Contains(errOut, "orders-b: ") || !strings.Contains(errOut, "its node is gone") {
		t.Errorf("exit code %d: %s%s", code, out, errOut)
	}
	if code, _, errOut := w.run("logs", "orders", "--member", "orders-x"); code != 1 || !strings.Contains(errOut, "no such pods") {
		t.Errorf("exit code %d: %s", code, errOut)
	}
}

// install makes the world one in which the operators run and the user may do all but what
// is denied.
func (w *world) install(denied ...string) {
	discovery, _ := w.kube.Discovery().(*fakediscovery.FakeDiscovery)
	discovery.FakedServerVersion = &version.Info{Major: "1", Minor: "36", GitVersion: "v1.36.3"}
	w.kube.Resources = []*metav1.APIResourceList{{GroupVersion: "etcd.database.coreos.com/v1beta2", APIResources: []metav1.APIResource{
		{Name: "etcdclusters", Kind: "EtcdCluster"}, {Name: "etcdbackups", Kind: "EtcdBackup"}, {Name: "etcdrestores", Kind: "EtcdRestore"},
	}}}
	allowed := func(a *authorizationv1.ResourceAttributes) bool {
		for _, d := range denied {
			if d == strings.TrimSuffix(a.Verb+" "+a.Resource+"/"+a.Subresource, "/") {
				return false
			}
		}
		return true
	}
	w.kube.PrependReactor("create", "selfsubjectaccessreviews", func(a k8stesting.Action) (bool, runtime.Object, error) {
		review, _ := a.(k8stesting.CreateAction).GetObject().(*authorizationv1.SelfSubjectAccessReview)
		review.Status.Allowed = allowed(review.Spec.ResourceAttributes)
		return true, review, nil
	})
	w.kube.PrependReactor("create", "subjectaccessreviews", func(a k8stesting.Action) (bool, runtime.Object, error) {
		review, _ := a.(k8stesting.CreateAction).GetObject().(*authorizationv1.SubjectAccessReview)
		review.Status.Allowed = allowed(review.Spec.ResourceAttributes)
		return true, review, nil
	})
	for _, program := range []string{"etcd-operator", "etcd-backup-operator", "etcd-restore-operator"} {
		w.create(&coordinationv1.Lease{
			ObjectMeta: metav1.ObjectMeta{Name: program, Namespace: "default"},
			Spec: coordinationv1.LeaseSpec{
				HolderIdentity: ptr.To(program + "-1"), LeaseDurationSeconds: ptr.To[int32](15), RenewTime: &metav1.MicroTime{Time: now.Add(-2 * time.Second)},
			},
		}, &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: program + "-1", Namespace: "default"},
			Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: program, Image: "etcd-operator:v1"}}},
			Status:     corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{{Name: program}}},
		})
	}
	w.create(&corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "orders", Namespace: "default"}})
}

func (w *world) create(objects ...runtime.Object) {
	w.t.Helper()
	for _, o := range objects {
		if err := w.kube.Tracker().Add(o); err != nil {
			w.t.Fatal(err)
		}
	}
}

func TestDoctorOfAnInstallationThatIsWell(t *testing.T) {
	w := newWorld(t, nightly())
	w.install()
	code, out, errOut := w.run("doctor", "orders")
	if code != 0 {
		t.Errorf("exit code %d: %s%s", code, out, errOut)
	}
	contains(t, out, "ok    Kubernetes: version v1.36.3", "ok    API: EtcdCluster is registered", "ok    your rights: you may use all commands",
		"ok    etcd-operator: pod default/etcd-operator-1 leads", "ok    etcd-operator rights", "ok    manager: default/etcd-operator-1 manages orders", "ok    quorum: 3 of 3 voters", "ok    Services: the Service orders exists")
}

// A command that fails for lack of a right must not follow "you may use all commands".
func TestDoctorReportsEachRightOfTheCommands(t *testing.T) {
	for _, right := range []string{
		"list etcdclusters", "get pods", "list etcdbackups", "get etcdbackups", "get etcdrestores", "delete etcdrestores",
		"list persistentvolumeclaims", "get persistentvolumeclaims", "delete persistentvolumeclaims",
	} {
		w := newWorld(t, nightly())
		w.install(right)
		_, out, _ := w.run("doctor", "orders")
		if !strings.Contains(out, "your rights: you may not "+right) || strings.Contains(out, "you may use all commands") {
			t.Errorf("without the right to %s:\n%s", right, out)
		}
	}
}

// Without a network, each request takes half a minute to fail.
func TestDoctorAsksNoAPIServerThatDoesNotAnswer(t *testing.T) {
	w := newWorld(t)
	w.install()
	w.kube.PrependReactor("get", "version", func(k8stesting.Action) (bool, runtime.Object, error) {
		return true, nil, errors.New("dial tcp 10.0.0.1:6443: i/o timeout")
	})
	code, out, errOut := w.run("doctor", "orders")
	if code != 1 || strings.Count(out, "\n") != 2 || errOut != "" {
		t.Errorf("exit code %d: %s%s", code, out, errOut)
	}
	contains(t, out, "FAIL  Kubernetes: the API server does not answer: dial tcp 10.0.0.1:6443: i/o timeout")
	if asked := len(w.kube.Actions()) + len(w.etcd.Actions()); asked != 1 {
		t.Errorf("it has sent %d requests", asked)
	}
}

func TestDoctorKeepsItsFindingsIfTheClusterCannotBeRead(t *testing.T) {
	w := newWorld(t)
	w.install("list pods")
	w.kube.PrependReactor("list", "pods", func(k8stesting.Action) (bool, runtime.Object, error) {
		return true, nil, apierrors.NewForbidden(corev1.Resource("pods"), "", errors.New("no role"))
	})
	code, out, _ := w.run("doctor", "orders")
	if code != 1 {
		t.Errorf("exit code %d", code)
	}
	contains(t, out, "FAIL  your rights: you may not list pods", "FAIL  cluster: the EtcdCluster orders cannot be examined: pods is forbidden: no role")
}

func TestDoctorFinds(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*world)
		code   int
		want   string
	}{
		"nothing is installed": {func(w *world) { w.kube.Resources = nil }, 1, "FAIL  API: EtcdCluster is not registered"},
		"a right is missing":   {func(w *world) { w.install("create pods/portforward") }, 0, "WARN  your rights: you may not create pods/portforward"},
		"the operator's right is missing": {func(w *world) { w.install("create services") }, 1,
			"FAIL  etcd-operator rights: the service account default/default may not create services\n      fix: grant them: example/rbac/create_role.sh"},
		"the right of an operator with its own service account is missing": {func(w *world) {
			w.install("create services")
			pod, _ := w.kube.Tracker().Get(corev1.SchemeGroupVersion.WithResource("pods"), "default", "etcd-operator-1")
			pod.(*corev1.Pod).Spec.ServiceAccountName = "etcd-operator"
			_ = w.kube.Tracker().Update(corev1.SchemeGroupVersion.WithResource("pods"), pod, "default")
		}, 1, "the service account default/etcd-operator may not create services\n      fix: apply the roles of the release that runs again"},
		"no operator": {func(w *world) {
			w.install()
			_ = w.kube.Tracker().Delete(coordinationv1.SchemeGroupVersion.WithResource("leases"), "default", "etcd-operator")
		}, 1, "FAIL  etcd-operator: no instance has ever led"},
		"the Lease of an operator that is gone": {func(w *world) {
			w.install()
			w.create(&coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: "etcd-operator-cluster-wide", Namespace: "default"}})
		}, 0, "WARN  etcd-operator: no instance leads (for all namespaces"},
		"the cluster is of the operators of all namespaces": {func(w *world) {
			w.install()
			w.update(func(c *api.EtcdCluster) { c.Annotations = map[string]string{api.ScopeAnnotation: api.ScopeClusterWide} })
		}, 1, "FAIL  manager: no operator manages orders: it has the annotation etcd.database.coreos.com/scope"},
		"the scope of the cluster is unknown": {func(w *world) {
			w.install()
			w.update(func(c *api.EtcdCluster) { c.Annotations = map[string]string{api.ScopeAnnotation: "mine"} })
		}, 1, `FAIL  manager: no operator manages orders: its annotation etcd.database.coreos.com/scope has the value "mine"`},
		"only an operator of all namespaces leads": {func(w *world) {
			w.install()
			w.onlyWideLeads()
		}, 1, "FAIL  manager: no operator manages orders: it lacks the annotation etcd.database.coreos.com/scope"},
		"a Service is missing": {func(w *world) {
			w.install()
			_ = w.kube.Tracker().Delete(corev1.SchemeGroupVersion.WithResource("services"), "default", "orders")
		}, 1, "FAIL  Services: the Service orders does not exist"},
		"Kubernetes is old": {func(w *world) {
			w.install()
			discovery, _ := w.kube.Discovery().(*fakediscovery.FakeDiscovery)
			discovery.FakedServerVersion.Minor = "32"
		}, 0, "WARN  Kubernetes"},
		"no quorum": {func(w *world) {
			w.install()
			w.silence("orders-b")
			w.silence("orders-c")
			w.members["orders-a"].NoQuorum = errors.New("no quorum")
		}, 1, "FAIL  quorum: "},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, nightly())
			test.change(w)
			code, out, errOut := w.run("doctor", "orders")
			if code != test.code {
				t.Errorf("exit code %d, want %d: %s", code, test.code, errOut)
			}
			contains(t, out, test.want, "fix: ")
		})
	}
}

// onlyWideLeads moves the Lease of the etcd operator to one with -cluster-wide. The old Lease stays.
func (w *world) onlyWideLeads() {
	w.t.Helper()
	leases := w.kube.CoordinationV1().Leases("default")
	lease, err := leases.Get(w.t.Context(), "etcd-operator", metav1.GetOptions{})
	if err != nil {
		w.t.Fatal(err)
	}
	wide := lease.DeepCopy()
	wide.Name += "-cluster-wide"
	w.create(wide)
	lease.Spec.RenewTime = &metav1.MicroTime{Time: now.Add(-24 * time.Hour)}
	if _, err := leases.Update(w.t.Context(), lease, metav1.UpdateOptions{}); err != nil {
		w.t.Fatal(err)
	}
}

// A user of one namespace may not read the Lease of the operators of all namespaces.
func TestDoctorDoesNotGuessTheManager(t *testing.T) {
	w := newWorld(t, nightly())
	w.install()
	w.update(func(c *api.EtcdCluster) { c.Annotations = map[string]string{api.ScopeAnnotation: api.ScopeClusterWide} })
	w.kube.PrependReactor("get", "leases", func(a k8stesting.Action) (bool, runtime.Object, error) {
		name := a.(k8stesting.GetAction).GetName()
		return strings.HasSuffix(name, "-cluster-wide"), nil, apierrors.NewForbidden(coordinationv1.Resource("leases"), name, nil)
	})
	code, out, _ := w.run("doctor", "orders")
	if code != 0 {
		t.Errorf("exit code %d", code)
	}
	contains(t, out, "?     manager: you may not look")
}

// planted returns secrets that are easy to find, one for each place.
func planted(n int) string { return fmt.Sprintf("s3cret%02dx", n) }

// worldWithSecrets makes a world with a secret in each place where people leave one.
func worldWithSecrets(t *testing.T) (w *world, secrets int) {
	t.Helper()
	next := func() string { secrets++; return planted(secrets) }
	meta := func(name string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Name: name, Namespace: "default", Labels: map[string]string{"app": "etcd", "etcd_cluster": "orders"}, Annotations: map[string]string{"note": next()}}
	}
	pem := func() string { return "-----BEGIN PRIVATE KEY-----\n" + next() + "\n-----END PRIVATE KEY-----" }
	backup := nightly()
	backup.Annotations = map[string]string{"note": next()}
	backup.Spec.S3.Endpoint = "https://user:" + next() + "@store"
	backup.Status.Reason = "put https://user:" + next() + "@store: refused"
	restore := &api.EtcdRestore{ObjectMeta: meta("orders"), Status: api.RestoreStatus{Phase: api.RestorePhaseRetrying, Reason: "aws_secret_access_key=" + next()}}
	w = newWorld(t, backup, restore,
		&corev1.Secret{ObjectMeta: meta("aws"), Data: map[string][]byte{"credentials": []byte(next())}},
		&corev1.Event{ObjectMeta: meta("e"), InvolvedObject: corev1.ObjectReference{Kind: "Pod", Name: "orders-a"}, Message: "password=" + next()},
		&corev1.Event{ObjectMeta: meta("f"), InvolvedObject: corev1.ObjectReference{Kind: "Pod", Name: "orders-a"}, Message: pem()},
		&corev1.Service{ObjectMeta: meta("orders-client")},
		&corev1.PersistentVolumeClaim{ObjectMeta: meta("orders-a")},
	)
	w.install()
	pod := w.pod("orders-a", "n1")
	pod.Annotations = map[string]string{"note": next()}
	pod.Spec.Containers[0].Args = []string{"--auth-token=" + next()}
	pod.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "PGPASSWORD", Value: next()}, {Name: "ETCD_AUTH_TOKEN", Value: next()}}
	pod.Status.ContainerStatuses[0].LastTerminationState.Terminated = &corev1.ContainerStateTerminated{Message: "Authorization: Bearer " + next() + "abc"}
	if _, err := w.kube.CoreV1().Pods("default").Update(t.Context(), pod, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	w.update(func(c *api.EtcdCluster) {
		c.Annotations = map[string]string{"kubectl.kubernetes.io/last-applied-configuration": next()}
		c.Spec.Pod = &api.PodPolicy{
			EtcdEnv:     []corev1.EnvVar{{Name: "OTHER", Value: next()}, {Name: "ETCD_ROOT_PASSWORD", Value: next()}},
			Annotations: map[string]string{"a": next()},
		}
		c.Status.Reason = "Bearer " + next() + next()
		c.Status.Conditions = append(c.Status.Conditions, api.ClusterCondition{Type: api.ClusterConditionRecovering, Status: corev1.ConditionTrue, Message: `put key:"` + next() + `"`})
		c.Status.MemberStatuses = []api.MemberStatus{{Name: "orders-a", ID: "1", Problem: "eyJhbGciOiJIUzI1NiJ9." + next() + ".signature"}}
	})
	return w, secrets
}

func TestAReportHoldsNoSecret(t *testing.T) {
	w, secrets := worldWithSecrets(t)
	if secrets < 20 {
		t.Fatalf("%d secrets are planted", secrets)
	}
	file := filepath.Join(t.TempDir(), "report.tar.gz")
	code, out, errOut := w.run("report", "orders", "-f", file)
	if code != 0 {
		t.Fatalf("exit code %d: %s", code, errOut)
	}
	contains(t, out, file, "Read the archive")
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	files := unpack(t, content)
	for name, text := range files {
		for i := range secrets {
			if strings.Contains(text, planted(i+1)) {
				t.Errorf("%s holds secret %d:\n%s", name, i+1, text)
			}
		}
	}
	for _, name := range []string{"status.txt", "status.json", "doctor.txt", "etcdcluster.yaml", "etcdbackups.yaml", "etcdrestores.yaml", "pods.yaml", "services.yaml",
		"volumes.yaml", "events.yaml", "nodes.yaml", "members/orders-a-etcd.log", "operators/etcd-operator-1.yaml", "operators/etcd-operator-1-etcd-operator.log"} {
		if files["etcd-report-orders-20261122-120000/"+name] == "" {
			t.Errorf("%s is missing or empty", name)
		}
	}
	for _, action := range w.kube.Actions() {
		if action.GetResource().Resource == "secrets" {
			t.Errorf("a Secret was read: %v", action)
		}
	}
	if code, _, errOut := w.run("report", "orders", "-f", file); code != 1 || !strings.Contains(errOut, "exists") {
		t.Errorf("it wrote over a file: exit code %d: %s", code, errOut)
	}
}

// A Lease outlives the operator that held it. The report said that it lacks a part.
func TestAReportSaysThatAnOperatorIsGone(t *testing.T) {
	w := newWorld(t, nightly())
	w.install()
	if err := w.kube.Tracker().Delete(corev1.SchemeGroupVersion.WithResource("pods"), "default", "etcd-operator-1"); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "report.tar.gz")
	if code, _, errOut := w.run("report", "orders", "-f", file); code != 0 {
		t.Fatalf("exit code %d: %s", code, errOut)
	}
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	files := unpack(t, content)
	contains(t, files["etcd-report-orders-20261122-120000/operators/etcd-operator-1.gone"], "The pod does not exist")
	for name, text := range files {
		if strings.HasSuffix(name, ".error") && strings.Contains(name, "operators/") {
			t.Errorf("%s: %s", name, text)
		}
	}
}

func unpack(t *testing.T, content []byte) map[string]string {
	t.Helper()
	compressed, err := gzip.NewReader(bytes.NewReader(content))
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{}
	for archive := tar.NewReader(compressed); ; {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return files
		}
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(archive)
		if err != nil {
			t.Fatal(err)
		}
		files[header.Name] = string(text)
	}
}

func TestNamesAreCompleted(t *testing.T) {
	w := newWorld(t, nightly())
	for line, want := range map[string]string{
		"status ":               "orders",
		"replace ":              "orders-b",
		"move-leader orders ":   "orders-c",
		"ctl orders --member ":  "orders-a",
		"backup orders --from ": "nightly",
		"status orders -o ":     "yaml",
		"upgrade orders --to ":  "3.7.3",
	} {
		args := append([]string{"__complete"}, strings.Split(line, " ")...)
		if _, out, errOut := w.run(args...); !strings.Contains(out, want+"\n") {
			t.Errorf("%q completes to %s%s", line, out, errOut)
		}
	}
}
