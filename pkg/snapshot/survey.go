// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/etcd-operator/etcd-operator/pkg/etcd"
	"github.com/etcd-operator/etcd-operator/pkg/watchdog"
)

const (
	// surveyLimit is how long survey waits for answers at most. It is longer than an election
	// takes. With a user it lasts longer, by the time that a login may take (etcd.LoginTimeout): in a
	// container with a small CPU limit, a comparison of a password takes seconds.
	surveyLimit = 5 * time.Second
	// surveyGrace is how long survey waits for other answers after a usable one.
	surveyGrace = time.Second
	// readPause is the pause before another linearizable read that failed because of an
	// election.
	readPause = 200 * time.Millisecond
)

var errNoAnswer = errors.New("it did not answer in time")

// member is what survey asks of one member.
type member interface {
	Status(ctx context.Context) (etcd.Status, error)
	Revision(ctx context.Context) (int64, error)
}

// survey asks all members at once. It waits until all have answered, or one is usable and the
// others have had surveyGrace, or limit is over.
func survey(ctx context.Context, limit time.Duration, urls []string, members []member) []answer {
	ctx, cancel := context.WithTimeout(ctx, limit)
	var asking sync.WaitGroup
	defer asking.Wait()
	defer cancel()

	answers := make([]answer, len(members))
	heard := make(chan func(), 2*len(members)) // after the end of the survey, nobody receives
	for i, m := range members {
		answers[i] = answer{url: urls[i], statusErr: errNoAnswer, agreedErr: errNoAnswer}
		asking.Go(func() {
			status, err := watchdog.GuardValue(func() (etcd.Status, error) { return m.Status(ctx) })
			heard <- func() { answers[i].status, answers[i].statusErr = status, orNoAnswer(ctx, err) }
		})
		asking.Go(func() {
			revision, err := watchdog.GuardValue(func() (int64, error) { return read(ctx, m) })
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

// read retries a linearizable read until an election ends.
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

// orNoAnswer replaces the error of a call that the end of the survey cut off.
func orNoAnswer(ctx context.Context, err error) error {
	if err != nil && ctx.Err() != nil {
		return errNoAnswer
	}
	return err
}
