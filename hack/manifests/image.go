// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// image is the operators' image: internal/version names it.
type image struct {
	repository string // with the registry
	version    string // of the release, with a leading v
}

func (i image) String() string { return i.repository + ":" + i.version }

var (
	repositoryLine = regexp.MustCompile(`(?m)^const Repository = "([^"]+)"$`)
	versionLine    = regexp.MustCompile(`(?m)^\s*Version = "(v[0-9]+\.[0-9]+\.[0-9]+)[^"]*"$`)
)

// imageOf reads the source. A tree on the way to a release names the image of that release. A
// version, if it is not empty, replaces the one of the source.
func imageOf(root, release string) (image, error) {
	path := filepath.Join(root, "internal", "version", "version.go")
	source, err := os.ReadFile(path)
	if err != nil {
		return image{}, err
	}
	repository, version := repositoryLine.FindSubmatch(source), versionLine.FindSubmatch(source)
	if repository == nil || version == nil {
		return image{}, fmt.Errorf("%s: want the constant Repository, and the variable Version with a semantic version", path)
	}
	if release == "" {
		release = string(version[1])
	}
	return image{repository: string(repository[1]), version: release}, nil
}

// The default image of etcd, in pkg/apis/etcd/v1beta2.
var (
	etcdRepositoryLine = regexp.MustCompile(`(?m)^\s*DefaultRepository = "([^"]+)"$`)
	etcdVersionLine    = regexp.MustCompile(`(?m)^\s*DefaultVersion = "([^"]+)"$`)
)

// imagesOf lists the images that the operators and clusters of the default version need.
func imagesOf(root string, operators image) ([]byte, error) {
	path := filepath.Join(root, "pkg", "apis", "etcd", "v1beta2", "defaults.go")
	source, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	repository, version := etcdRepositoryLine.FindSubmatch(source), etcdVersionLine.FindSubmatch(source)
	if repository == nil || version == nil {
		return nil, fmt.Errorf("%s: want DefaultRepository and DefaultVersion", path)
	}
	return fmt.Appendf(nil, "%s\n%s:v%s\n", operators, repository[1], version[1]), nil
}

// reference is a line of a file that depends on the image.
type reference struct {
	path    string
	pattern *regexp.Regexp // its first group stays
	value   func(image) string
}

func references() []reference {
	deployed := regexp.MustCompile(`(?m)^( +image: ).*$`)
	whole := image.String
	list := []reference{
		{"deploy/crds/kustomization.yaml", regexp.MustCompile(`(?m)^(  etcd\.database\.coreos\.com/operator-version: ).*$`), func(i image) string { return i.version }},
		{"charts/etcd-operator/Chart.yaml", regexp.MustCompile(`(?m)^(version: ).*$`), func(i image) string { return strings.TrimPrefix(i.version, "v") }},
		{"charts/etcd-operator/Chart.yaml", regexp.MustCompile(`(?m)^(appVersion: ).*$`), func(i image) string { return i.version }},
		{"charts/etcd-operator/values.yaml", regexp.MustCompile(`(?m)^(  repository: ).*$`), func(i image) string { return i.repository }},
		{"doc/user/walkthrough.md", regexp.MustCompile(`(?m)^(IMAGE=).*$`), whole},
		{"Dockerfile", regexp.MustCompile(`(?m)^(#   docker build -t )[^ ]+`), whole},
	}
	for _, path := range []string{
		"deploy/etcd-operator/deployment.yaml",
		"deploy/etcd-backup-operator/deployment.yaml",
		"deploy/etcd-restore-operator/deployment.yaml",
		"example/deployment.yaml",
		"example/etcd-backup-operator/deployment.yaml",
		"example/etcd-backup-operator/volume.yaml",
		"example/etcd-restore-operator/deployment.yaml",
		"example/etcd-restore-operator/volume.yaml",
	} {
		list = append(list, reference{path, deployed, whole})
	}
	return list
}

// referencesOf returns the files that name the image.
func referencesOf(root string, image image) ([]file, error) {
	var files []file
	for _, r := range references() {
		var text []byte
		if n := len(files); n > 0 && files[n-1].path == r.path {
			text = files[n-1].text
			files = files[:n-1]
		} else {
			var err error
			if text, err = os.ReadFile(filepath.Join(root, r.path)); err != nil {
				return nil, err
			}
		}
		if found := len(r.pattern.FindAllIndex(text, -1)); found != 1 {
			return nil, fmt.Errorf("%s: %d lines match %s, want 1", r.path, found, r.pattern)
		}
		files = append(files, file{r.path, r.pattern.ReplaceAll(text, []byte("${1}"+r.value(image)))})
	}
	return files, nil
}
