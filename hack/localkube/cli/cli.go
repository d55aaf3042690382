// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package cli is the command line of hack/kube and hack/image.
package cli

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/etcd-operator/etcd-operator/hack/localkube/build"
	"github.com/etcd-operator/etcd-operator/hack/localkube/instance"
)

// An App is what the commands share.
type App struct {
	Stdout, Stderr io.Writer
	// Root is the repository.
	Root string
	// Cache keeps what is built.
	Cache    string
	Instance instance.Instance
	// Kubernetes is the minor version to start; empty: the newest that is pinned.
	Kubernetes string
}

// ErrUsage is returned when the command line is wrong; the message was printed.
var ErrUsage = errors.New("usage")

type command struct {
	name, args, help string
	needsRoot        bool
	run              func(ctx context.Context, a *App, args []string) error
}

func commands() []command {
	return []command{
		{"up", "[flags]", "start it, after building what is missing; `up -h` lists the flags", true, up},
		{"down", "", "end it and remove every trace; keep the built programs and images", true, down},
		{"status", "", "show nodes, components and images", true, status},
		{"env", "", "print the shell commands that set KUBECONFIG and PATH", false, env},
		{"kubectl", "ARG...", "run the kubectl of the right version against it", false, kubectl},
		{"load", "FILE... | --etcd LIST", "import image archives, or the images of etcd, on all nodes", true, load},
		{"node", "kill|wipe|start|cut|heal NAME", "cut a node's power, empty its disks, start it again, take its link down, up again", true, nodeCommand},
		{"disk", "NODE DIRECTORY TIME", "delay fsyncs below directories of that name; 24h: they hang; 0: no delay", true, diskCommand},
		{"component", "stop|continue|kill NAME", "stop, continue or kill a program of the control plane; a killed one restarts", true, componentCommand},
		{"digests", "", "name each image by its digest too, like a pulled one, and print the digests", true, digestsCommand},
		{"logs", "[-f] [COMPONENT]", "show the log of a component; without one, list them", false, logs},
		{"build", "[--etcd LIST]", "only build programs and images", true, buildOnly},
		{"etcd", "", "only build etcd, and print the versions and the directories of their programs", false, etcdOnly},
		{"help", "", "show this", false, nil},
	}
}

const intro = `hack/kube runs a real Kubernetes on this machine, without a container engine and
without an image registry: everything is built from pinned Go modules and a few
Debian packages. Each node is a set of namespaces that can be killed, cut off
and brought back.

Usage: hack/kube COMMAND

`

const outro = `
Typical use:
  hack/kube up                      start 3 nodes (the first time builds for minutes)
  eval "$(hack/kube env)"           then kubectl and etcdctl work on it
  kubectl get nodes
  hack/image --load                 build the operator's image and load it
  hack/kube node kill node2         like a power cut
  hack/kube down

Environment:
  LOCALKUBE_NAME      name of the instance (localkube); several can run side by side
  LOCALKUBE_STATE     its directory (/var/lib/etcd-operator-localkube[-NAME]), new or empty: down removes it
  LOCALKUBE_NETWORK   its addresses, an IPv4 /16 (10.96.0.0/16), an IPv6 /112, or both with a
                      comma between them
  LOCALKUBE_KUBERNETES  minor version of Kubernetes to start, such as 1.34 (the newest that is pinned)
  XDG_CACHE_HOME      built programs and images are in $XDG_CACHE_HOME/etcd-operator ($HOME/.cache)

hack/localkube/README.md explains how it works.
`

// Main runs a command and returns the exit code.
func Main(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	a, err := newApp(stdout, stderr)
	if err == nil {
		err = a.dispatch(ctx, args)
	}
	switch {
	case err == nil, errors.Is(err, flag.ErrHelp):
		return 0
	case errors.Is(err, ErrUsage):
		return 2
	case errors.Is(err, context.Canceled) && ctx.Err() != nil:
		fmt.Fprintln(stderr, interrupted(args[0]))
		return 130
	default:
		fmt.Fprintln(stderr, "error:", err)
		return 1
	}
}

