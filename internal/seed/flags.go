// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package seed

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"net/url"
	"os"
	"regexp"

	"github.com/etcd-operator/etcd-operator/internal/datadir"
	"github.com/etcd-operator/etcd-operator/pkg/etcd"
)

var digits = regexp.MustCompile(`^[0-9a-f]{64}$`)

// ParseFetch reads the arguments of fetch-backup. It writes errors and the usage to out. The
// error is flag.ErrHelp if the caller asked for help.
func ParseFetch(args []string, out io.Writer) (Fetch, error) {
	f := Fetch{Member: os.Getenv(datadir.StartedEnv)}
	fs := flag.NewFlagSet("fetch-backup", flag.ContinueOnError)
	fs.StringVar(&f.URL, "url", "", "`URL` of the backup at the restore operator")
	fs.StringVar(&f.TokenFile, "token-file", "", "`file` with the token to show there")
	fs.Int64Var(&f.Size, "size", 0, "size of the backup in `bytes`")
	fs.StringVar(&f.SHA256, "sha256", "", "SHA-256 of the backup, in hexadecimal `digits`; no other content is taken")
	fs.StringVar(&f.Dir, "dir", "", "`directory` to leave the backup in, and this program")
	fs.StringVar(&f.DataDir, "data-dir", "", "etcd's data `directory`; where it holds a write-ahead log, nothing is fetched")
	err := parse(fs, args, out, func() error {
		u, err := url.Parse(f.URL)
		switch {
		case err != nil:
			return fmt.Errorf("-url: %w", err)
		case u.Scheme != "http" && u.Scheme != "https" || u.Host == "":
			return fmt.Errorf("-url %q is no URL of a server", f.URL)
		case f.Size <= 0:
			return errors.New("-size must be more than 0")
		case !digits.MatchString(f.SHA256):
			return errors.New("-sha256 must have 64 hexadecimal digits, in lower case")
		}
		return needed("token-file", f.TokenFile, "dir", f.Dir, "data-dir", f.DataDir)
	})
	return f, err
}

// ParseCopy does the same for copy-source, and for check-source.
func ParseCopy(args []string, out io.Writer) (Copy, error) {
	c := Copy{Member: os.Getenv(datadir.StartedEnv)}
	fs := flag.NewFlagSet(CopyCommand, flag.ContinueOnError)
	fs.Func("endpoint", "client `URL` of a member of the running etcd; repeat it for each", func(text string) error {
		ep, err := etcd.ParseEndpoint(text, true)
		c.Endpoints = append(c.Endpoints, ep)
		return err
	})
	fs.StringVar(&c.ClusterID, "cluster-id", "", "`ID` of the running etcd in hexadecimal; no other is copied")
	fs.StringVar(&c.Owner, "owner", "", "`UID` in whose name the running etcd refuses writes")
	fs.StringVar(&c.TLSDir, "tls-dir", "", "`directory` with the Secret of the client certificate; none without")
	fs.StringVar(&c.UserDir, "user-dir", "", "`directory` with the Secret of the user; none without")
	fs.BoolVar(&c.SkipVerification, "skip-verification", false, "do not compare the names in the endpoints with the certificates")
	fs.StringVar(&c.Dir, "dir", "", "`directory` to leave the snapshot in, and this program")
	fs.StringVar(&c.DataDir, "data-dir", "", "etcd's data `directory`; where it holds a write-ahead log, nothing is copied")
	err := parse(fs, args, out, func() error {
		if len(c.Endpoints) == 0 {
			return errors.New("-endpoint is missing")
		}
		return needed("cluster-id", c.ClusterID, "owner", c.Owner, "dir", c.Dir, "data-dir", c.DataDir)
	})
	return c, err
}

// ParseTool does the same for check-tool. It returns the file of the tool.
func ParseTool(args []string, out io.Writer) (tool string, err error) {
	fs := flag.NewFlagSet(ToolCommand, flag.ContinueOnError)
	fs.StringVar(&tool, "tool", "", "`file` of etcdutl; of etcdctl for etcd before 3.5")
	err = parse(fs, args, out, func() error { return needed("tool", tool) })
	return tool, err
}

// ParseRestore does the same for restore-backup.
func ParseRestore(args []string, out io.Writer) (Restore, error) {
	r := Restore{Member: os.Getenv(datadir.StartedEnv)}
	fs := flag.NewFlagSet("restore-backup", flag.ContinueOnError)
	fs.StringVar(&r.Dir, "dir", "", "`directory` that fetch-backup has left the backup in")
	fs.StringVar(&r.DataDir, "data-dir", "", "etcd's data `directory` to make; where it holds a write-ahead log, nothing is done")
	fs.StringVar(&r.Tool, "tool", "", "`file` of etcdutl; of etcdctl for etcd before 3.5")
	fs.StringVar(&r.Name, "name", "", "`name` of the member")
	fs.StringVar(&r.PeerURL, "peer-url", "", "peer `URL` of the member")
	fs.StringVar(&r.ClusterToken, "initial-cluster-token", "", "what makes the cluster another than all before it")
	fs.Int64Var(&r.SnapshotSize, "snapshot-size", 0, "size in `bytes` of the snapshot at the beginning of the backup, if a log of changes follows it; 0: none does")
	fs.Int64Var(&r.Revision, "revision", 0, "`revision` to take the backup to; 0: that of the backup")
	fs.Int64Var(&r.BumpRevision, "bump-revision", 0, "how much to raise the revision and mark what is below as compacted; 0: not at all")
	err := parse(fs, args, out, func() error {
		if r.SnapshotSize < 0 {
			return fmt.Errorf("-snapshot-size %d is negative", r.SnapshotSize)
		}
		if r.SnapshotSize > 0 && r.Revision == 0 {
			return errors.New("-snapshot-size needs -revision: the log has many")
		}
		if r.Revision < 0 {
			return fmt.Errorf("-revision %d is negative", r.Revision)
		}
		if r.BumpRevision < 0 {
			return fmt.Errorf("-bump-revision %d is negative", r.BumpRevision)
		}
		return needed("dir", r.Dir, "data-dir", r.DataDir, "tool", r.Tool, "name", r.Name, "peer-url", r.PeerURL, "initial-cluster-token", r.ClusterToken)
	})
	return r, err
}

func parse(fs *flag.FlagSet, args []string, out io.Writer, check func() error) error {
	fs.SetOutput(out)
	if err := fs.Parse(args); err != nil {
		return err
	}
	err := check()
	if fs.NArg() > 0 {
		err = fmt.Errorf("unexpected argument %q", fs.Arg(0))
	}
	if err != nil {
		fmt.Fprintf(out, "%s: %v\n", fs.Name(), err)
		fs.Usage()
	}
	return err
}

// needed returns an error that names the first missing flag. flags are names, each followed by
// its value.
func needed(flags ...string) error {
	for i := 0; i+1 < len(flags); i += 2 {
		if flags[i+1] == "" {
			return fmt.Errorf("-%s is missing", flags[i])
		}
	}
	return nil
}
