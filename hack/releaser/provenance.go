// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"maps"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
)

// page explains the build type and the builder.
const page = project + "/blob/main/doc/releasing.md"

// A statement is one of in-toto, https://in-toto.io/Statement/v1.
type statement struct {
	Type          string     `json:"_type"`
	Subject       []resource `json:"subject"`
	PredicateType string     `json:"predicateType"`
	Predicate     provenance `json:"predicate"`
}

type resource struct {
	Name   string            `json:"name,omitempty"`
	URI    string            `json:"uri,omitempty"`
	Digest map[string]string `json:"digest,omitempty"`
}

// A provenance states from what and how somebody built the subjects: https://slsa.dev/provenance/v1.
// It omits the times of the run, which are optional and differ between two runs.
type provenance struct {
	BuildDefinition buildDefinition `json:"buildDefinition"`
	RunDetails      runDetails      `json:"runDetails"`
}

type buildDefinition struct {
	BuildType            string         `json:"buildType"`
	ExternalParameters   map[string]any `json:"externalParameters"`
	ResolvedDependencies []resource     `json:"resolvedDependencies"`
}

type runDetails struct {
	Builder resourceID `json:"builder"`
}

type resourceID struct {
	ID string `json:"id"`
}

// writeProvenance writes the provenance of the image and of all files of a directory.
func (r *release) writeProvenance(image image, directory string) error {
	sums, err := sumsOf(directory)
	if err != nil {
		return err
	}
	subjects := []resource{{Name: image.name(), Digest: digestOf(strings.TrimPrefix(image.digest, "sha256:"))}}
	for _, name := range slices.Sorted(maps.Keys(sums)) {
		subjects = append(subjects, resource{Name: name, Digest: digestOf(sums[name])})
	}
	dependencies, err := r.dependencies()
	if err != nil {
		return err
	}
	s := statement{
		Type: "https://in-toto.io/Statement/v1", Subject: subjects, PredicateType: "https://slsa.dev/provenance/v1",
		Predicate: provenance{
			BuildDefinition: buildDefinition{
				BuildType: page + "#the-build", ResolvedDependencies: dependencies,
				ExternalParameters: map[string]any{"source": "git+" + project, "ref": r.ref, "version": r.source.Version},
			},
			RunDetails: runDetails{resourceID{page + "#the-builder"}},
		},
	}
	return writeFile(filepath.Join(directory, "provenance.json"), func(w *bytes.Buffer) error {
		encoder := json.NewEncoder(w)
		encoder.SetIndent("", "  ")
		encoder.SetEscapeHTML(false)
		return encoder.Encode(s)
	})
}

func digestOf(sha256 string) map[string]string { return map[string]string{"sha256": sha256} }

// hostFiles are the files of this machine that the image contains.
var hostFiles = []string{"/etc/ssl/certs/ca-certificates.crt"}

// dependencies lists all that the files of the release depend on: whoever has the same gets the
// same files.
func (r *release) dependencies() ([]resource, error) {
	list := []resource{
		{URI: "git+" + project + "@" + r.ref, Digest: map[string]string{"gitCommit": r.commit}},
		// The releaser itself compresses, with the same Go: hack/release sees to it.
		{Name: "go", URI: "pkg:generic/go@" + strings.TrimPrefix(runtime.Version(), "go")},
	}
	for _, file := range hostFiles {
		sum, err := sumOf(file)
		if err != nil {
			return nil, err
		}
		list = append(list, resource{Name: filepath.Base(file), URI: "pkg:deb/debian/ca-certificates", Digest: digestOf(sum)})
	}
	// The checksums of all Go modules.
	for _, name := range []string{"go.sum", "hack/manifests/go.sum", "hack/releaser/go.sum"} {
		sum, err := sumOf(filepath.Join(r.source.Root, name))
		if err != nil {
			return nil, err
		}
		list = append(list, resource{Name: name, Digest: digestOf(sum)})
	}
	return list, nil
}
