// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"strings"
	"testing"

	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/cluster/plan"
)

// Somebody clears the record, or an old definition has never kept it and the operator restarts.
func TestTheCommandThatAcceptsTheDataNamesThePresentRecord(t *testing.T) {
	o := look(t, "cluster size=1 record-index=9000 index=5000\nmember a leader")
	reason, before := o.Contradiction()
	o.Status.Conditions = []api.ClusterCondition{{Type: api.ClusterConditionAvailable, Reason: reason, Message: before}}
	if _, same := o.Contradiction(); reason != plan.ReasonWentBack || same != before {
		t.Errorf("it says %s: %s, and then %s", reason, before, same)
	}
	o.Record, o.Seen.Index = nil, 9001
	_, after := o.Contradiction()
	what, _, _ := strings.Cut(before, ". ")
	if !strings.HasPrefix(after, what+". ") || !strings.HasSuffix(after, "accept-data="+o.RecordID()) || after == before {
		t.Errorf("without the record, it says %s", after)
	}
	o.Accepted = o.RecordID()
	if reason, _ := o.Contradiction(); reason != "" {
		t.Errorf("a person has decided, and it says %s", reason)
	}
}
