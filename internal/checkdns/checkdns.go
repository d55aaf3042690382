// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package checkdns delays etcd in a member's pod. For a member that joins, it waits until the
// running cluster expects the member. Unless SkipName is set, it also waits until the pod's
// name resolves. The init container does that, or the program that becomes etcd afterwards.
//
// Without it, etcd exits at once if --initial-cluster differs from the membership, and the
// kubelet delays each restart longer.
package checkdns

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/etcd-operator/etcd-operator/internal/datadir"
)

// Intervals of the attempts. Lookups are rare enough to spare the cluster's DNS when many pods
// start. Peers get more requests: a member that was just added counts for the quorum and
// should start soon.
const (
	lookupInterval = 150 * time.Millisecond
	// firstLookup is the time until the first lookup of the pod's name. Kubernetes publishes a
	// pod's address some 300 ms after its first container starts. CoreDNS caches a denial for
	// 5 to 30 s in most clusters.
	firstLookup = 500 * time.Millisecond
	// firstContact is the time until the first request to peers that look up their callers,
	// where check-dns looks up no name before.
	firstContact  = time.Second
	lookupTimeout = 2 * time.Second
	peersInterval = 50 * time.Millisecond
	// turnInterval is the interval of a member that still waits for its turn after patience.
	turnInterval = 200 * time.Millisecond
	// slowAnswer is how long a peer may take before the next one is asked too.
	slowAnswer = 200 * time.Millisecond
	// patience is how long requests to silent peers stay that frequent. etcd logs a line for
	// each caller that it rejects.
	patience = 5 * time.Second
	// trust is how long check-dns asks only the peers whose addresses it knows. After that it
	// asks all peers by name.
	trust            = 10 * time.Second
	patientInterval  = time.Second
	peerTimeout      = time.Second
	progressInterval = 5 * time.Second
	// handshakeTimeout is longer than peerTimeout. A handshake continues after its request, and a later
	// request takes the connection of a slow peer.
	handshakeTimeout = 5 * time.Second
)

// Resolver looks up names.
type Resolver interface {
	LookupNetIP(ctx context.Context, network, host string) ([]netip.Addr, error)
}

// Config is what to wait for, and how.
type Config struct {
	// Name is the DNS name of this pod.
	Name string
	// IP is this pod's address. The zero Addr accepts any address.
	IP netip.Addr
	// Timeout bounds the whole wait; 0: no bound.
	Timeout time.Duration
	// SkipName says not to wait until Name resolves. The DNS answers an early lookup with "no
	// such host", and may cache that for 30 s.
	SkipName bool

	// InitialCluster is the membership to wait for; nil: do not wait.
	InitialCluster Membership
	// Peers are the URLs of members that are asked for the membership.
	Peers []string
	// Addresses are those of some peers, by host name. They may be out of date.
	Addresses map[string]netip.Addr
	// Reach are peer URLs of members of another etcd that has to answer from here before this one
	// joins it.
	Reach []string
	// DataDir is etcd's data directory. A member with data starts without the membership: all
	// other members may be down.
	DataDir string
	// RequireData is set for a member that restarts. Without its data it could vote a second
	// time on entries that it has forgotten, so it must not start.
	RequireData bool
	// Member is the ID of the member that has served from this pod, as the operator noted it
	// on the pod. Such a member must not start without its data. "": none has.
	Member string
	// Started is a file that survives the data of a member that restarts in place. Run creates
	// it at the end of the wait. If it exists and the data does not, etcd must not start. "":
	// there is no such file.
	Started string
	// First is a file that survives the data of a new member as long as its pod. Run creates it before
	// the member has data. Without it, data is of somebody else, who has left it on the volume. "": there is
	// no such file.
	First string
	// Begun is a file beside the data of the first member of a new cluster. Run writes Name into it before
	// the member has data. Without that, data is of somebody else. The file is on the volume, because
	// the pod may be recreated before the member serves. "": there is no such file.
	Begun string
	// Leave is a file to which Run copies Program at the end, for the etcd container; "": none.
	Leave, Program string
	// Certificate is what peers demand from a client.
	Certificate Certificate

	Resolver  Resolver
	Transport http.RoundTripper
	Out       io.Writer // one line for each event

	asked []string // of the Peers; nil: all
}

// ErrNotExpected is the error of Run if the wait ended before its condition was met. etcd has
// not started then.
var ErrNotExpected = errors.New("the wait ended early")

// ExitNotStarted is the exit code of an etcd container that ends with ErrNotExpected. etcd has
// no such exit code: the operator learns from it that etcd has not run.
const ExitNotStarted = 75

