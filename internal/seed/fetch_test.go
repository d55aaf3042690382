// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package seed

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

const testToken = "a-secret-token"

// content is a backup, as far as Fetch can see.
func content(size int) []byte {
	text := make([]byte, size)
	for i := range text {
		text[i] = byte(i * 7 >> 3)
	}
	return text
}

// place is a fetch into directories of the test.
type place struct {
	Fetch
	out bytes.Buffer
}

func placeFor(t *testing.T, backup []byte) *place {
	t.Helper()
	sum := sha256.Sum256(backup)
	p := &place{Fetch: Fetch{
		URL: "http://restore.example/v1/backup/c", TokenFile: filepath.Join(t.TempDir(), "token"),
		Size: int64(len(backup)), SHA256: hex.EncodeToString(sum[:]), Dir: t.TempDir(), DataDir: filepath.Join(t.TempDir(), "data"),
	}}
	p.Out, p.Err = &p.out, &p.out
	write(t, p.TokenFile, testToken+"\n")
	return p
}

func write(t *testing.T, name, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o750); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// serve is a server that serves the backup correctly.
func serve(backup []byte) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer "+testToken {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(backup))
	}
}

// answer describes how one request ends.
type answer struct {
	by    http.HandlerFunc // nil: nobody listens
	after int64            // how much of the body arrives before its end
	end   func(context.Context) error
	mute  bool // the server never answers
}

func by(handler http.HandlerFunc) answer { return answer{by: handler} }

func status(code int) answer {
	return by(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code) })
}

// broken ends the body of an answer early.
func broken(a answer, after int64) answer {
	a.after, a.end = after, func(context.Context) error { return errors.New("connection reset by peer") }
	return a
}

// stalled delivers nothing after the first bytes of an answer, until the client gives up.
func stalled(a answer, after int64) answer {
	a.after, a.end = after, func(ctx context.Context) error {
		<-ctx.Done()
		return ctx.Err()
	}
	return a
}

// transport answers requests without a network: the n-th request with the n-th answer, and
// further ones with the last.
type transport struct {
	answers []answer
	asked   []string // the Range of each request
}

func (tr *transport) RoundTrip(r *http.Request) (*http.Response, error) {
	a := tr.answers[min(len(tr.asked), len(tr.answers)-1)]
	tr.asked = append(tr.asked, r.Header.Get("Range"))
	switch {
	case a.mute:
		<-r.Context().Done()
		return nil, r.Context().Err()
	case a.by == nil:
		return nil, errors.New("connection refused")
	}
	w := httptest.NewRecorder()
	a.by(w, r)
	resp := w.Result()
	if a.end != nil {
		resp.Body = io.NopCloser(io.MultiReader(io.LimitReader(resp.Body, a.after), ending{r.Context(), a.end}))
	}
	return resp, nil
}

type ending struct {
	ctx context.Context
	end func(context.Context) error
}

func (e ending) Read([]byte) (int, error) { return 0, e.end(e.ctx) }

