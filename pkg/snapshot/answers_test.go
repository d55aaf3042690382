// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package snapshot_test

import (
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/sirupsen/logrus"

	"github.com/etcd-operator/etcd-operator/pkg/snapshot"
)

// late are the endpoints that did not answer before others were taken.
type late struct{ urls []string }

func (l *late) Levels() []logrus.Level { return []logrus.Level{logrus.DebugLevel} }

func (l *late) Fire(e *logrus.Entry) error {
	if err, failed := e.Data[logrus.ErrorKey].(error); failed && strings.Contains(err.Error(), "did not answer in time") {
		if url, known := e.Data["endpoint"].(string); known {
			l.urls = append(l.urls, url)
		}
	}
	return nil
}

// open opens a snapshot for which all endpoints were heard but the silent ones. On a
// loaded machine one may not answer in time: then rightly another is taken, and all are
// asked once more.
func open(t *testing.T, src snapshot.Source, silent ...string) *snapshot.Snapshot {
	t.Helper()
	for ctx := soon(t); ; {
		heard := &late{}
		logger := logrus.New()
		logger.SetOutput(io.Discard)
		logger.SetLevel(logrus.DebugLevel)
		logger.AddHook(heard)
		src.Logger = logrus.NewEntry(logger)
		s, err := snapshot.Open(ctx, src)
		if err != nil {
			t.Fatal(err)
		}
		if !slices.ContainsFunc(heard.urls, func(url string) bool { return !slices.Contains(silent, url) }) {
			t.Cleanup(func() { _ = s.Close() })
			return s
		}
		t.Logf("%q did not answer in time", heard.urls)
		_ = s.Close()
	}
}
