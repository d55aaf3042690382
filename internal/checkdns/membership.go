// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package checkdns

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"
)

// maxAnswer bounds how much of an answer is read. A membership is smaller than 10 KiB.
const maxAnswer = 1 << 20

var (
	errNoAnswer = errors.New("no member answers")
	// errServedBefore means that the other members have seen this member start, and that it
	// has no data now. A member's name appears in the membership only after its first start.
	errServedBefore = errors.New("the other members know that this member has started before, and it holds no data now: " +
		"it must not start without its data, which could lose writes; delete its PersistentVolumeClaim, if it has one, and then the pod, so that the operator replaces the member")
)

// Membership lists the members of a cluster by their peer URLs, sorted. It leaves out names: a
// member that never started has none.
type Membership []string

// ParseInitialCluster reads a value of etcd's --initial-cluster, such as
// a=http://a:2380,b=http://b:2380. A member with several URLs appears several times.
func ParseInitialCluster(s string) (Membership, error) {
	urls := map[string][]string{}
	for part := range strings.SplitSeq(s, ",") {
		name, u, ok := strings.Cut(part, "=")
		if !ok || name == "" {
			return nil, fmt.Errorf("%q is not of the form name=url,name=url", s)
		}
		if err := checkURL(u); err != nil {
			return nil, err
		}
		urls[name] = append(urls[name], u)
	}
	var m Membership
	for _, u := range urls {
		m = append(m, memberKey(u))
	}
	slices.Sort(m)
	return m, nil
}

func (m Membership) String() string { return "{" + strings.Join(m, ", ") + "}" }

// memberKey returns the same text for a member's URLs, whatever their order.
func memberKey(urls []string) string {
	return strings.Join(slices.Sorted(slices.Values(urls)), "+")
}

func checkURL(s string) error {
	u, err := url.Parse(s)
	if err != nil {
		return fmt.Errorf("peer URL %q: %w", s, err)
	}
	if u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return fmt.Errorf("peer URL %q is not of the form http://host:2380", s)
	}
	return nil
}

// askPeers returns nil if etcd, started now, would find the membership that its
// --initial-cluster names. etcd asks its peers in the order of their URLs and believes the
// first answer, even from a member that lags behind. So askPeers judges by that answer.
//
// A peer is asked only if those before it have failed, or are slow: whoever waits for its turn
// asks often, and a request that is given up costs its connection.
func askPeers(ctx context.Context, cfg Config) error {
	ctx, cancel := context.WithTimeout(ctx, peerTimeout)
	defer cancel()
	peers := slices.Sorted(slices.Values(cfg.Peers))
	if cfg.asked != nil {
		peers = slices.Sorted(slices.Values(cfg.asked))
	}
	questions := newQuestions(withAddresses(ctx, cfg.Addresses), cfg.Transport, peers)
	defer questions.asking.Wait()
	defer cancel() // before the Wait: the other answers do not matter
	var errs []error
	for i, peer := range peers {
		a := questions.answer(i)
		switch {
		case a.err != nil:
			errs = append(errs, a.err)
		case slices.ContainsFunc(a.started, cfg.isThisMember):
			return fmt.Errorf("%w (%s says so)", errServedBefore, peer)
		case slices.Equal(a.members, cfg.InitialCluster):
			return nil
		case !slices.ContainsFunc(a.members, func(m string) bool { return slices.Contains(cfg.InitialCluster, m) }):
			// A kept connection would outlive a correction of the DNS record.
			(&http.Client{Transport: cfg.Transport}).CloseIdleConnections()
			return fmt.Errorf("%s knows the members %s: its address belongs to another cluster now", peer, a.members)
		case slices.ContainsFunc(a.members, cfg.isThisMember):
			return fmt.Errorf("%s knows the members %s", peer, a.members)
		default:
			return turnError{peer, a.members}
		}
	}
	return fmt.Errorf("%w: %w", errNoAnswer, oneLine(errs))
}

// turnError means that members of the cluster answer, and that nobody has added this one yet. Another
// member may copy a large database first. That has no limit: a container that fails and restarts again and
// again would wait for the kubelet when its turn comes.
type turnError struct {
	peer    string
	members Membership
}

func (e turnError) Error() string { return fmt.Sprintf("%s knows the members %s", e.peer, e.members) }

// An answer is the membership as one peer knows it.
type answer struct {
	members Membership
	started Membership // the members that have started
	err     error
}

// questions are the requests of one attempt, to peers in their order.
type questions struct {
	ask     func(peer string) answer
	peers   []string
	asked   int           // of the peers, from the first
	answers []chan answer // by peer
	asking  sync.WaitGroup
}

func newQuestions(ctx context.Context, transport http.RoundTripper, peers []string) *questions {
	q := &questions{peers: peers, answers: make([]chan answer, len(peers))}
	q.ask = func(peer string) answer {
		m, started, err := membersOf(ctx, transport, peer)
		return answer{m, started, err}
	}
	for i := range q.answers {
		q.answers[i] = make(chan answer, 1)
	}
	return q
}

// answer waits for what one peer says. While it is slow, others are asked already.
func (q *questions) answer(i int) answer {
	q.askUpTo(i)
	slow := time.NewTicker(slowAnswer)
	defer slow.Stop()
	for {
		select {
		case a := <-q.answers[i]:
			return a
		case <-slow.C:
			q.askUpTo(q.asked)
		}
	}
}

// askUpTo asks the peers up to and including the one at index last that are not asked yet.
func (q *questions) askUpTo(last int) {
	for ; q.asked <= last && q.asked < len(q.peers); q.asked++ {
		i := q.asked
		q.asking.Go(func() { q.answers[i] <- q.ask(q.peers[i]) })
	}
}

// membersOf asks a member's peer listener for the membership.
func membersOf(ctx context.Context, transport http.RoundTripper, peer string) (all, started Membership, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, peer+"/members", nil)
	if err != nil {
		return nil, nil, err
	}
	resp, err := (&http.Client{Transport: transport}).Do(req)
	if err != nil {
		return nil, nil, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil, nil, fmt.Errorf("GET %s: %s", req.URL, resp.Status)
	}
	var members []struct {
		PeerURLs []string `json:"peerURLs"`
		Name     string   `json:"name"`
	}
	// To its end, or the connection would not be kept. The answer about many members has chunks.
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err != nil {
		return nil, nil, fmt.Errorf("GET %s: %w", req.URL, err)
	}
	if err := json.Unmarshal(body, &members); err != nil {
		return nil, nil, fmt.Errorf("GET %s: the answer is not a list of members: %w", req.URL, err)
	}
	if len(members) == 0 {
		return nil, nil, fmt.Errorf("GET %s: the member does not know the membership yet", req.URL)
	}
	for _, member := range members {
		all = append(all, memberKey(member.PeerURLs))
		if member.Name != "" {
			started = append(started, memberKey(member.PeerURLs))
		}
	}
	slices.Sort(all)
	return all, started, nil
}

// isThisMember reports whether a member of the membership is this pod's: the one without an
// entry in Peers.
func (cfg Config) isThisMember(key string) bool {
	asked := func(u string) bool { return slices.Contains(cfg.Peers, u) }
	return slices.Contains(cfg.InitialCluster, key) && !slices.ContainsFunc(strings.Split(key, "+"), asked)
}

// oneLine joins errors with semicolons: the last message of check-dns must fit on a line.
func oneLine(errs []error) error {
	texts := make([]string, len(errs))
	for i, err := range errs {
		texts[i] = err.Error()
	}
	return errors.New(strings.Join(texts, "; "))
}