func TestABackupArrivesWhateverHappensOnTheWay(t *testing.T) {
	backup := content(100_000)
	good := by(serve(backup))
	wrong := by(serve(append(bytes.Clone(backup[1:]), 'x')))
	for _, tc := range []struct {
		name    string
		answers []answer
		ranges  string
		took    time.Duration
		says    string
	}{
		{"at once", []answer{good}, "", 0, "fetched and verified 100000 bytes"},
		{"after the connection broke", []answer{broken(good, 40_000), broken(good, 50_000), good},
			",bytes=40000-,bytes=90000-", 2 * time.Second, "connection reset by peer; 40000 of 100000 bytes are here"},
		{"after the connection stood still", []answer{stalled(good, 40_000), good},
			",bytes=40000-", 31 * time.Second, "nothing has arrived for 30s"},
		{"after the server never answered", []answer{{mute: true}, good},
			",", 31 * time.Second, "nothing has arrived for 30s: check that the restore operator runs"},
		{"after the operator moved", []answer{broken(good, 10), {}, status(404), status(401), status(503), good},
			",bytes=10-,bytes=10-,bytes=10-,bytes=10-,bytes=10-", (1 + 2 + 4 + 8 + 15) * time.Second, "does not serve this backup, or not yet"},
		{"from a server without ranges", []answer{broken(good, 10), by(func(w http.ResponseWriter, r *http.Request) {
			r.Header.Del("Range")
			serve(backup)(w, r)
		})}, ",bytes=10-", time.Second, ""},
		{"after other content of the same size", []answer{wrong, good},
			",", time.Second, "what is served is not the backup that was chosen: see the EtcdRestore"},
		{"after other content, in its second part", []answer{broken(good, 40_000), wrong, good},
			",bytes=40000-,", 3 * time.Second, "what is served is not the backup that was chosen"},
		{"after a larger one", []answer{by(serve(append(bytes.Clone(backup), 'x'))), good},
			",", time.Second, "it has 100001 bytes, and should have 100000"},
		{"after a smaller one", []answer{broken(good, 40_000), by(serve(backup[:30_000])), good},
			",bytes=40000-,", 3 * time.Second, "the server has less of it than is here"},
		{"after a larger one without its length", []answer{by(func(w http.ResponseWriter, _ *http.Request) {
			_, _ = w.Write(append(bytes.Clone(backup), 'x')) // a recorder
		}), good}, ",", time.Second, "it is larger than 100000 bytes"},
		{"after another part than was asked for", []answer{broken(good, 40_000), by(func(w http.ResponseWriter, r *http.Request) {
			r.Header.Set("Range", "bytes=30000-")
			serve(backup)(w, r)
		}), good}, ",bytes=40000-,", 3 * time.Second, `the server answers with "bytes 30000-99999/100000"`},
		{"without following a redirection", []answer{by(func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "http://elsewhere.example/", http.StatusFound)
		}), good}, ",", time.Second, "302 Found"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p, tr := placeFor(t, backup), &transport{answers: tc.answers}
				p.Transport = tr
				start := time.Now()
				if err := p.Run(t.Context()); err != nil {
					t.Fatal(err)
				}
				if got := strings.Join(tr.asked, ","); got != tc.ranges {
					t.Errorf("asked for %q, want %q", got, tc.ranges)
				}
				if took := time.Since(start); took != tc.took {
					t.Errorf("took %s, want %s", took, tc.took)
				}
				if !strings.Contains(p.out.String(), tc.says) {
					t.Errorf("said %q, want %q", p.out.String(), tc.says)
				}
				p.checkWhole(t, backup)
			})
		})
	}
}

func (p *place) checkWhole(t *testing.T, backup []byte) {
	t.Helper()
	got, err := os.ReadFile(filepath.Join(p.Dir, snapshotFile))
	if err != nil || !bytes.Equal(got, backup) {
		t.Errorf("there are %d bytes of another content, %v", len(got), err)
	}
	if _, err := os.Stat(filepath.Join(p.Dir, partFile)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the part is left: %v", err)
	}
	if strings.Contains(p.out.String(), testToken) {
		t.Errorf("the output shows the token: %s", p.out.String())
	}
}

func TestTheServerIsTriedForEverUntilToldToStop(t *testing.T) {
	for name, a := range map[string]answer{
		"refused": {}, "401": status(401), "404": status(404), "500": status(500),
		"other content": by(serve(content(9))),
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p, tr := placeFor(t, content(10)), &transport{answers: []answer{a}}
				p.Transport = tr
				ctx, cancel := context.WithTimeoutCause(t.Context(), time.Hour, errors.New("SIGTERM"))
				defer cancel()
				err := p.Run(ctx)
				if err == nil || !strings.Contains(err.Error(), "was asked to stop with 0 of 10 bytes fetched: SIGTERM") {
					t.Errorf("ended with %v", err)
				}
				if n := len(tr.asked); n < 200 || n > 260 {
					t.Errorf("asked %d times in an hour", n)
				}
				if strings.Contains(p.out.String()+fmt.Sprint(err), testToken) {
					t.Error("the output shows the token")
				}
			})
		})
	}
}

func TestATokenMayComeLate(t *testing.T) {
	backup := content(1000)
	synctest.Test(t, func(t *testing.T) {
		p := placeFor(t, backup)
		p.Transport = &transport{answers: []answer{by(serve(backup))}}
		if err := os.Remove(p.TokenFile); err != nil {
			t.Fatal(err)
		}
		done := make(chan error, 1)
		go func() { done <- p.Run(t.Context()) }()
		synctest.Wait()
		if !strings.Contains(p.out.String(), "the Secret of the restore does not exist yet, or is gone") {
			t.Errorf("said %q", p.out.String())
		}
		write(t, p.TokenFile, testToken)
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		p.checkWhole(t, backup)
	})
}

// The store holds another object of the same size. It arrives completely, and is of no use.
// Fetch must not download it every few seconds forever.
func TestOtherContentIsNotFetchedAgainAndAgain(t *testing.T) {
	backup := content(1000)
	wrong := by(serve(append(bytes.Clone(backup[1:]), 'x')))
	synctest.Test(t, func(t *testing.T) {
		p, tr := placeFor(t, backup), &transport{answers: []answer{wrong}}
		p.Transport = tr
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Hour)
		defer cancel()
		_ = p.Run(ctx)
		if n := len(tr.asked); n < 30 || n > 50 {
			t.Errorf("fetched %d times in ten hours", n)
		}
	})
}

