// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package upgradeplan finds the way from one version of etcd to another, and what stands
// against taking it now.
package upgradeplan

import (
	"fmt"
	"strings"

	"github.com/etcd-operator/etcd-operator/internal/plugin/hint"
	"github.com/etcd-operator/etcd-operator/internal/plugin/summary"
	"github.com/etcd-operator/etcd-operator/pkg/etcd"
)

// known are the releases that the operator's tests cover, one for each minor version.
var known = []string{"3.5.35", "3.6.16", "3.7.3"}

// Known returns the releases that the operator's tests cover.
func Known() []string { return known }

// Steps returns the versions on the way, the last of which is to. first is the version
// that the cluster began with, if that is known.
func Steps(from, first, to string) ([]string, error) {
	target, err := etcd.ParseVersion(to)
	if err != nil {
		return nil, err
	}
	at, err := etcd.ParseVersion(from)
	if err != nil {
		return nil, fmt.Errorf("the cluster's version is not known (%q): wait until it runs", from)
	}
	if began, err := etcd.ParseVersion(first); err == nil {
		if err := etcd.CheckOrigin(began, target); err != nil {
			return nil, err
		}
	}
	if at.Minor >= target.Minor && at.EQ(target.Version) {
		return nil, nil
	}
	var steps []string
	for at.Minor < target.Minor {
		next := target
		if refusal := etcd.CheckChange(at, target); refusal != nil {
			if next, err = between(at, target); err != nil {
				return nil, fmt.Errorf("%w (%w)", err, refusal)
			}
		}
		steps = append(steps, next.String())
		if at = next; at.EQ(target.Version) {
			return steps, nil
		}
	}
	if err := etcd.CheckChange(at, target); err != nil {
		return nil, err
	}
	return append(steps, target.String()), nil
}

// between returns the next release on the way to a target that can't be reached at once:
// a later patch of the same minor version, or the next minor version.
func between(at, target etcd.Version) (etcd.Version, error) {
	for _, text := range known {
		release, err := etcd.ParseVersion(text)
		if err != nil {
			return etcd.Version{}, err
		}
		if release.LTE(at.Version) || release.GT(target.Version) || etcd.CheckChange(at, release) != nil {
			continue
		}
		return release, nil
	}
	return etcd.Version{}, fmt.Errorf("no way from etcd %s to %s is known", at, target)
}

// LeavesMinor reports whether an upgrade is to another minor version.
func LeavesMinor(from, to string) bool {
	a, errA := etcd.ParseVersion(from)
	b, errB := etcd.ParseVersion(to)
	return errA != nil || errB != nil || a.Minor != b.Minor
}

// Against is why an upgrade should not begin now.
func Against(s *summary.Summary, next string) []string {
	var list []string
	if s.State != summary.Serving {
		list = append(list, "the cluster is "+string(s.State)+": "+strings.Join(s.Reasons, "; "))
	}
	if s.Paused {
		list = append(list, "the operator is paused: "+hint.Etcd(s.Place(), "resume", s.Name))
	}
	if s.Target != "" && s.Target != s.Version && s.Target != next {
		list = append(list, "another upgrade is under way, to "+s.Target)
	}
	for _, m := range s.Members {
		if m.Version != "" && m.Version != s.Version && m.Version != next {
			list = append(list, m.Name+" runs "+m.Version)
		}
	}
	return list
}
