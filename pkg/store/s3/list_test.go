// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package s3

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// A store that only knows the first version of lists ignores the second, and names no token. The rest of
// the list, with the newest backups, would be missing in silence.
func TestAListThatDoesNotContinueIsAnError(t *testing.T) {
	requests := 0
	at := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		requests++
		_, _ = io.WriteString(w, "<ListBucketResult><IsTruncated>true</IsTruncated><Contents><Key>a</Key><Size>1</Size></Contents></ListBucketResult>")
	}))
	t.Cleanup(at.Close)
	opened, err := Open(t.Context(), Config{Bucket: "b", Endpoint: at.URL, ForcePathStyle: true, Credentials: []byte(keysFile)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { opened.Close() })
	var last error
	for _, err := range opened.List(t.Context(), "a") {
		last = err
	}
	if last == nil || !strings.Contains(last.Error(), "incomplete") || requests != 1 {
		t.Errorf("after %d requests the error is %v", requests, last)
	}
}
