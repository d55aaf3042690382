// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package abs

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azidentity"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/bloberror"

	"github.com/etcd-operator/etcd-operator/pkg/store"
)

// explain shortens an error of the SDK, and wraps the kind of package store. The SDK's text
// holds the request's URL and the whole answer.
func explain(ctx context.Context, err error) error {
	err = store.WithoutURL(err)
	if ended := context.Cause(ctx); ended != nil {
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
	var answer *azcore.ResponseError
	if !errors.As(err, &answer) {
		return err
	}
	text := fmt.Sprintf("HTTP status %d", answer.StatusCode)
	if answer.ErrorCode != "" {
		text += ": " + store.Excerpt(answer.ErrorCode)
	}
	switch {
	case bloberror.HasCode(answer, bloberror.ContainerNotFound):
		return fmt.Errorf("%w: %s", store.ErrNoBucket, text)
	case answer.StatusCode == http.StatusUnauthorized || answer.StatusCode == http.StatusForbidden:
		return fmt.Errorf("%w: %s", store.ErrDenied, text)
	case bloberror.HasCode(answer, bloberror.BlobNotFound, bloberror.ResourceNotFound),
		answer.StatusCode == http.StatusNotFound && answer.ErrorCode == "": // an answer to HEAD
		return fmt.Errorf("%w: %s", store.ErrNotFound, text)
	default:
		return &store.StatusError{Code: answer.StatusCode, Text: text}
	}
}

// refused reports whether the store has answered that it did not carry out a request.
func refused(err error) bool {
	var status *store.StatusError
	if errors.As(err, &status) {
		return status.Code < http.StatusInternalServerError
	}
	return errors.Is(err, store.ErrDenied) || errors.Is(err, store.ErrNoCredentials) || errors.Is(err, store.ErrNoBucket) || errors.Is(err, store.ErrNotFound)
}

// identity is the identity of this process. Its errors are distinct from the store's.
type identity struct{ azcore.TokenCredential }

func (i identity) GetToken(ctx context.Context, options policy.TokenRequestOptions) (azcore.AccessToken, error) {
	token, err := i.TokenCredential.GetToken(ctx, options)
	if err != nil {
		return token, &tokenError{err}
	}
	return token, nil
}

type tokenError struct{ err error }

func (e *tokenError) Error() string { return "get an access token: " + e.err.Error() }
func (e *tokenError) Unwrap() error { return e.err } // makes the SDK not retry

func explainToken(err error) error {
	var failed *azidentity.AuthenticationFailedError
	if errors.As(err, &failed) && (failed.RawResponse == nil || failed.RawResponse.StatusCode >= http.StatusInternalServerError) {
		return fmt.Errorf("get an access token: %s", store.Excerpt(store.WithoutURL(err).Error()))
	}
	return fmt.Errorf("%w: storage-key is missing, and the operator's pod has no identity that Azure takes: %s",
		store.ErrNoCredentials, store.Excerpt(store.WithoutURL(err).Error()))
}
