// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package checkdns

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"net/netip"
	"os"
	"slices"
	"time"

	"github.com/etcd-operator/etcd-operator/internal/datadir"
)

// PodIPEnv names the environment variable that holds the pod's address.
const PodIPEnv = "MY_POD_IP"

// Parse reads the arguments and the environment of check-dns. It writes errors and the usage
// to out. The error is flag.ErrHelp if the caller asked for help.
func Parse(args []string, getenv func(string) string, out io.Writer) (Config, error) {
	cfg := Config{Member: getenv(datadir.StartedEnv)}
	var initialCluster string
	fs := flag.NewFlagSet("check-dns", flag.ContinueOnError)
	fs.SetOutput(out)
	fs.StringVar(&cfg.Name, "name", "", "DNS `name` of this pod; wait until it resolves, to $"+PodIPEnv+" if that is set")
	fs.BoolVar(&cfg.SkipName, "skip-name", false, "don't wait until the name resolves; a look-up that comes before the name is published delays all that follow, where the DNS keeps denials")
	fs.DurationVar(&cfg.Timeout, "timeout", 2*time.Minute, "longest time to wait for everything; 0: no bound")
	fs.StringVar(&initialCluster, "initial-cluster", "", "wait until the running members know exactly these members (`name=url,...`); each is one that runs or is about to join")
	fs.Func("peer", "peer `URL` of a member to ask for the membership; repeat for more", func(s string) error {
		cfg.Peers = append(cfg.Peers, s)
		return checkURL(s)
	})
	fs.Func("reach", "peer `URL` of a member of another etcd that must answer; repeat for more", func(s string) error {
		cfg.Reach = append(cfg.Reach, s)
		return checkURL(s)
	})
	fs.Func("address", "`HOST=IP` of a peer, so that nobody looks it up; repeat for more; where it does not answer, the name counts", func(s string) error {
		host, ip, err := parseAddress(s)
		if err == nil {
			if cfg.Addresses == nil {
				cfg.Addresses = map[string]netip.Addr{}
			}
			cfg.Addresses[host] = ip
		}
		return err
	})
	fs.StringVar(&cfg.DataDir, "data-dir", "", "etcd's data `directory`; where it holds a write-ahead log, the membership is not waited for")
	fs.BoolVar(&cfg.RequireData, "require-data", false, "fail where -data-dir holds no write-ahead log: a member that comes back without its data could lose writes")
	fs.StringVar(&cfg.Started, "started", "", "`file` to make when the waiting is over; where it is there already and -data-dir holds no write-ahead log, fail: the member has lost its data")
	fs.StringVar(&cfg.First, "first", "", "`file` to make where -data-dir holds no write-ahead log; where -data-dir holds one, and there is no such file, fail: the data is of another etcd")
	fs.StringVar(&cfg.Begun, "begun", "", "`file` to write -name to where -data-dir holds no write-ahead log; where -data-dir holds one, and the file another name or none, fail: the data is of another etcd")
	fs.StringVar(&cfg.Leave, "leave", "", "`file` to copy this program to when the waiting is over")
	fs.StringVar(&cfg.Certificate.Cert, "peer-cert", "", "`file` with the certificate to show to peers that serve https")
	fs.StringVar(&cfg.Certificate.Key, "peer-key", "", "`file` with its private key")
	fs.StringVar(&cfg.Certificate.CA, "peer-ca", "", "`file` with the CA of the peers' certificates")
	if err := fs.Parse(args); err != nil {
		return Config{}, err
	}
	if err := cfg.complete(initialCluster, getenv(PodIPEnv), fs.Args()); err != nil {
		fmt.Fprintf(out, "check-dns: %v\n", err)
		fs.Usage()
		return Config{}, err
	}
	return cfg, nil
}

func (cfg *Config) complete(initialCluster, ip string, rest []string) error {
	var err error
	switch {
	case len(rest) > 0:
		return fmt.Errorf("unexpected argument %q", rest[0])
	case cfg.Name == "":
		return errors.New("-name is missing")
	case cfg.Timeout < 0:
		return fmt.Errorf("-timeout %s is negative", cfg.Timeout)
	case (initialCluster == "") != (len(cfg.Peers) == 0):
		return errors.New("-initial-cluster and -peer need each other")
	}
	if cfg.Member != "" && cfg.DataDir == "" {
		return fmt.Errorf("environment variable %s needs -data-dir", datadir.StartedEnv)
	}
	if cfg.RequireData && cfg.DataDir == "" {
		return errors.New("-require-data needs -data-dir")
	}
	if cfg.Started != "" && cfg.DataDir == "" {
		return errors.New("-started needs -data-dir")
	}
	if cfg.First != "" && cfg.DataDir == "" {
		return errors.New("-first needs -data-dir")
	}
	if cfg.Begun != "" && cfg.DataDir == "" {
		return errors.New("-begun needs -data-dir")
	}
	if err = cfg.Certificate.check(slices.Concat(cfg.Peers, cfg.Reach)); err != nil {
		return err
	}
	if initialCluster != "" {
		if cfg.InitialCluster, err = ParseInitialCluster(initialCluster); err != nil {
			return fmt.Errorf("-initial-cluster: %w", err)
		}
	}
	if cfg.Leave != "" {
		if cfg.Program, err = os.Executable(); err != nil {
			return fmt.Errorf("-leave: find this program: %w", err)
		}
	}
	if ip != "" {
		if cfg.IP, err = netip.ParseAddr(ip); err != nil {
			return fmt.Errorf("environment variable %s: %w", PodIPEnv, err)
		}
	}
	return nil
}
