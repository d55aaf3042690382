// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package backupserver

import (
	"crypto/sha256"
	"crypto/subtle"
	"maps"
	"net/http"
	"slices"
	"time"
)

// offer is a backup under a name, for those who have its token.
type offer struct {
	name   string
	token  [sha256.Size]byte // its hash: equally long for all
	locked bool              // without a token, for nobody
	backup Backup
	// requests under way, the oldest first.
	requests []*request
	// wrong is how often in a row the store has given something else; until then
	// nobody is served. A client's part of that is worth nothing.
	wrong int
	until time.Time
}

const (
	// firstWrongPause is for how long a backup is not read of which the store has
	// given all, and another content: it may be GiBs each time. It doubles with each
	// further time, up to longestWrongPause.
	firstWrongPause   = time.Minute
	longestWrongPause = 30 * time.Minute
)

// notRight notes that the store has given something else than the backup.
func (s *Server) notRight(o *offer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	o.until = time.Now().Add(min(firstWrongPause<<min(o.wrong, 10), longestWrongPause))
	o.wrong++
}

// right notes that it has given the backup.
func (s *Server) right(o *offer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	o.wrong, o.until = 0, time.Time{}
}

// wholeOnly tells whether only all of the backup may be asked for.
func (s *Server) wholeOnly(o *offer) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return o.wrong > 0
}

// Offer serves a backup under a name to those who have the token, until withdraw.
// withdraw cuts off the requests under way, and returns when they have ended, or hang in
// their stores beyond what nothing ends. Names
// may be the same in several namespaces: the token tells the offers apart. Nobody has
// an empty token. Of two offers with the same name and token the later is served.
func (s *Server) Offer(name, token string, b Backup) (withdraw func()) {
	o := &offer{name: name, token: sha256.Sum256([]byte(token)), locked: token == "", backup: b}
	s.mu.Lock()
	s.offers = append(s.offers, o)
	s.mu.Unlock()
	return func() {
		s.mu.Lock()
		s.offers = slices.DeleteFunc(s.offers, func(other *offer) bool { return other == o })
		under := slices.Clone(o.requests)
		s.mu.Unlock()
		for _, r := range under {
			r.end(errWithdrawn)
		}
		awaitEnd(under, withdrawPatience)
	}
}

// withdrawPatience is for how long those that were cut off are waited for: on a volume
// whose server is gone they hang in a call that no context ends.
const withdrawPatience = 10 * time.Second

// awaitEnd waits for the end of requests that were cut off, and leaves those to
// themselves that hang. They still count among the requests under way.
func awaitEnd(requests []*request, patience time.Duration) {
	timer := time.NewTimer(patience)
	defer timer.Stop()
	for _, r := range requests {
		select {
		case <-r.ended:
		case <-timer.C:
			return
		}
	}
}

// find is the offer of the name that the token is for, or nil. How long it takes
// tells nothing about names and tokens.
func (s *Server) find(name, token string) *offer {
	hash := sha256.Sum256([]byte(token))
	nameHash := sha256.Sum256([]byte(name))
	var found *offer
	for _, o := range s.offers {
		itsName := sha256.Sum256([]byte(o.name))
		if subtle.ConstantTimeCompare(hash[:], o.token[:])&subtle.ConstantTimeCompare(nameHash[:], itsName[:]) == 1 && !o.locked {
			found = o
		}
	}
	return found
}

// begin finds the offer for a request and counts the request in. It returns nil
// where there is no such offer, and errBusy, errStopping or errOther where the request
// can't be served now. What it returns without an error must be passed to finish.
func (s *Server) begin(w http.ResponseWriter, r *http.Request, name, token string) (*request, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	o := s.find(name, token)
	switch {
	case o == nil:
		return nil, nil
	case s.stopping:
		return nil, errStopping
	case time.Now().Before(o.until):
		return nil, errOther
	// Those that were cut off count until they have ended: their stores may hang.
	case len(s.requests) >= s.cfg.Requests || len(o.requests) >= 2*s.cfg.RequestsPerOffer:
		return nil, errBusy
	}
	var live []*request
	for _, other := range o.requests {
		if other.ctx.Err() == nil {
			live = append(live, other)
		}
	}
	if len(live) >= s.cfg.RequestsPerOffer {
		live[0].end(errSuperseded)
	}
	req := newRequest(s, o, w, r)
	s.requests[req] = true
	o.requests = append(o.requests, req)
	return req, nil
}

// finish is the end of a request.
func (s *Server) finish(r *request) {
	r.done()
	s.mu.Lock()
	delete(s.requests, r)
	r.offer.requests = slices.DeleteFunc(r.offer.requests, func(other *request) bool { return other == r })
	s.mu.Unlock()
	close(r.ended)
}

// stop cuts off all requests; none begins after it.
func (s *Server) stop() {
	s.mu.Lock()
	s.stopping = true
	under := slices.Collect(maps.Keys(s.requests))
	s.mu.Unlock()
	for _, r := range under {
		r.end(errStopping)
	}
	awaitEnd(under, shutdownGrace)
}
