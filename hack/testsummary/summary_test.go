// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"io"
	"strings"
	"testing"
)

func TestReading(t *testing.T) {
	for _, c := range []struct {
		name   string
		events []string
		want   summary
		says   string // in the output
	}{
		{name: "nothing"},
		{
			name: "subtests count with their test",
			events: []string{
				`{"Action":"run","Package":"p","Test":"TestA"}`,
				`{"Action":"pass","Package":"p","Test":"TestA/one"}`,
				`{"Action":"pass","Package":"p","Test":"TestA/two"}`,
				`{"Action":"pass","Package":"p","Test":"TestA"}`,
				`{"Action":"pass","Package":"p","Elapsed":1.5}`,
			},
			want: summary{passed: 1},
			says: "ok   p",
		},
		{
			name: "the output of a failed test is shown",
			events: []string{
				`{"Action":"output","Package":"p","Test":"TestA","Output":"not shown\n"}`,
				`{"Action":"pass","Package":"p","Test":"TestA"}`,
				`{"Action":"output","Package":"p","Test":"TestB/one","Output":"got 1, want 2\n"}`,
				`{"Action":"fail","Package":"p","Test":"TestB/one"}`,
				`{"Action":"fail","Package":"p","Test":"TestB"}`,
				`{"Action":"fail","Package":"p"}`,
			},
			want: summary{passed: 1, failed: 1},
			says: "got 1, want 2\nFAIL p",
		},
		{
			name: "a package that does not compile has failed",
			events: []string{
				`{"Action":"build-output","ImportPath":"p [p.test]","Output":"syntax error\n"}`,
				`{"Action":"fail","Package":"p","FailedBuild":"p [p.test]"}`,
			},
			want: summary{failed: 1},
			says: "syntax error",
		},
		{
			name: "a package without tests counts nothing",
			events: []string{
				`{"Action":"output","Package":"p","Output":"?   \tp\t[no test files]\n"}`,
				`{"Action":"skip","Package":"p"}`,
			},
		},
		{
			name: "a skipped subtest is counted",
			events: []string{
				`{"Action":"skip","Package":"p","Test":"TestA/one"}`,
				`{"Action":"pass","Package":"p","Test":"TestA"}`,
				`{"Action":"pass","Package":"p"}`,
			},
			want: summary{passed: 1, skipped: 1},
			says: "--- SKIP: TestA/one",
		},
		{
			name: "a package that ends in the middle of a test shows its output",
			events: []string{
				`{"Action":"output","Package":"p","Test":"TestA","Output":"panic: oh\n"}`,
				`{"Action":"fail","Package":"p"}`,
			},
			want: summary{failed: 1},
			says: "panic: oh",
		},
		{
			name:   "a slow test is told of when it ends",
			events: []string{`{"Action":"pass","Package":"p","Test":"TestA/one","Elapsed":41.2}`},
			says:   "pass TestA/one after 41 s",
		},
		{name: "lines of go itself pass through", events: []string{"go: no such tool"}, says: "go: no such tool"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var out strings.Builder
			r := newReading(&out, io.Discard, "/root", false)
			if err := r.read(strings.NewReader(strings.Join(c.events, "\n"))); err != nil {
				t.Fatal(err)
			}
			if r.total != c.want {
				t.Errorf("counted %+v, want %+v", r.total, c.want)
			}
			if !strings.Contains(out.String(), c.says) {
				t.Errorf("printed %q, want %q in it", out.String(), c.says)
			}
		})
	}
}

func TestOutputIsPrintedAsItComes(t *testing.T) {
	var out strings.Builder
	r := newReading(&out, io.Discard, "/root", true)
	events := []string{
		`{"Action":"output","Package":"p","Test":"TestA","Output":"=== RUN   TestA\n"}`,
		`{"Action":"output","Package":"p","Test":"TestA","Output":"    /root/a_test.go:1: one\n"}`,
		`{"Action":"output","Package":"p","Test":"TestB","Output":"    /root/b_test.go:2: two\n"}`,
		`{"Action":"output","Package":"p","Test":"TestA","Output":"--- FAIL: TestA (9.00s)\n"}`,
		`{"Action":"fail","Package":"p","Test":"TestA","Elapsed":9}`,
	}
	if err := r.read(strings.NewReader(strings.Join(events, "\n"))); err != nil {
		t.Fatal(err)
	}
	const want = `=== RUN   TestA
    a_test.go:1: one
=== NAME  TestB
    b_test.go:2: two
--- FAIL: TestA (9.00s)
`
	if out.String() != want {
		t.Errorf("printed\n%s\nwant\n%s", out.String(), want)
	}
}
