// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package logs

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	"github.com/sirupsen/logrus"
)

func TestErrorsOfClientGoAreWarnings(t *testing.T) {
	var out bytes.Buffer
	log := logr.New(sink{logrus.NewEntry(New(&out))})
	log.WithValues("resource", "pods").Error(errors.New("forbidden"), "Failed to watch", "attempt", 2)
	for _, want := range []string{"level=warning", `msg="Failed to watch"`, "error=forbidden", "resource=pods", "attempt=2"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the line lacks %s: %s", want, out.String())
		}
	}
}

func TestInformationOfClientGoIsForDebugging(t *testing.T) {
	var out bytes.Buffer
	logger := New(&out)
	log := logr.New(sink{logrus.NewEntry(logger)})
	log.Info("Waited for the rate limiter")
	if out.Len() > 0 {
		t.Errorf("logged at the default level: %s", out.String())
	}
	logger.SetLevel(logrus.DebugLevel)
	log.Info("Waited for the rate limiter")
	if !strings.Contains(out.String(), "level=debug") {
		t.Errorf("not logged at level debug: %s", out.String())
	}
}
