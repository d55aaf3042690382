// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"errors"
	"reflect"
	"testing"

	clocktesting "k8s.io/utils/clock/testing"
)

func TestWhatRestsOnTheRecordWaitsForIt(t *testing.T) {
	looked := map[reflect.Type]bool{}
	for _, s := range []step{
		chooseSeed{name: "a"}, markRunning{}, markFailed{"all is lost"}, createService{client: true}, removeMember{name: "b", last: true},
		createPods{pods: []newPod{{name: "a", seed: true}, {name: "b"}}},
	} {
		looked[reflect.TypeOf(s)] = true
		if !restsOnRecord(s) {
			t.Errorf("%q is taken though its record could not be written", s)
		}
	}
	for _, s := range []step{
		createService{}, createPods{pods: []newPod{{name: "b"}}}, deletePod{name: "b"}, removeMember{name: "b", dead: true},
		addMember{name: "b"}, promoteMember{name: "b"}, setVersion{pod: "b"},
		mendService{client: true}, deleteService{}, createBudget{}, mendBudget{}, deleteBudget{}, recyclePod{}, setMetadata{},
		deleteVolume{}, expandVolume{}, setVolumeVersion{}, advanceLog{}, moveLeader{}, liftAlarms{}, noteMember{},
		idle{}, wait{}, observing{}, // nothing is done
	} {
		looked[reflect.TypeOf(s)] = true
		if restsOnRecord(s) {
			t.Errorf("%q stands still while the status can't be written", s)
		}
	}
	for _, s := range allSteps {
		if !looked[reflect.TypeOf(s)] {
			t.Errorf("does a %T rest on the record?", s)
		}
	}
}

// The seed must be on record before its pod exists.
func TestNoSeedIsMadeWhileTheStatusCanNotBeWritten(t *testing.T) {
	w := newWorld(t, clocktesting.NewFakeClock(noon), testCluster())
	c := w.cluster(w.edit(creating("a")))
	w.makeService(served(buildPeerService(c.obj)))
	w.watch()
	up := w.refuseStatus()
	if s, err := c.pass(t.Context()); !errors.Is(err, errStatusNotWritten) || !restsOnRecord(s) || len(w.storedPods()) > 0 {
		t.Errorf("%s: %v, %d pods", s, err, len(w.storedPods()))
	}
	up()
	if s, err := c.pass(t.Context()); err != nil || len(w.storedPods()) != 3 {
		t.Errorf("%s: %v, %d pods", s, err, len(w.storedPods()))
	}
}
