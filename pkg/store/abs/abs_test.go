// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package abs

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/iotest"
	"testing/synctest"

	"github.com/etcd-operator/etcd-operator/pkg/store"
	"github.com/etcd-operator/etcd-operator/test/environment"
)

const helloMD5 = "XUFAKrxLKna5cZ2REBfFkg=="

func hello() store.Upload { return store.Upload{Body: strings.NewReader("hello"), Size: 5} }

// server answers requests as a test wants it. Nothing goes over a network, so that
// the time between two attempts is that of a testing/synctest bubble.
type server struct {
	answer func(*http.Request) (int, http.Header)
	body   string // of all answers

	mu       sync.Mutex
	requests []*http.Request
}

func (s *server) Do(r *http.Request) (*http.Response, error) {
	if r.Body != nil {
		if _, err := io.Copy(io.Discard, r.Body); err != nil {
			return nil, err
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests = append(s.requests, r)
	status, header := s.answer(r)
	if header == nil {
		header = http.Header{}
	}
	return &http.Response{StatusCode: status, Header: header, Request: r, Body: io.NopCloser(strings.NewReader(s.body))}, nil
}

// sent are the requests of a method whose query holds a text.
func (s *server) sent(method, query string) []*http.Request {
	var found []*http.Request
	for _, r := range s.requests {
		if r.Method == method && strings.Contains(r.URL.RawQuery, query) {
			found = append(found, r)
		}
	}
	return found
}

// openAt opens the container backups of a server.
func openAt(t *testing.T, at *server, config Config) *Store {
	t.Helper()
	config.Container, config.Account = "backups", "myaccount"
	p, err := config.place()
	if err != nil {
		t.Fatal(err)
	}
	client, err := p.client(config.Container, at)
	if err != nil {
		t.Fatal(err)
	}
	return &Store{name: "container backups", network: store.Transport(), client: client}
}

func TestAnswersAreOfKnownKinds(t *testing.T) {
	kinds := []error{store.ErrNotFound, store.ErrNoBucket, store.ErrDenied, store.ErrNoCredentials, store.ErrConfig}
	for name, tt := range map[string]struct {
		status int
		code   string
		kind   error // nil: none of them
	}{
		"wrong key":       {http.StatusForbidden, "AuthenticationFailed", store.ErrDenied},
		"no right":        {http.StatusForbidden, "AuthorizationPermissionMismatch", store.ErrDenied},
		"no token":        {http.StatusUnauthorized, "NoAuthenticationInformation", store.ErrDenied},
		"no container":    {http.StatusNotFound, "ContainerNotFound", store.ErrNoBucket},
		"mistake":         {http.StatusBadRequest, "InvalidHeaderValue", nil},
		"page of a proxy": {http.StatusBadRequest, "", nil},
		"server down":     {http.StatusServiceUnavailable, "ServerBusy", nil},
	} {
		synctest.Test(t, func(t *testing.T) {
			at := &server{body: "<Error><Message>hunter2</Message></Error>"}
			at.answer = func(*http.Request) (int, http.Header) {
				if tt.code == "" {
					return tt.status, nil
				}
				return tt.status, http.Header{"X-Ms-Error-Code": {tt.code}}
			}
			s := openAt(t, at, Config{Key: key})
			_, put := s.Put(t.Context(), "k", hello())
			_, get := s.Get(t.Context(), "k", 0)
			_, stat := s.Stat(t.Context(), "k")
			var list error
			for _, err := range s.List(t.Context(), "k") {
				list = err
			}
			for what, err := range map[string]error{"put": put, "get": get, "stat": stat, "list": list, "delete": s.Delete(t.Context(), "k")} {
				if err == nil || !strings.HasPrefix(err.Error(), what+" k in container backups: ") || !strings.Contains(err.Error(), tt.code) {
					t.Errorf("%s: %s is reported as %v", name, what, err)
					continue
				}
				for _, secret := range []string{"hunter2", "https://", "SharedKey"} {
					if strings.Contains(err.Error(), secret) {
						t.Errorf("%s: %s reveals too much: %v", name, what, err)
					}
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

func TestAbsentBlobsAreTold(t *testing.T) {
	for _, header := range []http.Header{{"X-Ms-Error-Code": {"BlobNotFound"}}, nil} {
		s := openAt(t, &server{answer: func(*http.Request) (int, http.Header) { return http.StatusNotFound, header }}, Config{Key: key})
		if _, err := s.Stat(t.Context(), "k"); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("stat: %v", err)
		}
		if err := s.Delete(t.Context(), "k"); err != nil {
			t.Errorf("delete: %v", err)
		}
	}
}

func TestAzureIsToldChecksumAndMetadata(t *testing.T) {
	at := &server{answer: func(*http.Request) (int, http.Header) { return http.StatusCreated, nil }}
	u := hello()
	u.Metadata = map[string]string{"etcd-revision": "12"}
	u.FinalMetadata = func() map[string]string { return map[string]string{"sha256": "0"} }
	if _, err := openAt(t, at, Config{Key: key}).Put(t.Context(), "k", u); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"Content-Md5": helloMD5, "X-Ms-Blob-Content-Md5": helloMD5, "X-Ms-Meta-Etcd_revision": "12", "X-Ms-Meta-Sha256": "0",
	} {
		var got []string
		for n, values := range at.requests[0].Header { // the SDK writes some in lower case
			if strings.EqualFold(n, name) {
				got = values
			}
		}
		if len(got) != 1 || got[0] != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
}

func TestBlobsOtherThanWhatWasSentAreDeleted(t *testing.T) {
	for name, tt := range map[string]struct {
		status int
		header http.Header
	}{
		"another size":     {http.StatusOK, http.Header{"Content-Length": {"5"}, "Etag": {`"1"`}}},
		"another checksum": {http.StatusOK, http.Header{"Content-Length": {"9437184"}, "Content-Md5": {helloMD5}, "Etag": {`"1"`}}},
	} {
		at := &server{answer: func(r *http.Request) (int, http.Header) {
			switch r.Method {
			case http.MethodHead:
				return tt.status, tt.header
			case http.MethodDelete:
				return http.StatusAccepted, nil
			}
			return http.StatusCreated, http.Header{"Etag": {`"1"`}}
		}}
		object, err := openAt(t, at, Config{Key: key}).Put(t.Context(), "k", store.Upload{Body: io.LimitReader(zeros{}, 9<<20), Size: -1})
		if err == nil {
			t.Errorf("%s: stored %+v", name, object)
		}
		deletions := at.sent(http.MethodDelete, "")
		if len(deletions) != 1 || deletions[0].Header.Get("If-Match") != `"1"` {
			t.Errorf("%s: %d deletions", name, len(deletions))
		}
	}
}

// Azure has compared all blocks by then, and what is there may be another's.
func TestBlobsThatCantBeLookedAtAreKept(t *testing.T) {
	for name, tt := range map[string]struct {
		status int
		code   string
		want   string // in the error; "": none
	}{
		"no right":           {http.StatusForbidden, "AuthorizationPermissionMismatch", ""},
		"the server is down": {http.StatusServiceUnavailable, "ServerBusy", ""},
		"another's":          {http.StatusPreconditionFailed, "ConditionNotMet", "another blob has taken its place"},
		"gone":               {http.StatusNotFound, "BlobNotFound", "somebody has deleted it"},
	} {
		synctest.Test(t, func(t *testing.T) {
			at := &server{answer: func(r *http.Request) (int, http.Header) {
				if r.Method == http.MethodHead {
					return tt.status, http.Header{"X-Ms-Error-Code": {tt.code}}
				}
				return http.StatusCreated, http.Header{"Etag": {`"1"`}}
			}}
			u := store.Upload{Body: io.LimitReader(zeros{}, 9<<20), Size: -1, Metadata: map[string]string{"backup-uid": "1"}}
			object, err := openAt(t, at, Config{Key: key}).Put(t.Context(), "k", u)
			if tt.want == "" && (err != nil || object.Key != "k" || object.Size != 9<<20 || object.Metadata["backup-uid"] != "1") {
				t.Errorf("%s: stored %+v, error %v", name, object, err)
			}
			if tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
				t.Errorf("%s: stored %+v, error %v", name, object, err)
			}
			if n := len(at.sent(http.MethodDelete, "")); n > 0 {
				t.Errorf("%s: %d deletions", name, n)
			}
		})
	}
}

// Azure has the blob, and the connection breaks before it says so.
func TestABlobWhoseAnswerIsLostIsLookedAt(t *testing.T) {
	there := func(uid, sum string) http.Header {
		return http.Header{"Content-Length": {"5"}, "Content-Md5": {sum}, "X-Ms-Meta-Backup_uid": {uid}}
	}
	for name, tt := range map[string]struct {
		there  http.Header
		stored bool
	}{
		"it is there":           {there("1", helloMD5), true},
		"an older one is there": {there("2", helloMD5), false},
		"another one is there":  {there("1", "AAAAAAAAAAAAAAAAAAAAAA=="), false},
	} {
		synctest.Test(t, func(t *testing.T) {
			at := &server{answer: func(r *http.Request) (int, http.Header) {
				if r.Method == http.MethodHead {
					return http.StatusOK, tt.there
				}
				return http.StatusBadGateway, nil
			}}
			u := hello()
			u.Metadata = map[string]string{"backup-uid": "1"}
			object, err := openAt(t, at, Config{Key: key}).Put(t.Context(), "k", u)
			if (err == nil) != tt.stored {
				t.Errorf("%s: stored %+v, error %v", name, object, err)
			}
			if len(at.sent(http.MethodDelete, "")) > 0 {
				t.Errorf("%s: what may be another's was deleted", name)
			}
		})
	}
}

func TestABodyThatFailsCommitsNothing(t *testing.T) {
	bad := errors.New("the member died")
	at := &server{answer: func(*http.Request) (int, http.Header) { return http.StatusCreated, nil }}
	body := io.MultiReader(io.LimitReader(zeros{}, 20<<20), iotest.ErrReader(bad))
	_, err := openAt(t, at, Config{Key: key}).Put(t.Context(), "k", store.Upload{Body: body, Size: -1})
	if !errors.Is(err, bad) || len(at.sent(http.MethodPut, "comp=block")) == 0 || len(at.sent(http.MethodPut, "comp=blocklist")) != 0 {
		t.Errorf("%d requests, error %v", len(at.requests), err)
	}
}

// Two operators may write the same blob, and none may commit a block of the other.
func TestBlocksAreOfOneUpload(t *testing.T) {
	one, other := newBlocks(), newBlocks()
	seen := map[string]bool{}
	for _, id := range append(one.first(50_000), other.first(50_000)...) {
		if seen[id] || len(id) != len(one.id(1)) {
			t.Fatalf("the id %s was used already, or is of another length", id)
		}
		seen[id] = true
	}
}

func TestARefusedIdentityIsNoDenialOfTheStore(t *testing.T) {
	environment.Forget(t, "AZURE_", "IDENTITY_", "IMDS_", "MSI_")
	t.Setenv("AZURE_TENANT_ID", "tenant")
	t.Setenv("AZURE_CLIENT_ID", "client")
	t.Setenv("AZURE_CLIENT_SECRET", "hunter2")
	at := &server{
		answer: func(*http.Request) (int, http.Header) { return http.StatusUnauthorized, nil },
		body:   `{"error":"invalid_client","error_description":"AADSTS7000215: Invalid client secret provided."}`,
	}
	_, err := openAt(t, at, Config{}).Stat(t.Context(), "k")
	if !errors.Is(err, store.ErrNoCredentials) || errors.Is(err, store.ErrDenied) || strings.Contains(err.Error(), "hunter2") {
		t.Errorf("stat: %v", err)
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}
