// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package backup

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// A way out of a lost quorum restores the revision that the status names, and no later one.
func TestTheStatusHasTheWholeLogWhenTheQuorumIsGone(t *testing.T) {
	for name, operatorEnds := range map[string]bool{"while the operator records": false, "and the operator with it": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newLogWorld(t, nil)
				stop := w.run()
				w.write(2*time.Minute + 20*time.Second)
				at, _ := w.member.Position(t.Context())
				if operatorEnds {
					stop()
				}
				w.member.Fail(errors.New("etcdserver: no leader"))
				if operatorEnds {
					stop = w.run()
				}
				defer stop()
				pass(5 * time.Minute)
				st := w.continuous()
				stored := w.log(testCluster, st.StartRevision-1).Last
				if st.NewestRevision != stored || st.Gaps != 0 {
					t.Errorf("the status has revision %d, and the store %d: %+v", st.NewestRevision, stored, st)
				}
				if !operatorEnds && stored != at.Revision {
					t.Errorf("the store has revision %d, and the operator had received %d", stored, at.Revision)
				}
			})
		})
	}
}
