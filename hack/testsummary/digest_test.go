// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"
)

// failing is a module whose tests fail in all ways that there are, by file.
var failing = map[string]string{
	"go.mod": "module " + module + "failing\n\ngo 1.26\n",
	"a_reasons/a_test.go": `package reasons
import ("errors"; "fmt"; "testing")
func wait(t *testing.T, ok bool) {
	t.Helper()
	if !ok {
		t.Fatalf("waited 1s for: it; last seen:\n%s\n\n%s", "one", "two")
	}
	t.Logf("note: it after 25ms")
}
func TestPasses(t *testing.T) { t.Log("a log of what passes") }
func TestLogsAndFails(t *testing.T) {
	t.Cleanup(func() {
		t.Log("--- what happened\n    a_test.go:1: a log of another")
		t.Error("cleanup failed")
	})
	t.Logf(
		"a log of %d lines: %s", 3, errors.New("x").Error(),
	)
	t.Errorf("got %d, want %d",
		1, 2)
	fmt.Println("printed")
	for _, ok := range []bool{true, false} {
		wait(t, ok)
	}
}
func TestSubs(t *testing.T) {
	t.Run("good", func(t *testing.T) { t.Log("fine") })
	t.Run("bad", func(t *testing.T) {
		t.Parallel()
		t.Run("deeper", func(t *testing.T) {
			t.Log("before")
			t.Fatal("sub failed")
		})
	})
	t.Run("also", func(t *testing.T) {
		t.Log("between")
		t.Fatal("other sub failed")
	})
}
func TestSilent(t *testing.T) { t.Log("its only log"); t.FailNow() }
func TestSkips(t *testing.T) {
	t.Log("before it")
	t.Skip("no such thing here")
}
`,
	"b_panics/b_test.go": `package panics
import "testing"
func TestPanics(t *testing.T) {
	t.Log("before it")
	var none map[string]int
	none["x"] = 1
}
`,
	"c_hangs/c_test.go": `package hangs
import "testing"
func TestNotBegun(t *testing.T) { t.Parallel() }
func TestHangs(t *testing.T) { t.Log("before it"); select {} }
`,
	"d_builds/d_test.go": "package builds\nimport \"testing\"\nfunc TestIt(t *testing.T) { missing() }\n",
	"e_exits/e_test.go": `package exits
import ("fmt"; "os"; "testing")
func TestMain(m *testing.M) { fmt.Println("no server to be had"); os.Exit(3) }
func TestIt(t *testing.T) {}
`,
}

const want = `TestLogsAndFails (failing/a_reasons)
    a_reasons/a_test.go:19: got 1, want 2
    a_reasons/a_test.go:23: waited 1s for: it; last seen:
      one
      two
    a_reasons/a_test.go:14: cleanup failed
TestSubs/also (failing/a_reasons)
    a_reasons/a_test.go:37: other sub failed
TestSubs/bad/deeper (failing/a_reasons)
    a_reasons/a_test.go:32: sub failed
TestSilent (failing/a_reasons)
    a_reasons/a_test.go:40: its only log
TestSkips (failing/a_reasons)
    a_reasons/a_test.go:43: no such thing here
TestPanics (failing/b_panics)
    panic: assignment to entry in nil map [recovered, repanicked]
      b_panics/b_test.go:6
TestHangs (failing/c_hangs)
    fatal error: all goroutines are asleep - deadlock!
      c_hangs/c_test.go:3
      c_hangs/c_test.go:4
build of failing/d_builds [failing/d_builds.test]
    d_builds/d_test.go:3:29: undefined: missing
tests (failing/e_exits)
    no server to be had
`

// varying are places within a function, which the compiler chooses.
var varying = regexp.MustCompile(` \+0x[0-9a-f]+`)

