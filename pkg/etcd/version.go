// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package etcd

import (
	"errors"
	"fmt"
	"strings"

	"github.com/blang/semver/v4"
)

// ErrUnsupportedVersion is wrapped by the errors of ParseVersion for a valid version that no
// release of this operator can run.
var ErrUnsupportedVersion = errors.New("unsupported etcd version")

// Version is a release of etcd such as 3.6.16.
type Version struct{ semver.Version }

// ParseVersion reads a version with or without a leading v. It accepts etcd 3.1 and later 3.x
// releases: older ones have no v3 data model, and later majors do not exist yet.
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

// atLeast ignores pre-releases: 3.6.0-rc.1 has the features of 3.6.0.
func (v Version) atLeast(minor uint64) bool {
	return v.Minor >= minor
}

// HasLearners reports whether a member can join without a vote at first
// (https://etcd.io/docs/v3.4/learning/design-learner/).
func (v Version) HasLearners() bool { return v.atLeast(4) }

// HasAppliedIndex reports whether members distinguish the last entry that they have applied
// from the last one that they have logged.
func (v Version) HasAppliedIndex() bool { return v.atLeast(4) }

// HasMaxLearners reports whether --max-learners exists, and so ETCD_MAX_LEARNERS. Before 3.6,
// a cluster holds one learner at a time.
func (v Version) HasMaxLearners() bool { return v.atLeast(6) }

// HasAuthStatus reports whether etcd can say whether authentication is enabled. The question is
// an entry in the raft log, and a member of an earlier release ends when it applies one.
func (v Version) HasAuthStatus() bool { return v.atLeast(5) }

// KeepsFence reports whether a Fence holds while the alarm NOSPACE comes and goes. Before 3.6, a member that applies
// NOSPACE accepts deletions again, and one that applies its end accepts all writes. After a restart, it refuses them.
func (v Version) KeepsFence() bool { return v.atLeast(6) }

// LooksUpItself reports whether a member resolves its own peer URL when it starts, although
// --initial-cluster holds the same URL. 3.5.6 is the first release that does not
// (https://github.com/etcd-io/etcd/pull/14572).
func (v Version) LooksUpItself() bool {
	if v.Minor == 5 {
		return v.Patch < 6
	}
	return !v.atLeast(5)
}

// HasMetricsListener reports whether --listen-metrics-urls exists.
func (v Version) HasMetricsListener() bool { return v.atLeast(3) }

// HasLivez reports whether the metrics listener serves /livez and /readyz. They exist since
// 3.6, 3.5.11 and 3.4.29 (https://etcd.io/docs/v3.5/op-guide/monitoring/).
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

// upgradeFloors are the oldest patch releases from which a rolling upgrade can reach the next
// minor. 3.5: members older than 3.5.20 may hold learners promoted in the v2 store alone,
// which 3.6 sees as learners again (https://etcd.io/docs/v3.6/upgrades/upgrade_3_6/). 3.6: see
// https://etcd.io/docs/v3.7/upgrades/upgrade_3_7/.
var upgradeFloors = map[uint64]uint64{5: 20, 6: 11}

// ReplayableFrom is the oldest minor whose log entries this version can replay when it starts;
// 0: any. etcd 3.7 panics with "unmarshal should never fail" on entries from before 3.6. 3.6
// still reads the v2 form of requests in applyEntryNormal (server/etcdserver/server.go), 3.7
// does not.
func (v Version) ReplayableFrom() uint64 {
	if v.atLeast(7) {
		return 6
	}
	return 0
}

// CheckOrigin returns an error if a cluster that began with one version can't be upgraded to
// another. Clusters that began with 3.4 reach 3.5. Their first member of 3.6 then panics over
// entries of its log, and other members may too (etcd-io/etcd#20809 describes such an entry).
func CheckOrigin(first, to Version) error {
	if first.Minor < 5 && to.Minor >= 6 {
		return fmt.Errorf("a cluster that began with etcd %s can't be upgraded to %s: its members would not start; create a new cluster of %s and copy the data", first, to, to)
	}
	return nil
}

// SnapshotCount is the number of entries after which a member takes a snapshot of its raft
// state. A restart replays the log from there. It is the default since 3.6. The operator sets
// it for older versions too.
const SnapshotCount = 10000

// CheckChange returns nil if members of version from can be restarted one by one as version
// to. Otherwise the error says why not, and what to do. from is the lowest version among the
// members. While one member runs the old minor, that is the cluster's version, and etcd allows
// the others to return to it (https://etcd.io/docs/v3.6/upgrades/upgrading-etcd/).
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
