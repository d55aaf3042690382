// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package report collects what helps to find out what is wrong with a cluster. Nothing
// comes into it that package redact has not seen.
package report

import (
	"archive/tar"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/etcd-operator/etcd-operator/internal/plugin/redact"
)

// Archive is the files of a report.
type Archive struct {
	dir   string
	now   time.Time
	files []file
}

type file struct {
	name    string
	content []byte
}

// Len is how many files there are.
func (a *Archive) Len() int { return len(a.files) }

// text adds a text.
func (a *Archive) text(name, content string) {
	a.files = append(a.files, file{name, []byte(redact.Text(content))})
}

// failed adds why something is not there.
func (a *Archive) failed(name string, err error) { a.text(name+".error", err.Error()+"\n") }

// object adds an object of Kubernetes, or a list of them, as YAML. The client leaves out
// what they are, so the caller says it.
func (a *Archive) object(name, kind string, object any) error {
	content, err := json.Marshal(object)
	if err != nil {
		return err
	}
	var value map[string]any
	if err := json.Unmarshal(content, &value); err != nil {
		return err
	}
	value["kind"] = kind
	redact.Object(value)
	if content, err = yaml.Marshal(value); err != nil {
		return err
	}
	a.files = append(a.files, file{name + ".yaml", content})
	return nil
}

// Write writes the archive.
func (a *Archive) Write(out io.Writer) error {
	compressed := gzip.NewWriter(out)
	archive := tar.NewWriter(compressed)
	for _, f := range a.files {
		header := &tar.Header{Name: a.dir + "/" + f.name, Mode: 0o600, Size: int64(len(f.content)), ModTime: a.now, Format: tar.FormatPAX}
		if err := archive.WriteHeader(header); err != nil {
			return fmt.Errorf("write the report: %w", err)
		}
		if _, err := archive.Write(f.content); err != nil {
			return fmt.Errorf("write the report: %w", err)
		}
	}
	if err := archive.Close(); err != nil {
		return fmt.Errorf("write the report: %w", err)
	}
	return compressed.Close()
}
