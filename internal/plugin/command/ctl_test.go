// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"fmt"
	"io"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	typedcore "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"

	"github.com/etcd-operator/etcd-operator/internal/plugin/plugintest"
	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

// streaming is a fake client whose requests for exec go to a server.
type streaming struct {
	kubernetes.Interface
	core rest.Interface
}

type streamingCore struct {
	typedcore.CoreV1Interface
	rest rest.Interface
}

func (s streaming) CoreV1() typedcore.CoreV1Interface {
	return streamingCore{s.Interface.CoreV1(), s.core}
}
func (s streamingCore) RESTClient() rest.Interface { return s.rest }

// serveExec makes commands in pods run in a function of the test.
func (w *world) serveExec(run func(pod string, command []string, stdin io.Reader, stdout, stderr io.Writer) int) {
	w.t.Helper()
	server := (&plugintest.APIServer{Exec: run}).Start(w.t)
	served, err := kubernetes.NewForConfig(server.Config())
	if err != nil {
		w.t.Fatal(err)
	}
	w.access.Config = server.Config()
	w.access.Kube = streaming{w.kube, served.CoreV1().RESTClient()}
}

func TestCtlFillsInEndpointsAndCertificates(t *testing.T) {
	w := newWorld(t)
	w.update(func(c *api.EtcdCluster) {
		c.Spec.TLS = &api.TLSPolicy{Static: &api.StaticTLS{Member: &api.MemberSecret{ServerSecret: "server"}, OperatorSecret: "client"}}
	})
	w.serveExec(func(pod string, command []string, _ io.Reader, stdout, _ io.Writer) int {
		fmt.Fprintln(stdout, pod, strings.Join(command, " "))
		return 0
	})
	code, out, errOut := w.run("ctl", "orders", "--", "get", "greeting")
	if code != 0 {
		t.Fatalf("exit code %d: %s", code, errOut)
	}
	const endpoints = "https://orders-a.orders.default.svc:2379,https://orders-b.orders.default.svc:2379,https://orders-c.orders.default.svc:2379"
	const dir = "/etc/etcdtls/operator/etcd-tls/"
	want := "orders-a etcdctl --endpoints=" + endpoints + " --cacert=" + dir + "etcd-client-ca.crt --cert=" + dir + "etcd-client.crt --key=" + dir + "etcd-client.key get greeting\n"
	if out != want {
		t.Errorf("it ran\n%swant\n%s", out, want)
	}
}

func TestCtlEndsAsEtcdctl(t *testing.T) {
	w := newWorld(t)
	w.serveExec(func(_ string, _ []string, stdin io.Reader, stdout, stderr io.Writer) int {
		_, _ = io.Copy(stdout, stdin)
		fmt.Fprintln(stderr, "Error: it failed")
		return 5
	})
	w.in.WriteString("a value")
	code, out, errOut := w.run("ctl", "orders", "-i", "--", "put", "greeting")
	if code != 5 || out != "a value" || errOut != "Error: it failed\n" {
		t.Errorf("exit code %d, output %q, errors %q", code, out, errOut)
	}
}

func TestCtlChoosesAMemberThatIsReady(t *testing.T) {
	w := newWorld(t)
	pod := w.pod("orders-a", "n1")
	pod.Status.Conditions[0].Status = corev1.ConditionFalse
	if _, err := w.kube.CoreV1().Pods("default").UpdateStatus(t.Context(), pod, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	var in []string
	w.serveExec(func(pod string, command []string, _ io.Reader, _, _ io.Writer) int {
		in = append(in, pod+" "+command[1])
		return 0
	})
	w.run("ctl", "orders", "--", "snapshot", "save", "/tmp/x")
	w.run("ctl", "orders", "--member", "orders-c", "--", "endpoint", "status")
	w.run("ctl", "orders", "--", "--endpoints=http://127.0.0.1:2379", "get", "x")
	want := []string{
		"orders-b --endpoints=http://orders-b.orders.default.svc:2379",
		"orders-c --endpoints=http://orders-c.orders.default.svc:2379",
		"orders-b --endpoints=http://127.0.0.1:2379",
	}
	if strings.Join(in, "\n") != strings.Join(want, "\n") {
		t.Errorf("it ran in %q, want %q", in, want)
	}
}

func TestCtlNeedsACommand(t *testing.T) {
	w := newWorld(t)
	for _, args := range [][]string{{"ctl", "orders"}, {"ctl", "orders", "get", "x"}, {"ctl", "--", "get"}} {
		if code, _, errOut := w.run(args...); code != 1 || !strings.Contains(errOut, "usage: kubectl etcd ctl NAME -- COMMAND") {
			t.Errorf("%q: exit code %d: %s", args, code, errOut)
		}
	}
	if code, _, errOut := w.run("ctl", "orders", "--member", "orders-x", "--", "get", "x"); code != 1 || !strings.Contains(errOut, "no member orders-x") {
		t.Errorf("exit code %d: %s", code, errOut)
	}
}
