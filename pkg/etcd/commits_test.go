// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package etcd_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/etcd-operator/etcd-operator/pkg/etcd/etcdtest"
)

func TestAMemberCommitsIfReadsThroughItAreConfirmed(t *testing.T) {
	for name, tc := range map[string]struct {
		member *etcdtest.Member
		want   bool
	}{
		"it does":                 {&etcdtest.Member{}, true},
		"its disk hangs":          {&etcdtest.Member{Hang: true}, false},
		"no leader":               {&etcdtest.Member{NoQuorum: rpctypes.ErrGRPCNoLeader}, false},
		"one has to log in":       {&etcdtest.Member{NoQuorum: rpctypes.ErrGRPCUserEmpty}, true},
		"one is not allowed to":   {&etcdtest.Member{NoQuorum: rpctypes.ErrGRPCPermissionDenied}, true},
		"it takes longer than 7s": {&etcdtest.Member{NoQuorum: rpctypes.ErrGRPCTimeout}, false},
		"the database is corrupt": {&etcdtest.Member{NoQuorum: rpctypes.ErrGRPCCorrupt}, true},
		"its clock ends the read": {&etcdtest.Member{NoQuorum: status.Error(codes.DeadlineExceeded, "context deadline exceeded")}, false},
		"it ends":                 {&etcdtest.Member{NoQuorum: status.Error(codes.Unavailable, "transport is closing")}, false},
		"it is a learner":         {&etcdtest.Member{Status: &etcdserverpb.StatusResponse{IsLearner: true}}, false},
		"it stops":                {&etcdtest.Member{NoQuorum: rpctypes.ErrGRPCStopped}, false},
	} {
		t.Run(name, func(t *testing.T) {
			conn := dial(t, tc.member.Start(t))
			limit := 2 * time.Second
			if tc.want {
				limit = time.Minute // on a busy machine, a connection takes seconds
			}
			ctx, cancel := context.WithTimeout(t.Context(), limit)
			defer cancel()
			p, err := conn.Commits(ctx)
			if (err == nil) != tc.want {
				t.Errorf("got %v", err)
			}
			if refused := tc.want && tc.member.NoQuorum != nil; refused != (p.Refusal != nil) || refused && !errors.Is(p.Refusal, rpctypes.Error(tc.member.NoQuorum)) {
				t.Errorf("the refusal is %v", p.Refusal)
			}
			if again, _ := conn.Commits(ctx); tc.want && again != p {
				t.Errorf("the same answer differs: %+v and %+v", p, again)
			}
		})
	}
}
