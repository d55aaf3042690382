// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package backupserver

import (
	"errors"
	"net/http"
	"strconv"
	"strings"
)

// retryAfter is how many seconds a rejected client should wait.
const retryAfter = "5"

// handler routes the requests.
func (s *Server) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+Path+"{name}", s.serve) // and HEAD
	return mux
}

func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	if r.ContentLength != 0 {
		// The server does not wait for the rest of a body.
		w.Header().Set("Connection", "close")
		http.Error(w, "a request for a backup has no body", http.StatusBadRequest)
		return
	}
	token, ok := bearer(r.Header.Get("Authorization"))
	if !ok {
		w.Header().Set("WWW-Authenticate", "Bearer")
		http.Error(w, "the token of the restore is missing", http.StatusUnauthorized)
		return
	}
	name := r.PathValue("name")
	req, err := s.begin(w, r, name, token)
	switch {
	case err != nil:
		w.Header().Set("Retry-After", retryAfter)
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
		return
	case req == nil:
		// Clients without the token must not learn which names exist.
		http.Error(w, "no backup of this name is offered for this token", http.StatusNotFound)
		return
	}
	defer s.finish(req)
	req.answer(r)
}

// bearer returns the token of an Authorization header.
func bearer(header string) (string, bool) {
	scheme, token, ok := strings.Cut(header, " ")
	token = strings.TrimSpace(token)
	return token, ok && strings.EqualFold(scheme, "Bearer") && token != ""
}

// errBehindEnd: the client asks for bytes behind the end.
var errBehindEnd = errors.New("the range begins behind the end of the backup")

// offsetOf returns the offset that the client asks for. It only accepts ranges of the form
// bytes=N-. HTTP allows a server to answer any other range with the whole content.
func offsetOf(r *http.Request, etag string, size int64) (offset int64, partial bool, err error) {
	header := r.Header.Get("Range")
	if header == "" || r.Method != http.MethodGet {
		return 0, false, nil
	}
	if condition := r.Header.Get("If-Range"); condition != "" && condition != etag {
		return 0, false, nil
	}
	unit, from, _ := strings.Cut(header, "=")
	digits, open := strings.CutSuffix(strings.TrimSpace(from), "-")
	if !strings.EqualFold(strings.TrimSpace(unit), "bytes") || !open || digits == "" || strings.Trim(digits, "0123456789") != "" {
		return 0, false, nil
	}
	offset, err = strconv.ParseInt(digits, 10, 64)
	if err != nil || offset >= size { // more digits than any size has
		return 0, false, errBehindEnd
	}
	return offset, true, nil
}

// matches reports whether the client's conditions accept this ETag (RFC 9110, 13.1.1).
func matches(r *http.Request, etag string) bool {
	values := r.Header.Values("If-Match")
	if len(values) == 0 {
		return true
	}
	for _, tag := range strings.Split(strings.Join(values, ","), ",") {
		if tag = strings.TrimSpace(tag); tag == "*" || tag == etag {
			return true
		}
	}
	return false
}
