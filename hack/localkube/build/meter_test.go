// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package build

import (
	"fmt"
	"io"
	"testing"
	"time"
)

func TestTheRestIsEstimatedFromWhatThisMachineDid(t *testing.T) {
	now := time.Unix(0, 0)
	m := newMeter(io.Discard, 2)
	m.now = func() time.Time { return now }
	if got, want := m.String(), "downloading modules"; got != want {
		t.Errorf("before the survey: %q, want %q", got, want)
	}
	first, second := work{}, work{}
	for i := range 50 {
		first[fmt.Sprintf("a/%d", i)] = 100
		second[fmt.Sprintf("b/%d", i)] = 100
	}
	second["a/0"] = 100 // compiled once
	m.expect(first)
	m.expect(second)
	if got, want := m.String(), "0 % compiled"; got != want {
		t.Errorf("at the start: %q, want %q", got, want)
	}
	for i := range 25 {
		if !m.begun(fmt.Sprintf("a/%d", i)) {
			t.Errorf("a/%d was not expected", i)
		}
		m.begun(fmt.Sprintf("a/%d", i)) // as the second component's build may say
	}
	if m.begun("# what the compiler says") {
		t.Error("an error was taken for a package")
	}
	now = now.Add(time.Minute)
	if got, want := m.String(), "25 % compiled, about 3m0s left on this machine"; got != want {
		t.Errorf("after a quarter: %q, want %q", got, want)
	}
	for path := range first {
		m.begun(path)
	}
	for path := range second {
		m.begun(path)
	}
	if got, want := m.String(), "100 % compiled, less than 20s left"; got != want {
		t.Errorf("in the end: %q, want %q", got, want)
	}
}
