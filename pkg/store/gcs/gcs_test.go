// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package gcs

import (
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/iotest"
	"testing/synctest"

	"github.com/etcd-operator/etcd-operator/pkg/store"
)

const (
	small = `{"name":"k","size":"5","crc32c":"mnG7TA==","generation":"7","timeCreated":"2026-11-21T15:04:05Z"}` // of hello
	wrong = `{"name":"k","size":"5","crc32c":"AAAAAA==","generation":"7","timeCreated":"2026-11-21T15:04:05Z"}`
	short = `{"name":"k","size":"4","crc32c":"mnG7TA==","generation":"7","timeCreated":"2026-11-21T15:04:05Z"}`
)

func hello() store.Upload { return store.Upload{Body: strings.NewReader("hello"), Size: 5} }

func TestAnswersAreOfKnownKinds(t *testing.T) {
	kinds := []error{store.ErrNotFound, store.ErrNoBucket, store.ErrDenied, store.ErrNoCredentials, store.ErrConfig}
	for name, tt := range map[string]struct {
		status int
		text   string
		kind   error // nil: none of them
	}{
		"no token":        {http.StatusUnauthorized, `{"error":{"code":401,"message":"Invalid Credentials"}}`, store.ErrDenied},
		"no right":        {http.StatusForbidden, `{"error":{"code":403,"message":"no storage.objects.create","errors":[{"reason":"forbidden"}]}}`, store.ErrDenied},
		"too many":        {http.StatusForbidden, `{"error":{"code":403,"message":"slower","errors":[{"reason":"rateLimitExceeded"}]}}`, nil},
		"no bucket":       {http.StatusNotFound, `{"error":{"code":404,"message":"The specified bucket does not exist."}}`, store.ErrNoBucket},
		"mistake":         {http.StatusBadRequest, `{"error":{"code":400,"message":"Invalid bucket name"}}`, nil},
		"page of a proxy": {http.StatusBadRequest, `<html>secret</html>`, nil},
		"server down":     {http.StatusServiceUnavailable, ``, nil},
	} {
		synctest.Test(t, func(t *testing.T) {
			s := openAt(t, &server{answer: func(*http.Request, string) (int, string) { return tt.status, tt.text }})
			_, put := s.Put(t.Context(), "k", hello())
			_, get := s.Get(t.Context(), "k", 0)
			_, stat := s.Stat(t.Context(), "k")
			var list error
			for _, err := range s.List(t.Context(), "k") {
				list = err
			}
			for what, err := range map[string]error{"put": put, "get": get, "stat": stat, "list": list, "delete": s.Delete(t.Context(), "k")} {
				if err == nil || !strings.HasPrefix(err.Error(), what+" k in bucket b of Google Cloud Storage: ") || strings.Contains(err.Error(), "secret") {
					t.Errorf("%s: %s is reported as %v", name, what, err)
				}
				for _, kind := range kinds {
					if errors.Is(err, kind) != (kind == tt.kind) { //nolint:errorlint // the very same is meant
						t.Errorf("%s: %s is of the kind %q: %v", name, what, kind, err)
					}
				}
			}
		})
	}
}

func TestRequestsAreSentAgainAFewTimes(t *testing.T) {
	for _, failures := range []int{1, 3, 4} {
		for what, tt := range map[string]struct {
			call   func(*testing.T, *Store) error
			status int
			text   string
		}{
			"stat":   {func(t *testing.T, s *Store) error { _, err := s.Stat(t.Context(), "k"); return err }, http.StatusOK, small},
			"get":    {func(t *testing.T, s *Store) error { _, err := s.Get(t.Context(), "k", 0); return err }, http.StatusOK, "hello"},
			"put":    {func(t *testing.T, s *Store) error { _, err := s.Put(t.Context(), "k", hello()); return err }, http.StatusOK, small},
			"delete": {func(t *testing.T, s *Store) error { return s.Delete(t.Context(), "k") }, http.StatusNoContent, ""},
		} {
			synctest.Test(t, func(t *testing.T) {
				at := &server{}
				at.answer = func(*http.Request, string) (int, string) {
					if len(at.requests) <= failures || failures == attempts {
						return http.StatusServiceUnavailable, ""
					}
					return tt.status, tt.text
				}
				err := tt.call(t, openAt(t, at))
				if failed := err != nil; failed != (failures == attempts) {
					t.Errorf("%s after %d failures: %v", what, failures, err)
				}
				if want := min(failures+1, attempts); len(at.requests) != want && what != "put" || at.count("POST") > want {
					t.Errorf("%s after %d failures: requests %q, want %d", what, failures, at.requests, want)
				}
			})
		}
	}
}

