// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

//go:debug randseednop=0
package simulation

import (
	"cmp"
	"flag"
	"os"
	"runtime"
	"runtime/debug"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"go.etcd.io/raft/v3"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/klog/v2"
)

var (
	seedFlag  = flag.Int64("seed", -1, "live the life of this seed alone, and print it")
	firstFlag = flag.Uint64("first", 1, "the first seed")
	seedsFlag = flag.Uint64("seeds", 0, "how many seeds; 0: a few")
	forFlag   = flag.Duration("for", 0, "live lives for this long")
	// A failure is found again by its seed, so that it pays to make it small.
	shrinkFlag = flag.Duration("shrink", time.Minute, "how long to make the first failure smaller; 0: not")
	stopFlag   = flag.Bool("stop", false, "end at the first failure")
	traceAll   = false
)

func TestMain(m *testing.M) {
	flag.BoolVar(&traceAll, "trace", false, "print everything")
	flag.Parse()
	raft.SetLogger(quiet{})
	klog.SetLogger(logr.Discard())
	utilruntime.ErrorHandlers = nil // they would delay other lives
	runtime.GOMAXPROCS(1)           // one goroutine runs at a time; more processors only cost time
	debug.SetGCPercent(200)         // a larger heap falls out of the processor's caches
	os.Exit(m.Run())
}

func TestAClusterForms(t *testing.T) {
	began := time.Now()
	r := live(t, life{seed: 1}, true)
	t.Logf("%s after %s of its time and %s of ours; clients made %v requests; %d writes in a minute at most", r.ended, r.lasted, time.Since(began), r.clients, r.mostWrote)
	if r.failure != "" || r.ended != "as specified" || testing.Verbose() {
		t.Log(strings.Join(r.lines, "\n"))
	}
	if r.failure != "" || r.ended != "as specified" {
		t.Error(r.failure)
	}
}

// TestASeedLivesTheSameLifeTwice ensures that failures are reproducible. Go preempts a goroutine after
// ten milliseconds of real time, in which it may have had no processor. That changes the order of those
// that run at one virtual moment, rarely, on a machine under load. What depends on the order of a map,
// or on a real clock, differs in each life. So one life of three may differ.
func TestASeedLivesTheSameLifeTwice(t *testing.T) {
	for seed := *firstFlag; seed < *firstFlag+min(cmp.Or(*seedsFlag, 4), 4); seed++ {
		for _, l := range []life{{seed: seed}, {seed: seed, aimed: true}, {seed: seed, backups: true}, {seed: seed, imports: true}, {seed: seed, storms: 2}} {
			one, two := live(t, l, false), live(t, l, false)
			if one.hash == two.hash {
				continue
			}
			if three := live(t, l, false); three.hash == one.hash || three.hash == two.hash {
				continue
			}
			t.Errorf("seed %d, aimed %t, backups %t, imports %t: three lives", seed, l.aimed, l.backups, l.imports)
			for i := range one.lines {
				if i >= len(two.lines) || one.lines[i] != two.lines[i] {
					t.Logf("they part here:\n%s\n%s", strings.Join(one.lines[max(0, i-3):min(len(one.lines), i+3)], "\n"), strings.Join(two.lines[max(0, i-3):min(len(two.lines), i+3)], "\n"))
					break
				}
			}
		}
	}
}

// TestLives runs as many lives as the flags say.
func TestLives(t *testing.T) {
	liveAll(t, cmp.Or(*seedsFlag, 80), func(seed uint64) life { return life{seed: seed} })
}

// TestAimedLives runs lives in which rare coincidences happen, each in turn.
func TestAimedLives(t *testing.T) {
	liveAll(t, cmp.Or(*seedsFlag, uint64(len(aims))), func(seed uint64) life { return life{seed: seed, aimed: true} })
}

// TestBackupLives runs lives in which the operators of backups and restores take part.
func TestBackupLives(t *testing.T) {
	liveAll(t, cmp.Or(*seedsFlag, 10), func(seed uint64) life { return life{seed: seed, backups: true} })
}

// TestLongLives runs lives with several storms. Each storm begins with a cluster that has been
// through the ones before, and costs less than a new life.
func TestLongLives(t *testing.T) {
	liveAll(t, cmp.Or(*seedsFlag, 4), func(seed uint64) life { return life{seed: seed, storms: 12} })
}

// TestImportLives runs lives in which the cluster imports a running etcd.
func TestImportLives(t *testing.T) {
	liveAll(t, cmp.Or(*seedsFlag, 10), func(seed uint64) life { return life{seed: seed, imports: true} })
}

func liveAll(t *testing.T, n uint64, of func(seed uint64) life) {
	t.Helper()
	began := time.Now()
	first := *firstFlag
	if *seedFlag >= 0 {
		first, n = uint64(*seedFlag), 1 // not negative
	}
	ends := map[string]int{}
	lived, storms, failed, struck := 0, 0, 0, 0
	for seed := first; seed < first+n || *forFlag > 0; seed++ {
		if *forFlag > 0 && time.Since(began) > *forFlag {
			break
		}
		r := live(t, of(seed), false)
		lived++
		struck += r.struck
		storms += r.storms
		if lived%1000 == 0 {
			t.Logf("%d lives with %d fault steps in %s so far, %d failed", lived, struck, time.Since(began).Round(time.Second), failed)
		}
		end, _, _ := strings.Cut(r.ended, ":")
		ends[end]++
		if *seedFlag >= 0 {
			t.Log(strings.Join(r.lines, "\n"))
		}
		if r.failure != "" {
			failed++
			t.Errorf("seed %d after %s (faults: %d): %s", seed, r.lasted, len(r.faults), r.failure)
			if failed == 1 && *shrinkFlag > 0 {
				small := shrink(t, r, *shrinkFlag)
				t.Logf("seed %d with %d faults:\n%s", seed, len(small.faults), strings.Join(small.lines, "\n"))
			}
			if *stopFlag {
				break
			}
		}
	}
	t.Logf("%d lives with %d storms and %d fault steps in %s, %d failed: %v", lived, storms, struck, time.Since(began).Round(time.Millisecond), failed, ends)
}
