// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

// noteStarted notes on a pod that a member has served from it. A node may come back
// with an empty disk and start the same pod again; then only what is kept outside of
// the node tells check-dns that data is missing. It comes before the client Service,
// further members and votes: nobody relies on a member before it is noted. Pods of
// earlier operators don't heed the note and get none.
func noteStarted(o *Observation) Step {
	for _, m := range o.Own() {
		if p := m.Pod; p != nil && m.Status != nil && p.Guarded && !p.Noted && !p.NotePutOff && !p.Deleting {
			return NoteMember{Pod: p.Name, UID: p.UID, ID: m.ID}
		}
	}
	return nil
}
