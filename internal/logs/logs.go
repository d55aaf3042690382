// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package logs gives the operators their logger, and leads what client-go logs
// into it.
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

// RouteKlog makes klog, which client-go logs through, write to logger. It
// changes the state of the process: only main calls it.
func RouteKlog(logger *logrus.Logger) {
	klog.SetLogger(logr.New(sink{logrus.NewEntry(logger).WithField("pkg", "client-go")}))
}

// sink is a logr.LogSink. What client-go calls an error is a warning here: it
// tries again by itself, and what it could not do in the end it returns to its
// caller. What it tells as information is of use to those who debug.
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
