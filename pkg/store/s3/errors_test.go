// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package s3

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/etcd-operator/etcd-operator/pkg/store"
)

// Some stores refuse to delete an object under retention with 409. Others may be deleted.
func TestARefusalToDeleteHasItsStatus(t *testing.T) {
	s := &server{etag: otherTag, remove: func(w http.ResponseWriter, _ *http.Request) bool {
		w.WriteHeader(http.StatusConflict)
		_, _ = io.WriteString(w, "<Error><Code>ObjectUnderRetention</Code></Error>")
		return true
	}}
	err := s.open(t).Delete(t.Context(), "key")
	if !store.HasStatus(err, http.StatusConflict) || store.HasStatus(err, http.StatusForbidden) {
		t.Errorf("delete: %v", err)
	}
}

// A request to correct the credentials would lead to the wrong place.
func TestNotEveryStatus403IsAboutCredentials(t *testing.T) {
	for code, want := range map[string]string{
		"InvalidObjectState": "archive",
		"QuotaExceeded":      "quota",

		"XMinioAdminBucketQuotaExceeded": "quota",
		"XMinioStorageFull":              "disks",

		"RequestTimeTooSkewed": "clock",
		"AccessDenied":         "",
		"AccountProblem":       "",
	} {
		t.Run(code, func(t *testing.T) {
			at := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.WriteHeader(http.StatusForbidden)
				_, _ = io.WriteString(w, "<Error><Code>"+code+"</Code></Error>")
			}))
			t.Cleanup(at.Close)
			opened, err := Open(t.Context(), Config{
				Bucket: "b", Endpoint: at.URL, ForcePathStyle: true,
				Credentials: []byte(keysFile), ConfigFile: []byte("[default]\nmax_attempts = 1\n"),
			})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { opened.Close() })
			_, err = opened.Get(t.Context(), "key", 0)
			if err == nil || errors.Is(err, store.ErrDenied) != (want == "") || errors.Is(err, store.ErrFull) != (want == "quota" || want == "disks") || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), code) {
				t.Errorf("get: %v", err)
			}
		})
	}
}
