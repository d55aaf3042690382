// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package oss

import (
	"errors"
	"fmt"
	"net/http"

	"github.com/aliyun/alibabacloud-oss-go-sdk-v2/oss"

	"github.com/etcd-operator/etcd-operator/pkg/store"
)

const noSuchUpload = "NoSuchUpload"

// kinds are OSS's codes of errors that need an action.
var kinds = map[string]error{
	"NoSuchKey":    store.ErrNotFound,
	"NoSuchBucket": store.ErrNoBucket,

	"AccessDenied":          store.ErrDenied,
	"InvalidAccessKeyId":    store.ErrDenied,
	"SignatureDoesNotMatch": store.ErrDenied,
	"SecurityTokenExpired":  store.ErrDenied,
	"UserDisable":           store.ErrDenied,
}

// advice is what to do, for errors whose message does not say so.
var advice = map[string]string{
	"RequestTimeTooSkewed":       "; correct the clock of the node",
	"SecondLevelDomainForbidden": "; give the endpoint of the bucket's region as it is, without the bucket",
}

// answer is an error that OSS has answered.
type answer struct {
	kind   error // one of package store, or nil
	code   string
	status int
	text   string
}

func (a *answer) Error() string {
	if a.kind != nil {
		return a.kind.Error() + ": " + a.text
	}
	return a.text
}

func (a *answer) Unwrap() error { return a.kind }

// As makes store.HasStatus know the answer.
func (a *answer) As(target any) bool {
	status, asked := target.(**store.StatusError)
	if asked {
		*status = &store.StatusError{Code: a.status, Text: a.text}
	}
	return asked
}

// explain returns the public part of an SDK's error: code and message. The SDK's text quotes
// URLs, and OSS's other fields quote what was signed.
func (s *Store) explain(err error) error {
	var told *oss.ServiceError
	if !errors.As(err, &told) {
		return store.WithoutURL(err)
	}
	a := &answer{kind: kinds[told.Code], code: told.Code, status: told.StatusCode}
	a.text = fmt.Sprintf("OSS answers %s (HTTP %d): %s (request %s)%s", told.Code, told.StatusCode,
		s.hidden.Replace(store.Excerpt(told.Message)), told.RequestID, advice[told.Code])
	if told.Code == "BadErrorResponse" { // the SDK's code for an answer that is not OSS's
		a.text = fmt.Sprintf("the server answers HTTP %d, and not as OSS does: look at the endpoint", told.StatusCode)
		switch told.StatusCode {
		case http.StatusNotFound:
			a.kind = store.ErrNotFound
		case http.StatusUnauthorized, http.StatusForbidden:
			a.kind = store.ErrDenied
		}
	}
	return a
}

// failed adds what was tried, and on what.
func (s *Store) failed(what, key string, err error) error {
	return fmt.Errorf("%s oss://%s/%s: %w", what, s.bucket, key, err)
}

// codeOf returns OSS's error code, or "".
func codeOf(err error) string {
	var a *answer
	if errors.As(err, &a) {
		return a.code
	}
	return ""
}

// refused reports whether OSS has answered that it did not carry out a request.
func refused(err error) bool {
	var a *answer
	return errors.As(err, &a) && a.status/100 == 4 && a.code != noSuchUpload
}
