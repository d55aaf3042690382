// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
)

// group is a part of the navigation.
type group struct {
	Title string
	Pages []*page
}

// navigation names all pages by their path, in the order in which a reader meets them.
var navigation = []struct {
	title string
	paths []string
}{
	{"Start", []string{
		"README.md", "doc/user/demo.md", "doc/user/install.md", "doc/user/walkthrough.md",
		"doc/user/compare.md", "doc/user/support.md", "doc/user/faq.md",
	}},
	{"On call", []string{
		"doc/disaster.md", "doc/user/troubleshooting.md", "doc/user/status.md", "doc/user-guide.md", "doc/alerts.md", "doc/user/plugin.md",
	}},
	{"Clusters", []string{
		"doc/user/sizing.md", "doc/persistence.md", "doc/tls.md", "doc/user/auth.md", "doc/cluster-wide.md",
		"doc/user/gitops.md", "doc/user/openshift.md",
	}},
	{"Move here", []string{"doc/user/v0.9.4.md", "doc/user/adopt.md", "doc/user/import.md", "doc/user/import-copy.md", "doc/user/import-sources.md"}},
	{"Backups", []string{
		"doc/backup.md", "doc/restore.md", "doc/backup/s3.md", "doc/backup/abs.md", "doc/backup/gcs.md",
		"doc/backup/oss.md", "doc/backup/volume.md",
	}},
	{"Reference", []string{
		"doc/spec.md", "doc/backup-spec.md", "doc/restore-spec.md", "doc/reference.md", "doc/metrics.md",
		"doc/user/rbac.md", "doc/user/security.md", "SECURITY.md",
	}},
	{"Inside", []string{
		"doc/reliability.md", "doc/benchmarks.md", "doc/design.md", "doc/local-kubernetes.md",
		"doc/releasing.md", "CONTRIBUTING.md", "CHANGELOG.md",
	}},
}

// pagesOf lists the pages of a repository: those of doc/, and those beside README.md.
func pagesOf(repository fs.FS) ([]string, error) {
	found, err := fs.Glob(repository, "*.md")
	if err != nil {
		return nil, err
	}
	err = fs.WalkDir(repository, "doc", func(name string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() && path.Ext(name) == ".md" {
			found = append(found, name)
		}
		return err
	})
	return found, err
}

// missingPages fails unless the navigation names all pages, and no other ones.
func missingPages(found []string) error {
	var named []string
	for _, g := range navigation {
		named = append(named, g.paths...)
	}
	var wrong []string
	for _, name := range found {
		if !slices.Contains(named, name) {
			wrong = append(wrong, "lacks "+name)
		}
	}
	for _, name := range named {
		if !slices.Contains(found, name) {
			wrong = append(wrong, "names "+name+", which does not exist")
		}
	}
	if len(wrong) > 0 {
		return fmt.Errorf("the navigation in hack/docsite/navigation.go %s", strings.Join(wrong, "; "))
	}
	return nil
}
