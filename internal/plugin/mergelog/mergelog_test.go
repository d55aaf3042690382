// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package mergelog

import (
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"
)

func TestLinesAreMergedByTime(t *testing.T) {
	sources := []Source{
		{"a", strings.NewReader("2026-11-22T12:00:01.5Z one\n2026-11-22T12:00:03Z three\n  and more\n2026-11-22T12:00:09Z last")},
		{"bb", strings.NewReader("2026-11-22T12:00:01.25Z zero\n2026-11-22T12:00:02Z two\n2026-11-22T12:00:04Z four\n")},
		{"c", strings.NewReader("")},
	}
	var out strings.Builder
	if err := Merge(t.Context(), &out, sources); err != nil {
		t.Fatal(err)
	}
	const want = `bb  2026-11-22T12:00:01.25Z zero
a   2026-11-22T12:00:01.5Z one
bb  2026-11-22T12:00:02Z two
a   2026-11-22T12:00:03Z three
a     and more
bb  2026-11-22T12:00:04Z four
a   2026-11-22T12:00:09Z last
`
	if out.String() != want {
		t.Errorf("merged\n%s\nwant\n%s", out.String(), want)
	}
}

func TestAFailureNamesTheSource(t *testing.T) {
	broken := io.MultiReader(strings.NewReader("2026-11-22T12:00:01Z one\n"), iotest.ErrReader(errors.New("connection lost")))
	for name, merge := range map[string]func() error{
		"merge": func() error { return Merge(t.Context(), io.Discard, []Source{{"a", broken}}) },
		"follow": func() error {
			return Follow(t.Context(), io.Discard, []Source{{"a", iotest.ErrReader(errors.New("connection lost"))}}, func(string) {})
		},
	} {
		if err := merge(); err == nil || err.Error() != "log of a: connection lost" {
			t.Errorf("%s: the error is %v", name, err)
		}
	}
}

func TestAFailureHidesNoLineOfAnother(t *testing.T) {
	broken := io.MultiReader(strings.NewReader("2026-11-22T12:00:01Z one\n"), iotest.ErrReader(errors.New("connection lost")))
	var out strings.Builder
	err := Merge(t.Context(), &out, []Source{{"a", broken}, {"b", iotest.ErrReader(errors.New("no node"))}, {"c", strings.NewReader("2026-11-22T12:00:02Z two\n")}})
	if err == nil || err.Error() != "log of b: no node\nlog of a: connection lost" {
		t.Errorf("the error is %v", err)
	}
	if want := "a  2026-11-22T12:00:01Z one\nc  2026-11-22T12:00:02Z two\n"; out.String() != want {
		t.Errorf("merged %q, want %q", out.String(), want)
	}
}

func TestFollowedLinesAreWrittenAsTheyCome(t *testing.T) {
	early, write := io.Pipe()
	silent, end := io.Pipe()
	out, lines := io.Pipe()
	done := make(chan error, 1)
	ends := make(chan string, 2)
	go func() {
		done <- Follow(t.Context(), lines, []Source{{"a", early}, {"b", silent}}, func(name string) { ends <- name })
		lines.Close()
	}()
	go func() { _, _ = io.WriteString(write, "2026-11-22T12:00:01Z one\n") }()
	got := make([]byte, len("a  2026-11-22T12:00:01Z one\n"))
	if _, err := io.ReadFull(out, got); err != nil || string(got) != "a  2026-11-22T12:00:01Z one\n" {
		t.Errorf("it wrote %q, %v", got, err)
	}
	write.Close()
	if name := <-ends; name != "a" {
		t.Errorf("the log of %s has ended first", name)
	}
	end.Close()
	if err := <-done; err != nil {
		t.Error(err)
	}
}