func TestWhatWasStoredOtherwiseIsDeleted(t *testing.T) {
	for name, stored := range map[string]string{"another checksum": wrong, "another size": short} {
		at := &server{answer: func(r *http.Request, _ string) (int, string) {
			if r.Method == http.MethodDelete {
				return http.StatusNoContent, ""
			}
			return http.StatusOK, stored
		}}
		object, err := openAt(t, at).Put(t.Context(), "k", hello())
		if err == nil {
			t.Errorf("%s: stored %+v", name, object)
		}
		if at.count("DELETE /storage/v1/b/b/o/k?alt=json&generation=7&") != 1 {
			t.Errorf("%s: requests %q", name, at.requests)
		}
	}
}

func TestGoogleIsToldTheChecksum(t *testing.T) {
	at := &server{answer: func(_ *http.Request, body string) (int, string) {
		if !strings.Contains(body, `"crc32c":"mnG7TA=="`) {
			t.Errorf("sent %q", body)
		}
		return http.StatusOK, small
	}}
	if _, err := openAt(t, at).Put(t.Context(), "k", hello()); err != nil {
		t.Error(err)
	}
}

// A session lasts a week, and its address is all it takes to write to it.
func TestFailedUploadsEndTheirSession(t *testing.T) {
	bad := errors.New("the member died")
	at := &server{answer: func(r *http.Request, _ string) (int, string) {
		switch {
		case r.Method == http.MethodDelete:
			return 499, ""
		case r.URL.Path == "/session":
			return http.StatusPermanentRedirect, ""
		}
		return http.StatusOK, ""
	}}
	body := io.MultiReader(io.LimitReader(zeros{}, 2*chunkSize), iotest.ErrReader(bad))
	_, err := openAt(t, at).Put(t.Context(), "k", store.Upload{Body: body, Size: -1})
	if !errors.Is(err, bad) {
		t.Errorf("put: %v", err)
	}
	if at.count("POST /session?upload_id=secret") != 2 || at.count("DELETE /session?upload_id=secret") != 1 {
		t.Errorf("requests %q", at.requests)
	}
}

func TestAddressesOfSessionsAreNotTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		at := refusing{&server{answer: func(*http.Request, string) (int, string) { return http.StatusOK, "" }}}
		_, err := openAt(t, at).Put(t.Context(), "k", store.Upload{Body: io.LimitReader(zeros{}, 2*chunkSize), Size: -1})
		if !errors.Is(err, io.ErrClosedPipe) || strings.Contains(err.Error(), "upload_id") {
			t.Errorf("put: %v", err)
		}
	})
}

// refusing breaks the connections of a session.
type refusing struct{ *server }

func (r refusing) RoundTrip(request *http.Request) (*http.Response, error) {
	if request.URL.Path == "/session" {
		return nil, io.ErrClosedPipe
	}
	return r.server.RoundTrip(request)
}

