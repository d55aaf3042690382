// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package notice

import (
	"io"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/sirupsen/logrus"
	corev1 "k8s.io/api/core/v1"

	"github.com/etcd-operator/etcd-operator/pkg/notice/noticetest"
)

func TestShortenKeepsCharactersWhole(t *testing.T) {
	for text, want := range map[string]string{
		"short":              "short",
		"exactly 13 !!":      "exactly 13 !!",
		"more than thirteen": "more than …",
		"a23456789é1234":     "a23456789…", // é has two bytes
	} {
		if got := Shorten(text, 13); got != want || !utf8.ValidString(got) || len(got) > 13 {
			t.Errorf("%q becomes %q, want %q", text, got, want)
		}
	}
}

func TestAnEventIsNoLongerThanTheAPIServerTakes(t *testing.T) {
	logger := logrus.New()
	logger.SetOutput(io.Discard)
	var events noticetest.Recorder
	board := Board[*corev1.Pod]{Recorder: &events, Log: logrus.NewEntry(logger), Object: &corev1.Pod{}}
	board.Warning("Long Story", "%s", strings.Repeat("and ", 1000))
	board.Normal("Short Story", "it was %d", 1)
	told := events.Events()
	// A shortened message uses nearly all of the allowed length.
	if begin := "Long Story: "; len(told) != 2 || !strings.HasPrefix(told[0], begin+"and and ") || len(told[0]) > len(begin)+1024 || len(told[0]) < len(begin)+900 || told[1] != "Short Story: it was 1" {
		t.Errorf("events %q", told)
	}
}

func TestOfARowOfFailuresTheFirstIsToldAndOthersNowAndThen(t *testing.T) {
	start := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	var failures Failures
	for _, step := range []struct {
		reason string
		after  time.Duration
		news   bool
	}{
		{"the store is down", 0, true},
		{"the store is down", time.Minute, false},
		{"the store is down at another port", 2 * time.Minute, false},
		{"the store is down", time.Hour, false},
		{"the store is full", time.Hour, true},
		{"the store is down", -time.Hour, true}, // the clock was set back
	} {
		if got := failures.News(step.reason, start.Add(step.after)); got != step.news {
			t.Errorf("%q after %s is news: %t, want %t", step.reason, step.after, got, step.news)
		}
	}
}
