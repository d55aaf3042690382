// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/etcd-operator/etcd-operator/hack/localkube/instance"
	"github.com/etcd-operator/etcd-operator/hack/localkube/pki"
)

var rewrite = flag.Bool("rewrite", false, "rewrite the golden files")

// example is a small cluster whose output is in testdata.
func example(t *testing.T) instance.Config {
	t.Helper()
	i, err := instance.FromEnv(func(key string) string {
		return map[string]string{"LOCALKUBE_NAME": "golden", "LOCALKUBE_NETWORK": "10.7.0.0/16", "LOCALKUBE_STATE": "/state"}[key]
	})
	if err != nil {
		t.Fatal(err)
	}
	return instance.Config{Instance: i, Nodes: 3, NodeMonitorGracePeriod: 20 * time.Second, PodTolerationSeconds: 300, DNS: FastDNS}
}

func TestOutputMatchesTheGoldenFiles(t *testing.T) {
	c := example(t)
	lines := func(args []string) string { return strings.Join(args, "\n") + "\n" }
	outputs := map[string]string{
		"etcd.args":                   lines(Etcd(c)),
		"kube-apiserver.args":         lines(APIServer(c)),
		"audit-policy.yaml":           Audit(),
		"controller-manager.args":     lines(ControllerManager(c)),
		"scheduler.args":              lines(Scheduler(c)),
		"kubelet.args":                lines(Kubelet(c, 2)),
		"local-path-provisioner.args": lines(LocalPathProvisioner(c)),
		"Corefile":                    Corefile(c),
		"containerd.toml":             Containerd(c, "node2"),
		"cni.json":                    CNI(c, 2),
		"hosts.toml":                  Registries(),
		"kubelet.yaml":                KubeletConfig(c, 2),
		"kube-proxy.yaml":             KubeProxy(c, "node2", "/state/kubeconfigs/proxy"),
		"resolv.conf":                 ResolvConf(c),
		"addons.yaml":                 Addons(),
		"kubeconfig":                  Kubeconfig(c.Name, c.APIServer(), []byte("CA"), pki.Pair{Cert: []byte("CERT"), Key: []byte("KEY")}),
	}
	for name := range DNS {
		if name != FastDNS {
			kept := c
			kept.DNS = name
			outputs["Corefile-"+name] = Corefile(kept)
		}
	}
	golden, err := os.ReadDir("testdata")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range golden {
		if _, ok := outputs[file.Name()]; !ok {
			t.Errorf("testdata/%s is compared with nothing", file.Name())
		}
	}
	for name, got := range outputs {
		file := filepath.Join("testdata", name)
		if *rewrite {
			if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
				t.Fatal(err)
			}
			continue
		}
		want, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if got != string(want) {
			t.Errorf("%s differs; look at the change and run the test with -rewrite if it is meant\ngot:\n%s\nwant:\n%s", name, got, want)
		}
	}
}

func TestFlagsThatAUserChoosesArrive(t *testing.T) {
	c := example(t)
	c.NodeMonitorGracePeriod, c.PodTolerationSeconds = 90*time.Second, 5
	all := strings.Join(append(APIServer(c), ControllerManager(c)...), "\n")
	for _, want := range []string{
		"--node-monitor-grace-period=1m30s",
		"--default-not-ready-toleration-seconds=5",
		"--default-unreachable-toleration-seconds=5",
	} {
		if !strings.Contains(all, want) {
			t.Errorf("%s is missing", want)
		}
	}
}
