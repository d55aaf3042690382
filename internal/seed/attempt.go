// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package seed

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"time"
)

// errIdle ends an attempt whose connection delivers nothing.
var errIdle = fmt.Errorf("nothing has arrived for %s", idleTimeout)

// attempt makes one request for the missing bytes, and keeps what arrives.
func (f Fetch) attempt(ctx context.Context, d *download) error {
	token, err := f.token()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	idle := time.AfterFunc(idleTimeout, func() { cancel(errIdle) })
	defer idle.Stop()

	req, err := http.NewRequestWithContext(ctx, http.MethodGet, f.URL, nil)
	if err != nil {
		return err
	}
	req.Header.Set("Authorization", "Bearer "+token)
	if d.have > 0 {
		req.Header.Set("Range", fmt.Sprintf("bytes=%d-", d.have))
	}
	client := http.Client{Transport: f.Transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	resp, err := client.Do(req)
	if err != nil {
		return f.unreachable(ctx, err)
	}
	defer resp.Body.Close()
	if err := f.accept(resp, d); err != nil {
		return err
	}
	report := &reporter{fetch: f, d: d, next: time.Now().Add(reportInterval)}
	_, err = io.Copy(report, &restless{resp.Body, idle})
	var disk *diskError
	switch {
	case errors.Is(err, errWrongContent):
		return errors.Join(err, d.reset())
	case errors.As(err, &disk):
		return err
	case d.have == d.size:
		return d.finish()
	case err == nil:
		err = io.ErrUnexpectedEOF
	}
	if cause := context.Cause(ctx); cause != nil {
		err = cause
	}
	return fmt.Errorf("the connection to %s broke: %w", req.URL.Host, err)
}

// accept reports whether the answer has the requested part of the backup. For an answer with
// the whole backup, it starts over.
func (f Fetch) accept(resp *http.Response, d *download) error {
	switch resp.StatusCode {
	case http.StatusPartialContent:
		if want := fmt.Sprintf("bytes %d-%d/%d", d.have, d.size-1, d.size); resp.Header.Get("Content-Range") != want {
			return errors.Join(fmt.Errorf("%w: the server answers with %q and not with %q", errWrongContent, resp.Header.Get("Content-Range"), want), d.reset())
		}
		return nil
	case http.StatusOK:
		if resp.ContentLength >= 0 && resp.ContentLength != d.size {
			return errors.Join(fmt.Errorf("%w: it has %d bytes, and should have %d", errWrongContent, resp.ContentLength, d.size), d.reset())
		}
		return d.reset()
	case http.StatusRequestedRangeNotSatisfiable:
		return errors.Join(fmt.Errorf("%w: the server has less of it than is here", errWrongContent), d.reset())
	}
	advice := "see the EtcdRestore and the log of the restore operator"
	switch resp.StatusCode {
	case http.StatusUnauthorized, http.StatusForbidden:
		advice = "the token in the Secret of the restore is not the one that the restore operator asks for: " + advice
	case http.StatusNotFound:
		advice = "the restore operator does not serve this backup, or not yet: " + advice
	case http.StatusServiceUnavailable, http.StatusTooManyRequests:
		advice = "the restore operator is busy, or can't read the backup: " + advice
	}
	return fmt.Errorf("GET %s: %s: %s", f.URL, resp.Status, advice)
}

// unreachable is the error of a request that got no answer.
func (f Fetch) unreachable(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); cause != nil {
		err = cause
	}
	if errors.Is(err, errIdle) {
		err = fmt.Errorf("GET %s: %w", f.URL, err)
	}
	return fmt.Errorf("%w: check that the restore operator runs, and that network policies let this pod reach it", err)
}

func (f Fetch) token() (string, error) {
	text, err := os.ReadFile(f.TokenFile)
	switch token := strings.TrimSpace(string(text)); {
	case errors.Is(err, os.ErrNotExist):
		return "", fmt.Errorf("there is no token in %s: the Secret of the restore does not exist yet, or is gone", f.TokenFile)
	case err != nil:
		return "", fmt.Errorf("read the token: %w", err)
	case token == "" || strings.ContainsAny(token, "\r\n"):
		return "", fmt.Errorf("the token in %s is empty or has several lines", f.TokenFile)
	default:
		return token, nil
	}
}

// restless is a body that extends the deadline with each part that it delivers.
type restless struct {
	body io.Reader
	idle *time.Timer
}

func (r *restless) Read(p []byte) (int, error) {
	n, err := r.body.Read(p)
	if n > 0 {
		r.idle.Reset(idleTimeout)
	}
	return n, err
}

// reporter logs the progress at intervals.
type reporter struct {
	fetch Fetch
	d     *download
	next  time.Time
}

func (r *reporter) Write(p []byte) (int, error) {
	n, err := r.d.Write(p)
	if now := time.Now(); now.After(r.next) {
		r.next = now.Add(reportInterval)
		r.fetch.say("%d of %d bytes", r.d.have, r.d.size)
	}
	return n, err
}
