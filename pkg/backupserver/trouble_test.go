// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package backupserver

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/etcd-operator/etcd-operator/pkg/store"
)

const hidden = "what the store says is not for the client"

func TestAStoreThatFailsAtOnceIsTold(t *testing.T) {
	for about, c := range map[string]struct {
		open func(context.Context, int64) (io.Reader, error)
		want string
		is   error
	}{
		"opening":        {func(context.Context, int64) (io.Reader, error) { return nil, errors.New(hidden) }, "the store can't give the backup now", nil},
		"the first read": {func(context.Context, int64) (io.Reader, error) { return failing{errors.New(hidden)}, nil }, "the store can't give the backup now", nil},
		"it is gone": {func(context.Context, int64) (io.Reader, error) {
			return nil, fmt.Errorf("%s: %w", hidden, store.ErrNotFound)
		}, "is not in the store any more", store.ErrNotFound},
		"it is not allowed": {func(context.Context, int64) (io.Reader, error) {
			return nil, fmt.Errorf("%s: %w", hidden, store.ErrDenied)
		}, "refuses the credentials", store.ErrDenied},
		"there are no credentials": {func(context.Context, int64) (io.Reader, error) {
			return nil, fmt.Errorf("%s: %w", hidden, store.ErrNoCredentials)
		}, "no credentials for the store", store.ErrNoCredentials},
		"it is empty": {func(context.Context, int64) (io.Reader, error) { return failing{io.EOF}, nil }, "is not the backup that was verified", errLength},
		"it is a little long": {func(context.Context, int64) (io.Reader, error) {
			return strings.NewReader(strings.Repeat("x", 101)), nil
		}, "is not the backup that was verified", errLength},
		"it hangs": {func(ctx context.Context, _ int64) (io.Reader, error) { return hanging{ctx: ctx}, nil }, "the store can't give the backup now", errStoreStalls},
		"opening hangs": {func(ctx context.Context, _ int64) (io.Reader, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		}, "the store can't give the backup now", errStoreStalls},
	} {
		told := make(failures, 1)
		withClock(t, told.told(from(100, c.open)), func(t *testing.T, p pipes) {
			client, response := p.askBy(t, "Range: bytes=0-")
			defer client.Close()
			body := read(t, response)
			if response.StatusCode != http.StatusBadGateway || !strings.Contains(body, c.want) || strings.Contains(body, hidden) || !has(response, "Content-Range", "") {
				t.Errorf("%s: %s, %q, %v", about, response.Status, body, response.Header)
			}
			if err := told.only(t); c.is != nil && !errors.Is(err, c.is) || c.is == nil && fmt.Sprint(err) != hidden {
				t.Errorf("%s: reported %v", about, err)
			}
		})
	}
}

func TestABodyThatIsNotWholeIsCutOff(t *testing.T) {
	const size = 3 * pieceSize
	whole := content(size)
	broken := errors.New("the store broke off")
	for about, c := range map[string]struct {
		rest func(ctx context.Context) io.Reader // after two pieces
		is   error
	}{
		"it breaks":   {func(context.Context) io.Reader { return failing{broken} }, broken},
		"it is short": {func(context.Context) io.Reader { return strings.NewReader(string(whole[2*pieceSize : 2*pieceSize+1])) }, errLength},
		"it is long":  {func(context.Context) io.Reader { return strings.NewReader(strings.Repeat("x", pieceSize+1)) }, errLength},
		"it hangs":    {func(ctx context.Context) io.Reader { return hanging{ctx: ctx} }, errStoreStalls},
	} {
		told := make(failures, 1)
		b := told.told(from(size, func(ctx context.Context, _ int64) (io.Reader, error) {
			return io.MultiReader(strings.NewReader(string(whole[:2*pieceSize])), c.rest(ctx)), nil
		}))
		withClock(t, b, func(t *testing.T, p pipes) {
			client, response := p.askBy(t)
			defer client.Close()
			got, err := io.ReadAll(response.Body)
			if response.StatusCode != http.StatusOK || !errors.Is(err, io.ErrUnexpectedEOF) || !strings.HasPrefix(string(whole), string(got)) {
				t.Errorf("%s: %s, %d bytes, %v", about, response.Status, len(got), err)
			}
			if err := told.only(t); !errors.Is(err, c.is) {
				t.Errorf("%s: reported %v", about, err)
			}
		})
	}
}

