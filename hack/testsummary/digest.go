// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// How much is told of each test.
const (
	blockLines = 8
	lineRunes  = 400
)

// margin is before each line of a block but its first, which is a name.
const margin = "    "

// A digest tells why tests failed: of each a line with its name, and below it, with
// the margin, the few lines that it failed with. It is written as tests fail, so that it
// is there when a run is cut off.
type digest struct {
	out     io.Writer
	sources sources
	root    string
}

// of is the output of one test, without that of its sub-tests.
func (t *test) of(name string) []line {
	return slices.DeleteFunc(slices.Clone(t.lines), func(l line) bool { return l.test != name })
}

// addFailed adds a test and its sub-tests, those of them that have failed, or had begun
// and did not end. It says whether there was any.
func (d *digest) addFailed(pkg string, t *test) bool {
	failed := slices.DeleteFunc(slices.Clone(t.names), func(name string) bool {
		verdict := t.verdict[name]
		// Which is paused has not begun; a sub-test that was skipped is told when it was.
		return verdict == "pass" || verdict == "pause" || verdict == "skip" && strings.Contains(name, "/")
	})
	for _, name := range failed {
		lines := t.of(name)
		below := slices.ContainsFunc(failed, func(other string) bool { return strings.HasPrefix(other, name+"/") })
		if below && len(d.reasons(lines)) == 0 {
			continue // it failed by its sub-test
		}
		d.add(pkg, name, lines)
	}
	return len(failed) > 0
}

// add adds a test, or a package where there is no test to blame.
func (d *digest) add(pkg, name string, lines []line) {
	if name == "" {
		name = "tests"
	}
	told := d.reasons(lines)
	if len(told) == 0 {
		told = last(lines)
	}
	d.block(fmt.Sprintf("%s (%s)", name, strings.TrimPrefix(pkg, module)), told)
}

// addBuild adds what does not compile.
func (d *digest) addBuild(name string, lines []line) {
	var told []string
	for _, l := range lines {
		if text := strings.TrimSpace(l.text); text != "" && !strings.HasPrefix(text, "# ") {
			told = append(told, text)
		}
	}
	d.block("build of "+strings.ReplaceAll(name, module, ""), told)
}

// module is the beginning of the packages' names.
const module = "github.com/etcd-operator/etcd-operator/"

func (d *digest) block(title string, lines []string) {
	fmt.Fprintln(d.out, title)
	if len(lines) > blockLines { // what a command printed tells at its end why it failed
		const before, after = blockLines / 2, blockLines/2 - 1
		between := fmt.Sprintf("… %d lines more", len(lines)-before-after)
		lines = slices.Concat(lines[:before], []string{between}, lines[len(lines)-after:])
	}
	for _, text := range lines {
		if d.root != "" {
			text = strings.ReplaceAll(text, d.root+"/", "")
		}
		if utf8.RuneCountInString(text) > lineRunes {
			text = string([]rune(text)[:lineRunes-1]) + "…"
		}
		fmt.Fprintln(d.out, margin+text)
	}
}

// last is the end of what was printed, where nothing in it tells why.
func last(lines []line) []string {
	var told []string
	for _, l := range lines {
		text := strings.TrimSpace(l.text)
		if text == "" || strings.HasPrefix(text, "=== ") || strings.HasPrefix(text, "--- ") || strings.HasPrefix(text, "FAIL") {
			continue
		}
		told = append(told, text)
	}
	if len(told) == 0 {
		return []string{"it printed nothing"}
	}
	return told[max(0, len(told)-blockLines):]
}

// entry begins what t.Log, t.Error and t.Fatal print.
var entry = regexp.MustCompile(`^    (\S+\.go):(\d+): (.*)$`)

// note begins what a helper logs that is marked as one (t.Helper): its place is that of its caller,
// which tells nothing of what it does.
const note = "note: "

// reasons are the lines that tell why a test failed: what t.Error and t.Fatal print,
// races, and panics. The output doesn't tell t.Log and t.Error apart; the source does.
func (d *digest) reasons(lines []line) []string {
	var told []string
	const (
		none   = iota
		kept   // within an entry that tells why
		race   // within the report of a race
		trace  // within the goroutines after a panic
		header // right after the first line of a panic
	)
	state, frames := none, 0
	for _, l := range lines {
		text := strings.TrimRight(l.text, "\n")
		found := entry.FindStringSubmatch(text)
		switch {
		case strings.HasPrefix(text, "WARNING: DATA RACE"):
			state = race
			told = append(told, text)
		case panicked(text):
			state = header
			told = append(told, text)
		case state == race:
			switch {
			case strings.HasPrefix(text, "====="):
				state = none
			case strings.HasPrefix(text, "Goroutine "):
				frames = raceFrames // where it was started tells less
			case text != "" && !strings.HasPrefix(text, " "):
				frames = 0
				told = append(told, "  "+text)
			case frames < raceFrames && d.ours(text):
				frames++
				told = append(told, margin+strings.TrimSpace(text))
			}
		case found != nil:
			state = none
			number, _ := strconv.Atoi(found[2])
			if !strings.HasPrefix(found[3], note) && !d.sources.logs(found[1], number) {
				state = kept
				told = append(told, strings.TrimSpace(text))
			}
		case state == kept && strings.HasPrefix(text, margin+margin):
			if text = text[2*len(margin):]; strings.TrimSpace(text) != "" {
				told = append(told, "  "+text)
			}
		case state == header && strings.HasPrefix(text, "goroutine "):
			state = trace
		case state == header:
			if strings.TrimSpace(text) != "" {
				told = append(told, "  "+strings.TrimSpace(text))
			}
		case state == trace:
			if d.ours(text) {
				told = append(told, "  "+strings.TrimSpace(text))
			}
		default:
			state = none
		}
	}
	return told
}

// raceFrames are told of each access that raced.
const raceFrames = 2

// ours tells whether a line of a stack is a place in our own code.
func (d *digest) ours(text string) bool {
	return strings.HasPrefix(strings.TrimSpace(text), d.root+"/")
}

func panicked(text string) bool {
	return strings.HasPrefix(text, "panic: ") || strings.HasPrefix(text, "fatal error: ") || strings.HasPrefix(text, "SIG")
}

func panics(lines []line) bool {
	return slices.ContainsFunc(lines, func(l line) bool { return panicked(l.text) })
}

// fit prints digests, and less of each test where all of them are too long.
func fit(in io.Reader, out io.Writer, limit int) error {
	var blocks [][]string
	scanner := bufio.NewScanner(in)
	scanner.Buffer(nil, 1<<20)
	for scanner.Scan() {
		text := scanner.Text()
		if !strings.HasPrefix(text, margin) || len(blocks) == 0 {
			blocks = append(blocks, nil)
		}
		blocks[len(blocks)-1] = append(blocks[len(blocks)-1], text)
	}
	if err := scanner.Err(); err != nil {
		return err
	}
	if len(blocks) == 0 {
		return nil
	}
	var more int
	if fits := limit / 2; len(blocks) > fits {
		more = len(blocks) - fits
		blocks = blocks[:fits]
	}
	for _, block := range blocks {
		fmt.Fprintln(out, strings.Join(block[:min(len(block), longest(blocks, limit))], "\n"))
	}
	if more > 0 {
		fmt.Fprintf(out, "… and %d more\n", more)
	}
	return nil
}

// longest is how many lines of each block fit into the limit.
func longest(blocks [][]string, limit int) int {
	for each := blockLines + 1; ; each-- {
		total := 0
		for _, block := range blocks {
			total += min(len(block), each)
		}
		if total <= limit || each <= 2 {
			return each
		}
	}
}
