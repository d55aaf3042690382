// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package selection

import (
	"slices"
	"strings"
	"testing"
	"time"
)

func at(text string) time.Time {
	t, err := time.Parse("Jan 2 15:04", text)
	if err != nil {
		return time.Time{}
	}
	return t
}

func TestBackupsAreTriedNewestFirst(t *testing.T) {
	backups := []candidate{
		{"noon", 90, at("Jan 1 12:00"), at("Jan 1 12:01")},
		{"morning", 100, at("Jan 1 08:00"), at("Jan 1 08:01")}, // before a restore to an earlier state
		{"evening", 95, at("Jan 1 20:00"), at("Jan 1 20:01")},
		{"copied", 80, at("Jan 1 04:00"), at("Jan 3 10:00")},
		{"clock ahead", 70, at("Jan 9 00:00"), at("Jan 1 02:00")},
		{"no time of the store", 60, at("Jan 1 01:00"), time.Time{}},
		{"evening again", 96, at("Jan 1 20:00"), at("Jan 1 20:02")},
	}
	for _, c := range []struct {
		before time.Time
		want   string
	}{
		{time.Time{}, "evening again, evening, noon, morning, copied, clock ahead, no time of the store"},
		{at("Jan 1 20:00"), "evening again, evening, noon, morning, copied, clock ahead, no time of the store"},
		{at("Jan 1 19:59"), "noon, morning, copied, clock ahead, no time of the store"},
		{at("Jan 1 03:00"), "clock ahead, no time of the store"},
		{at("Jan 1 00:59"), ""},
	} {
		var got []string
		for _, b := range newestFirst(backups, c.before) {
			got = append(got, b.key)
		}
		if got := strings.Join(got, ", "); got != c.want {
			t.Errorf("before %s: got  %s\nwant %s", c.before, got, c.want)
		}
	}
}

// Each backup is a letter and its revision; an uncertain one has a question mark.
func TestABackupWithoutAQuorumDoesNotHideOneThatHoldsMore(t *testing.T) {
	for _, c := range []struct {
		about, newestFirst, want string
	}{
		{"all are certain", "c30 b20 a10", "c30 b20 a10"},
		{"the newest is the most advanced", "c30? b20 a10", "c30? b20 a10"},
		{"it knows as much as the one before", "c20? b20 a10", "c20? b20 a10"},
		{"it knows less than the one before", "c15? b20 a10", "b20 c15? a10"},
		{"it knows less than the two before", "c5? b20 a10", "b20 a10 c5?"},
		{"two, one of which knows less", "d25? c15? b20 a10", "d25? b20 c15? a10"},
		{"two, of which the older knows more", "d25? c28? b20", "c28? d25? b20"},
		{"after a restore the revision is lower", "d32? c30 b100 a90", "d32? c30 b100 a90"},
		{"the same, and it knows less than the one before", "d29? c30 b100 a20", "c30 b100 d29? a20"},
		{"all are uncertain", "c10? b30? a20?", "b30? a20? c10?"},
		{"one that is uncertain", "a10?", "a10?"},
		{"there is none", "", ""},
	} {
		var q queue
		var got []string
		take := func(list []candidate) {
			for _, b := range list {
				got = append(got, b.key)
			}
		}
		for _, word := range strings.Fields(c.newestFirst) {
			digits, uncertain := strings.CutSuffix(word[1:], "?")
			var revision int64
			for _, d := range digits {
				revision = revision*10 + int64(d-'0')
			}
			take(q.add(candidate{key: word, revision: revision}, uncertain))
		}
		take(q.rest())
		if !slices.Equal(got, strings.Fields(c.want)) {
			t.Errorf("%s: %s are tried as %s, want %s", c.about, c.newestFirst, strings.Join(got, " "), c.want)
		}
	}
}
