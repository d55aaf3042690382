// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package survivor

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
)

// Command is the subcommand of the operator's program that runs a Server.
const Command = "serve-data"

// Parse reads the arguments of the command. It writes errors and the usage to out. The error is
// flag.ErrHelp if the caller asked for help. The caller sets Log.
func Parse(args []string, out io.Writer) (*Server, error) {
	s := &Server{}
	fs := flag.NewFlagSet(Command, flag.ContinueOnError)
	fs.SetOutput(out)
	fs.StringVar(&s.DataDir, "data-dir", "", "etcd's data `directory`")
	fs.StringVar(&s.Listen, "listen", "", "`address` to serve on, such as :2382")
	fs.StringVar(&s.Metrics, "metrics", "127.0.0.1:2381", "`address` where etcd serves its metrics in plain text")
	fs.StringVar(&s.Version, "etcd-version", "", "`version` of etcd, such as 3.6.16, until the metrics name it")
	fs.StringVar(&s.Cert, "cert", "", "`file` with the certificate of this server; without -cert, -key and -ca, the server uses plain text")
	fs.StringVar(&s.Key, "key", "", "`file` with its key")
	fs.StringVar(&s.CA, "ca", "", "`file` with the CAs of the certificates that clients must have")
	if err := fs.Parse(args); err != nil {
		return nil, err
	}
	err := s.check()
	if fs.NArg() > 0 {
		err = fmt.Errorf("unexpected argument %q", fs.Arg(0))
	}
	if err != nil {
		fmt.Fprintf(out, "%s: %v\n", Command, err)
		fs.Usage()
		return nil, err
	}
	return s, nil
}

func (s *Server) check() error {
	if s.DataDir == "" {
		return errors.New("-data-dir is missing")
	}
	if s.Listen == "" {
		return errors.New("-listen is missing")
	}
	if err := checkAddress("listen", s.Listen); err != nil {
		return err
	}
	if err := checkAddress("metrics", s.Metrics); err != nil {
		return err
	}
	if all, none := s.Cert != "" && s.Key != "" && s.CA != "", s.Cert == "" && s.Key == "" && s.CA == ""; !all && !none {
		return errors.New("-cert, -key and -ca belong together: set all of them, or none")
	}
	return nil
}

func checkAddress(name, address string) error {
	if _, port, err := net.SplitHostPort(address); err != nil || port == "" {
		return fmt.Errorf("-%s %q is no address with a port", name, address)
	}
	return nil
}