// The container ends in the middle of a download, and the next one continues.
func TestAnotherContainerGoesOnWithWhatIsThere(t *testing.T) {
	backup := content(100_000)
	for name, there := range map[string]struct{ file, text, asked string }{
		"a part":                {partFile, string(backup[:60_000]), "bytes=60000-"},
		"a part of another":     {partFile, strings.Repeat("x", 60_000), "bytes=60000-,"},
		"all of it":             {partFile, string(backup), "-"},
		"all of another":        {partFile, strings.Repeat("x", 100_000), ""},
		"more than it":          {partFile, string(backup) + "x", ""},
		"the finished file":     {snapshotFile, string(backup), "-"},
		"a spoilt file":         {snapshotFile, strings.Repeat("x", 100_000), ""},
		"a finished file's end": {snapshotFile, string(backup[:10]), "bytes=10-"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p, tr := placeFor(t, backup), &transport{answers: []answer{by(serve(backup))}}
				p.Transport = tr
				write(t, filepath.Join(p.Dir, there.file), there.text)
				if err := p.Run(t.Context()); err != nil {
					t.Fatal(err)
				}
				want := strings.Split(there.asked, ",")
				if there.asked == "-" {
					want = nil
				}
				if fmt.Sprint(tr.asked) != fmt.Sprint(want) {
					t.Errorf("asked for %q, want %q", tr.asked, want)
				}
				p.checkWhole(t, backup)
			})
		})
	}
}

func TestNothingIsFetchedForAMemberWithData(t *testing.T) {
	p := placeFor(t, content(10))
	p.Transport = &transport{answers: make([]answer, 1)}
	p.Program = os.Args[0]
	write(t, filepath.Join(p.DataDir, "member", "wal", "0.wal"), "")
	write(t, filepath.Join(p.Dir, doneFile), "")
	if err := os.Remove(p.TokenFile); err != nil { // the restore has long succeeded
		t.Fatal(err)
	}
	if err := p.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	// What comes after it still needs its program.
	if info, err := os.Stat(filepath.Join(p.Dir, programFile)); err != nil || info.Mode().Perm()&0o111 == 0 {
		t.Errorf("%v, %v", info, err)
	}
}

func TestDataThatIsGoneIsNotFetchedAgain(t *testing.T) {
	p := placeFor(t, content(10))
	write(t, filepath.Join(p.Dir, doneFile), "")
	if err := p.Run(t.Context()); err == nil || !strings.Contains(err.Error(), "delete the pod") {
		t.Errorf("ended with %v", err)
	}
}

func TestADiskThatIsTooSmallIsToldAtOnce(t *testing.T) {
	p := placeFor(t, content(10))
	p.Size = 1 << 60
	err := p.Run(t.Context())
	if err == nil || !strings.Contains(err.Error(), "the backup needs "+strconv.Itoa((1<<60+spare)>>20)+" MiB") {
		t.Errorf("ended with %v", err)
	}
}

// Other attempts would fail like this one.
func TestADiskThatFillsUpEndsIt(t *testing.T) {
	backup := content(1000)
	p, tr := placeFor(t, backup), &transport{answers: []answer{by(serve(backup))}}
	p.Transport = tr
	d := &download{dir: p.Dir, size: p.Size, sha256: p.SHA256, hash: sha256.New(), have: 1}
	var err error
	// Writes to this device fail as those to a full disk do.
	if d.file, err = os.OpenFile("/dev/full", os.O_RDWR, 0); err != nil {
		t.Fatal(err)
	}
	defer d.close()
	err = p.keepTrying(t.Context(), d)
	if !errors.Is(err, syscall.ENOSPC) || !strings.Contains(err.Error(), "after 1 of 1000 bytes: write the backup to the disk") || len(tr.asked) != 1 {
		t.Errorf("ended with %v after %d attempts", err, len(tr.asked))
	}
}

// The same over a real connection.
func TestFetchFromAServer(t *testing.T) {
	backup := content(3 << 20)
	cuts := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if cuts++; cuts == 1 {
			w.Header().Set("Content-Length", strconv.Itoa(len(backup)))
			_, _ = w.Write(backup[:1<<20]) // and then the connection ends
			return
		}
		serve(backup)(w, r)
	}))
	defer server.Close()
	p := placeFor(t, backup)
	p.URL, p.Transport = server.URL, Transport()
	if err := p.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	p.checkWhole(t, backup)
}
