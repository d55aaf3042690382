// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package storetest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/etcd-operator/etcd-operator/pkg/store"
)

// expectError checks that an error is of a kind, names what was tried, and holds no secret.
func (s *suite) expectError(t *testing.T, what string, err, want error, names ...string) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("%s: error %v, want %v", what, err, want)
		return
	}
	s.expectText(t, what, err, names...)
}

// expectText checks that an error names what was tried, and holds no secret.
func (s *suite) expectText(t *testing.T, what string, err error, names ...string) {
	t.Helper()
	for _, name := range names {
		if !strings.Contains(err.Error(), name) {
			t.Errorf("%s: the error does not name %q: %v", what, name, err)
		}
	}
	for _, secret := range s.Secrets {
		if strings.Contains(err.Error(), secret) {
			t.Errorf("%s: the error holds a secret: %v", what, err)
		}
	}
}

func invisible(t *testing.T, s *suite) {
	in := s.open(t)
	old := s.putSize(t, in, "invisible/old", 1000)
	for _, key := range []string{"invisible/new", "invisible/old"} {
		body := newContent(large).after(large-1000, func() error {
			if len(s.Unfinished(t)) == 0 {
				t.Errorf("Unfinished does not show the upload of %s, which is under way", key)
			}
			if key == "invisible/old" {
				s.expect(t, in, key, 1000, old)
				return nil
			}
			if _, err := in.Stat(t.Context(), key); !errors.Is(err, store.ErrNotFound) {
				t.Errorf("stat %s while it is put: %v", key, err)
			}
			if keys := s.list(t, in, key); len(keys) > 0 {
				t.Errorf("list while it is put: %q", keys)
			}
			return nil
		})
		s.put(t, in, key, store.Upload{Body: body, Size: -1})
		if body.at != nil {
			t.Errorf("nobody has looked while %s was put", key)
		}
		s.expect(t, in, key, large, body.sum())
		s.expectFinished(t)
	}
}

func failingBody(t *testing.T, s *suite) {
	in := s.open(t)
	bad := errors.New("the member died")
	part := store.PartSize(-1)
	old := s.putSize(t, in, "failing/old", 1000)
	for _, at := range []int64{0, 1, 1000, part, part + 1, large - 1, large} {
		for _, key := range []string{"failing/new", "failing/old"} {
			body := newContent(large).after(at, func() error { return bad })
			_, err := in.Put(t.Context(), key, store.Upload{Body: body, Size: large})
			s.expectError(t, fmt.Sprintf("body that fails at byte %d", at), err, bad, key)
		}
		s.expectNothing(t, in, "failing/new")
		s.expect(t, in, "failing/old", 1000, old)
	}
	s.expectReplaced(t, in, "failing/new", "failing/old")
}

