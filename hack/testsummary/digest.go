// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"gotest.tools/gotestsum/testjson"
)

// maxLines is how many lines the digest has of one test.
const maxLines = 8

var (
	// framing is a line of go test itself.
	framing = regexp.MustCompile(`^\s*(=== |--- |FAIL|PASS|$)`)
	// entry begins what t.Log, t.Error, t.Fatal and t.Skip print.
	entry = regexp.MustCompile(`^    (\S+\.go):(\d+): (.*)`)
	// crash begins a panic, a fatal error, a race, and its two accesses.
	crash  = regexp.MustCompile(`^(panic: |fatal error: |WARNING: DATA RACE|(Read|Write|Previous (read|write)) at 0x)`)
	module = regexp.MustCompile(`(?m)^module (\S+)`)
	// logs and states are source lines that call t.Log, and t.Error or its like.
	logs   = regexp.MustCompile(`\.Logf?\(`)
	states = regexp.MustCompile(`\.(Error|Fatal|Skip)f?\([^)]`)
)

// A digest has a few lines for each failure: a name, and below it, indented, the reasons. It
// is written as tests fail, so that even an interrupted run has one.
type digest struct {
	out  io.Writer
	root string // the directory of our code
	// trimmed is a place in our code that was compiled with -trimpath; nil without a module.
	trimmed *regexp.Regexp
}

// newDigest returns a digest of the tests of the module in a directory, and of those below it.
func newDigest(out io.Writer, root string) *digest {
	d := &digest{out: out, root: root}
	text, _ := os.ReadFile(filepath.Join(root, "go.mod"))
	if found := module.FindSubmatch(text); found != nil {
		d.trimmed = regexp.MustCompile(`(?m)^(\s*)` + regexp.QuoteMeta(string(found[1])) + `/(\S+\.go:\d+)`)
	}
	return d
}

// add adds what the event ends without success, and the output of a build.
func (d *digest) add(e testjson.TestEvent, x *testjson.Execution) error {
	if e.Action == testjson.ActionBuild { // it begins with "# " and what is built
		text := "    " + strings.ReplaceAll(strings.TrimSpace(e.Output), "\n", "\n    ")
		return d.write(strings.Split(strings.Replace(text, "    # ", "build of ", 1), "\n")...)
	}
	text, failed := failure(e, x)
	if !failed {
		return nil
	}
	if d.trimmed != nil {
		text = d.trimmed.ReplaceAllString(text, "${1}"+d.root+"/$2")
	}
	lines := d.stated(text)
	below := slices.ContainsFunc(x.Package(e.Package).Failed, func(other testjson.TestCase) bool {
		return strings.HasPrefix(other.Test.Name(), e.Test+"/")
	})
	if len(lines) == 0 && !below { // else the sub-test has the reason
		lines = slices.DeleteFunc(strings.Split(text, "\n"), framing.MatchString)
		lines = lines[max(0, len(lines)-maxLines):]
	}
	if len(lines) == 0 {
		return nil
	}
	if len(lines) > maxLines { // a command prints its error at the end
		lines = slices.Concat(lines[:maxLines/2], []string{"    …"}, lines[len(lines)-maxLines/2+1:])
	}
	for i, line := range lines {
		lines[i] = "    " + strings.TrimPrefix(line, "    ")
	}
	title := fmt.Sprintf("%s (%s)", cmp.Or(e.Test, "tests"), testjson.RelativePackagePath(e.Package))
	return d.write(append([]string{title}, lines...)...)
}

func (d *digest) write(lines ...string) error {
	var b strings.Builder
	for _, line := range lines {
		fmt.Fprintf(&b, "%.400s\n", strings.ReplaceAll(line, d.root+"/", ""))
	}
	_, err := io.WriteString(d.out, b.String())
	return err
}

// stated returns what t.Error, t.Fatal and t.Skip print, panics, and races, with the
// places in our code.
func (d *digest) stated(text string) []string {
	var found []string
	kept := false // within an entry that states a reason
	for _, line := range strings.Split(text, "\n") {
		at := entry.FindStringSubmatch(line)
		if at != nil {
			kept = !logged(at[1], at[2], at[3])
		} else {
			kept = kept && strings.HasPrefix(line, "        ")
		}
		place := at == nil && strings.HasPrefix(strings.TrimSpace(line), d.root+"/")
		if kept && strings.TrimSpace(line) != "" || place || crash.MatchString(line) {
			found = append(found, line)
		}
	}
	return found
}

// logged reports whether t.Log printed an entry, and not t.Error or its like. Go 1.26 does not
// mark them, but -fullpath names the call. For a helper (t.Helper), the place is its caller's:
// test/harness marks its helpers' logs.
func logged(file, number, message string) bool {
	if strings.HasPrefix(message, "note: ") {
		return true
	}
	source, _ := os.ReadFile(file) // without it, every entry is a reason
	lines := strings.Split(string(source), "\n")
	n, err := strconv.Atoi(number)
	return err == nil && 0 < n && n <= len(lines) && logs.MatchString(lines[n-1]) && !states.MatchString(lines[n-1])
}
