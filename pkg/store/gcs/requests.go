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

// authorizer gives each request its token. A failure to get one has an error type of its own,
// so that it does not pass for an error of the store.
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

// tokenError means that there is no token for a request.
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

// retried decides whether a call sends a request again. It sees every answer, even successful
// ones of an upload's chunks, which reset the count of attempts. Without it, the SDK would
// retry as long as the context lasts.
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

// try calls until an attempt succeeds or there were enough. The SDK itself only retries
// uploads.
func try(ctx context.Context, call func() error) error {
	again, pauses := retried(ctx), backoff()
	for {
		err := call()
		if !again(err) || gax.Sleep(ctx, pauses.Pause()) != nil {
			return err
		}
	}
}

// transient reports whether the same request may succeed in a moment.
func transient(err error) bool {
	var answer *googleapi.Error
	if errors.As(err, &answer) {
		return answer.Code >= 500 || answer.Code == http.StatusTooManyRequests || answer.Code == http.StatusRequestTimeout
	}
	var token *tokenError
	if errors.As(err, &token) {
		return false // the SDK has retried it already
	}
	return true // an error of the network
}

// explain shortens an error of a request, and wraps the kind of package store. It leaves out
// URLs, which may hold the secret of an upload.
func explain(ctx context.Context, err error) error {
	if ended := context.Cause(ctx); ended != nil {
		// The SDK returns the context's error in place of the request's, or the reverse.
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

// parsed completes an error with the body of a download, which the SDK does not read.
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

// overused reports whether a status 403 is about rates.
func overused(answer *googleapi.Error) bool {
	for _, item := range answer.Errors {
		switch item.Reason {
		case "rateLimitExceeded", "userRateLimitExceeded", "quotaExceeded":
			return true
		}
	}
	return false
}

// explainToken says why there is no token. It shows only the status of the token server's
// answer, because a Secret may have named that server.
func explainToken(err error) error {
	var answer *auth.Error
	switch {
	case !errors.As(err, &answer):
		return fmt.Errorf("get an access token: %w", store.WithoutURL(err))
	case answer.Response == nil || answer.Temporary():
		return errors.New("get an access token: the server of tokens has an error of its own")
	default:
		return fmt.Errorf("%w: get an access token: HTTP status %d", store.ErrNoCredentials, answer.Response.StatusCode)
	}
}

// refused reports whether the store has answered that it did not carry out a request.
func refused(err error) bool {
	var status *store.StatusError
	if errors.As(err, &status) {
		return status.Code < http.StatusInternalServerError
	}
	return errors.Is(err, store.ErrDenied) || errors.Is(err, store.ErrNoCredentials)
}
