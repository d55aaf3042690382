// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package oss

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aliyun/alibabacloud-oss-go-sdk-v2/oss"

	"github.com/etcd-operator/etcd-operator/pkg/store"
	"github.com/etcd-operator/etcd-operator/test/stores/osstest"
)

const id, secret = "LTAI-of-the-test", "hunter2-hunter2"

// meddler stands between a store and the stand-in for OSS.
type meddler struct {
	oss *osstest.Server
	// with is called for each request if it is not nil; next is what OSS does.
	with func(w http.ResponseWriter, r *http.Request, next http.Handler)
}

func (m *meddler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if m.with != nil {
		m.with(w, r, m.oss)
		return
	}
	m.oss.ServeHTTP(w, r)
}

// start returns a store in an empty bucket, and what is between the two.
func start(t *testing.T) (*Store, *meddler) {
	t.Helper()
	m := &meddler{oss: &osstest.Server{AccessKeys: map[string]string{id: secret}, PageSize: 2}}
	if err := m.oss.Open(t.TempDir(), "backups"); err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(m)
	t.Cleanup(server.Close)
	return openAt(t, server.URL, secret), m
}

func openAt(t *testing.T, endpoint, secret string) *Store {
	t.Helper()
	s, err := open(Config{Bucket: "backups", Endpoint: endpoint, AccessKeyID: id, AccessKeySecret: secret}, store.Transport(),
		func(o *oss.Options) { o.RetryMaxAttempts = oss.Ptr(1) })
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// sizes are of an object that is sent at once, and of one in parts.
var sizes = map[string]int64{"at once": 1000, "in parts": 9 << 20}

// completes reports whether a request makes an object visible.
func completes(r *http.Request) bool {
	return r.Method == http.MethodPut && !r.URL.Query().Has("partNumber") || r.Method == http.MethodPost && r.URL.Query().Has("uploadId")
}

func upload(size int64) store.Upload {
	return store.Upload{Body: bytes.NewReader(make([]byte, size)), Size: size, Metadata: map[string]string{"etcd-revision": "7"}}
}

func keys(t *testing.T, s *Store) []string {
	t.Helper()
	var list []string
	for o, err := range s.List(t.Context(), "") {
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, o.Key)
	}
	return list
}

func TestAnObjectIsStoredThoughTheAnswerIsLost(t *testing.T) {
	for name, size := range sizes {
		s, m := start(t)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		m.with = func(w http.ResponseWriter, r *http.Request, next http.Handler) {
			if !completes(r) {
				next.ServeHTTP(w, r)
				return
			}
			next.ServeHTTP(httptest.NewRecorder(), r)
			cancel()
			<-r.Context().Done()
		}
		o, err := s.Put(ctx, "key", upload(size))
		if err != nil || o.Size != size || o.Metadata["etcd-revision"] != "7" || o.Modified.IsZero() {
			t.Errorf("%s: got %+v, %v", name, o, err)
		}
		if ctx.Err() == nil {
			t.Errorf("%s: no answer was lost", name)
		}
	}
}

// What was there before is neither taken for what was sent nor removed.
func TestAnEarlierObjectIsNotTakenForOneThatGotLost(t *testing.T) {
	for name, size := range sizes {
		for before, metadata := range map[int64]string{size: "6", size - 1: "7"} {
			s, m := start(t)
			u := upload(before)
			u.Metadata = map[string]string{"etcd-revision": metadata}
			if _, err := s.Put(t.Context(), "key", u); err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithCancel(t.Context())
			m.with = func(w http.ResponseWriter, r *http.Request, next http.Handler) {
				if !completes(r) {
					next.ServeHTTP(w, r)
					return
				}
				cancel()
				_, _ = io.Copy(io.Discard, r.Body) // so that the end of the connection is noticed
				<-r.Context().Done()
			}
			_, err := s.Put(ctx, "key", upload(size))
			if !errors.Is(err, context.Canceled) {
				t.Errorf("%s: got %v", name, err)
			}
			if o, err := s.Stat(t.Context(), "key"); err != nil || o.Size != before || o.Metadata["etcd-revision"] != metadata {
				t.Errorf("%s: the earlier object is %+v, %v", name, o, err)
			}
		}
	}
}

