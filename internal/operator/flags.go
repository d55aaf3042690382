// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"flag"
	"fmt"
	"io"

	"github.com/etcd-operator/etcd-operator/internal/pod"
)

// Flags are those that all operators have.
type Flags struct {
	ListenAddr  string
	CreateCRD   bool
	ClusterWide bool
	Kubeconfig  string
	Version     bool
}

// Register adds the flags to a set. kind is that of the objects that the operator
// takes care of, scope the annotation of those that are left to operators with
// -cluster-wide.
func (f *Flags) Register(fs *flag.FlagSet, kind, scope string) {
	fs.StringVar(&f.ListenAddr, "listen-addr", "0.0.0.0:8080", "`address` of the HTTP server for /readyz and /metrics")
	fs.BoolVar(&f.CreateCRD, "create-crd", true, fmt.Sprintf("register the CustomResourceDefinition of %ss and keep it up to date; false: wait until it exists", kind))
	fs.BoolVar(&f.ClusterWide, "cluster-wide", false, fmt.Sprintf("manage the %ss with the annotation %s in all namespaces; false: those without it in the operator's namespace", kind, scope))
	fs.StringVar(&f.Kubeconfig, "kubeconfig", "", "`file` with the address and credentials of the API server; default: those of the pod")
	fs.BoolVar(&f.Version, "version", false, "print the version and exit")
}

// Parse reads the command line of a program that has these flags, and those that more
// adds. It tells what is wrong on out, with the usage; the error is flag.ErrHelp where
// that was asked for.
func (f *Flags) Parse(program, kind, scope string, args []string, out io.Writer, more func(*flag.FlagSet)) error {
	fs := flag.NewFlagSet(program, flag.ContinueOnError)
	fs.SetOutput(out)
	f.Register(fs, kind, scope)
	more(fs)
	fs.Usage = func() {
		fmt.Fprintf(out, "Usage:\n  %s [flags]\n\nFlags:\n", program)
		fs.PrintDefaults()
		fmt.Fprintf(out, "\nEnvironment of the operator's pod:\n  %s, %s   required in a pod\n", pod.NameEnv, pod.NamespaceEnv)
	}
	if err := fs.Parse(args); err != nil {
		return err
	}
	if err := CheckArgs(fs.Args()); err != nil {
		fmt.Fprintf(out, "%s: %v\n", program, err)
		fs.Usage()
		return err
	}
	return nil
}

// CheckArgs refuses what is left over of a command line.
func CheckArgs(rest []string) error {
	if len(rest) > 0 {
		return fmt.Errorf("unexpected argument %q: a flag's value follows an equals sign, as in -create-crd=false", rest[0])
	}
	return nil
}
