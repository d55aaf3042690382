// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package etcd

import (
	"errors"
	"fmt"
	"strings"

	"github.com/blang/semver/v4"
)

// ErrUnsupportedVersion is wrapped by the errors of ParseVersion for a version
// that is well formed but that no release of this operator can run.
var ErrUnsupportedVersion = errors.New("unsupported etcd version")

// Version is a release of etcd such as 3.6.16.
type Version struct{ semver.Version }

// ParseVersion reads a version with or without a leading v. It accepts etcd 3.1
// and later 3.x releases: older ones have no v3 data model to take care of,
// later majors don't exist yet.
func ParseVersion(s string) (Version, error) {
	v, err := semver.Parse(strings.TrimPrefix(s, "v"))
	if err != nil {
		return Version{}, fmt.Errorf("etcd version %q is not of the form MAJOR.MINOR.PATCH, such as 3.6.16: %w", s, err)
	}
	if v.Major != 3 || v.Minor < 1 {
		return Version{}, fmt.Errorf("%w %q: use a 3.x release, 3.1 or later", ErrUnsupportedVersion, s)
	}
	return Version{v}, nil
}

// atLeast compares the release alone, so that 3.6.0-rc.1 has what 3.6.0 has.
func (v Version) atLeast(minor uint64) bool {
	return v.Minor >= minor
}

// HasLearners tells whether a member can join without a vote first
// (https://etcd.io/docs/v3.4/learning/design-learner/).
func (v Version) HasLearners() bool { return v.atLeast(4) }

// HasAppliedIndex tells whether members report the last entry that they have applied
// apart from the last one that they have logged.
func (v Version) HasAppliedIndex() bool { return v.atLeast(4) }

// HasMaxLearners tells whether --max-learners exists, and with it
// ETCD_MAX_LEARNERS: before 3.6 a cluster holds one learner at a time.
func (v Version) HasMaxLearners() bool { return v.atLeast(6) }

// LooksUpItself reports whether a member resolves its own peer URL when it starts, although
// the URL stands in --initial-cluster letter by letter. 3.5.6 was the first that does not
// (https://github.com/etcd-io/etcd/pull/14572).
func (v Version) LooksUpItself() bool {
	if v.Minor == 5 {
		return v.Patch < 6
	}
	return !v.atLeast(5)
}

// HasMetricsListener tells whether --listen-metrics-urls exists.
func (v Version) HasMetricsListener() bool { return v.atLeast(3) }

// HasLivez tells whether the metrics listener serves /livez and /readyz. They
// came with 3.6 and were carried to 3.5.11 and 3.4.29
// (https://etcd.io/docs/v3.5/op-guide/monitoring/).
func (v Version) HasLivez() bool {
	switch v.Minor {
	case 4:
		return v.Patch >= 29
	case 5:
		return v.Patch >= 11
	default:
		return v.Minor >= 6
	}
}

// upgradeFloors are the oldest patch releases from which the next minor can be
// reached by a rolling upgrade. 3.5: members older than 3.5.20 may hold learners
// promoted in the v2 store alone, which 3.6 sees as learners again
// (https://etcd.io/docs/v3.6/upgrades/upgrade_3_6/). 3.6: see
// https://etcd.io/docs/v3.7/upgrades/upgrade_3_7/.
var upgradeFloors = map[uint64]uint64{5: 20, 6: 11}

// ReplayableFrom is the oldest minor whose log entries this version can replay
// when it starts; 0: any. etcd 3.7 ends with "unmarshal should never fail" on
// entries that members before 3.6 wrote: 3.6 still reads the v2 form of requests
// in applyEntryNormal (server/etcdserver/server.go), 3.7 does not.
func (v Version) ReplayableFrom() uint64 {
	if v.atLeast(7) {
		return 6
	}
	return 0
}

// CheckOrigin tells whether a cluster that was bootstrapped with one version can
// be upgraded to another. Clusters that began with 3.4 reach 3.5; the first
// member of 3.6 then ends with a panic over entries of its log, and others were
// seen to end with it (etcd-io/etcd#20809 tells of such an entry).
func CheckOrigin(first, to Version) error {
	if first.Minor < 5 && to.Minor >= 6 {
		return fmt.Errorf("a cluster that began with etcd %s can't be upgraded to %s: its members would not start; make a new cluster of %s and copy the data", first, to, to)
	}
	return nil
}

// SnapshotCount is after how many entries a member takes a snapshot of its raft
// state, from which a restart goes on. It is the default of 3.6 and later; the
// operator sets it for older ones as well.
const SnapshotCount = 10000

// CheckChange tells whether members that run from can be restarted one by one
// as to, and if not, why and what to do. from is the lowest version among the
// members: as long as one of them runs the old minor, the cluster's version is
// the old minor and etcd allows the others to go back to it
// (https://etcd.io/docs/v3.6/upgrades/upgrading-etcd/).
func CheckChange(from, to Version) error {
	switch {
	case from.Major == to.Major && from.Minor == to.Minor:
		return nil
	case to.LT(from.Version):
		return fmt.Errorf("etcd can't be downgraded from %s to %s: set the version back to %s, or restore a backup into a new cluster", from, to, from)
	case to.Minor > from.Minor+1:
		return fmt.Errorf("etcd can't go from %s to %s: minor versions can't be skipped, upgrade to %d.%d first", from, to, from.Major, from.Minor+1)
	}
	if floor, ok := upgradeFloors[from.Minor]; ok && from.Patch < floor {
		return fmt.Errorf("etcd can't go from %s to %s: upgrade to %d.%d.%d or a later %d.%d release first",
			from, to, from.Major, from.Minor, floor, from.Major, from.Minor)
	}
	return nil
}
