// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/etcd"
	"github.com/etcd-operator/etcd-operator/pkg/manifest"
)

// Step is the one next thing to do. Its String appears in logs and tests.
type Step interface{ String() string }

type (
	// Idle does nothing: the cluster is as specified, or the operator waits for something
	// outside.
	Idle struct{ Why Reason }
	// Wait does nothing during a change that sends no event; the next pass follows shortly.
	Wait struct{ Why string }

	// CreateService creates a missing Service.
	CreateService struct{ Client bool }
	// UpdateService corrects a Service that somebody has edited.
	UpdateService struct {
		Client bool
		Edited string
	}
	// DeleteService deletes a Service that is not used any more, or can't be corrected.
	DeleteService struct {
		Name string
		UID  types.UID
		why  string
	}
	// CreateBudget creates the PodDisruptionBudget.
	CreateBudget struct{ MinAvailable int }
	// UpdateBudget adapts it to the membership, or corrects one that somebody has edited.
	UpdateBudget struct {
		From, To int
		Edited   string
	}
	// DeleteBudget deletes the PodDisruptionBudget.
	DeleteBudget struct {
		UID types.UID
		why string
	}
	// WriteBridge makes the Service of somebody else lead to these members, and to no others.
	WriteBridge struct {
		Service string
		To      []manifest.BridgeEnd
		// First is true if it leads to none before.
		First  bool
		Edited string
	}
	// ChooseSeed records the seed's name and backup before its pod exists, so that a restarted
	// operator can't bootstrap twice.
	ChooseSeed struct {
		Name   string
		Source *api.SeedBackup // nil: it starts empty
		why    string          // the former choice; "" for the first
	}
	// MarkRunning records that the cluster was bootstrapped: the operator never bootstraps it
	// again.
	MarkRunning struct{}
	// MarkFailed records that only somebody else can restore the cluster.
	MarkFailed struct{ Why string }

	// CreatePods creates pods of members at the same time.
	CreatePods struct {
		Pods []manifest.MemberPod
		why  string
	}
	// DeletePod deletes a pod without removing its member.
	DeletePod struct {
		Name string
		UID  types.UID
		// Creating is true if the step requires that the cluster is being created. The
		// operator checks that again at the API server.
		Creating bool
		// Seen is the pod's resource version that the step requires; "": any.
		Seen string
		Why  string
		// HeldUp is true where the pod found no node while later ones waited to join.
		HeldUp bool
	}
	// SetVersion changes the image of a pod in place.
	SetVersion struct {
		Pod      string
		UID      types.UID
		From, To string
		// Previous is the version that last ran on the pod's data.
		Previous string
		// Admitted is the pod's image before the change.
		Admitted string
	}

	// RecyclePod deletes a pod, which the operator then recreates by the current spec, on its
	// volume.
	RecyclePod struct {
		Name    string
		UID     types.UID
		Version string
		// Owner is the user whose files its data is.
		Owner manifest.Owner
		// Seen is as in DeletePod.
		Seen string
		Why  string
	}
	// SetMetadata updates a pod's labels and annotations.
	SetMetadata struct {
		Pod      string
		UID      types.UID
		Template manifest.Template // recorded if there is none
	}
	// NoteMember notes on a pod which member has served from it.
	NoteMember struct {
		Pod string
		UID types.UID
		ID  uint64
	}
	// DeleteVolume deletes the volume of a removed member.
	DeleteVolume struct {
		Name string
		UID  types.UID
	}
	// ExpandVolume asks for a larger volume.
	ExpandVolume struct {
		Name     string
		UID      types.UID
		From, To string
	}
	// SetVolumeVersion records which etcd ran on a volume's data.
	SetVolumeVersion struct {
		Name    string
		UID     types.UID
		Version string
	}

	// SetVolumeOwner records whose files a volume's data is.
	SetVolumeOwner struct {
		Name  string
		UID   types.UID
		Owner manifest.Owner
	}

	// AddMember adds a member to etcd.
	AddMember struct {
		Name    string
		Learner bool
	}
	// PromoteMember gives a learner its vote.
	PromoteMember struct {
		ID   uint64
		Name string
	}
	// RemoveMember removes a member from etcd, and deletes its pod.
	RemoveMember struct {
		ID   uint64
		Name string
		// Pod is the member's pod, which the step deletes too, if it still exists.
		Pod types.UID
		// Volume is true if the plan knew the member's volume.
		Volume bool
		// Dead is true for a replacement, false if the cluster shrinks.
		Dead bool
		// Former is true for a member of an imported etcd.
		Former bool
		Why    Reason
	}
	// AdvanceLog appends entries without effect until all members have taken a snapshot of
	// their raft state.
	AdvanceLog struct{ From, To uint64 }
	// MoveLeader transfers leadership to another member.
	MoveLeader struct {
		From, To string
		IP       string // the leading member's pod
		ID       uint64 // the new leader's pod
		// Former is the leading member's ID if it belongs to an imported etcd.
		Former uint64
	}
	// HoldImport puts the finalizer on the EtcdCluster.
	HoldImport struct{}
	// BeginImport records which etcd the cluster takes over.
	BeginImport struct {
		ClusterID uint64
		Members   []etcd.Member
		// WriteStop is what a copy expects; nil: members join.
		WriteStop *api.ImportWriteStop
	}
	// CommitImport records that the former members leave, or that the etcd to copy stops all writes.
	CommitImport struct{}
	// FinishImport records that no former member is left, or that the new cluster accepts writes.
	FinishImport struct{}
	// ReleaseImport takes the finalizer off the EtcdCluster.
	ReleaseImport struct{}
	// EnableAuth makes etcd ask for the user in the Secret.
	EnableAuth struct{}
	// DisableAuth makes etcd ask for no user.
	DisableAuth struct{}
	// ChangePassword gives the user in etcd the password in the Secret.
	ChangePassword struct{}
	// ServeData adds a container to the pod of a survivor that serves no clients. The container serves
	// its database. Number is its number in the pod: the same step twice adds one container.
	ServeData struct {
		Pod    string
		UID    types.UID
		Number int
	}
	// StoreSurvivor creates the EtcdBackup that stores the data of a survivor, in the store of
	// the EtcdBackup Like.
	StoreSurvivor struct{ Member, Like, Begun string }
	// RestoreChosen creates the EtcdRestore that continues the cluster from an EtcdBackup.
	RestoreChosen struct {
		From string
		// Revision is 0 for that of the backup.
		Revision, Bump int64
		Begun          string
	}
	// DeleteRestore deletes the EtcdRestore of an earlier restore.
	DeleteRestore struct {
		Name string
		UID  types.UID
	}
	// StopWrites makes the etcd to copy refuse all writes.
	StopWrites struct{ Fence etcd.Alarm }
	// RecordStop records the revision of the last write that it has accepted.
	RecordStop struct{ Revision int64 }
	// ResumeWrites makes the etcd to copy accept writes again.
	ResumeWrites struct{ Fence etcd.Alarm }
	// LiftAlarms disarms alarms that came with a backup. With Fence it is the operator's own, which
	// came with a copy.
	LiftAlarms struct {
		Alarms []etcd.Alarm
		Fence  bool
	}
)

