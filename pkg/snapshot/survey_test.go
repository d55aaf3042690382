// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"context"
	"crypto/tls"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"

	"github.com/etcd-operator/etcd-operator/pkg/etcd"
)

// fake is a member that takes its time.
type fake struct {
	answer
	statusAfter, agreedAfter time.Duration
	// electing is until when no leader is known.
	electing time.Time
}

func (f fake) Status(ctx context.Context) (etcd.Status, error) {
	if err := wait(ctx, f.statusAfter); err != nil {
		return etcd.Status{}, err
	}
	return f.status, f.statusErr
}

func (f fake) Revision(ctx context.Context) (int64, error) {
	if time.Now().Before(f.electing) {
		return 0, rpctypes.ErrNoLeader
	}
	if err := wait(ctx, f.agreedAfter); err != nil {
		return 0, err
	}
	return f.agreed, f.agreedErr
}

func wait(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

const never = time.Hour

// surveyed runs a survey and returns how long it took.
func surveyed(ctx context.Context, fakes ...fake) ([]answer, time.Duration) {
	begin := time.Now()
	urls, members := make([]string, len(fakes)), make([]member, len(fakes))
	for i, f := range fakes {
		urls[i], members[i] = f.url, f
	}
	answers := survey(ctx, surveyLimit, urls, members)
	return answers, time.Since(begin)
}

func TestASurveyEndsWhenAllHaveAnswered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		answers, took := surveyed(t.Context(),
			fake{answer: well(1, 100), statusAfter: 10 * time.Millisecond},
			fake{answer: well(2, 100), agreedAfter: 20 * time.Millisecond},
			fake{answer: well(3, 0, dead)})
		if took != 20*time.Millisecond {
			t.Errorf("it took %v, want no longer than the slowest answer", took)
		}
		if c, err := choose(answers); err != nil || len(c.ranked) != 2 {
			t.Errorf("choice %+v, %v, want both that answered", c, err)
		}
	})
}

func TestSilentMembersAreWaitedForNoLongerThanAMoment(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		answers, took := surveyed(t.Context(),
			fake{answer: well(1, 100), agreedAfter: time.Second / 2},
			fake{answer: well(2, 100), statusAfter: never, agreedAfter: never},
			fake{answer: well(3, 100), statusAfter: time.Second, agreedAfter: never})
		if want := time.Second/2 + surveyGrace; took != want {
			t.Errorf("it took %v, want %v", took, want)
		}
		if !errors.Is(answers[1].statusErr, errNoAnswer) || !errors.Is(answers[1].agreedErr, errNoAnswer) {
			t.Errorf("a silent member has answered %v, %v", answers[1].statusErr, answers[1].agreedErr)
		}
		if answers[2].statusErr != nil {
			t.Errorf("an answer within the moment does not count: %v", answers[2].statusErr)
		}
	})
}

func TestAnElectionIsWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		elected := time.Now().Add(2 * time.Second)
		answers, took := surveyed(t.Context(),
			fake{answer: well(1, 100), statusAfter: never, agreedAfter: never},
			fake{answer: well(2, 100, leaderless), electing: elected, statusAfter: time.Millisecond},
			fake{answer: well(3, 100, func(a *answer) { a.agreedErr = nil }), electing: elected})
		c, err := choose(answers)
		if err != nil || !c.linearizable {
			t.Errorf("choice %+v, %v after %v, want a linearizable one", c, err, took)
		}
		if took < 2*time.Second {
			t.Errorf("it took %v, and the election 2s", took)
		}
	})
}

func TestWithoutAQuorumTheSurveyEndsAtItsLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		answers, took := surveyed(t.Context(),
			fake{answer: well(2, 100, leaderless), electing: time.Now().Add(never)},
			fake{answer: well(3, 110, leaderless), agreedAfter: never})
		if took != surveyLimit {
			t.Errorf("it took %v, want %v", took, surveyLimit)
		}
		if c, err := choose(answers); err != nil || c.linearizable || c.ranked[0] != 1 {
			t.Errorf("choice %+v, %v, want the highest revision", c, err)
		}
	})
}

func TestASurveyEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, took := surveyed(ctx, fake{answer: well(1, 100), statusAfter: never, agreedAfter: never}); took != time.Second {
			t.Errorf("it took %v, want 1s", took)
		}
	})
}

// slow is a client of one member that answers late.
type slow struct{ after time.Duration }

func (c slow) Conn(etcd.Endpoint) (Conn, error) { return slowConn{after: c.after}, nil }
func (slow) Retain(map[etcd.Endpoint]bool)      {}
func (slow) Close()                             {}

type slowConn struct {
	Conn

	after time.Duration
}

var errLate = errors.New("a late answer")

func (c slowConn) Status(ctx context.Context) (etcd.Status, error) {
	if err := wait(ctx, c.after); err != nil {
		return etcd.Status{}, err
	}
	return etcd.Status{}, errLate
}

func (c slowConn) Revision(ctx context.Context) (int64, error) {
	_, err := c.Status(ctx)
	return 0, err
}

func TestALoginMayTakeAsLongAsTheAnswers(t *testing.T) {
	for user, want := range map[etcd.Credentials]error{{}: errNoAnswer, {Username: "root", Password: "secret"}: errLate} {
		synctest.Test(t, func(t *testing.T) {
			_, err := Open(t.Context(), Source{
				Endpoints: []etcd.Endpoint{{URL: "http://m"}}, User: user,
				Connect: func(*tls.Config, etcd.Credentials) Client {
					return slow{after: surveyLimit + etcd.LoginTimeout - time.Second}
				},
			})
			if !errors.Is(err, want) {
				t.Errorf("with the user %q: %v, want %v", user.Username, err, want)
			}
		})
	}
}
