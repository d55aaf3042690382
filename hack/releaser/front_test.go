// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// echo stands for the releaser of a commit. It prints the mark of the commit, its arguments and
// the environment of a build.
const echo = `package main

import (
	"fmt"
	"os"
)

func main() {
	fmt.Println("MARK", os.Args[1:])
	for _, name := range []string{"GOFLAGS", "GOOS", "GOAMD64", "GOEXPERIMENT", "GOTOOLCHAIN"} {
		fmt.Println(name + "=" + os.Getenv(name))
	}
}
`

// A repository holds hack/release, and a releaser that only prints.
type repository struct {
	t    *testing.T
	root string
}

func newRepository(t *testing.T) repository {
	t.Helper()
	r := repository{t, t.TempDir()}
	for _, script := range []string{"hack/release", "hack/process.sh"} {
		r.write(script, string(read(t, "../..", script)))
	}
	r.write("hack/releaser/go.mod", "module example.com/releaser\n\ngo "+strings.TrimPrefix(runtime.Version(), "go")+"\n")
	r.write("hack/releaser/main.go", strings.Replace(echo, "MARK", "tagged", 1))
	r.write("internal/version/version.go", "package version\n\nvar Version = \"v1.2.3-dev\"\n")
	r.git("init", "-q", "-b", "main")
	r.git("add", "-A")
	r.git("commit", "-q", "-m", "a release", "--date=2026-11-22T10:00:01Z")
	r.git("tag", "-a", "-m", "a release", "v1.2.3")
	r.git("tag", "v1.2.3-rc.1")
	r.git("tag", "v1.3.0")
	r.git("tag", "latest")
	// Neither counts for a release: an edit of the work tree, and a later commit.
	r.write("hack/releaser/main.go", strings.Replace(echo, "MARK", "later", 1))
	r.git("commit", "-q", "-a", "-m", "a change")
	r.write("hack/releaser/main.go", strings.Replace(echo, "MARK", "edited", 1))
	return r
}

func (r repository) write(name, text string) {
	r.t.Helper()
	file := filepath.Join(r.root, name)
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		r.t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), 0o755); err != nil {
		r.t.Fatal(err)
	}
}

func (r repository) git(args ...string) string {
	r.t.Helper()
	cmd := exec.CommandContext(r.t.Context(), "git", append([]string{"-C", r.root, "-c", "user.name=a", "-c", "user.email=a@example.com"}, args...)...)
	cmd.Env = append(os.Environ(), "GIT_COMMITTER_DATE=2026-11-22T10:00:01Z")
	out, err := cmd.CombinedOutput()
	if err != nil {
		r.t.Fatalf("git %q: %v: %s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

// release runs hack/release for somebody who builds for another machine.
func (r repository) release(args ...string) (string, error) {
	cmd := exec.CommandContext(r.t.Context(), filepath.Join(r.root, "hack/release"), args...)
	cmd.Dir = r.root
	cmd.Env = append(os.Environ(), "GOFLAGS=-tags=mine", "GOOS=windows", "GOAMD64=v3", "GOEXPERIMENT=nocoverageredesign")
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func TestAReleaseIsMadeOfItsCommit(t *testing.T) {
	r := newRepository(t)
	tagged, later := r.git("rev-parse", "v1.2.3^{commit}"), r.git("rev-parse", "main")
	const settings = "\nGOFLAGS=-trimpath\nGOOS=\nGOAMD64=v1\nGOEXPERIMENT=\nGOTOOLCHAIN="
	for name, c := range map[string]struct {
		args []string
		want string
	}{
		"a tag":       {[]string{"v1.2.3"}, " -ref refs/tags/v1.2.3 -commit " + tagged + " -time 1795341601 -version v1.2.3 -out " + r.root + "/dist/v1.2.3]"},
		"a candidate": {[]string{"v1.2.3-rc.1"}, "-version v1.2.3-rc.1 -out " + r.root + "/dist/v1.2.3-rc.1]"},
		"a commit":    {[]string{"--version", "v4.5.6", "main"}, " -ref main -commit " + later + " -time 1795341601 -version v4.5.6 "},
		"a place":     {[]string{"--out", "else/where", "v1.2.3"}, " -out " + r.root + "/else/where]"},
	} {
		mark := "tagged"
		if name == "a commit" {
			mark = "later"
		}
		out, err := r.release(c.args...)
		if err != nil || !strings.HasPrefix(out, mark+" [make -root ") || !strings.Contains(out, c.want) || !strings.Contains(out, settings) {
			t.Errorf("%s: %v, got\n%s\nwant the releaser %q with %q and %q", name, err, out, mark, c.want, settings)
		}
	}
	out, err := r.release("--check", "hack", "internal")
	if want := "edited [check " + r.root + "/hack " + r.root + "/internal]"; err != nil || !strings.HasPrefix(out, want) {
		t.Errorf("a comparison: %v, got\n%s\nwant %q", err, out, want)
	}
}

func TestAReleaseIsRefused(t *testing.T) {
	r := newRepository(t)
	r.write("dist/v1.2.3/SHA256SUMS", "")
	for name, c := range map[string]struct {
		args []string
		says string
	}{
		"no tag":                     {[]string{"v9.9.9"}, "there is no tag v9.9.9"},
		"a branch for a tag":         {[]string{"main"}, "there is no tag main; for another commit"},
		"a tag that is no version":   {[]string{"latest"}, "version latest: want something like v1.2.3"},
		"another version in the tag": {[]string{"v1.3.0"}, "does not name v1.3.0"},
		"no commit":                  {[]string{"--version", "v1.2.3", "nothing"}, "nothing is no commit"},
		"a path for a version":       {[]string{"--version", "../v1.2.3", "main"}, "want something like v1.2.3"},
		"an existing directory":      {[]string{"v1.2.3"}, "dist/v1.2.3 exists: remove it"},
		"no value":                   {[]string{"v1.2.3", "--out"}, "--out needs a value"},
		"an unknown argument":        {[]string{"--sign", "v1.2.3"}, "unknown argument --sign"},
		"nothing":                    {nil, "usage: hack/release"},
		"one directory":              {[]string{"--check", "hack"}, "usage: hack/release"},
	} {
		if out, err := r.release(c.args...); err == nil || !strings.Contains(out, c.says) || strings.Contains(out, "[make") {
			t.Errorf("%s: %v, got\n%s\nwant an error with %q", name, err, out, c.says)
		}
	}
}