// A backup with proven content is worth more than its metadata.
func TestABackupIsKeptThoughMetadataCantBeAdded(t *testing.T) {
	for name, tt := range map[string]struct {
		status int
		text   string
		want   string // in the error; "": none
	}{
		"no right":           {http.StatusForbidden, `{"error":{"code":403,"message":"no storage.objects.update"}}`, ""},
		"the server is down": {http.StatusServiceUnavailable, "", ""},
		"another's":          {http.StatusNotFound, `{"error":{"code":404,"message":"No such object"}}`, "put another object in its place"},
	} {
		synctest.Test(t, func(t *testing.T) {
			at := &server{answer: func(r *http.Request, _ string) (int, string) {
				if r.Method == http.MethodPatch {
					return tt.status, tt.text
				}
				return http.StatusOK, `{"name":"k","size":"9437184","crc32c":"Gs/MBw==","generation":"7","timeCreated":"2026-11-21T15:04:05Z","metadata":{"backup-uid":"1"}}`
			}}
			object, err := openAt(t, at).Put(t.Context(), "k", store.Upload{
				Body: io.LimitReader(zeros{}, 9<<20), Size: 9 << 20, Metadata: map[string]string{"backup-uid": "1"},
				FinalMetadata: func() map[string]string { return map[string]string{"sha256": "0"} },
			})
			if tt.want == "" && (err != nil || object.Size != 9<<20 || object.Metadata["backup-uid"] != "1" || object.Metadata["sha256"] != "") {
				t.Errorf("%s: stored %+v, error %v", name, object, err)
			}
			if tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
				t.Errorf("%s: stored %+v, error %v", name, object, err)
			}
			if at.count("PATCH /storage/v1/b/b/o/k?alt=json&generation=7&") == 0 || at.count("DELETE") != 0 {
				t.Errorf("%s: requests %q", name, at.requests)
			}
		})
	}
}

// The store has the object, and the connection breaks before it says so.
func TestAnObjectWhoseAnswerIsLostIsLookedAt(t *testing.T) {
	for name, tt := range map[string]struct {
		there  string
		stored bool
	}{
		"it is there":           {`{"name":"k","size":"5","crc32c":"mnG7TA==","timeCreated":"2026-11-21T15:04:05Z","metadata":{"backup-uid":"1"}}`, true},
		"an older one is there": {`{"name":"k","size":"5","crc32c":"mnG7TA==","timeCreated":"2026-11-21T15:04:05Z","metadata":{"backup-uid":"2"}}`, false},
		"another one is there":  {`{"name":"k","size":"5","crc32c":"AAAAAA==","timeCreated":"2026-11-21T15:04:05Z","metadata":{"backup-uid":"1"}}`, false},
	} {
		synctest.Test(t, func(t *testing.T) {
			at := &server{answer: func(r *http.Request, _ string) (int, string) {
				if r.Method == http.MethodGet {
					return http.StatusOK, tt.there
				}
				return http.StatusBadGateway, ""
			}}
			u := hello()
			u.Metadata = map[string]string{"backup-uid": "1"}
			object, err := openAt(t, at).Put(t.Context(), "k", u)
			if (err == nil) != tt.stored {
				t.Errorf("%s: stored %+v, error %v", name, object, err)
			}
			if at.count("DELETE") > 0 {
				t.Errorf("%s: what may be another's was deleted: %q", name, at.requests)
			}
		})
	}
}

// The answer to the last chunk is lost, and there is no session any more when that is
// sent again.
func TestAnObjectWhoseSessionHasEndedIsLookedAt(t *testing.T) {
	const size = chunkSize + 1
	sum := binary.BigEndian.AppendUint32(nil, crc32.Checksum(make([]byte, size), castagnoli))
	there := fmt.Sprintf(`{"name":"k","size":"%d","crc32c":"%s","timeCreated":"2026-11-21T15:04:05Z"}`, size, base64.StdEncoding.EncodeToString(sum))
	for _, status := range []int{http.StatusNotFound, http.StatusGone} {
		synctest.Test(t, func(t *testing.T) {
			at := &server{}
			at.answer = func(r *http.Request, _ string) (int, string) {
				switch {
				case r.Method == http.MethodGet:
					return http.StatusOK, there
				case r.URL.Path == "/session" && at.count("POST /session") == 1:
					return http.StatusPermanentRedirect, ""
				case r.URL.Path == "/session" && at.count("POST /session") == 2:
					return http.StatusBadGateway, ""
				case r.URL.Path == "/session":
					return status, ""
				}
				return http.StatusOK, ""
			}
			object, err := openAt(t, at).Put(t.Context(), "k", store.Upload{Body: io.LimitReader(zeros{}, size), Size: size})
			if err != nil || object.Size != size {
				t.Errorf("%d: stored %+v, error %v", status, object, err)
			}
		})
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}
