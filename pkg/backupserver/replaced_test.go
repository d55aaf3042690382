// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package backupserver

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"testing"
	"testing/synctest"
	"time"
)

// An object of the same size has come in place of the backup. The client does not get
// all of it, and does not get it over and over again; what it has of it is not
// continued when the backup is there again.
func TestAnotherObjectOfTheSameSizeIsNoticedAndNotServedAgainAndAgain(t *testing.T) {
	whole := content(3*pieceSize + 100)
	other := bytes.Clone(whole)
	other[pieceSize+7]++
	synctest.Test(t, func(t *testing.T) {
		stored, opened := other, 0
		told := make(failures, 100)
		b := told.told(Backup{Size: int64(len(whole)), SHA256: digest(whole), Open: func(_ context.Context, offset int64) (io.ReadCloser, error) {
			opened++
			return io.NopCloser(bytes.NewReader(stored[offset:])), nil
		}})
		s := New(Config{})
		s.Offer("example", "token", b)
		ask := func(from string) *recorder { return s.answerTo(t, from) }

		if got := ask(""); got.body.Len() >= len(whole) || got.code != http.StatusOK {
			t.Errorf("the client got %d bytes of another object, %d", got.body.Len(), got.code)
		}
		if err := <-told; !errors.Is(err, ErrReplaced) {
			t.Errorf("reported %v", err)
		}
		for began := time.Now(); time.Since(began) < 4*time.Hour; time.Sleep(15 * time.Second) {
			if got := ask("bytes=5-"); got.code == http.StatusPartialContent {
				t.Fatalf("what is worth nothing was continued after %v", time.Since(began))
			}
		}
		if opened < 2 || opened > 15 {
			t.Errorf("all of it was read %d times in four hours", opened)
		}
		stored = whole
		time.Sleep(longestWrongPause)
		if got := ask("bytes=5-"); got.code != http.StatusOK || !bytes.Equal(got.body.Bytes(), whole) {
			t.Errorf("the backup is there again, and %d bytes came with %d", got.body.Len(), got.code)
		}
		if got := ask("bytes=5-"); got.code != http.StatusPartialContent || !bytes.Equal(got.body.Bytes(), whole[5:]) {
			t.Errorf("then %d bytes came with %d", got.body.Len(), got.code)
		}
	})
}

// recorder is an answer without a network.
type recorder struct {
	header http.Header
	code   int
	body   bytes.Buffer
}

func (r *recorder) Header() http.Header         { return r.header }
func (r *recorder) Write(p []byte) (int, error) { return r.body.Write(p) }
func (r *recorder) WriteHeader(code int)        { r.code = code }
func (r *recorder) Flush()                      {}

func (r *recorder) SetWriteDeadline(time.Time) error { return nil }

func (s *Server) answerTo(t *testing.T, byteRange string) *recorder {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, Path+"example", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer token")
	request.Header.Set("Range", byteRange)
	r := &recorder{header: http.Header{}}
	s.handler().ServeHTTP(r, request)
	return r
}
