// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package backup

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

// at reads a time of the tests, in UTC unless it says more.
func at(t *testing.T, text string) time.Time {
	t.Helper()
	for _, layout := range []string{time.RFC3339Nano, "2006-01-02 15:04:05", "2006-01-02 15:04"} {
		if moment, err := time.Parse(layout, text); err == nil {
			return moment.UTC()
		}
	}
	t.Fatalf("%q is no time", text)
	return time.Time{}
}

const created = "2026-01-01 12:00"

func scheduled(t *testing.T, created string, policy api.BackupPolicy) *schedule {
	t.Helper()
	obj := &api.EtcdBackup{ObjectMeta: metav1.ObjectMeta{CreationTimestamp: metav1.NewTime(at(t, created))}}
	obj.Spec.BackupPolicy = &policy
	s, err := scheduleOf(obj)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestWindowsOfASchedule(t *testing.T) {
	for _, c := range []struct {
		name    string
		created string
		policy  api.BackupPolicy
		after   string
		windows []string
	}{
		{"an interval begins at once", created, api.BackupPolicy{BackupIntervalInSecond: 3600}, "2025-06-01 00:00",
			[]string{"2026-01-01 12:00", "2026-01-01 13:00", "2026-01-01 14:00"}},
		{"an interval does not move, whenever it is asked", created, api.BackupPolicy{BackupIntervalInSecond: 3600}, "2026-03-01T05:59:59.9Z",
			[]string{"2026-03-01 06:00", "2026-03-01 07:00"}},
		{"a window is not after itself", created, api.BackupPolicy{BackupIntervalInSecond: 3600}, "2026-03-01 06:00",
			[]string{"2026-03-01 07:00"}},
		{"cron begins with the first time after the creation", created, api.BackupPolicy{Schedule: "0 */6 * * *"}, "2025-06-01 00:00",
			[]string{"2026-01-01 18:00", "2026-01-02 00:00", "2026-01-02 06:00"}},
		{"@every does not move, and does not begin at once", created, api.BackupPolicy{Schedule: "@every 90m"}, "2025-06-01 00:00",
			[]string{"2026-01-01 13:30", "2026-01-01 15:00"}},
		{"@daily is midnight in UTC", created, api.BackupPolicy{Schedule: "@daily"}, created,
			[]string{"2026-01-02 00:00", "2026-01-03 00:00"}},
		{"in a time zone", created, api.BackupPolicy{Schedule: "30 9 * * mon", TimeZone: "Asia/Kolkata"}, created,
			[]string{"2026-01-05 04:00", "2026-01-12 04:00"}},
		{"29 February", created, api.BackupPolicy{Schedule: "0 0 29 2 *"}, created,
			[]string{"2028-02-29 00:00", "2032-02-29 00:00"}},
		{"fractions of a second", created, api.BackupPolicy{Schedule: "0 12 * * *"}, "2026-01-05T11:59:59.999Z",
			[]string{"2026-01-05 12:00"}},
		// Berlin: on 29 March 2026 at 2:00 the clocks show 3:00, on 25 October at 3:00 they show 2:00.
		{"a time that the clocks skip is the moment at which they do", created, api.BackupPolicy{Schedule: "30 2 * * *", TimeZone: "Europe/Berlin"}, "2026-03-28 00:00",
			[]string{"2026-03-28 01:30", "2026-03-29 01:00", "2026-03-30 00:30"}},
		{"an hour that is skipped costs an hourly schedule nothing", created, api.BackupPolicy{Schedule: "0 * * * *", TimeZone: "Europe/Berlin"}, "2026-03-29T01:30:00+01:00",
			[]string{"2026-03-29T03:00:00+02:00", "2026-03-29T04:00:00+02:00"}},
		{"a time that comes twice counts twice", created, api.BackupPolicy{Schedule: "30 2 * * *", TimeZone: "Europe/Berlin"}, "2026-10-24 12:00",
			[]string{"2026-10-25T02:30:00+02:00", "2026-10-25T02:30:00+01:00", "2026-10-26T02:30:00+01:00"}},
		{"an hour that comes twice has no gap", created, api.BackupPolicy{Schedule: "*/30 * * * *", TimeZone: "Europe/Berlin"}, "2026-10-25T02:15:00+02:00",
			[]string{"2026-10-25T02:30:00+02:00", "2026-10-25T02:00:00+01:00", "2026-10-25T02:30:00+01:00", "2026-10-25T03:00:00+01:00"}},
		// São Paulo, 4 November 2018: 0:00 was 1:00.
		{"a midnight that is skipped", "2018-01-01 00:00", api.BackupPolicy{Schedule: "0 0 * * *", TimeZone: "America/Sao_Paulo"}, "2018-11-03T12:00:00-03:00",
			[]string{"2018-11-04T01:00:00-02:00", "2018-11-05T00:00:00-02:00"}},
		{"a day without midnight is a day", "2018-01-01 00:00", api.BackupPolicy{Schedule: "30 5 4 * *", TimeZone: "America/Sao_Paulo"}, "2018-10-20T12:00:00-03:00",
			[]string{"2018-11-04T05:30:00-02:00", "2018-12-04T05:30:00-02:00"}},
		// Samoa had no 30 December 2011.
		{"a day that is skipped", "2011-01-01 00:00", api.BackupPolicy{Schedule: "0 12 30 12 *", TimeZone: "Pacific/Apia"}, "2011-12-01 00:00",
			[]string{"2011-12-31T00:00:00+14:00", "2012-12-30T12:00:00+14:00"}},
		{"an interval of centuries", created, api.BackupPolicy{BackupIntervalInSecond: math.MaxInt64}, created,
			[]string{"2318-04-13 11:47:16"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := scheduled(t, c.created, c.policy)
			w := at(t, c.after)
			for i, want := range c.windows {
				if w = s.next(w); !w.Equal(at(t, want)) {
					t.Fatalf("window %d is %s, want %s", i, w, at(t, want))
				}
			}
		})
	}
}

func TestSchedulesThatCannotBeFollowed(t *testing.T) {
	for _, c := range []struct {
		policy api.BackupPolicy
		says   string
	}{
		{api.BackupPolicy{Schedule: "0 0 30 2 *"}, "never comes"},
		{api.BackupPolicy{Schedule: "0 0 31 4,6,9,11 *"}, "never comes"},
		{api.BackupPolicy{Schedule: "every day"}, "five fields"},
		{api.BackupPolicy{Schedule: "0 0 * *"}, "five fields"},
		{api.BackupPolicy{Schedule: "0 0 0 * * *"}, "five fields"},
		{api.BackupPolicy{Schedule: "60 * * * *"}, "five fields"},
		{api.BackupPolicy{Schedule: "* * * * 7"}, "five fields"},
		{api.BackupPolicy{Schedule: " "}, "five fields"},
		{api.BackupPolicy{Schedule: "@reboot"}, "five fields"},
		{api.BackupPolicy{Schedule: "TZ=Europe/Berlin 0 0 * * *"}, "time zone"},
		{api.BackupPolicy{Schedule: "CRON_TZ=Europe/Berlin @daily"}, "time zone"},
		{api.BackupPolicy{Schedule: "TZ=0"}, "time zone"},
		{api.BackupPolicy{Schedule: "@every 0s"}, "duration of one second or more"},
		{api.BackupPolicy{Schedule: "@every -5m"}, "duration of one second or more"},
		{api.BackupPolicy{Schedule: "@every 10ms"}, "duration of one second or more"},
		{api.BackupPolicy{Schedule: "@every day"}, "duration of one second or more"},
		{api.BackupPolicy{Schedule: "@daily", TimeZone: "Europe/Atlantis"}, "IANA"},
		{api.BackupPolicy{Schedule: "@daily", TimeZone: "Local"}, "IANA"},
		{api.BackupPolicy{Schedule: "@daily", TimeZone: "../../etc/passwd"}, "IANA"},
	} {
		obj := &api.EtcdBackup{Spec: api.BackupSpec{BackupPolicy: &c.policy}}
		if _, err := scheduleOf(obj); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%+v: error %v, want it to say %q", c.policy, err, c.says)
		}
	}
}