func TestContentThatArrivesOtherwiseIsRemoved(t *testing.T) {
	for name, size := range sizes {
		for when, damaged := range map[string]func(*http.Request) bool{
			"reported at the upload": completes,
			"reported at the check":  func(r *http.Request) bool { return r.Method == http.MethodHead },
		} {
			s, m := start(t)
			m.with = func(w http.ResponseWriter, r *http.Request, next http.Handler) {
				if damaged(r) {
					change(w, r, next, "x-oss-hash-crc64ecma", "1")
					return
				}
				next.ServeHTTP(w, r)
			}
			_, err := s.Put(t.Context(), "key", upload(size))
			if err == nil || !strings.Contains(err.Error(), "put oss://backups/key: OSS has content with the checksum 1, ") {
				t.Errorf("%s, %s: got %v", name, when, err)
			}
			if left := keys(t, s); len(left) > 0 {
				t.Errorf("%s, %s: left: %q", name, when, left)
			}
		}
	}
}

// Somebody else's object is not removed.
func TestAnObjectOfAnotherInTheSamePlaceIsTold(t *testing.T) {
	for name, size := range sizes {
		s, m := start(t)
		meddled := false
		m.with = func(w http.ResponseWriter, r *http.Request, next http.Handler) {
			if r.Method == http.MethodHead && !meddled {
				meddled = true
				if _, err := s.client.PutObject(t.Context(), &oss.PutObjectRequest{Bucket: &s.bucket, Key: oss.Ptr("key"), Body: strings.NewReader("another's")}); err != nil {
					t.Error(err)
				}
			}
			next.ServeHTTP(w, r)
		}
		_, err := s.Put(t.Context(), "key", upload(size))
		if err == nil || !strings.Contains(err.Error(), "another object has taken its place") {
			t.Errorf("%s: got %v", name, err)
		}
		if o, err := s.Stat(t.Context(), "key"); err != nil || o.Size != int64(len("another's")) {
			t.Errorf("%s: the other object is %+v, %v", name, o, err)
		}
	}
}

// What can't be looked at may well be good.
func TestAnObjectThatCantBeLookedAtIsKept(t *testing.T) {
	for name, size := range sizes {
		for _, tt := range []struct {
			status int
			proven bool // by the checksum in the answer to what made it
			want   string
		}{
			{http.StatusServiceUnavailable, true, ""},
			{http.StatusForbidden, true, ""},
			{http.StatusForbidden, false, "stored, but not confirmed"},
			{http.StatusNotFound, true, "somebody has deleted it"},
		} {
			s, m := start(t)
			m.with = func(w http.ResponseWriter, r *http.Request, next http.Handler) {
				switch {
				case r.Method == http.MethodHead:
					w.WriteHeader(tt.status)
				case completes(r) && !tt.proven:
					change(w, r, next, "x-oss-hash-crc64ecma", "")
				default:
					next.ServeHTTP(w, r)
				}
			}
			o, err := s.Put(t.Context(), "key", upload(size))
			if tt.want == "" && (err != nil || o.Size != size || o.Key != "key" || o.Metadata["etcd-revision"] != "7") {
				t.Errorf("%s, %+v: got %+v, %v", name, tt, o, err)
			}
			if tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
				t.Errorf("%s, %+v: got %+v, %v", name, tt, o, err)
			}
			if left := keys(t, s); len(left) != 1 {
				t.Errorf("%s, %+v: left: %q", name, tt, left)
			}
		}
	}
}

// change has OSS answer, and changes a header of that; "": it goes.
func change(w http.ResponseWriter, r *http.Request, next http.Handler, header, to string) {
	answer := httptest.NewRecorder()
	next.ServeHTTP(answer, r)
	for name, values := range answer.Header() {
		w.Header()[name] = values
	}
	w.Header().Set(header, to)
	if to == "" {
		w.Header().Del(header)
	}
	w.WriteHeader(answer.Code)
	_, _ = w.Write(answer.Body.Bytes())
}

