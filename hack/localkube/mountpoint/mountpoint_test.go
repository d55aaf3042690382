// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package mountpoint

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// node makes this program a node, which binds and waits for the end of its input.
const node = "MOUNTPOINT_TEST_NODE"

func TestMain(m *testing.M) {
	if dir, at, ok := strings.Cut(os.Getenv(node), ":"); ok {
		if err := Bind(dir, at); err != nil {
			_, _ = os.Stdout.WriteString(err.Error() + "\n")
			os.Exit(1)
		}
		_, _ = os.Stdout.WriteString("bound\n")
		_, _ = os.Stdin.Read(make([]byte, 1))
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// One instance went down while the nodes of two others started. It had looked at all processes
// and seen no mount. Then it removed the directory, and with it the nodes' mounts: their
// kubelets deleted each other's volumes. Needs root, as the local Kubernetes does.
func TestANodeKeepsItsMountWhileAnotherInstanceGoes(t *testing.T) {
	at := filepath.Join(t.TempDir(), "kubelet")
	removed := make(chan error, 1)
	stop := make(chan struct{})
	go func() {
		for {
			select {
			case <-stop:
				removed <- nil
				return
			default:
				if err := Remove(at); err != nil {
					removed <- err
					return
				}
			}
		}
	}()
	for range 15 {
		aNodeKeepsItsMount(t, at)
	}
	close(stop)
	if err := <-removed; err != nil {
		t.Error(err)
	}
}

func aNodeKeepsItsMount(t *testing.T, at string) {
	t.Helper()
	command := exec.CommandContext(t.Context(), os.Args[0])
	command.Env = append(os.Environ(), node+"="+t.TempDir()+":"+at)
	command.SysProcAttr = &syscall.SysProcAttr{Unshareflags: syscall.CLONE_NEWNS, Pdeathsig: syscall.SIGKILL}
	in, err := command.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	said, err := bufio.NewReader(out).ReadString('\n')
	if err != nil || said != "bound\n" {
		t.Errorf("the node says %q, %v", said, err)
	}
	// A look that began before has ended when the next one has.
	for range 2 {
		if err := Remove(at); err != nil {
			t.Error(err)
		}
	}
	if used, err := mounted(at); err != nil || !used {
		t.Errorf("the node's mount is gone: %v", err)
	}
	if err := in.Close(); err != nil {
		t.Error(err)
	}
	if err := command.Wait(); err != nil {
		t.Error(err)
	}
}

func TestADirectoryWithFilesStays(t *testing.T) {
	at := filepath.Join(t.TempDir(), "kubelet")
	if err := os.MkdirAll(filepath.Join(at, "file"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := Remove(at); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(at); err != nil {
		t.Error(err)
	}
	if err := os.Remove(filepath.Join(at, "file")); err != nil {
		t.Fatal(err)
	}
	for range 2 { // the second time there is none
		if err := Remove(at); err != nil {
			t.Error(err)
		}
	}
	if _, err := os.Stat(at); !os.IsNotExist(err) {
		t.Errorf("it is left: %v", err)
	}
}
