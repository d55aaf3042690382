// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import "testing"

func TestWhatRestsOnTheRecordWaitsForIt(t *testing.T) {
	for _, s := range []step{
		chooseSeed{name: "a"}, markRunning{}, markFailed{"all is lost"}, createService{client: true}, removeMember{name: "b", last: true},
		createPods{pods: []newPod{{name: "a", seed: true}, {name: "b"}}},
	} {
		if !restsOnRecord(s) {
			t.Errorf("%q is taken though its record could not be written", s)
		}
	}
	for _, s := range []step{
		createService{}, createPods{pods: []newPod{{name: "b"}}}, deletePod{name: "b"}, removeMember{name: "b", dead: true},
		addMember{name: "b"}, promoteMember{name: "b"}, setVersion{pod: "b"},
	} {
		if restsOnRecord(s) {
			t.Errorf("%q stands still while the status can't be written", s)
		}
	}
}
