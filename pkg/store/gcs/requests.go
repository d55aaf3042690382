// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package gcs

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"cloud.google.com/go/auth"
	"cloud.google.com/go/auth/httptransport"
	"github.com/googleapis/gax-go/v2"
	"google.golang.org/api/googleapi"

	"github.com/etcd-operator/etcd-operator/pkg/store"
)

// authorizer gives each request its token. A token that can't be had is told by
// its own error, or it would pass for an error of the store.
type authorizer struct {
	tokens auth.TokenProvider
	base   http.RoundTripper
}

func (a authorizer) RoundTrip(r *http.Request) (*http.Response, error) {
	token, err := a.tokens.Token(r.Context())
	if err != nil {
		if r.Body != nil {
			_ = r.Body.Close() // as a RoundTripper must
		}
		return nil, &tokenError{err}
	}
	r = r.Clone(r.Context())
	httptransport.SetAuthHeader(token, r)
	return a.base.RoundTrip(r)
}

// tokenError is that a token for a request can't be had.
type tokenError struct{ err error }

func (e *tokenError) Error() string { return "get an access token: " + e.err.Error() }
func (e *tokenError) Unwrap() error { return e.err }

// noRedirects: the API sends none, and a token must not follow one elsewhere.
func noRedirects(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

const (
	attempts     = 4
	firstBackoff = 250 * time.Millisecond
	maxBackoff   = 2 * time.Second
)

func backoff() *gax.Backoff {
	return &gax.Backoff{Initial: firstBackoff, Max: maxBackoff, Multiplier: 2}
}

// retried decides, for one call, whether a request is sent again. It is asked about
// every answer, also the good ones of an upload's chunks, after which all attempts
// are free again. Without it the SDK would retry for as long as the context lasts.
func retried(ctx context.Context) func(error) bool {
	failed := 0
	return func(err error) bool {
		if err == nil {
			failed = 0
			return false
		}
		failed++
		return failed < attempts && ctx.Err() == nil && transient(err)
	}
}

// try calls until a call is answered or there have been enough. The SDK itself
// retries uploads only.
func try(ctx context.Context, call func() error) error {
	again, pauses := retried(ctx), backoff()
	for {
		err := call()
		if !again(err) || gax.Sleep(ctx, pauses.Pause()) != nil {
			return err
		}
	}
}

// transient tells whether the same request may succeed in a moment.
func transient(err error) bool {
	var answer *googleapi.Error
	if errors.As(err, &answer) {
		return answer.Code >= 500 || answer.Code == http.StatusTooManyRequests || answer.Code == http.StatusRequestTimeout
	}
	var token *tokenError
	if errors.As(err, &token) {
		return false // the SDK has tried that several times itself
	}
	return true // of the network
}

// explain is what an error of a request says, without URLs, which may hold the
// secret of an upload, and with the kind that package store knows it by.
func explain(ctx context.Context, err error) error {
	if ended := context.Cause(ctx); ended != nil {
		// The SDK tells it in place of what it was waiting for, or the reverse.
		if errors.Is(err, ended) {
			return ended
		}
		return fmt.Errorf("%w: %w", ended, plain(err))
	}
	return plain(err)
}

func plain(err error) error {
	var token *tokenError
	if errors.As(err, &token) {
		return explainToken(token.err)
	}
	var answer *googleapi.Error
	if !errors.As(err, &answer) {
		return store.WithoutURL(err)
	}
	answer = parsed(answer)
	text := fmt.Sprintf("HTTP status %d", answer.Code)
	if answer.Message != "" {
		text += ": " + store.Excerpt(answer.Message)
	}
	if answer.Code == http.StatusUnauthorized || answer.Code == http.StatusForbidden && !overused(answer) {
		return fmt.Errorf("%w: %s", store.ErrDenied, text)
	}
	return &store.StatusError{Code: answer.Code, Text: text}
}

// parsed is an error with what the SDK leaves unread in one of a download.
func parsed(answer *googleapi.Error) *googleapi.Error {
	if answer.Message != "" {
		return answer
	}
	var whole *googleapi.Error
	if errors.As(googleapi.CheckResponseWithBody(&http.Response{StatusCode: answer.Code}, []byte(answer.Body)), &whole) {
		return whole
	}
	return answer
}

// overused: that status tells of rates too.
func overused(answer *googleapi.Error) bool {
	for _, item := range answer.Errors {
		switch item.Reason {
		case "rateLimitExceeded", "userRateLimitExceeded", "quotaExceeded":
			return true
		}
	}
	return false
}

// explainToken tells why there is no token. What the server of tokens answered is
// told by its code only: the text is that of an address named in a Secret.
func explainToken(err error) error {
	var answer *auth.Error
	switch {
	case !errors.As(err, &answer):
		return fmt.Errorf("get an access token: %w", store.WithoutURL(err))
	case answer.Response == nil || answer.Temporary():
		return errors.New("get an access token: the server of tokens has an error of its own")
	default:
		return fmt.Errorf("%w: get an access token: HTTP status %d", store.ErrDenied, answer.Response.StatusCode)
	}
}

// refused tells that the store has answered that it did not do what was asked for.
func refused(err error) bool {
	var status *store.StatusError
	if errors.As(err, &status) {
		return status.Code < http.StatusInternalServerError
	}
	return errors.Is(err, store.ErrDenied)
}