// In a bucket with versions, just the one is removed that is not what was sent.
func TestTheVersionThatIsWrongIsRemoved(t *testing.T) {
	for denied, want := range map[bool][]string{false: {"v7"}, true: {"v7", ""}} {
		s, m := start(t)
		var deleted []string
		m.with = func(w http.ResponseWriter, r *http.Request, next http.Handler) {
			switch {
			case r.Method == http.MethodDelete:
				version := r.URL.Query().Get("versionId")
				deleted = append(deleted, version)
				if version != "" && denied {
					w.WriteHeader(http.StatusForbidden)
					return
				}
				w.WriteHeader(http.StatusNoContent)
			case completes(r):
				w.Header().Set("x-oss-version-id", "v7")
				next.ServeHTTP(w, r)
			case r.Method == http.MethodHead:
				change(w, r, next, "x-oss-hash-crc64ecma", "1")
			}
		}
		if _, err := s.Put(t.Context(), "key", upload(1000)); err == nil || !strings.Contains(err.Error(), "checksum 1, ") {
			t.Errorf("put: %v", err)
		}
		if !slices.Equal(deleted, want) {
			t.Errorf("denied %t: deleted the versions %q, want %q", denied, deleted, want)
		}
	}
}

func TestContentThatIsDamagedOnTheWayIsRefused(t *testing.T) {
	for name, size := range sizes {
		s, m := start(t)
		m.with = func(w http.ResponseWriter, r *http.Request, next http.Handler) {
			if r.Method == http.MethodPut {
				body, err := io.ReadAll(r.Body)
				if err != nil {
					return // another part was refused
				}
				body[len(body)/2] ^= 1
				r.Body = io.NopCloser(bytes.NewReader(body))
			}
			next.ServeHTTP(w, r)
		}
		_, err := s.Put(t.Context(), "key", upload(size))
		if err == nil || !strings.Contains(err.Error(), "OSS answers InvalidDigest (HTTP 400)") {
			t.Errorf("%s: got %v", name, err)
		}
		if left := keys(t, s); len(left) > 0 {
			t.Errorf("%s: left: %q", name, left)
		}
	}
}

