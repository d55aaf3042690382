// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build smoke

// Package smoke tests hack/kube on this machine, as root: the cluster works, and nothing is
// left however it ends.
package smoke

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/etcd-operator/etcd-operator/hack/localkube/cgroup"
	"github.com/etcd-operator/etcd-operator/hack/localkube/instance"
	"github.com/etcd-operator/etcd-operator/hack/localkube/process"
)

// patience bounds each wait. It is far more than anything takes on a machine
// with nothing else to do.
const patience = 3 * time.Minute

// A cluster is an instance that only this test uses.
type cluster struct {
	*testing.T
	instance.Instance
	env []string
}

// newCluster returns a cluster that is down. Its name and its addresses differ from those of
// another run, and from any default.
func newCluster(t *testing.T) *cluster {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Fatal("run this as root: it makes namespaces, mounts and cgroups")
	}
	env := map[string]string{
		"LOCALKUBE_NAME":    "smoke-" + strconv.FormatInt(int64(os.Getpid()), 36),
		"LOCALKUBE_NETWORK": fmt.Sprintf("10.%d.0.0/16", 200+os.Getpid()%50),
		"LOCALKUBE_STATE":   "",
	}
	i, err := instance.FromEnv(func(key string) string { return env[key] })
	if err != nil {
		t.Fatal(err)
	}
	c := &cluster{T: t, Instance: i, env: append(os.Environ(), foreign(t)...)}
	for key, value := range env {
		c.env = append(c.env, key+"="+value)
	}
	t.Cleanup(func() {
		if t.Failed() {
			out, err := exec.Command("tail", "-n", "20", filepath.Join(i.State, "logs", "keeper.log")).CombinedOutput()
			t.Logf("keeper: %v %s", err, out)
		}
		// The test's context has ended by now.
		out, err := c.command(context.Background(), "down").CombinedOutput()
		if err != nil {
			t.Errorf("down: %v\n%s", err, out)
		}
	})
	return c
}

func (c *cluster) command(ctx context.Context, args ...string) *exec.Cmd {
	if args[0] == "up" && !strings.Contains(strings.Join(args, " "), "--for-pid") {
		args = append(slices.Clone(args), fmt.Sprint("--for-pid=", os.Getpid())) // a test that is killed cleans nothing up
	}
	cmd := exec.CommandContext(ctx, "../../kube", args...)
	cmd.Env = c.env
	return cmd
}

// try runs hack/kube and returns what it printed.
func (c *cluster) try(args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(c.Context(), patience)
	defer cancel()
	out, err := c.command(ctx, args...).CombinedOutput()
	return strings.TrimSpace(string(out)), err
}

