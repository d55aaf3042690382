// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import "time"

// refusalLasts is for how long something that the API server has refused is not
// tried again, unless the spec asks for something else.
const refusalLasts = time.Minute

// refusals remembers what the API server has refused and why, by what was tried.
type refusals map[string]pastRefusal

type pastRefusal struct {
	why   string
	until time.Time
}

func (r refusals) add(what, why string, now time.Time) {
	for key, old := range r {
		if now.After(old.until) {
			delete(r, key)
		}
	}
	r[what] = pastRefusal{why, now.Add(refusalLasts)}
}

// of says why something is not to be tried now, or "".
func (r refusals) of(what string, now time.Time) string {
	if old, ok := r[what]; ok && now.Before(old.until) {
		return old.why
	}
	return ""
}
