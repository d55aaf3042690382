// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"fmt"

	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/cluster/plan"
	"github.com/etcd-operator/etcd-operator/pkg/manifest"
)

// restoring describes the progress of a first member that starts on a backup; zero for other
// clusters, and once it has served.
func restoring(o *plan.Observation, s plan.Step) plan.Reason {
	if o.Status.Phase != api.ClusterPhaseNone && o.Status.Phase != api.ClusterPhaseCreating {
		return plan.Reason{}
	}
	if _, serves := s.(plan.MarkRunning); serves {
		return plan.Reason{}
	}
	if why := o.SourceUnknown(); !why.IsZero() || o.Source == nil {
		return why
	}
	backup := "the backup " + o.Source.Key
	if o.Source.Copy != nil {
		backup = o.Source.Key
	}
	var seed *manifest.PodState
	if len(o.Status.Members.Unready) > 0 {
		seed = o.Pod(o.Status.Members.Unready[0])
	}
	if idles, ok := s.(plan.Idle); ok && seed == nil {
		return idles.Why
	}
	return plan.Reason{Detail: startingOn(backup, seed)}
}

// startingOn describes the progress of a first member that starts on a backup.
func startingOn(backup string, seed *manifest.PodState) string {
	switch {
	case seed == nil || seed.Deleting:
		return "the first member is to start on " + backup
	case seed.Problem != "":
		return fmt.Sprintf("member %s can't start on %s: %s", seed.Name, backup, seed.Problem)
	case seed.Preparing == manifest.FetchContainer && seed.Scheduled:
		return fmt.Sprintf("member %s fetches %s; kubectl logs %s -c %s shows the progress", seed.Name, backup, seed.Name, manifest.FetchContainer)
	case seed.Preparing == manifest.CopyContainer && seed.Scheduled:
		return fmt.Sprintf("member %s copies %s; kubectl logs %s -c %s shows the progress", seed.Name, backup, seed.Name, manifest.CopyContainer)
	case seed.Preparing == manifest.RestoreContainer:
		return fmt.Sprintf("member %s restores %s", seed.Name, backup)
	}
	return fmt.Sprintf("member %s starts on %s", seed.Name, backup)
}
