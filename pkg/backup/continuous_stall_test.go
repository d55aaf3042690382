// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package backup

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/changelog"
	"github.com/etcd-operator/etcd-operator/pkg/etcd"
	"github.com/etcd-operator/etcd-operator/pkg/recorder"
	"github.com/etcd-operator/etcd-operator/pkg/snapshot"
)

// silent is a member that answers reads, and begins no stream.
type silent struct{ recorder.Member }

func (silent) Changes(ctx context.Context, _ int64) (recorder.Stream, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

func TestALogTurnsToAnotherMember(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newLogWorld(t, func(s *api.BackupSpec) {
			s.EtcdEndpoints = []string{"http://c-0:2379", "http://c-1:2379", "http://c-2:2379"}
		})
		w.cfg.OpenMember = func(ctx context.Context, source snapshot.Source) (recorder.Member, etcd.Position, func(), error) {
			at, err := w.member.Position(ctx)
			if source.Endpoints[0].URL == "http://c-0:2379" {
				return silent{w.member}, at, func() {}, err
			}
			return w.member, at, func() {}, err
		}
		stop := w.run()
		defer stop()
		w.write(time.Minute)
		if st := w.continuous(); !st.Recording || st.Gaps != 0 {
			t.Errorf("the log is %+v", st)
		}
	})
}

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
