// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package build makes the programs that the local Kubernetes runs, from Go
// modules whose versions and checksums are pinned below hack/localkube/pins.
package build

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"
)

// atOnce is how many components are built at the same time: each keeps all
// cores busy while it compiles, but only one while it links.
const atOnce = 2

// A Component is a pinned module and the programs built from it.
type Component struct {
	Name     string // directory below pins
	Module   string // whose version is the component's
	Programs []Program
	// VersionVar is the variable that the linker sets to the version, if any.
	VersionVar string
}

// A Program is a main package and the name that its binary gets.
type Program struct{ Package, Binary string }

// Names of components.
const (
	Kubernetes           = "kubernetes"
	CoreDNS              = "coredns"
	LocalPathProvisioner = "local-path-provisioner"
	Etcd35               = "etcd-3.5"
	Etcd36               = "etcd-3.6"
	Etcd37               = "etcd-3.7"
)

// Components lists all components, the longest build first.
func Components() []Component {
	kubernetes := Component{
		Name: Kubernetes, Module: "k8s.io/kubernetes",
		VersionVar: "k8s.io/component-base/version.gitVersion",
	}
	for _, p := range []string{"kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubelet", "kube-proxy", "kubectl"} {
		kubernetes.Programs = append(kubernetes.Programs, Program{"k8s.io/kubernetes/cmd/" + p, p})
	}
	etcd := func(name string) Component {
		return Component{Name: name, Module: "go.etcd.io/etcd/server/v3", Programs: []Program{
			{"go.etcd.io/etcd/server/v3", "etcd"},
			{"go.etcd.io/etcd/etcdctl/v3", "etcdctl"},
			{"go.etcd.io/etcd/etcdutl/v3", "etcdutl"},
		}}
	}
	return []Component{
		kubernetes,
		{Name: CoreDNS, Module: "github.com/coredns/coredns", Programs: []Program{{"github.com/coredns/coredns", "coredns"}}},
		{Name: LocalPathProvisioner, Module: "github.com/rancher/local-path-provisioner", Programs: []Program{{"github.com/rancher/local-path-provisioner", "local-path-provisioner"}}},
		etcd(Etcd36), etcd(Etcd35), etcd(Etcd37),
	}
}

// A Built is a component whose programs are in Dir.
type Built struct {
	Version string // with a leading v
	Dir     string
	// Key changes whenever the programs would.
	Key string
}

// A Builder builds components into a cache.
type Builder struct {
	Pins  string    // directory of the pinned modules
	Cache string    // directory that keeps the results
	Out   io.Writer // progress
}

// All builds what is missing and returns all components by name.
func (b Builder) All(ctx context.Context) (map[string]Built, error) {
	return b.some(ctx, Components())
}

// Etcd does so for the releases of etcd alone.
func (b Builder) Etcd(ctx context.Context) (map[string]Built, error) {
	return b.some(ctx, slices.DeleteFunc(Components(), func(c Component) bool { return !strings.HasPrefix(c.Name, "etcd-") }))
}

func (b Builder) some(ctx context.Context, components []Component) (map[string]Built, error) {
	goVersion, err := exec.CommandContext(ctx, "go", "env", "GOVERSION").Output()
	if err != nil {
		return nil, fmt.Errorf("ask go for its version: %w (is Go installed and on PATH?)", err)
	}
	result := map[string]Built{}
	var missing []Component
	for _, c := range components {
		built, err := b.locate(c, strings.TrimSpace(string(goVersion)))
		if err != nil {
			return nil, err
		}
		result[c.Name] = built
		if !complete(c, built.Dir) {
			missing = append(missing, c)
		}
	}
	if len(missing) == 0 {
		return result, nil
	}
	return result, b.build(ctx, missing, result)
}

// locate reads the pin of a component and finds where its programs belong.
func (b Builder) locate(c Component, goVersion string) (Built, error) {
	mod, err := os.ReadFile(filepath.Join(b.Pins, c.Name, "go.mod"))
	if err != nil {
		return Built{}, fmt.Errorf("read the pin of %s: %w", c.Name, err)
	}
	sum, err := os.ReadFile(filepath.Join(b.Pins, c.Name, "go.sum"))
	if err != nil {
		return Built{}, fmt.Errorf("read the pin of %s: %w", c.Name, err)
	}
	version, err := pinned(mod, c.Module)
	if err != nil {
		return Built{}, fmt.Errorf("pin of %s: %w", c.Name, err)
	}
	h := sha256.New()
	fmt.Fprintln(h, goVersion, runtime.GOARCH, ldflags(c, version), c.Programs)
	h.Write(mod)
	h.Write(sum)
	key := fmt.Sprintf("%x", h.Sum(nil))[:12]
	return Built{Version: version, Key: key, Dir: filepath.Join(b.Cache, "bin", c.Name+"-"+version+"-"+key)}, nil
}

