// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// watcher is one open watch.
type watcher struct {
	r      *request
	who    *operator
	stream *stream
	last   time.Time // the arrival of its last event
	late   []piece   // what waits for the link, in order
	closed bool
}

// piece is a part of a watch, with the objects in it.
type piece struct {
	raw  []byte
	objs []*stored
}

// stream is the body of a watch.
type stream struct {
	pieces chan []byte
	rest   []byte
	gone   <-chan struct{} // the end of the request
	closed chan struct{}
}

func newStream(gone <-chan struct{}) *stream {
	return &stream{pieces: make(chan []byte, 4096), gone: gone, closed: make(chan struct{})}
}

func (s *stream) Read(p []byte) (int, error) {
	if len(s.rest) == 0 {
		select {
		case piece, ok := <-s.pieces:
			if !ok {
				return 0, io.EOF
			}
			s.rest = piece
		case <-s.gone:
			return 0, errors.New("the request has ended")
		case <-s.closed:
			return 0, errors.New("the body was closed")
		}
	}
	n := copy(p, s.rest)
	s.rest = s.rest[n:]
	return n, nil
}

func (s *stream) Close() error {
	select {
	case <-s.closed:
	default:
		close(s.closed)
	}
	return nil
}

// watch opens a watch. It answers with an error, or with the stream.
func (a *apiServer) watch(who *operator, r *request, gone <-chan struct{}) (*stream, error) {
	since, err := strconv.ParseInt(cmp.Or(r.query.Get("resourceVersion"), "0"), 10, 64)
	if err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	wa := &watcher{r: r, who: who, stream: newStream(gone), last: time.Now()}
	s := r.shelf
	var begin [][]byte
	var listed []*stored
	if r.query.Get("sendInitialEvents") == "true" {
		if a.noWatchLists {
			return nil, apierrors.NewInvalid(metav1.SchemeGroupVersion.WithKind("ListOptions").GroupKind(), "", nil)
		}
		objects, version := s.objects, a.version
		if since > 0 {
			objects, version = a.someTimeAgo(s, since)
		}
		listed = selected(r, objects)
		for _, o := range listed {
			begin = append(begin, r.frame("ADDED", o))
		}
		bookmark := s.kind.new()
		s.kind.set(bookmark)
		bookmark.SetResourceVersion(strconv.FormatInt(version, 10))
		bookmark.SetAnnotations(map[string]string{metav1.InitialEventsAnnotationKey: "true"})
		begin = append(begin, r.frame("BOOKMARK", &stored{obj: bookmark}))
		since = version
	}
	if since > 0 && since < s.oldest {
		return nil, apierrors.NewResourceExpired(fmt.Sprintf("too old resource version: %d (%d)", since, s.oldest))
	}
	a.watchers = append(a.watchers, wa)
	a.deliver(wa, bytes.Join(begin, nil), listed...)
	for _, c := range s.past {
		if c.version > since {
			a.tellOf(wa, c)
		}
	}
	a.w.after(a.w.life.between(5*time.Minute, 10*time.Minute, "watch", s.kind.resource, a.w.nth("watch", s.kind.resource)), func() { a.breakOff(wa) })
	return wa.stream, nil
}

// frame is an event of a watch about an object.
func (r *request) frame(event string, o *stored) []byte {
	return frame(r.accepts, event, o.in(r.accepts, r.shelf.kind))
}

// changed records a change, and notifies the watchers.
func (a *apiServer) changed(s *shelf, c change) {
	if s.kind.resource == "events" || s.kind.resource == "leases" {
		return
	}
	if !slices.Contains([]string{"etcdclusters", "etcdbackups", "etcdrestores"}, s.kind.resource) {
		a.w.progressed = time.Now()
	}
	s.past = append(s.past, c)
	live := a.watchers[:0]
	for _, wa := range a.watchers {
		if !wa.closed {
			live = append(live, wa)
		}
	}
	a.watchers = live
	for _, wa := range a.watchers {
		if wa.r.shelf == s {
			a.tellOf(wa, c)
		}
	}
}

func (a *apiServer) tellOf(wa *watcher, c change) {
	was, is := wa.r.matches(c.before), wa.r.matches(c.after)
	switch {
	case is && !was:
		a.deliver(wa, wa.r.frame("ADDED", c.after), c.after)
	case is:
		a.deliver(wa, wa.r.frame("MODIFIED", c.after), c.after)
	case was && c.after == nil:
		a.deliver(wa, wa.r.frame("DELETED", c.before))
	case was:
		a.deliver(wa, wa.r.frame("DELETED", c.before.at(c.version)))
	}
}