// only returns the only reported failure after all requests have ended.
func (f failures) only(t *testing.T) error {
	t.Helper()
	synctest.Wait()
	if len(f) != 1 {
		t.Errorf("%d failures were reported", len(f))
		return nil
	}
	return <-f
}

// pipes is a listener whose connections hold nothing, and whose clock is that of
// the test.
type pipes struct {
	conns  chan net.Conn
	closed chan struct{}
}

func (p pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

func (p pipes) Close() error {
	close(p.closed)
	return nil
}

func (p pipes) Addr() net.Addr { return &net.TCPAddr{} }

// askBy sends a request over a new connection, with further lines of its head, and reads
// the head of the answer.
func (p pipes) askBy(t *testing.T, lines ...string) (net.Conn, answer) {
	t.Helper()
	client, server := net.Pipe()
	p.conns <- server
	head := append([]string{"GET " + Path + "example HTTP/1.1", "Host: x", "Authorization: Bearer token"}, lines...)
	fmt.Fprint(client, strings.Join(head, "\r\n")+"\r\n\r\n")
	response, err := http.ReadResponse(bufio.NewReaderSize(client, 16), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { response.Body.Close() })
	return client, answer{response}
}

// withClock serves a backup to a client whose time the test has in its hands.
func withClock(t *testing.T, b Backup, test func(t *testing.T, p pipes)) {
	synctest.Test(t, func(t *testing.T) {
		p := pipes{make(chan net.Conn), make(chan struct{})}
		s := New(Config{})
		s.Offer("example", "token", b)
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- s.Run(ctx, p) }()
		test(t, p)
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

func TestASlowReaderGetsAll(t *testing.T) {
	whole := content(10 * pieceSize)
	withClock(t, backupOf(whole), func(t *testing.T, p pipes) {
		client, response := p.askBy(t)
		began := time.Now()
		for piece, got := make([]byte, pieceSize/2), 0; got < len(whole); got += len(piece) {
			time.Sleep(DefaultProgressTimeout / 3)
			if n, err := io.ReadFull(response.Body, piece); err != nil {
				t.Fatalf("after %d bytes: %v", got+n, err)
			}
		}
		if took := time.Since(began); took < 2*DefaultProgressTimeout {
			t.Errorf("the reader was not slow: %v", took)
		}
		client.Close()
	})
}

func TestAReaderThatStallsIsCutOff(t *testing.T) {
	closed, told := make(chan struct{}), make(failures, 1)
	b := told.told(Backup{Size: 1 << 40, SHA256: sum, Open: func(context.Context, int64) (io.ReadCloser, error) {
		return closing{endless{}, closed}, nil
	}})
	withClock(t, b, func(t *testing.T, p pipes) {
		client, _ := p.askBy(t)
		synctest.Wait()
		select {
		case <-closed:
			t.Error("it was cut off at once")
		default:
		}
		time.Sleep(DefaultProgressTimeout + time.Second)
		synctest.Wait()
		select {
		case <-closed:
		default:
			t.Error("it still has its place")
		}
		if len(told) > 0 {
			t.Errorf("the store is said to have failed: %v", <-told)
		}
		client.Close()
	})
}

func TestConnectionsThatSayNothingAreClosed(t *testing.T) {
	withClock(t, backupOf(content(1)), func(t *testing.T, p pipes) {
		var clients []net.Conn
		for range maxConnections { // all that there may be
			client, server := net.Pipe()
			p.conns <- server
			clients = append(clients, client)
		}
		asked := time.Now()
		client, response := p.askBy(t)
		if response.StatusCode != http.StatusOK || time.Since(asked) != headerTimeout {
			t.Errorf("%s after %v", response.Status, time.Since(asked))
		}
		for _, c := range append(clients, client) {
			c.Close()
		}
	})
}
