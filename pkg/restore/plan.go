// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package restore

import (
	"strings"
	"time"

	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/loop"
	"github.com/etcd-operator/etcd-operator/pkg/notice"
)

const (
	// lookEvery passes between two looks at what is awaited once a restore is under
	// way, and lookNow and then while nothing was touched.
	lookEvery      = time.Second
	lookNowAndThen = 5 * time.Second
	// untouched is for how long nobody may have taken up the EtcdCluster until that is
	// reported.
	untouched = 15 * time.Second
)

// verdict is what is to be done about an EtcdRestore now: the status is put on record
// first, and then the step is done.
type verdict struct {
	status api.RestoreStatus
	step   step // nil: nothing
	// wait is how long the next look may wait where nothing was changed.
	wait time.Duration
	// consumed means that the outcome of an attempt is on record with the status.
	consumed bool
	// overtaken means that the EtcdCluster was edited since it was last looked at.
	overtaken bool
	// late says that an edit came too late, when the first member serves; "": none did.
	late string
	// needsPerson reports whether the restore waits for what only a person can do.
	needsPerson bool
}

// plan decides by the observation alone. Its rules are in the order of the steps:
// the first that has something to say is followed.
func plan(o *observation) verdict {
	for _, rule := range []func(*observation) *verdict{
		finish,       // it has succeeded: tidy up, and never act again
		endUntouched, // it is being deleted, and nothing was touched
		giveUp,       // its namespace is being deleted
		withdraw,     // nobody asks for the recovery any more, and nothing was touched
		endServed,    // it is being deleted, and its cluster serves
		choose,       // the backup is read as a whole; only then all is on record
		hold,         // from here on it stays until it has come to its end
		stop,         // the old cluster ends
		makeRoom,     // for volumes where there is no room for both
		create,       // the new one is made, to begin with the backup
		grow,         // until all its members serve
	} {
		if v := rule(o); v != nil {
			v.needsPerson = v.needsPerson || clusterNeedsPerson(o, v)
			return *v
		}
	}
	return verdict{status: *o.obj.Status.DeepCopy(), wait: loop.LongestSleep}
}

// at is a verdict that shows how far the restore is, and what it waits for.
func (o *observation) at(phase api.RestorePhase, reason string) *verdict {
	v := &verdict{status: *o.obj.Status.DeepCopy(), wait: lookEvery}
	v.status.Phase, v.status.Reason = phase, reason
	if o.trouble != "" {
		v.status.Reason = strings.TrimPrefix(reason+"; "+o.trouble+"; it is tried again", "; ")
	}
	if v.status.StartDate == nil {
		v.status.StartDate = notice.Timestamp(o.now)
	}
	return v
}

// do adds a step to a verdict.
func (v *verdict) do(s step) *verdict {
	v.step = s
	return v
}

// hold has the EtcdRestore stay, should somebody delete it, as long as a cluster is
// down that it can bring back.
func hold(o *observation) *verdict {
	if hasFinalizer(o.obj) || o.obj.DeletionTimestamp != nil {
		return nil
	}
	return o.at(o.phase(), o.obj.Status.Reason).do(putFinalizer{})
}