func TestErrorsTellWhatOSSSaysAndNotWhatWasSigned(t *testing.T) {
	answer := func(status int, body string) func(http.ResponseWriter, *http.Request, http.Handler) {
		return func(w http.ResponseWriter, _ *http.Request, _ http.Handler) {
			w.WriteHeader(status)
			_, _ = io.WriteString(w, body)
		}
	}
	for name, c := range map[string]struct {
		change func(*osstest.Server)
		with   func(http.ResponseWriter, *http.Request, http.Handler)
		kind   error // nil: none of package store
		want   string
	}{
		"wrong secret": {change: func(s *osstest.Server) { s.AccessKeys[id] = "another" }, kind: store.ErrDenied,
			want: "list oss://backups/etcd: the store refused the credentials or what they may do: OSS answers SignatureDoesNotMatch (HTTP 403): " +
				"The request signature we calculated does not match the signature you provided. Check your key and signing method. (request ID)"},
		"unknown access key": {change: func(s *osstest.Server) { delete(s.AccessKeys, id) }, kind: store.ErrDenied,
			want: "list oss://backups/etcd: the store refused the credentials or what they may do: OSS answers InvalidAccessKeyId (HTTP 403): " +
				"The OSS Access Key Id you provided does not exist in our records. (request ID)"},
		"no right": {change: func(s *osstest.Server) { s.Allow = func(_, _, _ string) bool { return false } }, kind: store.ErrDenied,
			want: "list oss://backups/etcd: the store refused the credentials or what they may do: OSS answers AccessDenied (HTTP 403): " +
				"You have no right to access this object because of bucket acl. (request ID)"},
		"wrong clock": {change: func(s *osstest.Server) { s.Now = func() time.Time { return time.Now().Add(time.Hour) } },
			want: "list oss://backups/etcd: OSS answers RequestTimeTooSkewed (HTTP 403): The difference between the request time and the current time is too large. (request ID); correct the clock of the node"},
		"a proxy's page": {with: answer(http.StatusBadGateway, "<html>no such host</html>"),
			want: "list oss://backups/etcd: the server answers HTTP 502, and not as OSS does: look at the endpoint"},
		"a proxy's refusal": {with: answer(http.StatusForbidden, "go away"), kind: store.ErrDenied,
			want: "list oss://backups/etcd: the store refused the credentials or what they may do: the server answers HTTP 403, and not as OSS does: look at the endpoint"},
		"a redirect": {with: func(w http.ResponseWriter, r *http.Request, _ http.Handler) {
			http.Redirect(w, r, "http://elsewhere.example/", http.StatusFound)
		}, want: "list oss://backups/etcd: the server answers HTTP 302, and not as OSS does: look at the endpoint"},
		"an echo": {with: answer(http.StatusTeapot, "<Error><Code>Teapot</Code><Message>"+id+" and "+secret+" are short and stout</Message><RequestId>7</RequestId></Error>"),
			want: "list oss://backups/etcd: OSS answers Teapot (HTTP 418): … and … are short and stout (request ID)"},
		"a list without an end": {with: answer(http.StatusOK, "<ListBucketResult><IsTruncated>true</IsTruncated></ListBucketResult>"),
			want: "list oss://backups/etcd: the list is incomplete, and OSS does not say where it continues"},
	} {
		s, m := start(t)
		if c.change != nil {
			c.change(m.oss)
		}
		m.with = c.with
		var err error
		for _, err = range s.List(t.Context(), "etcd") {
		}
		if err == nil {
			t.Errorf("%s: no error", name)
			continue
		}
		if text := regexp.MustCompile(`\(request [0-9A-F]+\)`).ReplaceAllString(err.Error(), "(request ID)"); text != c.want {
			t.Errorf("%s: got  %s\nwant %s", name, text, c.want)
		}
		if store.HasStatus(err, http.StatusTeapot) != (name == "an echo") {
			t.Errorf("%s: has status 418: %v", name, err)
		}
		for _, kind := range []error{store.ErrDenied, store.ErrNoCredentials, store.ErrNotFound, store.ErrNoBucket, store.ErrConfig} {
			if errors.Is(err, kind) != (kind == c.kind) { //nolint:errorlint // the very same is meant
				t.Errorf("%s: is %q: %v", name, kind, errors.Is(err, kind))
			}
		}
	}
}

func TestEveryPageOfUploadsIsSwept(t *testing.T) {
	s, _ := start(t) // of two uploads each
	var begun []string
	for _, key := range []string{"etcd_v1", "etcd_v1", "etcd_v1", "etcd_v2", "etcd_v2", "etcd2_v1", "other"} {
		if _, err := s.client.InitiateMultipartUpload(t.Context(), &oss.InitiateMultipartUploadRequest{Bucket: &s.bucket, Key: &key}); err != nil {
			t.Fatal(err)
		}
		begun = append(begun, key)
	}
	var asked []string
	swept, err := s.Sweep(t.Context(), "etcd", time.Now().Add(time.Hour), func(key string) bool {
		asked = append(asked, key)
		return strings.HasPrefix(key, "etcd_v")
	})
	if err != nil || swept != 5 {
		t.Errorf("%d swept, %v", swept, err)
	}
	slices.Sort(asked)
	if want := slices.Sorted(slices.Values(begun[:6])); !slices.Equal(asked, want) {
		t.Errorf("asked about %q, want %q", asked, want)
	}
	if swept, err := s.Sweep(t.Context(), "", time.Now().Add(time.Hour), func(string) bool { return true }); err != nil || swept != 2 {
		t.Errorf("%d left, %v", swept, err)
	}
}
