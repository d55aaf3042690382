// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package etcd

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// etcd's alarms. All members agree on them, and they hold for all members until somebody
// disarms them.
const (
	// AlarmNoSpace is raised by a member whose database has reached its quota: the cluster
	// accepts deletions and compactions, and no other write.
	AlarmNoSpace = "NOSPACE"
	// AlarmCorrupt is raised for a member whose data differs from the others':
	// the cluster refuses all writes. Fence uses it too.
	AlarmCorrupt = "CORRUPT"
)

// Alarm is an alarm that a member has raised. It outlasts the member's removal.
type Alarm struct {
	MemberID uint64
	Type     string
}

// parseAlarms reads the alarms among the errors of a status. Each member reports the alarms of
// all. An alarm is the text form of a protobuf message, `memberID:1 alarm:NOSPACE `, with one
// space or two between its fields.
func parseAlarms(errs []string) []Alarm {
	var alarms []Alarm
	for _, text := range errs {
		var a Alarm
		for _, field := range strings.Fields(text) {
			key, value, _ := strings.Cut(field, ":")
			switch key {
			case "memberID":
				// On an error MemberID stays 0, which is no known member.
				a.MemberID, _ = strconv.ParseUint(value, 10, 64)
			case "alarm":
				a.Type = value
			}
		}
		if a.Type != "" && a.Type != etcdserverpb.AlarmType_NONE.String() {
			alarms = append(alarms, a)
		}
	}
	slices.SortFunc(alarms, func(a, b Alarm) int {
		return cmp.Or(cmp.Compare(a.MemberID, b.MemberID), cmp.Compare(a.Type, b.Type))
	})
	return slices.Compact(alarms)
}

// Disarm disarms one alarm of one member, even of a removed one. etcd then accepts all
// requests until a member raises an alarm again, even if other alarms remain.
func (c *Conn) Disarm(ctx context.Context, a Alarm) error {
	kind, err := a.kind()
	if err != nil {
		return fmt.Errorf("disarm %w", err)
	}
	_, err = etcdserverpb.NewMaintenanceClient(c.cli.ActiveConnection()).Alarm(ctx, &etcdserverpb.AlarmRequest{
		Action: etcdserverpb.AlarmRequest_DEACTIVATE, MemberID: a.MemberID, Alarm: kind,
	})
	if err != nil {
		return fmt.Errorf("disarm the alarm %s of member %s through %s: %w", a.Type, FormatID(a.MemberID), c.url, clientv3.ContextError(ctx, err))
	}
	return nil
}
