// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/etcd-operator/etcd-operator/pkg/etcd"
)

const (
	// surveyLimit is how long members are waited for in any case. It is longer
	// than an election takes.
	surveyLimit = 5 * time.Second
	// surveyGrace is how long others are waited for when one is found that will do.
	surveyGrace = time.Second
	// readPause passes until a linearizable read is tried again that an election
	// stood in the way of.
	readPause = 200 * time.Millisecond
)

var errNoAnswer = errors.New("it did not answer in time")

// member is what is asked of one.
type member interface {
	Status(ctx context.Context) (etcd.Status, error)
	Revision(ctx context.Context) (int64, error)
}

// survey asks all members at once, and waits until all have answered, or one that
// will do and the others had their time.
func survey(ctx context.Context, urls []string, members []member) []answer {
	ctx, cancel := context.WithTimeout(ctx, surveyLimit)
	var asking sync.WaitGroup
	defer asking.Wait()
	defer cancel()

	answers := make([]answer, len(members))
	heard := make(chan func(), 2*len(members)) // nobody waits for a survey that is over
	for i, m := range members {
		answers[i] = answer{url: urls[i], statusErr: errNoAnswer, agreedErr: errNoAnswer}
		asking.Go(func() {
			status, err := m.Status(ctx)
			heard <- func() { answers[i].status, answers[i].statusErr = status, orNoAnswer(ctx, err) }
		})
		asking.Go(func() {
			revision, err := read(ctx, m)
			heard <- func() { answers[i].agreed, answers[i].agreedErr = revision, orNoAnswer(ctx, err) }
		})
	}
	var graceOver <-chan time.Time
	for range 2 * len(members) {
		select {
		case note := <-heard:
			note()
		case <-graceOver:
			return answers
		case <-ctx.Done():
			return answers
		}
		if graceOver != nil {
			continue
		}
		if c, err := choose(answers); err == nil && c.linearizable {
			grace := time.NewTimer(surveyGrace)
			defer grace.Stop()
			graceOver = grace.C
		}
	}
	return answers
}

// read is a linearizable read that outlasts an election.
func read(ctx context.Context, m member) (int64, error) {
	for {
		revision, err := m.Revision(ctx)
		if err == nil || !etcd.IsNotYet(err) {
			return revision, err
		}
		pause := time.NewTimer(readPause)
		select {
		case <-pause.C:
		case <-ctx.Done():
			pause.Stop()
			return 0, err
		}
	}
}

// orNoAnswer says of a call that the end of the survey has cut off what that means.
func orNoAnswer(ctx context.Context, err error) error {
	if err != nil && ctx.Err() != nil {
		return errNoAnswer
	}
	return err
}
