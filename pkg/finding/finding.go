// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package finding is the result of checks: what was found, how bad it is, and how to fix it.
package finding

// Level is how bad a finding is.
type Level string

// The levels, the best first.
const (
	OK Level = "ok"
	// Unknown is a check that could not be made, mostly because a right is missing.
	Unknown Level = "unknown"
	Warning Level = "warning"
	Failure Level = "failure"
)

// Finding is what one check has found.
type Finding struct {
	Check   string `json:"check"`
	Level   Level  `json:"level"`
	Message string `json:"message"`
	// Fix is what to do; empty where nothing is.
	Fix string `json:"fix,omitempty"`
}

// Worst is the worst level among findings.
func Worst(findings []Finding) Level {
	rank := map[Level]int{OK: 0, Unknown: 1, Warning: 2, Failure: 3}
	worst := OK
	for _, f := range findings {
		if rank[f.Level] > rank[worst] {
			worst = f.Level
		}
	}
	return worst
}
