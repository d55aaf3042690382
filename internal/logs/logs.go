// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package logs makes the operators' logger, and redirects client-go's logs to it.
package logs

import (
	"fmt"
	"io"

	"github.com/go-logr/logr"
	"github.com/sirupsen/logrus"
	"k8s.io/klog/v2"
)

// New returns the logger of a process.
func New(out io.Writer) *logrus.Logger {
	logger := logrus.New()
	logger.SetOutput(out)
	logger.SetFormatter(&logrus.TextFormatter{FullTimestamp: true, DisableColors: true})
	return logger
}

// RouteKlog makes klog, client-go's logger, write to logger. It changes the state of the
// process: only main calls it.
func RouteKlog(logger *logrus.Logger) {
	klog.SetLogger(logr.New(sink{logrus.NewEntry(logger).WithField("pkg", "client-go")}))
}

// sink is a logr.LogSink. It logs client-go's errors as warnings, because client-go retries,
// and returns to its caller what fails for good. It logs client-go's information at the debug
// level.
type sink struct{ entry *logrus.Entry }

func (sink) Init(logr.RuntimeInfo) {}

func (s sink) Enabled(level int) bool {
	return level == 0 && s.entry.Logger.IsLevelEnabled(logrus.DebugLevel)
}

func (s sink) Info(_ int, msg string, keysAndValues ...any) {
	s.entry.WithFields(fields(keysAndValues)).Debug(msg)
}

func (s sink) Error(err error, msg string, keysAndValues ...any) {
	entry := s.entry.WithFields(fields(keysAndValues))
	if err != nil {
		entry = entry.WithError(err)
	}
	entry.Warn(msg)
}

func (s sink) WithValues(keysAndValues ...any) logr.LogSink {
	return sink{s.entry.WithFields(fields(keysAndValues))}
}

func (s sink) WithName(string) logr.LogSink { return s }

func fields(keysAndValues []any) logrus.Fields {
	f := logrus.Fields{}
	for i := 0; i+1 < len(keysAndValues); i += 2 {
		f[fmt.Sprint(keysAndValues[i])] = keysAndValues[i+1]
	}
	return f
}
