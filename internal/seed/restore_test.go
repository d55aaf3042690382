// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package seed

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// This test's program is also the command, for a test that kills it, and a replacement for
// etcdutl.
const (
	asRestore = "SEED_TEST_RESTORE"
	asTool    = "SEED_TEST_TOOL"
)

func TestMain(m *testing.M) {
	switch {
	case os.Getenv(asTool) != "":
		tool(os.Getenv(asTool), os.Args[1:])
	case os.Getenv(asRestore) != "":
		r, err := ParseRestore(os.Args[1:], os.Stderr)
		r.Out, r.Err = os.Stdout, os.Stderr
		if err == nil {
			err = r.Run(context.Background())
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	default:
		os.Exit(m.Run())
	}
}

// tool replaces etcdutl: it makes a data directory, or does what the environment asks.
func tool(what string, args []string) {
	dataDir := ""
	for _, arg := range args {
		if dir, ok := strings.CutPrefix(arg, "--data-dir="); ok {
			dataDir = dir
		}
	}
	for name, text := range map[string]string{"wal/0.wal": strings.Join(args, "\n"), "snap/db": "data"} {
		name = filepath.Join(dataDir, "member", name)
		err := errors.Join(os.MkdirAll(filepath.Dir(name), 0o700), os.WriteFile(name, []byte(text), 0o600))
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
	}
	switch what {
	case "fail":
		fmt.Fprint(os.Stderr, "{\"level\":\"info\"}\nError: snapshot missing hash\n\n")
		os.Exit(1)
	case "killed":
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
	case "hang":
		time.Sleep(time.Hour) // Go ends a program in which nothing can happen any more
	}
}

// restoreBy is a restore by that replacement.
func restoreBy(t *testing.T, what string) Restore {
	t.Helper()
	t.Setenv(asTool, what)
	r := Restore{
		Dir: t.TempDir(), DataDir: filepath.Join(t.TempDir(), "data"), Tool: os.Args[0],
		Name: "c-a", PeerURL: "http://c-a.c.ns.svc:2380", ClusterToken: "a-token", Out: io.Discard, Err: io.Discard,
	}
	write(t, filepath.Join(r.Dir, snapshotFile), "backup")
	return r
}

// left is what there is in a directory.
func left(t *testing.T, dir string) string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return strings.Join(names, " ")
}

func TestRestore(t *testing.T) {
	r := restoreBy(t, "work")
	r.BumpRevision = 1000
	// An earlier attempt was interrupted, and somebody has created etcd's directory.
	write(t, filepath.Join(r.DataDir+restoringSuffix, "member", "wal", "1.wal"), "")
	if err := os.Mkdir(r.DataDir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := r.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	args, err := os.ReadFile(filepath.Join(r.DataDir, "member", "wal", "0.wal"))
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"snapshot", "restore", filepath.Join(r.Dir, snapshotFile), "--data-dir=" + r.DataDir + restoringSuffix, "--name=c-a",
		"--initial-cluster=c-a=http://c-a.c.ns.svc:2380", "--initial-advertise-peer-urls=http://c-a.c.ns.svc:2380",
		"--initial-cluster-token=a-token", "--bump-revision=1000", "--mark-compacted",
	}
	if string(args) != strings.Join(want, "\n") {
		t.Errorf("the tool was called with %q", args)
	}
	if got := left(t, r.Dir) + ", " + left(t, filepath.Dir(r.DataDir)) + ", " + left(t, filepath.Join(r.DataDir, "member", "wal")); got != "done, data data.member, 0.wal" {
		t.Errorf("there is now %s", got)
	}

	// The pod starts again: the data is what etcd has made of it meanwhile.
	r.Tool = "/no/such/tool"
	if err := r.Run(t.Context()); err != nil {
		t.Errorf("again: %v", err)
	}
	// Its node has lost what was in memory.
	if err := os.RemoveAll(r.DataDir); err != nil {
		t.Fatal(err)
	}
	if err := r.Run(t.Context()); err == nil || !strings.Contains(err.Error(), "must not start again on the old data") {
		t.Errorf("without its data: %v", err)
	}
}

// A pod that was lost comes back with its volume, and nothing else.
func TestDataOnAVolumeIsKept(t *testing.T) {
	r := restoreBy(t, "work")
	if err := r.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	wal := filepath.Join(r.DataDir, "member", "wal", "0.wal")
	write(t, wal, "written since")
	for name, again := range map[string]Restore{
		"the same member":              {Name: r.Name},
		"one that is known as started": {Name: "c-b", Member: "8e9e05c52164694d"},
	} {
		again.Dir, again.DataDir, again.Tool, again.Out, again.Err = t.TempDir(), r.DataDir, "/no/such/tool", io.Discard, io.Discard
		if err := again.Run(t.Context()); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if text, err := os.ReadFile(wal); err != nil || string(text) != "written since" || left(t, again.Dir) != "done" {
			t.Errorf("%s: there is now %s, with the data %q, %v", name, left(t, again.Dir), text, err)
		}
	}
}

// Somebody made the volume of a former cluster available again, and left its data there. The new member
// started on that, and the restore counted as done.
func TestDataOfAnotherEtcdIsNotTakenForTheBackup(t *testing.T) {
	for name, of := range map[string]string{"nobody says whose it is": "", "it is from another restore": "c-z"} {
		t.Run(name, func(t *testing.T) {
			r := restoreBy(t, "work")
			wal := filepath.Join(r.DataDir, "member", "wal", "0.wal")
			write(t, wal, "of another etcd")
			if of != "" {
				write(t, r.DataDir+memberSuffix, of)
			}
			for range 2 {
				if err := r.Run(t.Context()); err == nil || !strings.Contains(err.Error(), "holds data of another etcd") {
					t.Errorf("ended with %v", err)
				}
			}
			if text, err := os.ReadFile(wal); err != nil || string(text) != "of another etcd" || left(t, r.Dir) != snapshotFile {
				t.Errorf("there is now %s, with the data %q, %v", left(t, r.Dir), text, err)
			}
		})
	}
}

