// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package datadir

import "fmt"

// StartedEnv names the environment variable that holds the ID of the member that
// has served from the pod before; it is empty where none has. The operator keeps
// the ID in an annotation of the pod, outside of the node: a node that comes back
// with an empty disk starts the pod as if it were new.
const StartedEnv = "MEMBER_STARTED"

// CheckStarted fails where a member has served before and its data is gone. Under
// its old ID it could vote a second time on what it has forgotten, and a seed would
// start an empty cluster under the old cluster's ID.
func CheckStarted(dataDir, member string) error {
	if member == "" {
		return nil
	}
	hasData, err := HoldsData(dataDir)
	switch {
	case err != nil:
		return fmt.Errorf("look for the data of member %s in %s: %w", member, dataDir, err)
	case !hasData:
		return fmt.Errorf("member %s has served from this pod before, and %s holds no data of it now: it must not start without its data, for it could lose writes; "+
			"bring the data back; or delete the pod, and its PersistentVolumeClaim if it has one, so that the member is replaced while the others have a quorum", member, dataDir)
	}
	return nil
}
