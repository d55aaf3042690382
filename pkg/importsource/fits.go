// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package importsource

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/etcd-operator/etcd-operator/pkg/etcd"
	"github.com/etcd-operator/etcd-operator/pkg/finding"
)

// Misfits are the findings on what one member says of itself: whether a new cluster can start on its data. They need
// no look at the others.
func Misfits(version string, databaseBytes int64, target Target) []finding.Finding {
	status := etcd.Status{Version: version, DBSize: databaseBytes}
	j := &judge{Facts: Facts{Answers: []Answer{{Status: status}}, NoClusterVersion: errors.New("nobody has asked")}, target: target}
	if version != "" {
		j.versions()
	}
	j.quota()
	j.volume()
	return j.findings
}

// zombieFloor is the patch of 3.5 that repairs the list of members for 3.6. Without it, members
// that have left may come back (https://etcd.io/blog/2025/zombie_members_upgrade/).
const zombieFloor = 26

func (j *judge) versions() {
	const check = "version"
	var minors []string
	var source etcd.Version
	for _, a := range j.answered() {
		v, err := etcd.ParseVersion(a.Status.Version)
		if err != nil {
			j.add(check, finding.Failure, "", "%s: %v", a.Endpoint, err)
			return
		}
		source = v
		minors = append(minors, minor(v))
	}
	slices.Sort(minors)
	minors = slices.Compact(minors)
	own := j.target.Version
	switch {
	case len(minors) > 1:
		j.add(check, finding.Failure, "finish the upgrade or the downgrade of the source first", "the members run several minors: %s", strings.Join(minors, ", "))
	case !source.HasLearners():
		j.add(check, finding.Failure, "upgrade the source to 3.4 first, or move the data by a backup", "etcd %s has no learners", source)
	case j.target.Copies:
		if err := etcd.RestoreFits(source, own); err != nil {
			j.add(check, finding.Failure, "", "the data does not fit: %v", err)
			break
		}
		j.add(check, finding.OK, "", "etcd %s starts on data of %s", own, minors[0])
	case minor(own) != minors[0]:
		j.add(check, finding.Failure, fmt.Sprintf("set spec.version to a release of %s, and upgrade after the import; or set spec.importFrom.method to Copy", minors[0]),
			"the source runs %s, and the EtcdCluster %s", minors[0], own)
	case own.Minor == 5 && own.Patch < zombieFloor:
		j.add(check, finding.Warning, fmt.Sprintf("set spec.version to 3.5.%d or later", zombieFloor), "after an upgrade from %s to 3.6, members that have left may come back", own)
	default:
		j.add(check, finding.OK, "", "the source and the EtcdCluster run %s", minors[0])
	}
	switch {
	case len(minors) > 1:
	case j.NoClusterVersion != nil:
		j.add(check, finding.Unknown, "run the check again if the source has just started", "whether an upgrade or a downgrade runs: %v", j.NoClusterVersion)
	case minor(j.ClusterVersion) != minors[0]:
		j.add(check, finding.Failure, "finish the upgrade or the downgrade of the source first", "the members run %s, and the cluster's version is %s", minors[0], minor(j.ClusterVersion))
	}
}

func minor(v etcd.Version) string { return fmt.Sprintf("%d.%d", v.Major, v.Minor) }

func (j *judge) quota() {
	const check = "quota"
	var quota, size int64
	for _, a := range j.answered() {
		quota, size = max(quota, a.Status.DBQuota), max(size, a.Status.DBSize)
	}
	fix := fmt.Sprintf("add --quota-backend-bytes=%d to spec.pod.extraArgs", max(quota, 2*size))
	switch own := j.target.Quota; {
	case size >= own:
		j.add(check, finding.Failure, fix, "the database has %d bytes, and a member of the EtcdCluster stops all writes at %d", size, own)
	case quota > own && j.target.Copies:
		j.add(check, finding.Warning, fix, "the source's quota is %d bytes, and the EtcdCluster's %d", quota, own)
	case quota > own:
		j.add(check, finding.Failure, fix, "the source's quota is %d bytes, and the EtcdCluster's %d: the smallest quota stops the writes of all members", quota, own)
	case quota == 0 && j.target.Copies && size >= defaultQuota/10*8:
		j.add(check, finding.Warning, "make room in the source before the commit (compact, defragment), or make sure that its --quota-backend-bytes is far above the size of its database",
			"the source's database has %d bytes, and its quota is %d by default: etcd before 3.6 accepts writes again if it reaches the quota after the stop, and the copy ends then", size, defaultQuota)
	case quota == 0:
		j.add(check, finding.Unknown, "compare --quota-backend-bytes of the source and of spec.pod.extraArgs: the EtcdCluster's must not be smaller",
			"etcd before 3.6 does not report its quota; the EtcdCluster's is %d bytes", own)
	default:
		j.add(check, finding.OK, "", "%d bytes, and the source's %d", own, quota)
	}
}

func (j *judge) volume() {
	const check = "volume"
	var size int64
	for _, a := range j.answered() {
		size = max(size, a.Status.DBSize)
	}
	switch own := j.target.Volume; {
	case own == 0:
		j.add(check, finding.Warning, "set spec.pod.persistentVolumeClaimSpec to keep the data if all pods end", "the EtcdCluster has no volumes")
	case own < size:
		j.add(check, finding.Failure, "request a larger volume", "a volume has %d bytes, and the database %d", own, size)
	case own < 2*size:
		j.add(check, finding.Warning, "request a volume of at least twice the database", "a volume has %d bytes, and the database %d: a member may hold two copies", own, size)
	default:
		j.add(check, finding.OK, "", "%d bytes for a database of %d", own, size)
	}
}
