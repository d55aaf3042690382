// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package s3

import (
	"bytes"
	"cmp"
	"context"
	"crypto/md5"
	"encoding/xml"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/etcd-operator/etcd-operator/pkg/store"
)

// server is a store that holds one object, and whose answers a test changes.
type server struct {
	// answered, head and remove change the answers to the request that makes an object
	// visible, to HEAD and to DELETE; head and remove answer by themselves where
	// they return true.
	answered func(http.Header)
	head     func(http.ResponseWriter) bool
	remove   func(http.ResponseWriter, *http.Request) bool
	// visible is called when the object is.
	visible func()
	// knows: the store knows CRC32Cs, keepsNone: it forgets those of parts, and lies: it states
	// others. refuses is the status for an upload that asks for them.
	knows, keepsNone bool
	lies             bool
	names            string // the algorithm in its answer; "": as it was asked for
	refuses          int
	// states is the CRC32C that the store states of an object of parts; nil: the composite one.
	states func(content []byte, parts []uint32) crc

	mu       sync.Mutex
	parts    map[string][md5.Size]byte
	size     int
	etag     string
	crc      string
	crcs     map[string]uint32
	bodies   map[string][]byte
	requests []*http.Request
}

func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests = append(s.requests, r)
	number := r.URL.Query().Get("partNumber")
	switch {
	case r.Method == http.MethodPost && r.URL.Query().Has("uploads"):
		if asked := r.Header.Get("X-Amz-Checksum-Algorithm"); s.knows && asked != "" {
			w.Header().Set("X-Amz-Checksum-Algorithm", cmp.Or(s.names, asked))
		} else if s.refuses != 0 && asked != "" {
			w.WriteHeader(s.refuses)
			return
		}
		s.parts, s.crcs, s.bodies = map[string][md5.Size]byte{}, map[string]uint32{}, map[string][]byte{}
		_, _ = io.WriteString(w, "<InitiateMultipartUploadResult><UploadId>1</UploadId></InitiateMultipartUploadResult>")
	case number != "":
		s.parts[number], s.bodies[number] = md5.Sum(body), body
		s.size += len(body)
		w.Header().Set("ETag", fmt.Sprintf(`"%x"`, md5.Sum(body)))
		if s.knows && !s.keepsNone {
			s.crcs[number] = crc32.Checksum(body, castagnoli)
			if s.lies {
				s.crcs[number]++
			}
			w.Header().Set("X-Amz-Checksum-Crc32c", string(encoded(s.crcs[number])))
		}
	case r.Method == http.MethodPost:
		if len(s.crcs) > 0 {
			var sums []uint32
			var content []byte
			for i := range len(s.crcs) {
				sums, content = append(sums, s.crcs[fmt.Sprint(i+1)]), append(content, s.bodies[fmt.Sprint(i+1)]...)
			}
			s.crc = string(compositeCRC(sums))
			if s.states != nil {
				s.crc = string(s.states(content, sums))
			}
		}
		var all []byte
		for i := range len(s.parts) {
			sum := s.parts[fmt.Sprint(i+1)]
			all = append(all, sum[:]...)
		}
		s.etag = fmt.Sprintf(`"%x-%d"`, md5.Sum(all), len(s.parts))
		s.seen(w)
		text, _ := xml.Marshal(struct {
			XMLName struct{} `xml:"CompleteMultipartUploadResult"`
			ETag    string

			ChecksumCRC32C string `xml:",omitempty"`
		}{ETag: w.Header().Get("ETag"), ChecksumCRC32C: w.Header().Get("X-Amz-Checksum-Crc32c")})
		_, _ = w.Write(text)
	case r.Method == http.MethodPut:
		s.size, s.etag = len(body), fmt.Sprintf(`"%x"`, md5.Sum(body))
		s.seen(w)
	case r.Method == http.MethodHead && (s.head == nil || !s.head(w)):
		if s.etag == "" {
			w.WriteHeader(http.StatusNotFound)
			return
		}
		w.Header().Set("ETag", s.etag)
		w.Header().Set("Content-Length", fmt.Sprint(s.size))
		if s.crc != "" && r.Header.Get("X-Amz-Checksum-Mode") == "ENABLED" {
			w.Header().Set("X-Amz-Checksum-Crc32c", s.crc)
		}
	case r.URL.Query().Has("uploadId"): // it is given up
		w.WriteHeader(http.StatusNoContent)
	case r.Method == http.MethodDelete && (s.remove == nil || !s.remove(w, r)):
		s.etag = ""
		w.WriteHeader(http.StatusNoContent)
	}
}

func (s *server) seen(w http.ResponseWriter) {
	w.Header().Set("ETag", s.etag)
	if s.crc != "" {
		w.Header().Set("X-Amz-Checksum-Crc32c", s.crc)
	}
	if s.answered != nil {
		s.answered(w.Header())
	}
	if s.visible != nil {
		s.visible()
	}
}

func (s *server) open(t *testing.T) *Store {
	t.Helper()
	at := httptest.NewServer(s)
	t.Cleanup(at.Close)
	opened, err := Open(t.Context(), Config{
		Bucket: "b", Endpoint: at.URL, ForcePathStyle: true,
		Credentials: []byte(keysFile), ConfigFile: []byte("[default]\nmax_attempts = 1\n"),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { opened.Close() })
	return opened
}

// deletions are the conditions of the requests to delete the object.
func (s *server) deletions() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var found []string
	for _, r := range s.requests {
		if r.Method == http.MethodDelete && !r.URL.Query().Has("uploadId") {
			found = append(found, r.Header.Get("If-Match"))
		}
	}
	return found
}