func TestNothingInsaneIsTakenForASchedule(t *testing.T) {
	random := rand.New(rand.NewPCG(4, 4)) // must be repeatable
	const letters = "0123456789*/-,? @TZ=everyhm."
	good := 0
	for range 20_000 {
		var text strings.Builder
		for range 1 + random.IntN(14) {
			text.WriteByte(letters[random.IntN(len(letters))])
		}
		expression := text.String()
		if random.IntN(2) == 0 {
			expression += " * * * *"
		}
		obj := &api.EtcdBackup{Spec: api.BackupSpec{BackupPolicy: &api.BackupPolicy{Schedule: expression}}}
		s, err := scheduleOf(obj) // must not panic
		if err != nil || s == nil {
			continue
		}
		good++
		from := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
		if next := s.next(from); !next.After(from) {
			t.Errorf("%q: after %s comes %s", expression, from, next)
		}
	}
	if good < 100 {
		t.Errorf("only %d of the expressions were any good", good)
	}
}

func TestWhatIsDue(t *testing.T) {
	hourly := api.BackupPolicy{BackupIntervalInSecond: 3600}
	noonDaily := api.BackupPolicy{Schedule: "0 12 * * *"}
	for _, c := range []struct {
		name      string
		policy    api.BackupPolicy
		done, now string
		due, next string
		nowDone   string // where it is not done
	}{
		{"the first of an interval, at once", hourly, "", "2026-01-01T12:00:00.3Z", "2026-01-01 12:00", "2026-01-01 13:00", ""},
		{"the first of an interval, where the API server's clock is ahead", hourly, "", "2026-01-01 11:58", "2026-01-01 12:00", "2026-01-01 13:00", ""},
		{"cron waits for its first time", noonDaily, "", "2026-01-01 12:00", "", "2026-01-02 12:00", ""},
		{"nothing within a window that is done", hourly, "2026-01-01 15:00", "2026-01-01 15:59:59", "", "2026-01-01 16:00", ""},
		{"the window that has begun", hourly, "2026-01-01 15:00", "2026-01-01 16:00", "2026-01-01 16:00", "2026-01-01 17:00", ""},
		{"of several that were missed, the last", hourly, "2026-01-01 15:00", "2026-01-05 07:12", "2026-01-05 07:00", "2026-01-05 08:00", ""},
		{"of many that were missed, the last", api.BackupPolicy{Schedule: "* * * * *"}, "2026-01-01 15:00", "2029-01-05 07:12:31", "2029-01-05 07:12", "2029-01-05 07:13", ""},
		{"of rare ones that were missed, the last", api.BackupPolicy{Schedule: "* 1-2 1 1 *"}, "2026-02-01 00:00", "2031-12-31 23:59", "2031-01-01 02:59", "2032-01-01 01:00", ""},
		{"cron that was missed", noonDaily, "2026-01-02 12:00", "2026-01-09 11:59", "2026-01-08 12:00", "2026-01-09 12:00", ""},
		{"a shorter interval after an edit: one backup, not the missed ones", api.BackupPolicy{BackupIntervalInSecond: 60}, "2026-01-01 12:00", "2026-01-01 17:30:30", "2026-01-01 17:30", "2026-01-01 17:31", ""},
		{"a longer interval after an edit", api.BackupPolicy{BackupIntervalInSecond: 86400}, "2026-01-01 17:00", "2026-01-01 17:30", "", "2026-01-02 12:00", ""},
		{"an interval shorter than a backup takes", api.BackupPolicy{BackupIntervalInSecond: 10}, "2026-01-01 12:00", "2026-01-01 12:00:47", "2026-01-01 12:00:40", "2026-01-01 12:00:50", ""},
		{"the clock was set back across the window that was done", noonDaily, "2026-01-05 12:00", "2026-01-05 11:59:30", "", "2026-01-06 12:00", ""},
		{"the same, and the schedule was edited", api.BackupPolicy{Schedule: "30 * * * *"}, "2026-01-05 12:00", "2026-01-05 11:59:30", "", "2026-01-05 12:30", ""},
		{"a clock that was years ahead does not stop the backups", noonDaily, "2035-06-01 12:00", "2026-01-05 13:00", "", "2026-01-06 12:00", "2026-01-05 12:00"},
		{"the same before the first window", noonDaily, "2035-06-01 12:00", "2026-01-01 13:00", "", "2026-01-02 12:00", created},
		{"an interval of centuries is done once", api.BackupPolicy{BackupIntervalInSecond: math.MaxInt64}, "2026-01-01 12:00", "2026-01-01 12:01", "", "2318-04-13 11:47:16", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := scheduled(t, created, c.policy)
			var done *time.Time
			if c.done != "" {
				moment := at(t, c.done)
				done = &moment
			}
			o := s.look(done, at(t, c.now))
			if c.due == "" && !o.due.IsZero() || c.due != "" && !o.due.Equal(at(t, c.due)) {
				t.Errorf("due is %s, want %q", o.due, c.due)
			}
			if !o.next.Equal(at(t, c.next)) {
				t.Errorf("next is %s, want %s", o.next, c.next)
			}
			want := done
			if c.nowDone != "" {
				moment := at(t, c.nowDone)
				want = &moment
			}
			if (want == nil) != (o.done == nil) || want != nil && !o.done.Equal(*want) {
				t.Errorf("done is %v, want %v", o.done, want)
			}
		})
	}
}

// The latest window is found by halves; step by step it must be the same one.
func TestTheLatestWindowIsTheLastOneThatCame(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2)) // must be repeatable
	policies := []api.BackupPolicy{
		{Schedule: "*/7 3-5 * * *", TimeZone: "Europe/Berlin"}, {Schedule: "0 0 1,15 * *"}, {Schedule: "@every 37m"},
		{Schedule: "30 2 * * 0", TimeZone: "America/New_York"}, {BackupIntervalInSecond: 5000},
	}
	for i := range 400 {
		s := scheduled(t, created, policies[i%len(policies)])
		after := at(t, created).Add(time.Duration(random.Int64N(int64(300 * 24 * time.Hour))))
		until := after.Add(time.Duration(random.Int64N(int64(60 * 24 * time.Hour))))
		var want time.Time
		for w := s.next(after); !w.After(until); w = s.next(w) {
			want = w
		}
		if got := s.latest(after, until); !got.Equal(want) {
			t.Fatalf("%+v: the latest after %s until %s is %s, want %s", policies[i%len(policies)], after, until, got, want)
		}
	}
}
