// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"strings"

	"github.com/etcd-operator/etcd-operator/pkg/etcd"
)

func (s Idle) String() string { return "idle: " + s.Why.String() }

func (s Wait) String() string       { return "wait: " + s.Why }
func (s WaitForPod) String() string { return "wait: " + s.Why }

func (s CreateService) String() string { return "create " + whichService(s.Client) }

func (s UpdateService) String() string { return "correct " + whichService(s.Client) + ": " + s.Edited }

func (s DeleteService) String() string { return "delete service " + s.Name + ": " + s.why }

func (s CreateBudget) String() string {
	return fmt.Sprintf("create disruption budget: min available %d", s.MinAvailable)
}

func (s UpdateBudget) String() string {
	if s.Edited != "" {
		return "correct disruption budget: " + s.Edited
	}
	return fmt.Sprintf("set disruption budget from %d to %d", s.From, s.To)
}

func (s DeleteBudget) String() string { return "delete disruption budget: " + s.why }

func (s WriteBridge) String() string {
	var ends []string
	for _, e := range s.To {
		text := e.Pod
		if e.Hostname != "" {
			text += " as " + e.Hostname
		}
		if !e.Ready {
			text += " (not ready)"
		}
		ends = append(ends, text)
	}
	text := "bridge service " + s.Service + " to " + strings.Join(ends, ", ")
	if len(ends) == 0 {
		text = "end the bridge of service " + s.Service
	}
	if s.Edited != "" {
		text += ": somebody has edited " + s.Edited
	}
	return text
}

func whichService(client bool) string {
	if client {
		return "client service"
	}
	return "peer service"
}

func (s ChooseSeed) String() string {
	text := "choose seed " + s.Name
	switch {
	case s.Source != nil && s.Source.Copy != nil:
		text += " for " + s.Source.Key
	case s.Source != nil:
		text += " for backup " + s.Source.Key
	}
	if s.why != "" {
		text += ": " + s.why
	}
	return text
}

func (s MarkRunning) String() string { return "mark running" }

func (s MarkFailed) String() string { return "mark failed: " + s.Why }

func (s CreatePods) String() string {
	names := make([]string, len(s.Pods))
	for i, p := range s.Pods {
		names[i] = fmt.Sprintf("%s v%s of %d", p.Name, p.Version, len(p.InitialCluster))
		switch {
		case p.Seed && p.Source != nil && p.Source.Copy != nil:
			names[i] += " (seed, copied)"
		case p.Seed && p.Source != nil:
			names[i] += " (seed, restored)"
		case p.Seed:
			names[i] += " (seed)"
		case p.Rejoins:
			names[i] += " (rejoins)"
		}
	}
	return "create pods " + strings.Join(names, ", ") + ": " + s.why
}

func (s DeletePod) String() string { return "delete pod " + s.Name + ": " + s.Why }

func (s SetVersion) String() string {
	return fmt.Sprintf("set version of %s from %s to %s", s.Pod, s.From, s.To)
}

func (s RecyclePod) String() string { return "recycle pod " + s.Name + ": " + s.Why }

func (s SetMetadata) String() string { return "set labels and annotations of " + s.Pod }

func (s NoteMember) String() string { return "note that " + s.Pod + " has served" }

func (s DeleteVolume) String() string {
	return "delete volume " + s.Name + ": its member has left"
}

func (s ExpandVolume) String() string {
	return fmt.Sprintf("expand volume %s from %s to %s", s.Name, s.From, s.To)
}

func (s SetVolumeVersion) String() string {
	return fmt.Sprintf("record %s on volume %s", s.Version, s.Name)
}

func (s SetVolumeOwner) String() string {
	return fmt.Sprintf("record user %s on volume %s", s.Owner, s.Name)
}

func (s AddMember) String() string {
	if s.Learner {
		return "add learner " + s.Name
	}
	return "add voter " + s.Name
}

func (s PromoteMember) String() string { return "promote " + s.Name }

func (s RemoveMember) String() string { return "remove member " + s.Name + ": " + s.Why.String() }

func (s AdvanceLog) String() string {
	return fmt.Sprintf("advance the log from index %d to %d", s.From, s.To)
}

func (HoldImport) String() string { return "put the finalizer of the import on the EtcdCluster" }

func (s BeginImport) String() string {
	if s.WriteStop != nil {
		return fmt.Sprintf("prepare the copy of cluster %s", etcd.FormatID(s.ClusterID))
	}
	return fmt.Sprintf("begin the import of cluster %s with %d members", etcd.FormatID(s.ClusterID), len(s.Members))
}

func (CommitImport) String() string { return "commit the import" }

func (FinishImport) String() string { return "finish the import" }

func (ReleaseImport) String() string { return "take the finalizer of the import off the EtcdCluster" }

func (EnableAuth) String() string { return "enable authentication" }

func (DisableAuth) String() string { return "disable authentication" }

func (ChangePassword) String() string { return "change the password of the operator's user" }

func (s ServeData) String() string {
	return fmt.Sprintf("serve the database of the survivor %s by a container in its pod", s.Pod)
}

func (s StoreSurvivor) String() string {
	return fmt.Sprintf("store the data of the survivor %s in the store of EtcdBackup %s", s.Member, s.Like)
}

func (s RestoreChosen) String() string { return "restore the cluster from EtcdBackup " + s.From }

func (s DeleteRestore) String() string { return "delete the earlier EtcdRestore " + s.Name }

func (StopWrites) String() string { return "make the etcd to copy refuse all writes" }

func (s RecordStop) String() string {
	return fmt.Sprintf("record that nobody can write after revision %d", s.Revision)
}

func (ResumeWrites) String() string { return "make the etcd to copy accept writes again" }

func (s LiftAlarms) String() string {
	if s.Fence {
		return "accept writes"
	}
	return "lift alarms that came with the backup: " + strings.Join(AlarmTexts(s.Alarms), ", ")
}

func (s MoveLeader) String() string {
	return fmt.Sprintf("move leader from %s to %s", s.From, s.To)
}