// deliver sends a piece of a watch after its lag, and in order.
func (a *apiServer) deliver(wa *watcher, raw []byte, objs ...*stored) {
	if len(raw) == 0 {
		return
	}
	at := time.Now().Add(a.w.lag(wa.r.shelf.kind.resource))
	if at.Before(wa.last) {
		at = wa.last
	}
	wa.last = at
	a.w.after(time.Until(at), func() { a.arrive(wa, piece{raw, objs}) })
}

func (a *apiServer) arrive(wa *watcher, p piece) {
	wa.late = append(wa.late, p)
	if len(wa.late) == 1 {
		a.handOver(wa)
	}
}

// handOver delivers the first piece that has arrived for a watcher. Without a link, it waits:
// TCP retransmits, and keeps the order.
func (a *apiServer) handOver(wa *watcher) {
	if wa.closed || wa.who.ended {
		return
	}
	if !a.w.reachable(wa.who.place, apiPlace) || wa.who.frozen {
		a.w.after(500*time.Millisecond, func() { a.handOver(wa) })
		return
	}
	a.w.sowNames()
	select {
	case wa.stream.pieces <- wa.late[0].raw:
		wa.who.sees(wa.r, wa.late[0].objs...)
		a.w.stirred = true
	default:
		a.breakOff(wa)
		return
	}
	// The next piece waits until the operator has taken this one. Otherwise Go's scheduler
	// decides how many of them a pass sees.
	if wa.late = wa.late[1:]; len(wa.late) > 0 {
		a.w.after(0, func() { a.handOver(wa) })
	}
}

// breakOff ends a watch.
func (a *apiServer) breakOff(wa *watcher) {
	if wa.closed {
		return
	}
	wa.closed = true
	if wa.who.ended {
		return
	}
	close(wa.stream.pieces)
	a.w.stirred = true
}

// forget drops the history of a kind, like a compaction.
func (a *apiServer) forget(resource string) {
	s := a.shelves[resource]
	s.past, s.oldest = nil, a.version
}

// RoundTrip is the network between an operator and the API server.
func (o *operator) RoundTrip(r *http.Request) (*http.Response, error) {
	var body []byte
	if r.Body != nil {
		var err error
		if body, err = io.ReadAll(r.Body); err != nil {
			return nil, err
		}
		if err := r.Body.Close(); err != nil {
			return nil, err
		}
	}
	w := o.w
	req, err := parseRequest(w.api, r, body)
	if err != nil {
		return failure(apierrors.NewGenericServerResponse(http.StatusNotFound, r.Method, schema.GroupResource{}, r.URL.Path, "", 0, true)).response(r), nil
	}
	c := &call{actor: o, key: o.name + " " + req.String()}
	c.do = func(reply func(any)) {
		if req.query.Get("watch") != "" {
			stream, err := w.api.watch(o, req, r.Context().Done())
			a := answer{code: http.StatusOK, stream: stream, format: req.accepts}
			if err != nil {
				a = failure(err)
			}
			w.note(fmt.Sprintf("%s %s -> %d", o.name, req, a.code))
			reply(a)
			return
		}
		if req.writes() {
			w.checks.wrote(o, req)
		}
		a := w.api.handle(o, req)
		if req.writes() {
			w.checks.answered(o, req, a.code)
		}
		w.note(fmt.Sprintf("%s %s -> %d", o.name, req, a.code))
		reply(a)
	}
	got, err := w.ask(r.Context(), c)
	if err != nil {
		return nil, err
	}
	switch got := got.(type) {
	case answer:
		return got.response(r), nil
	case error:
		return nil, got
	}
	return nil, fmt.Errorf("no answer to %s", r.URL)
}

// answer is the API server's answer.
type answer struct {
	code   int
	raw    []byte
	format format
	stream *stream // of a watch
}

func (a answer) response(r *http.Request) *http.Response {
	resp := &http.Response{
		StatusCode: a.code, Status: strconv.Itoa(a.code) + " " + http.StatusText(a.code),
		Header: http.Header{"Content-Type": {a.format.contentType()}}, Request: r,
	}
	if a.stream != nil {
		resp.Body = a.stream
		return resp
	}
	resp.Body, resp.ContentLength = io.NopCloser(bytes.NewReader(a.raw)), int64(len(a.raw))
	if a.code == http.StatusTooManyRequests || bytes.Contains(a.raw, []byte("retryAfterSeconds")) {
		resp.Header.Set("Retry-After", "1")
	}
	return resp
}
