// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package etcd

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// Fence returns the alarm by which an etcd refuses all writes on behalf of an owner, such as the
// UID of an object. etcd has no other mode in which it only serves reads: NOSPACE accepts
// deletions.
//
// The alarm is CORRUPT, of a member that does not exist. So it differs from alarms that etcd
// raises, and from those of other owners. All members apply it at the same entry of the log. After
// a member has confirmed the alarm, a linearizable read returns the last revision.
//
// With the alarm, etcd refuses Put, DeleteRange, Txn, Compact, LeaseGrant and LeaseRevoke, and
// leases do not end. A transaction that only reads is no write. Reads, watches, keep-alives of
// leases and snapshots continue. Changes of users, of roles and of the membership do not touch keys,
// and etcd accepts them. TestAFenceRefusesAllWrites shows that for each release.
//
// Before 3.6, the alarm NOSPACE ends that, although the list of alarms stays as it was (KeepsFence).
func Fence(owner string) Alarm {
	hash := fnv.New64a()
	hash.Write([]byte(owner))
	return Alarm{MemberID: max(hash.Sum64(), 1), Type: AlarmCorrupt}
}

// RefusesWrites reports whether the member refuses writes because of an alarm CORRUPT. It asks the member to delete
// the keys from "x" to before "x". There are none, so that raises no revision if the member accepts it.
func (c *Conn) RefusesWrites(ctx context.Context) (bool, error) {
	_, err := c.cli.Delete(ctx, "x", clientv3.WithRange("x"))
	if err != nil && !errors.Is(err, rpctypes.ErrCorrupt) {
		return false, fmt.Errorf("try whether %s refuses writes: %w", c.url, err)
	}
	return err != nil, nil
}

// Raise activates an alarm. It does nothing if the alarm is active.
func (c *Conn) Raise(ctx context.Context, a Alarm) error {
	kind, err := a.kind()
	if err != nil {
		return fmt.Errorf("raise %w", err)
	}
	_, err = etcdserverpb.NewMaintenanceClient(c.cli.ActiveConnection()).Alarm(ctx, &etcdserverpb.AlarmRequest{
		Action: etcdserverpb.AlarmRequest_ACTIVATE, MemberID: a.MemberID, Alarm: kind,
	})
	if err != nil {
		return fmt.Errorf("raise the alarm %s of member %s through %s: %w", a.Type, FormatID(a.MemberID), c.url, clientv3.ContextError(ctx, c.explain(ctx, err)))
	}
	return nil
}

// kind is etcd's number of the alarm.
func (a Alarm) kind() (etcdserverpb.AlarmType, error) {
	kind, known := etcdserverpb.AlarmType_value[a.Type]
	if !known || kind == int32(etcdserverpb.AlarmType_NONE) {
		return 0, fmt.Errorf("the alarm %q of member %s: no alarm of that name is known", a.Type, FormatID(a.MemberID))
	}
	return etcdserverpb.AlarmType(kind), nil
}
