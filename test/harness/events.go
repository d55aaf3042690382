// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// The operator sends events separately, and they arrive later than the status with the same
// facts. A test that expects one waits for it. A test that expects none may check at once.

// Events returns the cluster's events, each in its last state, in the order of their first
// occurrence.
func (c *Cluster) Events() []*corev1.Event { return c.n.record.eventsOf(c.Name) }

// EventMessages returns the messages of the cluster's events with a reason so far. A repeated
// event occurs as often.
func (c *Cluster) EventMessages(reason string) []string {
	var messages []string
	for _, event := range c.Events() {
		if event.Reason == reason {
			messages = append(messages, slices.Repeat([]string{event.Message}, max(1, int(event.Count)))...)
		}
	}
	return messages
}

// WaitEvent waits for an event with a reason whose message contains all words.
func (c *Cluster) WaitEvent(reason string, words ...string) {
	c.n.t.Helper()
	Wait(c.n.t, fmt.Sprintf("event %s with %q", reason, words), Settle, func(context.Context) error {
		messages := c.EventMessages(reason)
		if slices.ContainsFunc(messages, func(m string) bool { return containsAll(m, words) }) {
			return nil
		}
		return fmt.Errorf("there are %q", messages)
	})
}

// WaitEvents waits for this number of events with a reason, and fails the test if there are
// more.
func (c *Cluster) WaitEvents(want int, reason string) {
	c.n.t.Helper()
	var messages []string
	Wait(c.n.t, fmt.Sprintf("%d events %s", want, reason), Settle, func(context.Context) error {
		if messages = c.EventMessages(reason); len(messages) < want {
			return fmt.Errorf("there are %q", messages)
		}
		return nil
	})
	if len(messages) > want {
		c.n.t.Errorf("%d events %s instead of %d: %q", len(messages), reason, want, messages)
	}
}

// WaitWarning waits for a warning event whose reason and message contain all words.
func (c *Cluster) WaitWarning(within time.Duration, words ...string) {
	c.n.t.Helper()
	Wait(c.n.t, fmt.Sprintf("warning event with %q", words), within, func(context.Context) error {
		var warnings []string
		for _, event := range c.Events() {
			if event.Type != corev1.EventTypeWarning {
				continue
			}
			if containsAll(event.Reason+": "+event.Message, words) {
				return nil
			}
			warnings = append(warnings, event.Reason+": "+event.Message)
		}
		return fmt.Errorf("warnings: %q", warnings)
	})
}

func containsAll(text string, words []string) bool {
	return !slices.ContainsFunc(words, func(word string) bool { return !strings.Contains(text, word) })
}