func (s Idle) String() string { return "idle: " + s.Why.String() }

func (s Wait) String() string { return "wait: " + s.Why }

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

// removePod returns the step that deletes the pod.
func removePod(p manifest.PodState, why string) Step {
	return DeletePod{Name: p.Name, UID: p.UID, Why: why}
}

// removeSeed returns the step that deletes the pod of a seed that has not served, according to
// the record.
func removeSeed(p manifest.PodState, why string) Step {
	return DeletePod{Name: p.Name, UID: p.UID, Creating: true, Why: why}
}

// remove returns the step that removes a member.
func (m MemberState) remove(dead bool, why string) RemoveMember {
	s := RemoveMember{ID: m.ID, Name: m.PodName, Volume: m.Volume != nil, Dead: dead, Why: because(why)}
	if m.Pod != nil {
		s.Pod = m.Pod.UID
	}
	return s
}

// removeWithoutPod returns the step that removes a member because its pod is gone.
func (m MemberState) removeWithoutPod(dead bool) RemoveMember {
	s := m.remove(dead, "")
	s.Why = Reason{Kind: PodGone}
	return s
}

// recycle returns the step that recreates a pod by the spec's template, on its volume.
func recycle(p manifest.PodState, why string) Step {
	return RecyclePod{Name: p.Name, UID: p.UID, Version: p.Version, Why: why}
}