// must is try for commands that succeed.
func (c *cluster) must(args ...string) string {
	c.Helper()
	began := time.Now()
	out, err := c.try(args...)
	if err != nil {
		c.Fatalf("hack/kube %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	c.Logf("hack/kube %s: %.1f s", strings.Join(args, " "), time.Since(began).Seconds())
	return out
}

// eventually fails the test with what f said last.
func (c *cluster) eventually(what string, f func() error) {
	c.Helper()
	began := time.Now()
	for {
		err := f()
		if err == nil {
			c.Logf("%s: %.1f s", what, time.Since(began).Seconds())
			return
		}
		if time.Since(began) > patience {
			c.Fatalf("%s: %v", what, err)
		}
		time.Sleep(100 * time.Millisecond)
	}
}

// nothingLeft waits until the machine has no trace of the instance.
func (c *cluster) nothingLeft() {
	c.Helper()
	c.eventually("nothing is left", func() error {
		return errors.Join(append(c.left(), c.leftFiles(c.State, c.Lock())...)...)
	})
}

// left lists what only a running instance may have.
func (c *cluster) left() []error {
	var found []error
	procs, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		return []error{err}
	}
	for _, p := range procs {
		pid, err := strconv.Atoi(filepath.Base(p))
		if err != nil {
			return []error{err}
		}
		if _, err := process.Identify(pid); err != nil {
			continue // gone, or dead and not yet collected by its new parent
		}
		group, _ := os.ReadFile(p + "/cgroup")
		args, _ := os.ReadFile(p + "/cmdline")
		if bytes.Contains(group, []byte(c.Cgroup()+"/")) || bytes.Contains(args, []byte(c.State+"/")) || bytes.Contains(args, []byte(c.State+"\x00")) {
			found = append(found, fmt.Errorf("process %s: %s", filepath.Base(p), bytes.ReplaceAll(args, []byte{0}, []byte(" "))))
		}
	}
	for _, f := range []string{"/proc/self/mountinfo", "/proc/net/route", "/proc/net/dev"} {
		b, err := os.ReadFile(f)
		if err != nil {
			return []error{err}
		}
		for line := range strings.Lines(string(b)) {
			if strings.Contains(line, c.State) || strings.Contains(line, c.HostLink()) {
				found = append(found, fmt.Errorf("%s: %s", f, strings.TrimSpace(line)))
			}
		}
	}
	return found
}

func (c *cluster) leftFiles(files ...string) []error {
	var found []error
	for _, f := range files {
		if _, err := os.Stat(f); !errors.Is(err, fs.ErrNotExist) {
			found = append(found, fmt.Errorf("file %s", f))
		}
	}
	if cgroup.Exists(c.Cgroup()) {
		found = append(found, fmt.Errorf("cgroup %s", c.Cgroup()))
	}
	return found
}

// isPreferred holds the cluster's cgroup to the weight that keeps it alive beside compilers.
func (c *cluster) isPreferred() {
	c.Helper()
	v1, errV1 := os.ReadFile(filepath.Join(cgroup.Root, "cpu", c.Cgroup(), "cpu.shares"))
	v2, errV2 := os.ReadFile(filepath.Join(cgroup.Root, c.Cgroup(), "cpu.weight"))
	if string(v1) != "2048\n" && string(v2) != "200\n" {
		c.Errorf("the weight of the cluster's cgroup is %q (%v) or %q (%v)", v1, errV1, v2, errV2)
	}
}

func (c *cluster) node(pod string) string {
	c.Helper()
	return c.must("kubectl", "get", "pod", pod, "-o", "jsonpath={.spec.nodeName}")
}

func (c *cluster) waitNode(node, ready string) {
	c.Helper()
	c.must("kubectl", "wait", "--for=condition=Ready="+ready, "node/"+node, "--timeout=120s")
}

func (c *cluster) waitPod(pod string) {
	c.Helper()
	c.must("kubectl", "wait", "--for=condition=Ready", "pod/"+pod, "--timeout=120s")
}

// etcdVersion asks etcd through its Service, from the host.
func (c *cluster) etcdVersion() error {
	ip := c.must("kubectl", "get", "service", "client", "-o", "jsonpath={.spec.clusterIP}")
	client := http.Client{Timeout: 2 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}} // without a proxy
	resp, err := client.Get("http://" + ip + ":2379/version")
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return errors.New(resp.Status)
	}
	return nil
}

