// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package oss

import (
	"encoding/json"
	"errors"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aliyun/alibabacloud-oss-go-sdk-v2/oss"

	"github.com/etcd-operator/etcd-operator/pkg/store"
)

// policy is a policy of RAM.
type policy struct {
	Statement []struct {
		Effect           string
		Action, Resource []string
	}
}

func (p *policy) allows(action, resource string) bool {
	for _, s := range p.Statement {
		matches := func(pattern string) bool {
			ok, err := path.Match(pattern, resource)
			return ok && err == nil
		}
		if s.Effect == "Allow" && slices.Contains(s.Action, action) && slices.ContainsFunc(s.Resource, matches) {
			return true
		}
	}
	return false
}

// The policy in doc/backup/oss.md grants what a store does, and nothing more.
func TestTheDocumentedRightsAreEnoughAndNotTooMany(t *testing.T) {
	page, err := os.ReadFile("../../../doc/backup/oss.md")
	if err != nil {
		t.Fatal(err)
	}
	block := regexp.MustCompile("(?s)```text\n({.*?\n})\n```").FindSubmatch(page)
	if block == nil {
		t.Fatal("the page has no policy")
	}
	var granted policy
	if err := json.Unmarshal(block[1], &granted); err != nil {
		t.Fatal(err)
	}

	s, m := start(t)
	s.bucket = "mybucket"
	if err := m.oss.Open(t.TempDir(), "mybucket"); err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	used := map[string]bool{}
	m.oss.Allow = func(_, action, resource string) bool {
		mu.Lock()
		defer mu.Unlock()
		used[action] = true
		return granted.allows(action, resource)
	}

	const key = "etcd.backup_v7_2026-11-21-15:04:05"
	for name, size := range sizes {
		if _, err := s.Put(t.Context(), key, upload(size)); err != nil {
			t.Errorf("put %s: %v", name, err)
		}
	}
	if body, err := s.Get(t.Context(), key, 1); err != nil {
		t.Errorf("get: %v", err)
	} else {
		body.Close()
	}
	for _, err := range s.List(t.Context(), "etcd.backup") {
		if err != nil {
			t.Errorf("list: %v", err)
		}
	}
	if err := s.Delete(t.Context(), key); err != nil {
		t.Errorf("delete: %v", err)
	}
	if _, err := s.client.InitiateMultipartUpload(t.Context(), &oss.InitiateMultipartUploadRequest{Bucket: &s.bucket, Key: oss.Ptr(key)}); err != nil {
		t.Errorf("begin an upload: %v", err)
	}
	if n, err := s.Sweep(t.Context(), "etcd.backup", time.Now().Add(time.Hour), func(string) bool { return true }); err != nil || n != 1 {
		t.Errorf("sweep: %d, %v", n, err)
	}
	for _, statement := range granted.Statement {
		for _, action := range statement.Action {
			if !used[action] {
				t.Errorf("%s is granted and not used", action)
			}
		}
	}
	if _, err := s.Put(t.Context(), "another.backup", store.Upload{Body: strings.NewReader("x"), Size: 1}); !errors.Is(err, store.ErrDenied) {
		t.Errorf("another path is written: error %v, want that it is denied", err)
	}
}
