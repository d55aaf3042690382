// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package backupserver

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
)

func TestABackupIsServedFromAnyByteOn(t *testing.T) {
	s := run(t, Config{})
	whole := content(3*pieceSize + 100)
	size := len(whole)
	s.Offer("example", "token", backupOf(whole))
	for _, offset := range []int{0, 1, pieceSize - 1, pieceSize, pieceSize + 1, 3 * pieceSize, size - 1} {
		response := s.ask(t, http.MethodGet, "example", "token", "Range", fmt.Sprintf("bytes=%d-", offset))
		body := read(t, response)
		if response.StatusCode != http.StatusPartialContent || body != string(whole[offset:]) || response.ContentLength != int64(size-offset) ||
			!has(response, "Content-Range", fmt.Sprintf("bytes %d-%d/%d", offset, size-1, size)) || !has(response, "ETag", `"`+digest(whole)+`"`) {
			t.Errorf("from %d: %s, %d bytes, %v", offset, response.Status, len(body), response.Header)
		}
	}
	for _, offset := range []string{strconv.Itoa(size), strconv.Itoa(size + 1), "99999999999999999999999"} {
		response := s.ask(t, http.MethodGet, "example", "token", "Range", "bytes="+offset+"-")
		read(t, response)
		if response.StatusCode != http.StatusRequestedRangeNotSatisfiable || !has(response, "Content-Range", fmt.Sprintf("bytes */%d", size)) {
			t.Errorf("from %s: %s, %v", offset, response.Status, response.Header)
		}
	}
	for _, other := range []string{"", "bytes=-5", "bytes=1-5", "bytes=1-,5-", "bytes=x-", "bytes=-", "bytes=+1-", "lines=1-", "bytes"} {
		response := s.ask(t, http.MethodGet, "example", "token", "Range", other)
		if body := read(t, response); response.StatusCode != http.StatusOK || body != string(whole) || response.ContentLength != int64(size) || !has(response, "Accept-Ranges", "bytes") {
			t.Errorf("range %q: %s, %d bytes, %v", other, response.Status, len(body), response.Header)
		}
	}
}

func TestNobodyGetsTheRestOfAnotherBackup(t *testing.T) {
	s := run(t, Config{})
	whole := content(1000)
	s.Offer("example", "token", backupOf(whole))
	tag := `"` + digest(whole) + `"`
	for _, c := range []struct {
		header, value string
		status, size  int
	}{
		{"If-Range", tag, http.StatusPartialContent, 900},
		{"If-Range", `"another"`, http.StatusOK, 1000},
		{"If-Range", "W/" + tag, http.StatusOK, 1000},
		{"If-Range", "Wed, 21 Oct 2015 07:28:00 GMT", http.StatusOK, 1000},
		{"If-Match", tag, http.StatusPartialContent, 900},
		{"If-Match", `"another", ` + tag, http.StatusPartialContent, 900},
		{"If-Match", "*", http.StatusPartialContent, 900},
		{"If-Match", `"another"`, http.StatusPreconditionFailed, -1},
	} {
		response := s.ask(t, http.MethodGet, "example", "token", "Range", "bytes=100-", c.header, c.value)
		if body := read(t, response); response.StatusCode != c.status || c.size >= 0 && body != string(whole[1000-c.size:]) {
			t.Errorf("%s %s: %s, %d bytes", c.header, c.value, response.Status, len(body))
		}
	}
}

func TestHEADTellsSizeAndTagAndAsksNoStore(t *testing.T) {
	s := run(t, Config{})
	s.Offer("example", "token", from(1<<40, func(context.Context, int64) (io.Reader, error) {
		t.Error("the store was asked")
		return failing{io.EOF}, nil
	}))
	response := s.ask(t, http.MethodHead, "example", "token")
	if response.StatusCode != http.StatusOK || response.ContentLength != 1<<40 || !has(response, "ETag", `"`+sum+`"`) {
		t.Errorf("%s, %v", response.Status, response.Header)
	}
}

func TestOtherRequestsAreRefused(t *testing.T) {
	s := run(t, Config{})
	s.Offer("example", "token", backupOf(content(10)))
	for _, c := range []struct {
		method, path, body string
		want               int
	}{
		{http.MethodPost, Path + "example", "", http.StatusMethodNotAllowed},
		{http.MethodDelete, Path + "example", "", http.StatusMethodNotAllowed},
		{http.MethodGet, Path + "example", "body", http.StatusBadRequest},
		{http.MethodGet, Path, "", http.StatusNotFound},
		{http.MethodGet, Path + "example/x", "", http.StatusNotFound},
		{http.MethodGet, "/", "", http.StatusNotFound},
		{http.MethodGet, "/metrics", "", http.StatusNotFound},
	} {
		request, err := http.NewRequestWithContext(t.Context(), c.method, s.url+c.path, strings.NewReader(c.body))
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("Authorization", "Bearer token")
		response, err := s.client.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		if read(t, answer{response}); response.StatusCode != c.want {
			t.Errorf("%s %s: %s, want %d", c.method, c.path, response.Status, c.want)
		}
	}
}

// endless delivers the same bytes forever, without holding them.
type endless struct{}

func (endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = 7
	}
	return len(p), nil
}

func TestLargeBackupsAreServedSideBySideInFlatMemory(t *testing.T) {
	const size = 128 << 20
	var mu sync.Mutex
	sent, upTo := map[string]int64{}, map[string]int64{}
	s := run(t, Config{Sent: func(name string, n int) {
		mu.Lock()
		defer mu.Unlock()
		sent[name] += int64(n)
	}})
	names := []string{"one", "two"}
	all := sha256.New()
	if _, err := io.CopyN(all, endless{}, size); err != nil {
		t.Fatal(err)
	}
	want := hex.EncodeToString(all.Sum(nil))
	for _, name := range names {
		b := from(size, func(_ context.Context, offset int64) (io.Reader, error) {
			return io.LimitReader(endless{}, size-offset), nil
		})
		b.SHA256 = want
		b.Served = func(n int64) {
			mu.Lock()
			defer mu.Unlock()
			upTo[name] = n
		}
		s.Offer(name, "token of "+name, b)
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	var wait sync.WaitGroup
	sums := make([]string, len(names))
	for i, name := range names {
		response := s.ask(t, http.MethodGet, name, "token of "+name)
		wait.Go(func() {
			hash := sha256.New()
			if n, err := io.Copy(hash, response.Body); err != nil || n != size {
				t.Errorf("%s: %d bytes, %v", name, n, err)
			}
			sums[i] = hex.EncodeToString(hash.Sum(nil))
		})
	}
	wait.Wait()
	runtime.ReadMemStats(&after)
	if sums[0] != want || sums[1] != want {
		t.Errorf("other content came: %s, want %s", sums, want)
	}
	if allocated := after.TotalAlloc - before.TotalAlloc; allocated > 8<<20 {
		t.Errorf("%d bytes were allocated", allocated)
	}
	s.stop() // Served may be called after the last piece has arrived
	for _, name := range names {
		if sent[name] != size || upTo[name] != size {
			t.Errorf("%s: %d bytes reported as sent, up to %d", name, sent[name], upTo[name])
		}
	}
}