// interrupted says what an interrupted command leaves.
func interrupted(command string) string {
	switch command {
	case "up":
		return "Interrupted; nothing was left running."
	case "down":
		return "Interrupted; run `hack/kube down` again."
	default:
		return "Interrupted."
	}
}

func newApp(stdout, stderr io.Writer) (*App, error) {
	a := &App{Stdout: stdout, Stderr: stderr, Root: os.Getenv("LOCALKUBE_SOURCE")}
	if a.Root == "" {
		return nil, errors.New("run hack/kube or hack/image, which build and call this program")
	}
	cache := os.Getenv("XDG_CACHE_HOME")
	if cache == "" {
		home, err := os.UserHomeDir()
		if err != nil {
			return nil, fmt.Errorf("where to keep what is built: %w; set XDG_CACHE_HOME", err)
		}
		cache = filepath.Join(home, ".cache")
	}
	a.Cache = filepath.Join(cache, "etcd-operator")
	var err error
	if a.Instance, err = instance.FromEnv(os.Getenv); err != nil {
		return nil, err
	}
	a.Kubernetes, err = minor(a.builder(), os.Getenv("LOCALKUBE_KUBERNETES"))
	return a, err
}

// minor checks that a minor version of Kubernetes is pinned, beside the newest one.
func minor(b build.Builder, name string) (string, error) {
	if name == "" {
		return "", nil
	}
	known, err := b.Minors()
	if err == nil && !slices.Contains(known, name) {
		err = fmt.Errorf("LOCALKUBE_KUBERNETES=%q: want one of %s, or nothing for the newest one", name, strings.Join(known, ", "))
	}
	return name, err
}

func (a *App) dispatch(ctx context.Context, args []string) error {
	if len(args) == 0 {
		a.usage(a.Stderr)
		return ErrUsage
	}
	name, args := args[0], args[1:]
	if name == "help" || name == "-h" || name == "--help" {
		a.usage(a.Stdout)
		return nil
	}
	if name == "image" { // called by hack/image
		return image(ctx, a, args)
	}
	for _, c := range commands() {
		if c.name != name {
			continue
		}
		if c.needsRoot && os.Geteuid() != 0 && !wantsHelp(args) {
			return fmt.Errorf("hack/kube %s makes namespaces, mounts and cgroups: run it as root (sudo hack/kube %s)", name, name)
		}
		return c.run(ctx, a, args)
	}
	fmt.Fprintf(a.Stderr, "There is no command %q; `hack/kube help` lists them.\n", name)
	return ErrUsage
}

func wantsHelp(args []string) bool {
	return len(args) > 0 && (args[0] == "-h" || args[0] == "--help")
}

func (a *App) usage(w io.Writer) {
	fmt.Fprint(w, intro)
	for _, c := range commands() {
		fmt.Fprintf(w, "  %-34s %s\n", strings.TrimSpace(c.name+" "+c.args), c.help)
	}
	fmt.Fprint(w, outro)
}

// say prints a line for the user.
func (a *App) say(format string, args ...any) { fmt.Fprintf(a.Stdout, format+"\n", args...) }

// flags returns a flag set that prints its help with the command's name.
func (a *App) flags(name, usage string) *flag.FlagSet {
	f := flag.NewFlagSet(name, flag.ContinueOnError)
	f.SetOutput(a.Stderr)
	f.Usage = func() {
		fmt.Fprintf(a.Stderr, "Usage: %s\n", usage)
		f.PrintDefaults()
	}
	return f
}

// parse parses flags and refuses other arguments than the wanted number; -1
// takes any.
func parse(f *flag.FlagSet, args []string, positional int) error {
	if err := f.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return err
		}
		return ErrUsage
	}
	if positional >= 0 && f.NArg() != positional {
		f.Usage()
		return ErrUsage
	}
	return nil
}
