// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

// noteStarted notes on a pod that a member has served from it. A node may return with an empty
// disk and start the same pod again. Then only a note outside of the node shows check-dns that
// data is missing. This rule precedes the client Service, further members and votes: nobody
// relies on a member before the note. Pods of earlier operators ignore the note and get none.
func noteStarted(o *Observation) Step {
	for _, m := range o.Own() {
		if p := m.Pod; p != nil && m.Status != nil && m.neverServed() && !p.NotePutOff && !p.Deleting {
			return NoteMember{Pod: p.Name, UID: p.UID, ID: m.ID}
		}
	}
	return nil
}
