// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package s3

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"

	"github.com/aws/aws-sdk-go-v2/service/sts"
	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/etcd-operator/etcd-operator/pkg/store"
)

// kinds of errors by their codes. Other answers of status 401 and 403 are store.ErrDenied too.
var kinds = map[string]error{
	"NoSuchKey":             store.ErrNotFound,
	"NotFound":              store.ErrNotFound, // of HEAD, whose answers have no body
	"NoSuchBucket":          store.ErrNoBucket,
	"QuotaExceeded":         store.ErrFull,
	"AccessDenied":          store.ErrDenied,
	"InvalidAccessKeyId":    store.ErrDenied,
	"SignatureDoesNotMatch": store.ErrDenied,
	"ExpiredToken":          store.ErrDenied,
	"InvalidToken":          store.ErrDenied,
	"TokenRefreshRequired":  store.ErrDenied,
	// Of MinIO.
	"XMinioAdminBucketQuotaExceeded": store.ErrFull,
	"XMinioStorageFull":              store.ErrFull,
}

// advice is what to do about answers that are not about credentials, though some have status 403.
var advice = map[string]string{
	"InvalidObjectState":   "; the store has moved the object into an archive: have the store restore it, or name another backup",
	"QuotaExceeded":        "; the quota of the bucket or of its owner is used up: raise it, or keep fewer backups",
	"RequestTimeTooSkewed": "; correct the clock of the node",

	"XMinioAdminBucketQuotaExceeded": "; the quota of the bucket is used up: raise it, or keep fewer backups",
	"XMinioStorageFull":              "; give the store more disks, or keep fewer backups",
}

// failure is a short form of an SDK's error, without parts that differ in each attempt, such
// as the number of the request.
type failure struct {
	text string
	kind error // may be nil
	err  error
}

func (f *failure) Error() string { return f.text }

func (f *failure) Unwrap() []error {
	if f.kind == nil {
		return []error{f.err}
	}
	return []error{f.kind, f.err}
}

// As makes store.HasStatus know the answer.
func (f *failure) As(target any) bool {
	status, asked := target.(**store.StatusError)
	code := statusOf(f.err)
	if !asked || code == 0 {
		return false
	}
	*status = &store.StatusError{Code: code, Text: f.text}
	return true
}

// noCredentials: the process obtained no credentials.
type noCredentials struct{ err error }

func (e noCredentials) Error() string { return "find credentials: " + e.err.Error() }
func (e noCredentials) Unwrap() error { return e.err }

// explain shortens an error of the SDK, and wraps its kind.
func explain(err error) error {
	var answered smithy.APIError
	var unsent *url.Error
	var none noCredentials
	var explained *failure
	var operation *smithy.OperationError
	code := statusOf(err)
	switch {
	case err == nil:
		return nil
	case errors.As(err, &explained) || !errors.As(err, &operation):
		return err // it is short already, or not the SDK's
	case errors.Is(err, context.Canceled):
		return &failure{text: context.Canceled.Error(), err: err}
	case errors.As(err, &none):
		return &failure{
			text: fmt.Sprintf("%v: the operator found none of its own; name a Secret with some, or give its service account a role: %v", store.ErrNoCredentials, none.err),
			kind: store.ErrNoCredentials, err: err,
		}
	case errors.As(err, &answered):
		kind, todo := kinds[answered.ErrorCode()], advice[answered.ErrorCode()]
		if kind == nil && todo == "" && (code == http.StatusForbidden || code == http.StatusUnauthorized) {
			kind = store.ErrDenied
		}
		if errors.Is(kind, store.ErrDenied) && ofRole(operation) {
			kind = store.ErrNoCredentials
		}
		text := answered.ErrorCode()
		if message := store.Excerpt(answered.ErrorMessage()); message != "" && message != text {
			text += ": " + message
		}
		if code != 0 {
			text = fmt.Sprintf("%s (status %d)", text, code)
		}
		text += todo
		if region := bucketRegion(err); region != "" {
			text += fmt.Sprintf("; the bucket is in the region %s", region)
		}
		if code == http.StatusBadRequest && answered.ErrorCode() == "BadRequest" && bucketRegion(err) == "" {
			// This is for HEAD, whose answers have no body.
			text += "; the store does not say why: look at the name of the bucket, and at the scheme and the region of the endpoint"
		}
		if kind != nil {
			text = kind.Error() + ": " + text
		}
		return &failure{text: text, kind: kind, err: err}
	case errors.As(err, &unsent):
		return &failure{text: fmt.Sprintf("no answer: %v", unsent.Err), err: err}
	default:
		return err
	}
}

// ofRole reports whether an operation failed because its credentials need a role, which
// Amazon did not give.
func ofRole(operation *smithy.OperationError) bool {
	var inner *smithy.OperationError
	return errors.As(operation.Err, &inner) && inner.ServiceID == sts.ServiceID
}

// statusOf returns the HTTP status of an answer; 0: there was none.
func statusOf(err error) int {
	var answer *smithyhttp.ResponseError
	if !errors.As(err, &answer) {
		return 0
	}
	return answer.HTTPStatusCode()
}

// refused reports whether the store has answered that it does not carry out a request.
func refused(err error) bool { return statusOf(err)/100 == 4 }

// bucketRegion returns the region that Amazon reports for a bucket of another region.
func bucketRegion(err error) string {
	var answer *smithyhttp.ResponseError
	if !errors.As(err, &answer) || answer.Response == nil {
		return ""
	}
	switch answer.HTTPStatusCode() {
	case http.StatusMovedPermanently, http.StatusBadRequest:
		return answer.Response.Header.Get("X-Amz-Bucket-Region")
	default:
		return ""
	}
}
