// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package backup

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/etcd-operator/etcd-operator/pkg/changelog"
)

// A server begins to answer, and stops within the list. No limit of the transport ends that.
func TestALogContinuesAfterAListThatHangs(t *testing.T) {
	for name, which := range map[string]int32{"where the log ends": 1, "who else records": 2} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newLogWorld(t, nil)
				var lists atomic.Int32
				w.store.meddle(func(ctx context.Context, operation, key string) error {
					if operation == "list" && key == changelog.KeyPrefix("etcd") && lists.Add(1) == which {
						<-ctx.Done()
						return context.Cause(ctx)
					}
					return nil
				}, nil)
				w.store.objects["etcd_log/other"] = object{} // a page
				stop := w.run()
				defer stop()
				w.write(10 * time.Minute)
				st := w.continuous()
				at, _ := w.member.Position(t.Context())
				if !st.Recording || st.Gaps != 0 || at.Revision-w.log(testCluster, st.StartRevision-1).Last > 20 {
					t.Errorf("%d lists; the log is %+v, and etcd at %d", lists.Load(), st, at.Revision)
				}
			})
		})
	}
}