func cancelled(t *testing.T, s *suite) {
	in := s.open(t)
	part := store.PartSize(-1)
	old := s.putSize(t, in, "cancelled/old", 1000)
	for _, at := range []int64{0, 1000, part + 1, 2*part + 1, large - 1} {
		for _, key := range []string{"cancelled/new", "cancelled/old"} {
			ctx, cancel := context.WithCancel(t.Context())
			body := newContent(large).after(at, func() error { cancel(); return nil })
			_, err := in.Put(ctx, key, store.Upload{Body: body, Size: large})
			s.expectError(t, fmt.Sprintf("cancelled at byte %d", at), err, context.Canceled, key)
			cancel()
		}
		s.expectNothing(t, in, "cancelled/new")
		s.expect(t, in, "cancelled/old", 1000, old)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := in.Put(ctx, "cancelled/before", store.Upload{Body: newContent(10), Size: 10})
	s.expectError(t, "cancelled before", err, context.Canceled)
	s.expectNothing(t, in, "cancelled/before")
	// The cancellation must not affect later requests.
	s.expectReplaced(t, in, "cancelled/new", "cancelled/old", "cancelled/after")
}

// refused checks that every request fails with a kind of error. Some servers only say of an
// object that it is absent.
func (s *suite) refused(t *testing.T, in store.Store, want error, ofObject ...error) {
	t.Helper()
	for _, size := range []int64{10, large} {
		_, err := in.Put(t.Context(), "refused/put", store.Upload{Body: newContent(size), Size: size})
		s.expectError(t, fmt.Sprintf("put %d bytes", size), err, want, "refused/put")
	}
	listed := 0
	for _, err := range in.List(t.Context(), "refused/") {
		s.expectError(t, "list", err, want, "refused/")
		listed++
	}
	if listed != 1 {
		t.Errorf("list yields %d times, want one error", listed)
	}
	_, err := in.Get(t.Context(), "refused/get", 0)
	s.expectError(t, "get", err, want, "refused/get")
	_, err = in.Stat(t.Context(), "refused/stat")
	for _, other := range ofObject {
		if errors.Is(err, other) {
			want = other
		}
	}
	s.expectError(t, "stat", err, want, "refused/stat")
}

func denied(t *testing.T, s *suite) {
	for name, open := range s.Denied {
		t.Run(name, func(t *testing.T) {
			in := s.openWith(t, open)
			s.refused(t, in, s.Refusal)
			err := in.Delete(t.Context(), "refused/delete")
			s.expectError(t, "delete", err, s.Refusal, "refused/delete")
		})
	}
}

func noBucket(t *testing.T, s *suite) {
	s.refused(t, s.openWith(t, s.NoBucket), store.ErrNoBucket, store.ErrNotFound)
}

// expectUnreachable checks that an error says that a server does not answer, and is of no kind
// that needs an action.
func (s *suite) expectUnreachable(t *testing.T, what string, err error, names ...string) {
	t.Helper()
	if err == nil {
		t.Errorf("%s: no error", what)
		return
	}
	s.expectText(t, what, err, names...)
	for _, other := range []error{store.ErrNotFound, store.ErrNoBucket, store.ErrDenied, store.ErrNoCredentials, store.ErrConfig} {
		if errors.Is(err, other) {
			t.Errorf("%s: a server that does not answer is reported as %q: %v", what, other, err)
		}
	}
}

func serverDies(t *testing.T, s *suite) {
	in := s.open(t)
	old := s.putSize(t, in, "dies/old", 1000)
	for _, key := range []string{"dies/new", "dies/old"} {
		body := newContent(large).after(large-mib, func() error { s.Kill(t); return nil })
		_, err := in.Put(t.Context(), key, store.Upload{Body: body, Size: large})
		s.expectUnreachable(t, "put while the server dies", err, key)
		_, err = in.Stat(t.Context(), key)
		s.expectUnreachable(t, "stat without a server", err, key)
		s.Restart(t)
	}
	if _, err := in.Stat(t.Context(), "dies/new"); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("stat what was cut off: %v", err)
	}
	s.expect(t, in, "dies/old", 1000, old)
	// Nobody could remove the remains while there was no server.
	for _, key := range []string{"dies/new", "dies/old"} {
		if _, err := in.Sweep(t.Context(), key, time.Now().Add(time.Hour), func(string) bool { return true }); err != nil {
			t.Errorf("sweep %s: %v", key, err)
		}
	}
	if s.Lingers == "" {
		s.expectFinished(t)
	}
	s.expectReplaced(t, in, "dies/new", "dies/old")
}

func serverHangs(t *testing.T, s *suite) {
	in := s.open(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	body := newContent(large).after(large-mib, func() error {
		s.Freeze(t)
		time.AfterFunc(2*time.Second, cancel) // the rest is sent, and nothing is answered
		return nil
	})
	_, err := in.Put(ctx, "hangs/new", store.Upload{Body: body, Size: large})
	s.Thaw(t)
	s.expectError(t, "put while the server hangs", err, context.Canceled, "hangs/new")
	if _, err := in.Stat(t.Context(), "hangs/new"); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("stat what was cut off: %v", err)
	}
	s.expect(t, in, "hangs/new", large, s.putSize(t, in, "hangs/new", large))
}
