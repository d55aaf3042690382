// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// The data of a pod can go while the pod stays: in memory, when its node reboots. The mark of
// it must not go with it, and only what runs last before etcd writes it.
func TestWhatTellsOfAStartOutlivesTheData(t *testing.T) {
	inMemory := map[bool]int{}
	for name, s := range shapes() {
		spec := s.build(t).Spec
		init, etcd := spec.InitContainers[len(spec.InitContainers)-1], spec.Containers[0]
		last, other := init, etcd
		launched := etcd.Command[0] == "/var/check-dns/etcd-launcher"
		if launched {
			last, other = etcd, init
		}
		marks := func(c corev1.Container) bool {
			return strings.Contains(strings.Join(c.Command, " "), "/var/check-dns/started")
		}
		if data := spec.Volumes[0].EmptyDir; data == nil || data.Medium != corev1.StorageMediumMemory {
			// A volume outlives the pod, and an emptyDir on the disk goes with it.
			if marks(init) || marks(etcd) {
				t.Errorf("%s: commands %s, %s", name, init.Command, etcd.Command)
			}
			continue
		}
		inMemory[launched]++
		if !slices.Contains(last.Command, "/var/etcd/data") && !slices.Contains(last.Command, "-data-dir=/var/etcd/data") {
			t.Errorf("%s: nobody looks at the data: %s", name, last.Command)
		}
		i := slices.IndexFunc(spec.Volumes, func(v corev1.Volume) bool { return v.Name == "check-dns" })
		if i < 0 || spec.Volumes[i].EmptyDir == nil || spec.Volumes[i].EmptyDir.Medium != "" {
			t.Fatalf("%s: it is not on a disk: %v", name, spec.Volumes)
		}
		mounted := slices.ContainsFunc(last.VolumeMounts, func(m corev1.VolumeMount) bool {
			return m.Name == "check-dns" && m.MountPath == "/var/check-dns" && !m.ReadOnly
		})
		if !mounted || !marks(last) || marks(other) {
			t.Errorf("%s: mounts %v, commands %s, %s", name, last.VolumeMounts, init.Command, etcd.Command)
		}
	}
	if inMemory[true] == 0 || inMemory[false] == 0 {
		t.Errorf("pods with their data in memory: %v", inMemory)
	}
}

func TestTheScriptForBusyboxLooksForTheData(t *testing.T) {
	for name, tc := range map[string]struct {
		data, before, rejoins, unresolved, noted, foreign bool
		want                                              string // of the error
	}{
		"it has served":                    {data: true, noted: true},
		"it has served, the data are gone": {noted: true, want: "member 8e9e05c52164694d has served"},
		"the first start":                  {},
		"a restart with the data":          {data: true, before: true},
		"a restart without it":             {before: true, want: "started in this pod before"},
		"it rejoins":                       {data: true, rejoins: true},
		"it rejoins without data":          {rejoins: true, want: "the volume holds no data"},
		"the data are another user's":      {data: true, rejoins: true, foreign: true, want: fmt.Sprintf("belongs to user %d and group %d, and", dataOwner(), os.Getgid())},
		"the same, without a need for it":  {data: true, foreign: true},
		"no name":                          {unresolved: true, want: "did not resolve"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			put := func(text string, path ...string) string {
				file := filepath.Join(append([]string{dir}, path...)...)
				if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(file, []byte(text), 0o700); err != nil {
					t.Fatal(err)
				}
				return file
			}
			answer := "echo 'Name: c'"
			if tc.unresolved {
				answer = "exit 1"
			}
			put("#!/bin/sh\n"+answer+"\n", "bin", "nslookup")
			if tc.data {
				put("", "data", "member", "wal", "0.wal")
			}
			marker := filepath.Join(dir, "started")
			if tc.before {
				put("", "started")
			}
			args := []string{"-c", strings.ReplaceAll(busyboxScript, "/tmp/answer", filepath.Join(dir, "answer")), "check-dns", "c", "1", filepath.Join(dir, "data")}
			args = append(args, marker)
			if tc.rejoins {
				args[len(args)-1] = "require-data"
			}
			cmd := exec.CommandContext(t.Context(), "/bin/sh", args...)
			cmd.Env = []string{"PATH=" + filepath.Join(dir, "bin") + ":" + os.Getenv("PATH")}
			cmd.Dir = dir
			if tc.foreign {
				makeForeign(t, cmd, dir)
			}
			if tc.noted {
				cmd.Env = append(cmd.Env, "MEMBER_STARTED=8e9e05c52164694d")
			}
			out, err := cmd.CombinedOutput()
			if (err != nil) != (tc.want != "") || !strings.Contains(string(out), tc.want) {
				t.Errorf("%v, it says %q, want %q", err, out, tc.want)
			}
			_, statErr := os.Stat(marker)
			if _, err := os.Stat(filepath.Join(dir, "require-data")); err == nil {
				t.Error("it makes a file of its flag")
			}
			if noted, want := statErr == nil, tc.before || tc.want == "" && !tc.rejoins; noted != want {
				t.Errorf("the start is noted: %t, want %t", noted, want)
			}
		})
	}
}

// dataOwner is who owns the data that makeForeign closes: root may read what is its own.
func dataOwner() int {
	if os.Getuid() == 0 {
		return 12379
	}
	return os.Getuid()
}

// makeForeign closes the data directory to the command.
func makeForeign(t *testing.T, cmd *exec.Cmd, dir string) {
	t.Helper()
	data := filepath.Join(dir, "data")
	if os.Getuid() != 0 {
		if err := os.Chmod(data, 0); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = os.Chmod(data, 0o700) })
		return
	}
	if err := os.Chown(data, dataOwner(), os.Getgid()); err != nil {
		t.Fatal(err)
	}
	// Another user might not reach the directory. So the command stays root, without its rights to
	// the files of others.
	setpriv, err := exec.LookPath("setpriv")
	if err != nil {
		t.Fatal(err)
	}
	cmd.Path, cmd.Args = setpriv, append([]string{"setpriv", "--inh-caps=-all", "--bounding-set=-dac_override,-dac_read_search", cmd.Path}, cmd.Args[1:]...)
}