// notExpected is an error that is ErrNotExpected, and says more.
type notExpected struct{ error }

func (e notExpected) Unwrap() []error { return []error{e.error, ErrNotExpected} }

// PureResolver returns Go's own resolver. It honours the search list of a pod's resolv.conf,
// whatever C library the image has.
func PureResolver() *net.Resolver { return &net.Resolver{PreferGo: true} }

// Run waits. Its error says in one line what it waited for, what it saw last and what to
// check.
func Run(ctx context.Context, cfg Config) error {
	bounded, w := ctx, waiter{out: cfg.Out, start: time.Now()}
	if cfg.Timeout > 0 {
		var cancel context.CancelCauseFunc
		bounded, cancel = context.WithCancelCause(ctx)
		defer cancel(nil)
		limit := time.AfterFunc(cfg.Timeout, func() { cancel(context.DeadlineExceeded) })
		defer limit.Stop()
		w.extend = func() { limit.Reset(cfg.Timeout) }
	}
	if err := datadir.CheckStarted(cfg.DataDir, cfg.Member); err != nil {
		return err
	}
	if cfg.First != "" && cfg.Member == "" {
		if err := checkFirst(cfg.First, cfg.DataDir); err != nil {
			return err
		}
	}
	if cfg.Begun != "" && cfg.Member == "" {
		if err := checkBegun(cfg.Begun, cfg.Name, cfg.DataDir); err != nil {
			return err
		}
	}
	if cfg.RequireData {
		if err := findData(cfg.DataDir); err != nil {
			return err
		}
	}
	if cfg.Started != "" {
		if err := checkStarted(cfg.Started, cfg.DataDir); err != nil {
			return err
		}
	}
	// Run awaits the membership first, because an early lookup of the pod's name puts "no such
	// host" into the DNS server's cache for seconds. A peer that demands certificates looks up
	// the name of its caller, with the same effect, so Run does not call such a peer before
	// the first lookup, or before firstContact where it looks up no name.
	waits := []func(context.Context, Config, waiter) error{awaitReach, awaitMembership, awaitName}
	if cfg.SkipName {
		waits = waits[:2]
	} else if cfg.Certificate != (Certificate{}) {
		slices.Reverse(waits)
	}
	for _, await := range waits {
		if err := await(bounded, cfg, w); err != nil {
			return err
		}
	}
	if cfg.Started != "" {
		if err := markStarted(cfg.Started); err != nil {
			return err
		}
	}
	if cfg.Leave != "" {
		return leave(cfg.Program, cfg.Leave)
	}
	return nil
}

// awaitName waits until the pod's name resolves. The first lookup happens firstLookup after
// the start of the whole wait.
func awaitName(ctx context.Context, cfg Config, w waiter) error {
	return w.until(ctx, wait{
		what:     nameWait(cfg),
		hint:     "check that the cluster's headless Service exists and that the cluster's DNS works",
		try:      func(ctx context.Context) error { return lookup(ctx, cfg) },
		first:    firstLookup - time.Since(w.start),
		interval: lookupInterval,
	})
}

// awaitMembership waits until the running members expect this one. A seed, and a member that
// restarts with its data, need not wait.
func awaitMembership(ctx context.Context, cfg Config, w waiter) error {
	if cfg.InitialCluster == nil || cfg.hasData(w) {
		return nil
	}
	hint := "check that these members run, and the events of the EtcdCluster for why this member was not added"
	if cfg.Certificate != (Certificate{}) {
		hint += "; EOF means that the peer turns the certificate away: it must also be valid for the name to which this pod's address resolves, " +
			"such as *.<cluster>.<namespace>.svc.cluster.local"
	}
	return w.until(ctx, wait{
		what:     fmt.Sprintf("etcd at %s to have exactly the members %s", strings.Join(cfg.Peers, ", "), cfg.InitialCluster),
		hint:     hint,
		try:      func(ctx context.Context) error { return askPeers(ctx, cfg.knownPeers(time.Since(w.start))) },
		first:    cfg.firstContact(w),
		interval: peersInterval,
		later:    turnInterval,
	})
}

// hasData reports whether the member starts with data. The other members need not answer then:
// all of them may be down, or gone.
func (cfg Config) hasData(w waiter) bool {
	hasData, err := datadir.HoldsData(cfg.DataDir)
	if err != nil {
		w.say("can't read whether the member has data: %v", err)
	}
	if hasData {
		w.say("the member has data in %s: the other members need not answer", cfg.DataDir)
	}
	return hasData
}

