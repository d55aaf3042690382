// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package backup

import (
	"fmt"
	"strings"
	"time"
	_ "time/tzdata" // images without a file system of their own lack the time zones

	"github.com/robfig/cron/v3"

	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

// schedule shows the windows of an EtcdBackup: the moments from which on a backup
// is due, until the next one begins. They are whole seconds. They follow from the
// spec and the time of creation alone, so that a restart of the operator moves
// none.
type schedule struct {
	// from is the creation of the EtcdBackup. No window is before it.
	from time.Time
	// every is from window to window; 0 where a cron expression decides.
	every time.Duration
	// atOnce is true where from itself is a window.
	atOnce bool
	cron   cron.Schedule // asked in UTC alone, see next
	zone   *time.Location
}

// scheduleOf returns the schedule of a spec, nil where a backup is made once. The
// error says what in the spec can't be followed.
func scheduleOf(obj *api.EtcdBackup) (*schedule, error) {
	s := &schedule{from: obj.CreationTimestamp.UTC().Truncate(time.Second)}
	expression, zone := obj.Spec.Schedule()
	switch {
	case obj.Spec.Interval() > 0:
		s.every, s.atOnce = obj.Spec.Interval(), true
		return s, nil
	case expression == "":
		return nil, nil
	}
	var err error
	if s.zone, err = timeZone(zone); err != nil {
		return nil, err
	}
	if text, isEvery := strings.CutPrefix(expression, "@every "); isEvery {
		// To the library that is a delay from the last run; here windows do not
		// move, like those of an interval.
		every, err := time.ParseDuration(strings.TrimSpace(text))
		if err != nil || every < time.Second {
			return nil, fmt.Errorf(`spec.backupPolicy.schedule is %q: after @every must come a duration of one second or more, such as "@every 90m"`, expression)
		}
		s.every = every.Truncate(time.Second)
		return s, nil
	}
	if strings.Contains(expression, "TZ") { // the library would take it
		return nil, fmt.Errorf("spec.backupPolicy.schedule is %q: it must not name a time zone: timeZone does", expression)
	}
	if s.cron, err = cron.ParseStandard(expression); err != nil {
		return nil, fmt.Errorf(`spec.backupPolicy.schedule is %q: %w; it must be five fields (minute, hour, day of month, month, day of week) such as "0 */6 * * *", or @daily or the like`, expression, err)
	}
	// A leap year after another, for 29 February.
	if s.cron.Next(time.Date(2023, 12, 31, 0, 0, 0, 0, time.UTC)).IsZero() {
		return nil, fmt.Errorf("spec.backupPolicy.schedule is %q: that time never comes", expression)
	}
	return s, nil
}

func timeZone(zone string) (*time.Location, error) {
	if zone == "" {
		return time.UTC, nil
	}
	// "Local" would be the zone of whatever node the operator runs on.
	loc, err := time.LoadLocation(zone)
	if err != nil || zone == "Local" {
		return nil, fmt.Errorf("spec.backupPolicy.timeZone is %q, which is no time zone of the IANA database: it must be one such as Europe/Berlin, or UTC", zone)
	}
	return loc, nil
}

// next is the first window after a moment; the zero time where there is none.
func (s *schedule) next(after time.Time) time.Time {
	switch {
	case s.atOnce && after.Before(s.from):
		return s.from
	case after.Before(s.from):
		after = s.from
	}
	if s.every > 0 {
		return s.from.Add((after.Sub(s.from)/s.every + 1) * s.every)
	}
	// Between two changes of the zone's clocks, they are as far from UTC as ever.
	// The library is asked in such a period alone: what it does about changes
	// loses days in zones that change at midnight. Clocks that are set back show
	// some times twice, and each of them counts.
	for t := after.Truncate(time.Second).Add(time.Second); ; {
		offset := offsetOf(t.In(s.zone))
		shown := s.cron.Next(t.UTC().Add(offset - time.Second)) // by the zone's clocks, as if they were UTC
		if shown.IsZero() {
			return time.Time{}
		}
		window := shown.Add(-offset)
		_, change := t.In(s.zone).ZoneBounds()
		if change.IsZero() || window.Before(change) {
			return window
		}
		// A time that the clocks skip when they are set forward counts as the
		// moment at which they are.
		if shown.Before(change.UTC().Add(offsetOf(change))) {
			return change.UTC()
		}
		t = change
	}
}

// latest is the last window after one moment and not after another; the zero time
// where there is none.
func (s *schedule) latest(after, until time.Time) time.Time {
	ends := func(t time.Time) bool {
		w := s.next(t)
		return w.IsZero() || w.After(until)
	}
	if ends(after) {
		return time.Time{}
	}
	// Windows may be seconds or years apart, and a schedule may have rested for
	// long: the last moment that a window follows is found by halves.
	low, high := after, until
	for high.Sub(low) > time.Second {
		middle := low.Add(high.Sub(low) / 2)
		if ends(middle) {
			high = middle
		} else {
			low = s.next(middle)
			if ends(low) {
				return low
			}
		}
	}
	return s.next(low)
}

// outlook is what a schedule says at a moment.
type outlook struct {
	// due is the window that a backup is wanted for, the zero time where none is.
	// Of several that were missed it is the last.
	due time.Time
	// next is the first window to come.
	next time.Time
	// done is the last window that was done, as it is to be recorded: the clock
	// that it was recorded by may have been wrong.
	done *time.Time
}

// look shows what is due, where done is the window of the last backup; nil: there
// was none.
func (s *schedule) look(done *time.Time, now time.Time) outlook {
	if done == nil {
		o := outlook{due: s.latest(s.from.Add(-time.Second), now), next: s.next(now)}
		if s.atOnce && now.Before(s.from) {
			// The API server's clock is ahead: at once is now.
			o.due, o.next = s.from, s.next(s.from)
		}
		return o
	}
	if !done.After(now) {
		return outlook{due: s.latest(*done, now), next: s.next(now), done: done}
	}
	// The clock was set back. If the window that was done is the next to come, it
	// must not be done again. If it is further away, what was recorded says nothing
	// about the windows until then.
	next := s.next(now)
	if next.IsZero() || !done.After(next) {
		return outlook{next: s.next(*done), done: done}
	}
	last := s.latest(s.from.Add(-time.Second), now)
	if last.IsZero() {
		last = s.from
	}
	return outlook{next: next, done: &last}
}

func offsetOf(t time.Time) time.Duration {
	_, seconds := t.Zone()
	return time.Duration(seconds) * time.Second
}
