// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package recorder

import (
	"context"
	"errors"
	"math"
	"testing"
	"time"

	"k8s.io/utils/clock"

	"github.com/etcd-operator/etcd-operator/pkg/changelog"
	"github.com/etcd-operator/etcd-operator/pkg/etcd"
)

// The goroutine that stores may come between the receiver's look at other changes and the end of the recording. A
// segment would then show that the log continues in the other history.
func TestNothingIsTakenAfterChangesThatDoNotContinueTheLog(t *testing.T) {
	change := func(revision int64, content string) etcd.Change {
		return etcd.Change{Revision: revision, KeyValue: []byte(content)}
	}
	for name, test := range map[string]struct {
		changes []etcd.Change
		want    error
	}{
		"another history":                {[]etcd.Change{change(20, "other")}, ErrOther},
		"another history, with more":     {[]etcd.Change{change(20, "other"), change(21, "next")}, ErrOther},
		"a gap":                          {[]etcd.Change{change(20, "known"), change(22, "next")}, changelog.ErrGap},
		"a gap after a revision that is": {[]etcd.Change{change(20, "known"), change(21, "next"), change(23, "later")}, changelog.ErrGap},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBuffer(20, &changelog.Revision{Main: 20, Changes: []changelog.Change{{KeyValue: []byte("known")}}}, true)
			b.budget, b.cancel = NewBudget(math.MaxInt), func(error) {}
			b.budget.join(b)
			if err := b.add(test.changes, time.Now()); !errors.Is(err, test.want) {
				t.Fatalf("add returned %v, want %v", err, test.want)
			}
			ctx, end := context.WithTimeout(t.Context(), time.Second) // the recording has not ended yet
			defer end()
			if _, err := b.await(ctx, clock.RealClock{}, 20); err != nil {
				t.Fatalf("await returned %v", err)
			}
			if _, revisions, err := b.take(); !errors.Is(err, test.want) {
				t.Errorf("%d revisions were taken with the error %v, want %v", len(revisions), err, test.want)
			}
		})
	}
}