func TestClusterWorksAndGoesWithoutATrace(t *testing.T) {
	c := newCluster(t)
	c.must("up", "--dns=kubeadm", "--node-monitor-grace-period=12s")
	if out := c.must("up"); !strings.Contains(out, "Already up with 3 nodes") {
		t.Errorf("a second up said: %s", out)
	}
	c.isPreferred()
	if status := c.must("status"); !strings.Contains(status, "\nDNS: kubeadm\n") {
		t.Errorf("the status lacks the kind of the DNS:\n%s", status)
	}
	c.isPreferred()

	c.must("kubectl", "apply", "-f", "testdata/pods.yaml")
	c.waitPod("etcd")
	c.waitPod("shell")
	if phase := c.must("kubectl", "get", "pvc", "data", "-o", "jsonpath={.status.phase}"); phase != "Bound" {
		t.Errorf("the volume claim is %s", phase)
	}
	if out := c.must("kubectl", "logs", "etcd"); !strings.Contains(out, "ready to serve client requests") {
		t.Errorf("etcd's log: %s", out)
	}
	c.eventually("the Service answers the host", c.etcdVersion)
	for _, name := range []string{"client", "client.default.svc", "etcd.peer.default.svc.cluster.local"} {
		c.eventually("a pod finds "+name, func() error {
			out, err := c.try("kubectl", "exec", "shell", "--", "wget", "-qO-", "http://"+name+":2379/version")
			if err != nil {
				return fmt.Errorf("%w: %s", err, out)
			}
			return nil
		})
	}
	c.must("kubectl", "exec", "etcd", "--", "etcdctl", "put", "kept", "yes")
	c.eventually("an image that is not loaded is refused, and not asked for elsewhere", func() error {
		out, err := c.try("kubectl", "get", "events", "--field-selector=involvedObject.name=unknown", "-o", "jsonpath={.items[*].message}")
		if err != nil || !strings.Contains(out, "127.0.0.1:1: connect: connection refused") {
			return fmt.Errorf("%w: %s", err, out)
		}
		return nil
	})

	node := c.node("etcd")
	c.must("node", "kill", node)
	if out, err := c.try("node", "kill", node); err == nil || !strings.Contains(out, "killed already") {
		t.Errorf("killing a node twice said: %s", out)
	}
	c.waitNode(node, "Unknown")
	for n := 1; n <= 3; n++ { // the others don't suffer
		if name := instance.NodeName(n); name != node {
			c.waitNode(name, "True")
		}
	}
	c.must("node", "start", node)
	c.waitNode(node, "True")
	c.waitPod("etcd")
	c.eventually("the data outlived the node", func() error {
		out, err := c.try("kubectl", "exec", "etcd", "--", "etcdctl", "get", "kept")
		if err != nil || !strings.Contains(out, "yes") {
			return fmt.Errorf("%w: %s", err, out)
		}
		return nil
	})
	if out, err := c.try("node", "wipe", node); err == nil || !strings.Contains(out, "kill it first") {
		t.Errorf("wiping a node that runs said: %s", out)
	}
	c.must("node", "kill", node)
	c.must("node", "wipe", node)
	c.must("node", "start", node)
	c.waitNode(node, "True")
	c.eventually("the data went with the disk", func() error {
		out, err := c.try("kubectl", "exec", "etcd", "--", "etcdctl", "get", "kept")
		if err != nil || strings.Contains(out, "yes") {
			return fmt.Errorf("%w: %s", err, out)
		}
		return nil
	})
	c.must("node", "cut", node)
	c.waitNode(node, "Unknown")
	c.must("node", "heal", node)
	c.waitNode(node, "True")
	c.eventually("the Service answers again", c.etcdVersion)

	c.must("down")
	c.nothingLeft()
	if out := c.must("down"); out != "Nothing was up." {
		t.Errorf("a second down said: %s", out)
	}
}

func TestUpInterruptedHalfwayLeavesNothing(t *testing.T) {
	for _, sig := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGKILL} {
		t.Run(sig.String(), func(t *testing.T) {
			c := newCluster(t)
			up := c.command(t.Context(), "up", "--nodes=1")
			if err := up.Start(); err != nil {
				t.Fatal(err)
			}
			c.eventually("the API server's process is there", func() error {
				_, err := os.Stat(c.Log("apiserver"))
				return err
			})
			send := func(s syscall.Signal) {
				if err := up.Process.Signal(s); err != nil {
					t.Fatal(err)
				}
			}
			// Without the stop, the first up could be over before the second one begins: a busy machine
			// takes half a minute to build that.
			send(syscall.SIGSTOP)
			if out, err := c.try("up"); err == nil || !strings.Contains(out, "another command is changing") {
				t.Errorf("an up beside an up said: %s", out)
			}
			send(sig)
			send(syscall.SIGCONT)
			if err := up.Wait(); err == nil {
				t.Error("up succeeded")
			}
			c.nothingLeft()
		})
	}
}

func TestClusterEndsWithTheProcessItIsFor(t *testing.T) {
	c := newCluster(t)
	owner := exec.CommandContext(t.Context(), "sleep", "3600")
	if err := owner.Start(); err != nil {
		t.Fatal(err)
	}
	c.must("up", "--nodes=1", "--dns=nodelocal", fmt.Sprint("--for-pid=", owner.Process.Pid))
	if err := owner.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := owner.Wait(); err == nil {
		t.Error("sleep was not killed")
	}
	c.nothingLeft()
}

func TestProcessesAndNetworkGoWithAKilledKeeper(t *testing.T) {
	c := newCluster(t)
	c.must("up", "--nodes=1", "--dns=addon")
	r, err := c.ReadRecord()
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(r.Keeper.PID, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	c.eventually("processes, mounts and links are gone", func() error { return errors.Join(c.left()...) })
	c.must("down")
	c.nothingLeft()
}