// pinned finds the version that a go.mod requires of a module.
func pinned(mod []byte, module string) (string, error) {
	m := regexp.MustCompile(`(?m)^(?:require)?\s+` + regexp.QuoteMeta(module) + ` (v\S+)`).FindSubmatch(mod)
	if m == nil {
		return "", fmt.Errorf("go.mod does not require %s", module)
	}
	return string(m[1]), nil
}

func ldflags(c Component, version string) string {
	flags := "-s -w"
	if c.VersionVar != "" {
		flags += " -X " + c.VersionVar + "=" + version
	}
	return flags
}

func complete(c Component, dir string) bool {
	for _, p := range c.Programs {
		if _, err := os.Stat(filepath.Join(dir, p.Binary)); err != nil {
			return false
		}
	}
	return true
}

func (b Builder) build(ctx context.Context, missing []Component, where map[string]Built) error {
	fmt.Fprintf(b.Out, "Building %d components from pinned Go modules: once, then they are kept in %s.\n", len(missing), b.Cache)
	fmt.Fprintln(b.Out, "On a 2-core machine all of them take about 6 minutes, and need a Go module proxy.")
	t := &ticker{out: b.Out, total: len(missing), started: map[string]time.Time{}}
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(atOnce)
	stop := t.run(ctx)
	defer stop()
	for _, c := range missing {
		g.Go(func() error {
			t.begin(c.Name + " " + where[c.Name].Version)
			if err := b.compile(ctx, c, where[c.Name]); err != nil {
				return fmt.Errorf("build %s %s: %w", c.Name, where[c.Name].Version, err)
			}
			t.end(c.Name + " " + where[c.Name].Version)
			return nil
		})
	}
	return g.Wait()
}

// compile builds into a directory beside the final one, which appears whole.
func (b Builder) compile(ctx context.Context, c Component, to Built) error {
	tmp := to.Dir + ".partial"
	if err := errors.Join(os.RemoveAll(tmp), os.MkdirAll(tmp, 0o755)); err != nil {
		return err
	}
	defer os.RemoveAll(tmp)
	work := filepath.Join(tmp, "work")
	if err := os.Mkdir(work, 0o755); err != nil {
		return err
	}
	args := []string{"build", "-trimpath", "-mod=readonly", "-ldflags", ldflags(c, to.Version), "-o", tmp + "/"}
	for _, p := range c.Programs {
		args = append(args, p.Package)
	}
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = filepath.Join(b.Pins, c.Name)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off", "GOTMPDIR="+work)
	// In a pid namespace of its own the compilers end with the go command, and
	// that ends with us, however we end.
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWPID, Pdeathsig: unix.SIGKILL}
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := run(cmd); err != nil {
		return fmt.Errorf("go %s in %s: %w\n%s", strings.Join(args, " "), cmd.Dir, err, tail(out.String(), 15))
	}
	for _, p := range c.Programs {
		produced := filepath.Join(tmp, producedName(p.Package))
		if err := os.Rename(produced, filepath.Join(tmp, p.Binary)); err != nil {
			return err
		}
	}
	if err := errors.Join(os.RemoveAll(work), os.RemoveAll(to.Dir)); err != nil {
		return err
	}
	return os.Rename(tmp, to.Dir)
}

// run keeps the thread that starts the command for as long as it runs: the
// signal that comes with the parent's death comes with that thread's.
func run(cmd *exec.Cmd) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	return cmd.Run()
}

// producedName is how go build names a package's program: by its last element
// that is not a major version.
func producedName(pkg string) string {
	base := filepath.Base(pkg)
	if regexp.MustCompile(`^v[0-9]+$`).MatchString(base) {
		base = filepath.Base(filepath.Dir(pkg))
	}
	return base
}

func tail(s string, lines int) string {
	all := strings.Split(strings.TrimSpace(s), "\n")
	return strings.Join(all[max(0, len(all)-lines):], "\n")
}

// A ticker tells what is being built and for how long.
type ticker struct {
	out   io.Writer
	total int

	mu      sync.Mutex
	done    int
	started map[string]time.Time
}

// tickEvery is how often a build that takes long is mentioned.
const tickEvery = 20 * time.Second

func (t *ticker) run(ctx context.Context) (stop func()) {
	ctx, stop = context.WithCancel(ctx)
	tick := time.NewTicker(tickEvery)
	go func() {
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
				t.mu.Lock()
				for name, at := range t.started {
					fmt.Fprintf(t.out, "  [%d/%d] %s … %d s\n", t.done, t.total, name, int(time.Since(at).Seconds()))
				}
				t.mu.Unlock()
			}
		}
	}()
	return stop
}

func (t *ticker) begin(name string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.started[name] = time.Now()
	fmt.Fprintf(t.out, "  [%d/%d] %s: building\n", t.done, t.total, name)
}

func (t *ticker) end(name string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.done++
	fmt.Fprintf(t.out, "  [%d/%d] %s: built in %d s\n", t.done, t.total, name, int(time.Since(t.started[name]).Seconds()))
	delete(t.started, name)
}
