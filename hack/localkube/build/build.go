// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package build builds the local Kubernetes' programs from Go modules. hack/localkube/pins
// pins their versions and checksums.
package build

import (
	"bufio"
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
	"strings"
	"syscall"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"

	"github.com/etcd-operator/etcd-operator/hack/localkube/environ"
)

// atOnce is how many components are built at the same time: each keeps all
// cores busy while it compiles, but only one while it links.
const atOnce = 2

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
	// Kubernetes is a minor version of Kubernetes, such as 1.34; that of go.mod if empty.
	Kubernetes string
}

// Build builds the named components that are missing. It returns all existing components by
// name, even those that the caller did not name.
func (b Builder) Build(ctx context.Context, names ...string) (map[string]Built, error) {
	goVersion, err := exec.CommandContext(ctx, "go", "env", "GOVERSION").Output()
	if err != nil {
		return nil, fmt.Errorf("ask go for its version: %w (is Go installed and on PATH?)", err)
	}
	wanted := map[string]bool{}
	for _, name := range names {
		wanted[name] = true
	}
	result := map[string]Built{}
	var missing []Component
	for _, c := range b.components() {
		built, err := b.locate(c, strings.TrimSpace(string(goVersion)))
		if err != nil {
			return nil, err
		}
		there := complete(c, built.Dir)
		if there || wanted[c.Name] {
			result[c.Name] = built
		}
		if wanted[c.Name] && !there {
			missing = append(missing, c)
		}
	}
	if len(missing) == 0 {
		return result, nil
	}
	return result, b.build(ctx, missing, result)
}

// locate reads the pin of a component and returns the paths of its programs.
func (b Builder) locate(c Component, goVersion string) (Built, error) {
	mod, err := os.ReadFile(filepath.Join(b.Pins, c.Name, c.mod()))
	if err != nil {
		return Built{}, fmt.Errorf("read the pin of %s: %w", c.Name, err)
	}
	version, err := pinned(mod, c.Module)
	if err != nil {
		return Built{}, fmt.Errorf("pin of %s: %w", c.Name, err)
	}
	h := sha256.New()
	fmt.Fprintln(h, goVersion, runtime.GOARCH, flags(c, version), c.Programs)
	// The key depends on the pin and on our own programs in it.
	for _, pattern := range []string{c.mod(), c.sum(), "*/*.go"} {
		files, err := filepath.Glob(filepath.Join(b.Pins, c.Name, pattern))
		if err != nil {
			return Built{}, err
		}
		for _, file := range files {
			content, err := os.ReadFile(file)
			if err != nil {
				return Built{}, fmt.Errorf("read the pin of %s: %w", c.Name, err)
			}
			fmt.Fprintln(h, filepath.Base(file), len(content))
			h.Write(content)
		}
	}
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

// flags are those of go build and go list. Without debug information, the compiler saves a
// tenth of its time.
func flags(c Component, version string) []string {
	linker := "-s -w"
	if c.VersionVar != "" {
		linker += " -X " + c.VersionVar + "=" + version
	}
	list := []string{"-trimpath", "-mod=readonly", "-gcflags=all=-dwarf=false", "-ldflags=" + linker}
	if c.Mod != "" {
		list = append(list, "-modfile="+c.Mod)
	}
	return list
}

func complete(c Component, dir string) bool {
	for _, p := range c.Programs {
		for _, name := range append([]string{p.Binary}, p.Links...) {
			if _, err := os.Stat(filepath.Join(dir, name)); err != nil {
				return false
			}
		}
	}
	return true
}

func (b Builder) build(ctx context.Context, missing []Component, where map[string]Built) error {
	names := make([]string, len(missing))
	for i, c := range missing {
		names[i] = c.Name + " " + where[c.Name].Version
	}
	fmt.Fprintf(b.Out, "Building from pinned Go modules, once; what is built is kept in %s:\n  %s\n", b.Cache, strings.Join(names, ", "))
	meter := newMeter(b.Out, len(missing))
	stop := meter.run(ctx)
	defer stop()
	// The meter needs all packages before the first build.
	for _, c := range missing {
		work, err := b.survey(ctx, c, where[c.Name].Version)
		if err != nil {
			return fmt.Errorf("build %s %s: %w", c.Name, where[c.Name].Version, err)
		}
		meter.expect(work)
	}
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(atOnce)
	for _, c := range missing {
		g.Go(func() error {
			if err := b.compile(ctx, c, where[c.Name], meter); err != nil {
				return fmt.Errorf("build %s %s: %w", c.Name, where[c.Name].Version, err)
			}
			meter.component(c.Name + " " + where[c.Name].Version)
			return nil
		})
	}
	return g.Wait()
}

// command is a call of go in the directory of a pin.
func (b Builder) command(ctx context.Context, c Component, verb string, version string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "go", append(append([]string{verb}, flags(c, version)...), args...)...)
	cmd.Dir = filepath.Join(b.Pins, c.Name)
	cmd.Env = environ.Go(os.Environ(), runtime.GOARCH, "GOFLAGS=")
	return cmd
}

// compile builds into a directory beside the final one, which appears when it is complete.
func (b Builder) compile(ctx context.Context, c Component, to Built, meter *meter) error {
	tmp := to.Dir + ".partial"
	if err := errors.Join(os.RemoveAll(tmp), os.MkdirAll(tmp, 0o755)); err != nil {
		return err
	}
	defer os.RemoveAll(tmp)
	work := filepath.Join(tmp, "work")
	if err := os.Mkdir(work, 0o755); err != nil {
		return err
	}
	args := []string{"-v", "-o", tmp + "/"}
	for _, p := range c.Programs {
		args = append(args, p.Package)
	}
	cmd := b.command(ctx, c, "build", to.Version, args...)
	cmd.Env = append(cmd.Env, "GOTMPDIR="+work)
	// In a pid namespace of its own, the compilers end with the go command. The go command
	// ends with this process, whatever ends it.
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWPID, Pdeathsig: unix.SIGKILL}
	said, err := run(cmd, meter)
	if err != nil {
		return fmt.Errorf("go build in %s: %w\n%s", cmd.Dir, err, tail(said, 15))
	}
	for _, p := range c.Programs {
		produced := filepath.Join(tmp, producedName(p.Package))
		if err := os.Rename(produced, filepath.Join(tmp, p.Binary)); err != nil {
			return err
		}
		for _, link := range p.Links {
			if err := os.Symlink(p.Binary, filepath.Join(tmp, link)); err != nil {
				return err
			}
		}
	}
	if err := errors.Join(os.RemoveAll(work), os.RemoveAll(to.Dir)); err != nil {
		return err
	}
	return os.Rename(tmp, to.Dir)
}

// run runs go build -v, which prints each package when its compilation begins, and returns the
// other output. It locks the thread that starts the command: the kernel sends the parent-death
// signal when that thread ends.
func run(cmd *exec.Cmd, meter *meter) (said []string, err error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	out, err := cmd.StderrPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	lines := bufio.NewScanner(out)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		if !meter.begun(lines.Text()) {
			said = append(said, lines.Text())
		}
	}
	return said, errors.Join(lines.Err(), cmd.Wait())
}

// producedName is the name that go build gives a package's program: its last path element that
// is not a major version.
func producedName(pkg string) string {
	base := filepath.Base(pkg)
	if regexp.MustCompile(`^v[0-9]+$`).MatchString(base) {
		base = filepath.Base(filepath.Dir(pkg))
	}
	return base
}

func tail(lines []string, n int) string {
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}
