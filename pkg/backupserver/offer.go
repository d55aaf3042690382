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

// offer is a backup under a name, for the holders of its token.
type offer struct {
	name   string
	token  [sha256.Size]byte // its hash, which has a fixed length
	locked bool              // without a token: nobody may fetch it
	backup Backup
	// requests are the open requests, the oldest first.
	requests []*request
	// wrong counts the times in a row that the store has delivered other content. While it is
	// not 0, clients may not fetch a part: a part proves nothing.
	wrong int
	until time.Time
}

const (
	// firstWrongPause is the pause after the store has delivered a complete backup of other
	// content, which may cost GiBs each time. The pause doubles up to longestWrongPause.
	firstWrongPause   = time.Minute
	longestWrongPause = 30 * time.Minute
)

// notRight notes that the store has delivered other content.
func (s *Server) notRight(o *offer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	o.until = time.Now().Add(min(firstWrongPause<<min(o.wrong, 10), longestWrongPause))
	o.wrong++
}

// right notes that the store has delivered the backup.
func (s *Server) right(o *offer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	o.wrong, o.until = 0, time.Time{}
}

// wholeOnly reports whether clients must fetch the whole backup.
func (s *Server) wholeOnly(o *offer) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return o.wrong > 0
}

// Offer serves a backup under a name to the holders of the token, until withdraw. withdraw
// cancels the open requests. It returns when they have ended, or after withdrawPatience.
// Several namespaces may use the same name: the token distinguishes the offers. An empty token
// is valid for nobody. Of two offers with the same name and token, the server serves the
// later.
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

// withdrawPatience is how long withdraw waits for cancelled requests. On a volume whose server
// is gone, they hang in a call that no context ends.
const withdrawPatience = 10 * time.Second

// awaitEnd waits for the end of cancelled requests, and abandons those that hang. They still
// count as open requests.
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

// find returns the offer with the name and token, or nil. Its duration reveals nothing about
// names and tokens.
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

// begin finds the offer for a request and counts the request. It returns nil if there is no
// such offer. Its error is errBusy, errStopping or errOther if the server can't serve the
// request now. A request without an error must be passed to finish.
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
	// Cancelled requests count until they end: their stores may hang.
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

// finish ends a request.
func (s *Server) finish(r *request) {
	r.done()
	s.mu.Lock()
	delete(s.requests, r)
	r.offer.requests = slices.DeleteFunc(r.offer.requests, func(other *request) bool { return other == r })
	s.mu.Unlock()
	close(r.ended)
}

// stop cancels all requests and rejects new ones.
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
