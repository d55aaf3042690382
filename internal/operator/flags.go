// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"errors"
	"flag"
	"fmt"
	"io"

	"github.com/etcd-operator/etcd-operator/internal/pod"
)

// Flags are the flags of all operators.
type Flags struct {
	ListenAddr  string
	CreateCRD   bool
	ClusterWide bool
	// AnyScope is a flag of the backup operator and the restore operator.
	AnyScope   bool
	Kubeconfig string
	Version    bool
}

// Register adds the flags to a set. kind is the kind of object that the operator manages.
// scope is the annotation of the objects that operators with -cluster-wide manage.
func (f *Flags) Register(fs *flag.FlagSet, kind, scope string) {
	fs.StringVar(&f.ListenAddr, "listen-addr", "0.0.0.0:8080", "`address` of the HTTP server for /readyz and /metrics")
	fs.BoolVar(&f.CreateCRD, "create-crd", true, fmt.Sprintf("register the CustomResourceDefinition of %ss and keep it up to date; false: wait until it exists", kind))
	fs.BoolVar(&f.ClusterWide, "cluster-wide", false, fmt.Sprintf("manage the %ss with the annotation %s in all namespaces; false: those without it in the operator's namespace", kind, scope))
	fs.StringVar(&f.Kubeconfig, "kubeconfig", "", "`file` with the address and credentials of the API server; default: those of the pod")
	fs.BoolVar(&f.Version, "version", false, "print the version and exit")
}

// Parse reads the command line of a program with these flags and those that more adds. It
// writes errors and the usage to out. The error is flag.ErrHelp if the caller asked for help.
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
	err := CheckArgs(fs.Args())
	if err == nil && f.AnyScope && !f.ClusterWide {
		err = errors.New("-any-scope needs -cluster-wide")
	}
	if err != nil {
		fmt.Fprintf(out, "%s: %v\n", program, err)
		fs.Usage()
		return err
	}
	return nil
}

// CheckArgs refuses arguments that are not flags.
func CheckArgs(rest []string) error {
	if len(rest) > 0 {
		return fmt.Errorf("unexpected argument %q: a flag's value follows an equals sign, as in -create-crd=false", rest[0])
	}
	return nil
}
