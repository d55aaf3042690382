// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Command releaser makes the files of a release. hack/release runs it in a copy of the commit,
// so that each commit has the releaser that fits it.
//
//	releaser make -root DIR -ref REF -commit SHA -time SECONDS -version VERSION -out DIR
//	releaser check DIR DIR
//
// The files depend on these arguments and the source alone: two runs write the same bytes.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"
)

const usage = `usage: releaser make -root DIR -ref REF -commit SHA -time SECONDS -version VERSION -out DIR
       releaser check DIR DIR
`

// errUsage is returned when the command line is wrong.
var errUsage = errors.New("usage")

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stdout)
	stop()
	switch {
	case errors.Is(err, errUsage):
		fmt.Fprint(os.Stderr, usage)
		os.Exit(2)
	case err != nil:
		fmt.Fprintln(os.Stderr, "hack/release:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, out io.Writer) error {
	switch {
	case len(args) == 3 && args[0] == "check":
		return check(args[1], args[2], out)
	case len(args) > 0 && args[0] == "make":
		return makeRelease(ctx, args[1:], out)
	default:
		return errUsage
	}
}

func makeRelease(ctx context.Context, args []string, out io.Writer) error {
	fs := flag.NewFlagSet("make", flag.ContinueOnError)
	fs.SetOutput(io.Discard)
	var r release
	fs.StringVar(&r.source.Root, "root", "", "the source tree")
	fs.StringVar(&r.source.Version, "version", "", "the version, such as v1.2.3")
	fs.StringVar(&r.commit, "commit", "", "the commit of the source tree")
	fs.StringVar(&r.ref, "ref", "", "the name of the commit, such as refs/tags/v1.2.3")
	seconds := fs.Int64("time", 0, "the time of the commit, in seconds since 1970")
	directory := fs.String("out", "", "the directory to write; it must not exist")
	if err := fs.Parse(args); err != nil || fs.NArg() > 0 {
		return errUsage
	}
	r.time = time.Unix(*seconds, 0).UTC()
	r.operators, r.archs, r.plugins = allOperators, allArchs, allPlugins
	if err := r.check(); err != nil {
		return err
	}
	if err := r.write(ctx, *directory, out); err != nil {
		return err
	}
	fmt.Fprintf(out, "Wrote %s\n", *directory)
	return nil
}