// awaitReach waits until all members of Reach answer.
func awaitReach(ctx context.Context, cfg Config, w waiter) error {
	if len(cfg.Reach) == 0 || cfg.hasData(w) {
		return nil
	}
	return w.until(ctx, wait{
		what: "the members to import to answer at " + strings.Join(cfg.Reach, ", "),
		hint: "check that the host names resolve in this namespace, that network policies allow port 2380 in both directions, and that the peer certificate is of their CA",
		try: func(ctx context.Context) error {
			ctx, cancel := context.WithTimeout(ctx, peerTimeout)
			defer cancel()
			for _, peer := range cfg.Reach {
				if _, _, err := membersOf(ctx, cfg.Transport, peer); err != nil {
					return fmt.Errorf("%w: %w", errNoAnswer, err)
				}
			}
			return nil
		},
		first:    cfg.firstContact(w),
		interval: lookupInterval,
	})
}

// firstContact is the time until the first request to a peer.
func (cfg Config) firstContact(w waiter) time.Duration {
	if cfg.SkipName && cfg.Certificate != (Certificate{}) {
		return firstContact - time.Since(w.start)
	}
	return 0
}

func nameWait(cfg Config) string {
	if cfg.IP.IsValid() {
		return fmt.Sprintf("%s to resolve to %s", cfg.Name, cfg.IP)
	}
	return cfg.Name + " to resolve"
}

func lookup(ctx context.Context, cfg Config) error {
	ctx, cancel := context.WithTimeout(ctx, lookupTimeout)
	defer cancel()
	addrs, err := cfg.Resolver.LookupNetIP(ctx, "ip", cfg.Name)
	if err != nil {
		return err
	}
	if !cfg.IP.IsValid() && len(addrs) > 0 {
		return nil
	}
	for _, a := range addrs {
		if a.Unmap() == cfg.IP.Unmap() {
			return nil
		}
	}
	return fmt.Errorf("it resolves to %v", addrs)
}

// findData fails if the data directory holds no data of etcd.
func findData(dataDir string) error {
	hasData, err := datadir.HoldsData(dataDir)
	switch {
	case err != nil:
		return fmt.Errorf("look for the member's data in %s: %w", dataDir, err)
	case !hasData:
		return fmt.Errorf("the volume holds no data of etcd in %s: this member must not restart without its data, which could lose writes; "+
			"restore the volume's data, or delete the PersistentVolumeClaim and the pod so that the operator replaces the member", dataDir)
	}
	return nil
}

// wait is a condition to wait for.
type wait struct {
	what, hint string
	try        func(context.Context) error
	first      time.Duration // before the first attempt; none if negative
	interval   time.Duration // between attempts
	later      time.Duration // between attempts after patience; 0: as before
}

type waiter struct {
	out   io.Writer
	start time.Time // of the whole wait
	// extend makes the whole timeout begin again; nil: there is none.
	extend func()
}

func (w waiter) say(format string, args ...any) {
	fmt.Fprintf(w.out, "check-dns: %s\n", fmt.Sprintf(format, args...))
}

// until retries until an attempt succeeds or ctx ends. At intervals, it logs what it waits
// for.
func (w waiter) until(ctx context.Context, wait wait) error {
	start := time.Now()
	elapsed := func() time.Duration { return time.Since(start).Round(time.Millisecond) }
	progress := time.NewTicker(progressInterval)
	defer progress.Stop()
	pause := time.NewTimer(max(0, wait.first))
	defer pause.Stop()
	last := errors.New("no attempt was made yet")
	for {
		select {
		case <-ctx.Done():
			reason := "was asked to stop"
			if errors.Is(context.Cause(ctx), context.DeadlineExceeded) {
				reason = "gave up"
			}
			return notExpected{fmt.Errorf("%s after %s of waiting for %s: %w: %s", reason, elapsed(), wait.what, last, wait.hint)}
		case <-progress.C:
			w.say("waiting for %s, for %s now: %v", wait.what, elapsed(), last)
		case <-pause.C:
			err := wait.try(ctx)
			if err == nil {
				w.say("waited %s for %s", elapsed(), wait.what)
				return nil
			}
			if errors.Is(err, errServedBefore) {
				return err
			}
			if ctx.Err() == nil { // otherwise the attempt failed because ctx ended
				last = err
			}
			if w.extend != nil && errors.As(err, new(turnError)) {
				w.extend()
			}
			switch patient := time.Since(start) > patience; {
			case patient && errors.Is(err, errNoAnswer):
				pause.Reset(patientInterval)
			case patient && wait.later > 0:
				pause.Reset(wait.later)
			default:
				pause.Reset(wait.interval)
			}
		}
	}
}
