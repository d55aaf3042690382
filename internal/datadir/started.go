// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package datadir

import "fmt"

// StartedEnv names the environment variable with the ID of the member that has served from the
// pod, or "" if none has. The operator keeps the ID in an annotation of the pod, outside of
// the node: after a restart with an empty disk, a node starts the pod as if it were new.
const StartedEnv = "MEMBER_STARTED"

// CheckStarted fails if a member has served before and its data is gone. Under its old ID, it
// could vote a second time on entries that it has forgotten. A seed would start an empty
// cluster under the old cluster's ID.
func CheckStarted(dataDir, member string) error {
	if member == "" {
		return nil
	}
	hasData, err := HoldsData(dataDir)
	switch {
	case err != nil:
		return fmt.Errorf("look for the data of member %s in %s: %w", member, dataDir, err)
	case !hasData:
		return fmt.Errorf("member %s has served from this pod before, and %s holds no data of it now: it must not start without its data, which could lose writes; "+
			"restore the data; or, while the other members have a quorum, delete its PersistentVolumeClaim, if it has one, and then the pod, so that the operator replaces the member", member, dataDir)
	}
	return nil
}