// The tests are real ones: what they print belongs to Go, and changes with it.
func TestDigestTellsWhyTestsFailed(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range failing {
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	command := exec.CommandContext(t.Context(), "go", "test", "-json", "-fullpath", "-timeout", "0", "-p", "1", "./...")
	command.Dir = dir
	command.Env = append(os.Environ(), "GOWORK=off", "GOFLAGS=")
	events, err := command.Output()
	if err == nil || len(events) == 0 {
		t.Fatalf("%s: %v: %s", command, err, events)
	}
	var told strings.Builder
	r := newReading(io.Discard, &told, dir, false)
	if err := r.read(strings.NewReader(string(events))); err != nil {
		t.Fatal(err)
	}
	if got := varying.ReplaceAllString(told.String(), ""); got != want {
		t.Errorf("told\n%s\nwant\n%s\nof\n%s", got, want, events)
	}
}

func TestDigestTellsRaces(t *testing.T) {
	// As the detector prints it; to run it takes a C compiler.
	const report = `==================
WARNING: DATA RACE
Read at 0x00c000084048 by goroutine 10:
  p.TestRace.func1()
      /root/p/a_test.go:6 +0x7b

Previous write at 0x00c000084048 by goroutine 11:
  p.TestRace.func1()
      /root/p/a_test.go:7 +0x8d

Goroutine 10 (running) created at:
  p.TestRace()
      /root/p/a_test.go:5 +0x7d
==================
    /usr/local/go/src/testing/testing.go:1712: race detected during execution of test
`
	var told strings.Builder
	d := digest{out: &told, sources: sources{}, root: "/root"}
	d.add(module+"p", "TestRace", outputOf("TestRace", report))
	const want = `TestRace (p)
    WARNING: DATA RACE
      Read at 0x00c000084048 by goroutine 10:
        p/a_test.go:6 +0x7b
      Previous write at 0x00c000084048 by goroutine 11:
        p/a_test.go:7 +0x8d
    /usr/local/go/src/testing/testing.go:1712: race detected during execution of test
`
	if told.String() != want {
		t.Errorf("told\n%s\nwant\n%s", &told, want)
	}
}

func TestDigestTellsWhatRanTooLong(t *testing.T) {
	const output = `    a_test.go:1: a log
panic: test timed out after 1h0m0s
	running tests:
		TestA (10m0s)
		TestB (2s)

goroutine 5 [running]:
testing.(*M).startAlarm.func1()
	/usr/local/go/src/testing/testing.go:2802 +0x354

goroutine 8 [chan receive]:
time.Sleep(0x34630b8a000)
	/usr/local/go/src/runtime/time.go:363 +0x165
p.TestA(0x2c0a143ec248?)
	/root/p/a_test.go:9 +0x34
`
	var told strings.Builder
	d := digest{out: &told, sources: sources{}, root: "/root"}
	d.add("p", "TestA", outputOf("TestA", output))
	const want = `TestA (p)
    a_test.go:1: a log
    panic: test timed out after 1h0m0s
      running tests:
      TestA (10m0s)
      TestB (2s)
      p/a_test.go:9 +0x34
`
	if told.String() != want {
		t.Errorf("told\n%s\nwant\n%s", &told, want)
	}
}

func outputOf(test, text string) []line {
	var lines []line
	for l := range strings.Lines(text) {
		lines = append(lines, line{test, l})
	}
	return lines
}

func TestDigestIsShort(t *testing.T) {
	var told strings.Builder
	d := digest{out: &told, sources: sources{}}
	d.add("p", "TestA", outputOf("TestA", strings.Repeat("    a_test.go:1: "+strings.Repeat("ä", 500)+"\n", 20)))
	if !strings.Contains(told.String(), "… 13 lines more\n") {
		t.Errorf("%s\nwant it to tell how much it leaves out", &told)
	}
	lines := strings.Split(strings.TrimSuffix(told.String(), "\n"), "\n")
	if len(lines) != 1+blockLines {
		t.Errorf("%d lines, want a name and %d", len(lines), blockLines)
	}
	for _, l := range lines {
		if n := utf8.RuneCountInString(strings.TrimPrefix(l, margin)); n > lineRunes {
			t.Errorf("a line of %d characters, want at most %d", n, lineRunes)
		}
	}
}

func TestFit(t *testing.T) {
	block := func(name string, lines int) string { return name + "\n" + strings.Repeat(margin+"x\n", lines) }
	for _, c := range []struct {
		name, in string
		limit    int
		want     string
	}{
		{"nothing", "", 10, ""},
		{"all", block("a", 3) + block("b", 1), 10, block("a", 3) + block("b", 1)},
		{"less of the longest", block("a", 8) + block("b", 1), 6, block("a", 3) + block("b", 1)},
		{"each with one line at least", strings.Repeat(block("a", 8), 3), 6, strings.Repeat(block("a", 1), 3)},
		{"not all of them", strings.Repeat(block("a", 8), 5), 6, strings.Repeat(block("a", 1), 3) + "… and 2 more\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var out strings.Builder
			if err := fit(strings.NewReader(c.in), &out, c.limit); err != nil {
				t.Fatal(err)
			}
			if out.String() != c.want {
				t.Errorf("told %q, want %q", out.String(), c.want)
			}
		})
	}
}
