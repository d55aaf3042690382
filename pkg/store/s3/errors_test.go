// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package s3

import (
	"io"
	"net/http"
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
