// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package checkdns is the init container of a member's pod. It holds etcd back
// until the pod can be reached by its name and, for a member that joins a running
// cluster, until that cluster expects it: etcd exits at once where its
// --initial-cluster is not exactly the membership, and the kubelet would wait
// longer and longer before it starts etcd again.
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

// Times of the waiting. The lookups are apart far enough to spare the cluster's
// DNS when many pods start; the peers are asked more often because a member that
// was just added counts for the quorum and should start soon.
const (
	lookupInterval = 150 * time.Millisecond
	// firstLookup is when the pod's name is looked up first. A pod's address is
	// published some 300 ms after its first container starts; CoreDNS as most
	// clusters run it keeps a denial for 5 to 30 s.
	firstLookup = 500 * time.Millisecond
	// firstContact is when peers that look up their callers are called first, where
	// nobody looks up the name before.
	firstContact  = time.Second
	lookupTimeout = 2 * time.Second
	peersInterval = 50 * time.Millisecond
	// patience is how long peers that give no answer are asked that often. etcd
	// writes a line for each caller that it turns away.
	patience = 5 * time.Second
	// trust is how long only the peers of known addresses are asked. The others are
	// asked by their names.
	trust            = 10 * time.Second
	patientInterval  = time.Second
	peerTimeout      = time.Second
	progressInterval = 5 * time.Second
)

// Resolver looks names up.
type Resolver interface {
	LookupNetIP(ctx context.Context, network, host string) ([]netip.Addr, error)
}

// Config says what to wait for.
type Config struct {
	// Name is the DNS name of this pod.
	Name string
	// IP is this pod's address; the zero Addr: any address will do.
	IP netip.Addr
	// Timeout bounds all of the waiting; 0: no bound.
	Timeout time.Duration
	// SkipName says not to wait until Name resolves. A look-up that comes too early is
	// answered "no such host", and a DNS server may keep that for 30 s.
	SkipName bool

	// InitialCluster is the membership to wait for; nil: don't.
	InitialCluster Membership
	// Peers are the URLs of members to ask for the membership.
	Peers []string
	// Addresses are those of some peers, by host name. They may be out of date.
	Addresses map[string]netip.Addr
	// DataDir is etcd's data directory. A member that has data in it needs no
	// membership to start: all others may be down.
	DataDir string
	// RequireData is for a member that comes back: without its data it would vote
	// a second time on what it has forgotten, so it must not start.
	RequireData bool
	// Member is the ID of the member that has served from this pod before, by the
	// operator's note on the pod: it must not start without its data. "": none has.
	Member string
	// Started is a file that outlives the data of a member that restarts in place:
	// where it is, etcd was let go before, and must not start without data. Run
	// makes it when all the waiting is over. "": there is none.
	Started string
	// Certificate is what the peers ask for.
	Certificate Certificate

	Resolver  Resolver
	Transport http.RoundTripper
	Out       io.Writer // one line for each thing that happens

	asked []string // of the Peers; nil: all
}

// PureResolver returns Go's own resolver, which honours the search list of a
// pod's resolv.conf whatever the C library of the image.
func PureResolver() *net.Resolver { return &net.Resolver{PreferGo: true} }

// Run waits. Its error says in one line what it waited for, what it last saw and
// what to check.
func Run(ctx context.Context, cfg Config) error {
	bounded := ctx
	if cfg.Timeout > 0 {
		var cancel context.CancelFunc
		bounded, cancel = context.WithTimeout(ctx, cfg.Timeout)
		defer cancel()
	}
	w := waiter{out: cfg.Out, start: time.Now()}
	if err := datadir.CheckStarted(cfg.DataDir, cfg.Member); err != nil {
		return err
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
	// The membership comes first: meanwhile the pod's name is published, and a
	// look-up before that would be answered "no such host" from the DNS server's
	// cache for seconds. But a peer that asks for certificates looks up the name of
	// whoever calls, with the same effect, so it is not called before.
	waits := []func(context.Context, Config, waiter) error{awaitMembership, awaitName}
	if cfg.SkipName {
		waits = waits[:1]
	} else if cfg.Certificate != (Certificate{}) {
		slices.Reverse(waits)
	}
	for _, await := range waits {
		if err := await(bounded, cfg, w); err != nil {
			return err
		}
	}
	if cfg.Started != "" {
		return markStarted(cfg.Started)
	}
	return nil
}

// awaitName waits until the pod's name resolves. The first look-up comes some
// time after the start of all the waiting.
func awaitName(ctx context.Context, cfg Config, w waiter) error {
	return w.until(ctx, wait{
		what:     nameWait(cfg),
		hint:     "check that the cluster's headless Service exists and that the cluster's DNS works",
		try:      func(ctx context.Context) error { return lookup(ctx, cfg) },
		first:    firstLookup - time.Since(w.start),
		interval: lookupInterval,
	})
}

// awaitMembership waits until the running members expect the new one. A seed and
// a member that restarts with its data have nobody to wait for.
func awaitMembership(ctx context.Context, cfg Config, w waiter) error {
	if cfg.InitialCluster == nil {
		return nil
	}
	hasData, err := datadir.HoldsData(cfg.DataDir)
	if err != nil {
		w.say("can't tell whether the member has data: %v", err)
	}
	if hasData {
		w.say("the member has data in %s: no need to ask the other members", cfg.DataDir)
		return nil
	}
	var first time.Duration
	if cfg.SkipName && cfg.Certificate != (Certificate{}) {
		first = firstContact - time.Since(w.start)
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
		first:    first,
		interval: peersInterval,
	})
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

// findData fails where etcd was not here before.
func findData(dataDir string) error {
	hasData, err := datadir.HoldsData(dataDir)
	switch {
	case err != nil:
		return fmt.Errorf("look for the member's data in %s: %w", dataDir, err)
	case !hasData:
		return fmt.Errorf("the volume holds no data of etcd in %s: this member comes back and must not start without its data, for it could lose writes; "+
			"bring the data back, or delete the PersistentVolumeClaim and the pod so that the member is replaced", dataDir)
	}
	return nil
}

// wait is one thing to wait for.
type wait struct {
	what, hint string
	try        func(context.Context) error
	first      time.Duration // before the first try; none if negative
	interval   time.Duration // between tries
}

type waiter struct {
	out   io.Writer
	start time.Time // of all the waiting
}

func (w waiter) say(format string, args ...any) {
	fmt.Fprintf(w.out, "check-dns: %s\n", fmt.Sprintf(format, args...))
}

// until tries again and again until it succeeds or ctx ends, and tells now and
// then what it waits for.
func (w waiter) until(ctx context.Context, wait wait) error {
	start := time.Now()
	elapsed := func() time.Duration { return time.Since(start).Round(time.Millisecond) }
	progress := time.NewTicker(progressInterval)
	defer progress.Stop()
	pause := time.NewTimer(max(0, wait.first))
	defer pause.Stop()
	last := errors.New("nothing was tried yet")
	for {
		select {
		case <-ctx.Done():
			reason := "was told to stop"
			if errors.Is(ctx.Err(), context.DeadlineExceeded) {
				reason = "gave up"
			}
			return fmt.Errorf("%s after %s of waiting for %s: %w: %s", reason, elapsed(), wait.what, last, wait.hint)
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
			if ctx.Err() == nil { // else the error is that of the end
				last = err
			}
			if errors.Is(err, errNoAnswer) && time.Since(start) > patience {
				pause.Reset(patientInterval)
				continue
			}
			pause.Reset(wait.interval)
		}
	}
}
