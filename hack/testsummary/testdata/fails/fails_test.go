// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package fails

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
)

func wait(t *testing.T, ok bool) {
	t.Helper()
	if !ok {
		t.Fatalf("waited 1s for: it; last seen:\n%s\n\n%s", "one", "two")
	}
	t.Logf("note: it after 25ms")
}

func TestPasses(t *testing.T) { t.Log("a log of a test that passes") }

func TestLogsAndFails(t *testing.T) {
	t.Cleanup(func() { t.Log(errors.New("--- what happened\n    a_test.go:1: a log of another").Error()) })
	t.Errorf("got %d, want %d",
		1, 2)
	func() { t.Log("before"); t.Error("on the line of a log") }()
	fmt.Println("printed")
	wait(t, true)
	wait(t, false)
}

func TestSubs(t *testing.T) {
	t.Log("before")
	t.Run("passes", func(t *testing.T) { t.Log("fine") })
	t.Run("fails", func(t *testing.T) { t.Error("sub failed") })
}

func TestSubSkips(t *testing.T) {
	t.Run("sub", func(t *testing.T) { t.Skip("no such thing here") })
}

func TestSkips(t *testing.T) { t.Skip("nowhere") }

func TestSilent(t *testing.T) {
	t.Log("its only log")
	t.FailNow()
}

func TestLong(t *testing.T) {
	t.Error(strings.Repeat("ä", 1000) + strings.Repeat("\nx", 20) + "\nlast")
}

// As the detector prints it; to run that takes a C compiler.
func TestRaces(t *testing.T) {
	dir, _ := os.Getwd()
	fmt.Printf(`==================
WARNING: DATA RACE
Read at 0x00c000084048 by goroutine 10:
  p.TestRace.func1()
      %[1]s/a_test.go:6 +0x7b
  testing.tRunner()
      /usr/local/go/src/testing/testing.go:1934 +0x21c

Previous write at 0x00c000084048 by goroutine 11:
  p.TestRace.func1()
      %[1]s/a_test.go:7 +0x8d
==================
`, dir)
	t.Fail()
}