// sizes are of an object that is sent in one request, and of one in parts.
var sizes = map[string]int{"one request": 5, "parts": 6 << 20}

func upload(size int) store.Upload {
	return store.Upload{Body: bytes.NewReader(make([]byte, size)), Size: int64(size), Metadata: map[string]string{"etcd-revision": "7"}}
}

const (
	otherTag = `"d41d8cd98f00b204e9800998ecf8427e"`
	noMD5    = `"a-tag-of-its-own"`
)

func TestWhatIsStoredIsDeletedOnlyWhereItIsNotWhatWasSent(t *testing.T) {
	status := func(code int) func(http.ResponseWriter) bool {
		return func(w http.ResponseWriter) bool { w.WriteHeader(code); return true }
	}
	looks := func(size int, tag string) func(http.ResponseWriter) bool {
		return func(w http.ResponseWriter) bool {
			w.Header().Set("Content-Length", fmt.Sprint(size))
			w.Header().Set("ETag", tag)
			return true
		}
	}
	sets := func(tag string) func(http.Header) { return func(h http.Header) { h.Set("ETag", tag) } }
	refuses := func(code int) func(http.ResponseWriter, *http.Request) bool {
		return func(w http.ResponseWriter, r *http.Request) bool {
			if code == http.StatusNotImplemented && r.Header.Get("If-Match") == "" {
				return false
			}
			w.WriteHeader(code)
			return true
		}
	}
	for name, tt := range map[string]struct {
		server  *server
		want    string // in the error; "": none
		deleted []string
	}{
		"all is well":                                 {&server{}, "", nil},
		"it can't be looked at":                       {&server{head: status(http.StatusServiceUnavailable)}, "", nil},
		"it may not be looked at":                     {&server{head: status(http.StatusForbidden)}, "", nil},
		"another's object came after":                 {&server{head: looks(777, otherTag)}, "another object has taken its place", nil},
		"another's of the same size":                  {&server{head: looks(-1, otherTag)}, "another object has taken its place", nil},
		"somebody has deleted it":                     {&server{head: status(http.StatusNotFound)}, "somebody has deleted it", nil},
		"the store has lost a part of it":             {&server{answered: sets(noMD5), head: looks(4, noMD5)}, "4 bytes", []string{noMD5}},
		"it was changed in the store":                 {&server{answered: sets(otherTag), head: looks(-1, otherTag)}, "its ETag is", []string{otherTag}},
		"the error says so, and nothing else happens": {&server{answered: sets(otherTag), head: status(http.StatusForbidden)}, "its ETag is", []string{otherTag}},
		"another's came before it went": {
			&server{answered: sets(otherTag), head: looks(-1, otherTag), remove: refuses(http.StatusPreconditionFailed)},
			"another object has taken its place", []string{otherTag},
		},
		"no conditions": {
			&server{answered: sets(otherTag), head: looks(-1, otherTag), remove: refuses(http.StatusNotImplemented)},
			"its ETag is", []string{otherTag, ""},
		},
		"it can't be deleted": {
			&server{answered: sets(otherTag), head: looks(-1, otherTag), remove: refuses(http.StatusForbidden)},
			"could not be removed", []string{otherTag},
		},
		"tags are no MD5s": {&server{answered: sets(noMD5), head: looks(-1, noMD5)}, "", nil},
	} {
		for kind, size := range sizes {
			t.Run(name+", "+kind, func(t *testing.T) {
				s := &server{answered: tt.server.answered, remove: tt.server.remove}
				if look := tt.server.head; look != nil {
					s.head = func(w http.ResponseWriter) bool {
						look(w)
						if w.Header().Get("Content-Length") == "-1" {
							w.Header().Set("Content-Length", fmt.Sprint(size))
						}
						return true
					}
				}
				object, err := s.open(t).Put(t.Context(), "key", upload(size))
				switch {
				case tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)):
					t.Errorf("put: %+v, error %v, want one that mentions %q", object, err, tt.want)
				case tt.want == "" && (err != nil || object.Key != "key" || object.Size != int64(size)):
					t.Errorf("put: %+v, error %v", object, err)
				}
				if got := s.deletions(); !slices.Equal(got, tt.deleted) {
					t.Errorf("deletions with the conditions %q, want %q", got, tt.deleted)
				}
			})
		}
	}
}

// A tag that is no MD5 proves nothing; but neither is what it belongs to known to be bad.
func TestWhatIsNeitherProvenNorSeenIsKeptAndTold(t *testing.T) {
	s := &server{
		answered: func(h http.Header) { h.Set("ETag", noMD5) },
		head:     func(w http.ResponseWriter) bool { w.WriteHeader(http.StatusForbidden); return true },
	}
	object, err := s.open(t).Put(t.Context(), "key", upload(5))
	if !errors.Is(err, store.ErrDenied) || !strings.Contains(err.Error(), "stored, but not confirmed") {
		t.Errorf("put: %+v, error %v", object, err)
	}
	if got := s.deletions(); len(got) > 0 {
		t.Errorf("deleted: %q", got)
	}
}

func TestAContextThatEndsWhenAllIsStoredDeletesNothing(t *testing.T) {
	for kind, size := range sizes {
		ctx, cancel := context.WithCancel(t.Context())
		s := &server{visible: func() { cancel(); panic(http.ErrAbortHandler) }}
		object, err := s.open(t).Put(ctx, "key", upload(size))
		if err != nil || object.Size != int64(size) {
			t.Errorf("%s: put: %+v, error %v", kind, object, err)
		}
		if ctx.Err() == nil {
			t.Errorf("%s: the context has not ended", kind)
		}
		if got := s.deletions(); len(got) > 0 {
			t.Errorf("%s: it was deleted", kind)
		}
	}
}
