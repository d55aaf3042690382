// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package backupserver

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
)

func TestABackupIsForThoseWhoHaveItsToken(t *testing.T) {
	s := run(t, Config{})
	first, second := content(100), content(200)
	s.Offer("example", "first-token", backupOf(first))
	s.Offer("example", "second-token", backupOf(second)) // in another namespace
	s.Offer("other", "other-token", backupOf(content(300)))
	s.Offer("open", "", backupOf(content(400)))
	for token, want := range map[string][]byte{"first-token": first, "second-token": second} {
		if got := read(t, s.ask(t, http.MethodGet, "example", token)); got != string(want) {
			t.Errorf("with %s: %d bytes, want %d", token, len(got), len(want))
		}
	}
	wrong := read(t, s.ask(t, http.MethodGet, "example", "wrong-token"))
	for _, c := range []struct{ name, token string }{
		{"example", "wrong-token"}, {"example", "other-token"}, {"example", "first-toke"}, {"example", "first-token1"},
		{"other", "first-token"}, {"none", "first-token"}, {"none", "wrong-token"}, {"open", "x"}, {"Example", "first-token"},
	} {
		response := s.ask(t, http.MethodGet, c.name, c.token)
		body := read(t, response)
		if response.StatusCode != http.StatusNotFound || body != wrong {
			t.Errorf("%s with %s: %s, %q; it should not reveal whether there is one", c.name, c.token, response.Status, body)
		}
	}
	for _, header := range []string{"", "Bearer", "Bearer ", "Basic first-token", "first-token", "Bearerfirst-token"} {
		for _, name := range []string{"example", "none", "open"} {
			response := s.ask(t, http.MethodGet, name, "", "Authorization", header)
			if read(t, response); response.StatusCode != http.StatusUnauthorized || !has(response, "WWW-Authenticate", "Bearer") {
				t.Errorf("%s with the header %q: %s", name, header, response.Status)
			}
		}
	}
	if response := s.ask(t, http.MethodGet, "example", "", "Authorization", "bearer first-token"); response.StatusCode != http.StatusOK {
		t.Errorf("the scheme in lower case: %s", response.Status)
	}
}

func TestOfTwoOffersForOneTokenTheLaterIsServed(t *testing.T) {
	s := run(t, Config{})
	withdraw := []func(){s.Offer("example", "token", backupOf(content(1))), s.Offer("example", "token", backupOf(content(2)))}
	if got := read(t, s.ask(t, http.MethodGet, "example", "token")); len(got) != 2 {
		t.Errorf("%d bytes came", len(got))
	}
	withdraw[1]()
	if got := read(t, s.ask(t, http.MethodGet, "example", "token")); len(got) != 1 {
		t.Errorf("%d bytes came", len(got))
	}
	withdraw[0]()
	withdraw[0]()
	if response := s.ask(t, http.MethodGet, "example", "token"); response.StatusCode != http.StatusNotFound {
		t.Errorf("after both were withdrawn: %s", response.Status)
	}
}

// closing reports when the server has closed a reader of the store.
type closing struct {
	io.Reader
	closed chan struct{}
}

func (c closing) Close() error {
	close(c.closed)
	return nil
}

func TestWithdrawingEndsWhatIsUnderWay(t *testing.T) {
	s := run(t, Config{})
	for about, source := range map[string]func(ctx context.Context) io.Reader{
		"the store is waited for":  func(ctx context.Context) io.Reader { return hanging{ctx: ctx} },
		"the client is waited for": func(context.Context) io.Reader { return endless{} },
	} {
		closed, told := make(chan struct{}), make(failures, 1)
		b := told.told(Backup{Size: 1 << 40, SHA256: sum, Open: func(ctx context.Context, _ int64) (io.ReadCloser, error) {
			return closing{io.MultiReader(strings.NewReader("beginning"), source(ctx)), closed}, nil
		}})
		withdraw := s.Offer("example", "token", b)
		response := s.ask(t, http.MethodGet, "example", "token") // its body is not read
		withdraw()
		select {
		case <-closed:
		default:
			t.Errorf("%s: the request continues", about)
		}
		if n, err := io.Copy(io.Discard, response.Body); err == nil {
			t.Errorf("%s: the client takes %d bytes for all", about, n)
		}
		if len(told) > 0 {
			t.Errorf("%s: the store is said to have failed: %v", about, <-told)
		}
		if response := s.ask(t, http.MethodGet, "example", "token"); response.StatusCode != http.StatusNotFound {
			t.Errorf("%s: it is still offered: %s", about, response.Status)
		}
	}
}

func TestTheServersEndIsThatOfItsRequests(t *testing.T) {
	s := run(t, Config{})
	closed := make(chan struct{})
	withdraw := s.Offer("example", "token", Backup{Size: 100, SHA256: sum, Open: func(ctx context.Context, _ int64) (io.ReadCloser, error) {
		return closing{io.MultiReader(strings.NewReader("beginning"), hanging{ctx: ctx}), closed}, nil
	}})
	response := s.ask(t, http.MethodGet, "example", "token")
	if err := s.stop(); err != nil {
		t.Error(err)
	}
	<-closed
	if _, err := io.ReadAll(response.Body); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("the client reads %v", err)
	}
	withdraw()
	if conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", strings.TrimPrefix(s.url, "http://")); err == nil {
		conn.Close()
		t.Error("it still listens")
	}
}

func TestAClientThatComesBackTakesThePlaceOfItsLostConnection(t *testing.T) {
	s := run(t, Config{RequestsPerOffer: 1})
	whole := content(1000)
	opened := 0
	s.Offer("example", "token", from(len(whole), func(ctx context.Context, offset int64) (io.Reader, error) {
		if opened++; opened == 1 {
			return io.MultiReader(strings.NewReader(string(whole[:300])), hanging{ctx: ctx}), nil
		}
		return strings.NewReader(string(whole[offset:])), nil
	}))
	lost := s.ask(t, http.MethodGet, "example", "token")
	back := s.ask(t, http.MethodGet, "example", "token", "Range", "bytes=300-")
	if got := read(t, back); got != string(whole[300:]) {
		t.Errorf("%s: %d bytes", back.Status, len(got))
	}
	if got, err := io.ReadAll(lost.Body); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("the lost connection: %d bytes, %v", len(got), err)
	}
}

func TestTooManyRequestsAreAskedToComeBack(t *testing.T) {
	s := run(t, Config{Requests: 1})
	slow := from(100, func(ctx context.Context, _ int64) (io.Reader, error) {
		return io.MultiReader(strings.NewReader("beginning"), hanging{ctx: ctx}), nil
	})
	withdraw := s.Offer("one", "token", slow)
	s.Offer("two", "token", backupOf(content(100)))
	s.ask(t, http.MethodGet, "one", "token")
	if response := s.ask(t, http.MethodGet, "two", "token"); response.StatusCode != http.StatusServiceUnavailable || response.Header.Get("Retry-After") == "" {
		t.Errorf("%s, %v", response.Status, response.Header)
	}
	// Who has no token learns nothing of it.
	if response := s.ask(t, http.MethodGet, "two", "wrong"); response.StatusCode != http.StatusNotFound {
		t.Errorf("with a wrong token: %s", response.Status)
	}
	withdraw()
	if got := read(t, s.ask(t, http.MethodGet, "two", "token")); len(got) != 100 {
		t.Errorf("%d bytes", len(got))
	}
}