func TestARestoreThatFailsLeavesNoData(t *testing.T) {
	for name, tc := range map[string]struct {
		tool   string
		change func(*testing.T, *Restore)
		says   string
	}{
		"the tool fails":   {"fail", nil, "(exit status 1): Error: snapshot missing hash"},
		"no memory":        {"killed", nil, "(signal: killed): the limit on memory may be too small"},
		"no tool":          {"work", func(_ *testing.T, r *Restore) { r.Tool = "/no/etcdutl" }, "the image of etcd has no /no/etcdutl"},
		"no backup":        {"work", func(_ *testing.T, r *Restore) { r.Dir = r.DataDir }, "look for the backup that fetch-backup was to leave"},
		"something in way": {"work", func(t *testing.T, r *Restore) { write(t, filepath.Join(r.DataDir, "notes"), "") }, "blocks the restore"},
	} {
		t.Run(name, func(t *testing.T) {
			r := restoreBy(t, tc.tool)
			if tc.change != nil {
				tc.change(t, &r)
			}
			err := r.Run(t.Context())
			if err == nil || !strings.Contains(err.Error(), tc.says) || strings.Contains(err.Error(), "\n") {
				t.Errorf("ended with %v", err)
			}
			if _, err := os.Stat(filepath.Join(r.DataDir, "member")); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("there is data: %v", err)
			}
			if _, err := os.Stat(filepath.Join(r.Dir, doneFile)); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("it is on record as done: %v", err)
			}
		})
	}
}

func TestARestoreEndsWhenItIsTold(t *testing.T) {
	r := restoreBy(t, "hang")
	ctx, cancel := context.WithCancelCause(t.Context())
	done := make(chan error, 1)
	go func() { done <- r.Run(ctx) }()
	for { // until the tool works
		if _, err := os.Stat(filepath.Join(r.DataDir+restoringSuffix, "member", "wal")); err == nil {
			break
		}
		select {
		case err := <-done:
			t.Fatal(err)
		case <-time.After(10 * time.Millisecond):
		}
	}
	cancel(errors.New("SIGTERM"))
	if err := <-done; err == nil || !strings.Contains(err.Error(), "was asked to stop") {
		t.Errorf("ended with %v", err)
	}
}

func TestFlags(t *testing.T) {
	fetch := strings.Fields("-url=http://s:19999/v1/backup/c -token-file=/t/token -size=10 -sha256=" + strings.Repeat("ab", 32) + " -dir=/r -data-dir=/d")
	f, err := ParseFetch(fetch, io.Discard)
	if err != nil || f.URL != "http://s:19999/v1/backup/c" || f.Size != 10 || f.SHA256 != strings.Repeat("ab", 32) || f.TokenFile != "/t/token" || f.Dir != "/r" || f.DataDir != "/d" {
		t.Errorf("%+v, %v", f, err)
	}
	restore := strings.Fields("-dir=/r -data-dir=/d -tool=/etcdutl -name=n -peer-url=http://n:2380 -initial-cluster-token=t -revision=5 -bump-revision=7")
	r, err := ParseRestore(restore, io.Discard)
	if err != nil || r.Dir != "/r" || r.DataDir != "/d" || r.Tool != "/etcdutl" || r.Name != "n" || r.PeerURL != "http://n:2380" || r.ClusterToken != "t" || r.Revision != 5 || r.BumpRevision != 7 {
		t.Errorf("%+v, %v", r, err)
	}
	// refused checks what is wrong with arguments of which the rest is right.
	refused := func(parse func(out io.Writer) error, args, want string) {
		t.Helper()
		var said strings.Builder
		if err := parse(&said); err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(said.String(), want) || !strings.Contains(said.String(), "Usage of ") {
			t.Errorf("%s: error %v, said %q, want %q in both, and the usage", args, err, said.String(), want)
		}
	}
	fetching := func(args []string) func(io.Writer) error {
		return func(out io.Writer) error { _, err := ParseFetch(args, out); return err }
	}
	restoring := func(args []string) func(io.Writer) error {
		return func(out io.Writer) error { _, err := ParseRestore(args, out); return err }
	}
	for args, want := range map[string]string{
		"-url=etcd":           `-url "etcd" is no URL of a server`,
		"-url=ftp://s/":       `-url "ftp://s/" is no URL of a server`,
		"-url=http://s:port/": "-url: ",
		"-url=":               `-url "" is no URL of a server`,
		"-size=0":             "-size must be more than 0",
		"-size=-1":            "-size must be more than 0",
		"-sha256=AB":          "-sha256 must have 64 hexadecimal digits",
		"-sha256=":            "-sha256 must have 64 hexadecimal digits",
		"-token-file=":        "-token-file is missing",
		"-dir=":               "-dir is missing",
		"-data-dir=":          "-data-dir is missing",
		"extra":               `unexpected argument "extra"`,
		"-nonsense":           "not defined: -nonsense",
	} {
		refused(fetching(append(slices.Clone(fetch), args)), "fetch-backup "+args, want)
	}
	for i, without := range restore[:6] {
		name, _, _ := strings.Cut(without, "=")
		refused(restoring(slices.Delete(slices.Clone(restore), i, i+1)), "restore-backup without "+name, name+" is missing")
	}
	refused(restoring(append(restore, "-revision=-1")), "restore-backup", "-revision -1 is negative")
	refused(restoring(append(restore, "-bump-revision=-1")), "restore-backup", "-bump-revision -1 is negative")
}
