// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"k8s.io/apimachinery/pkg/types"

	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/etcd"
	"github.com/etcd-operator/etcd-operator/pkg/manifest"
)

// PodRef is one pod, and no later one of its name.
type PodRef struct {
	Name string
	UID  types.UID
}

// Step is the one next thing to do. Its String appears in logs and tests.
type Step interface{ String() string }

type (
	// Idle does nothing: the cluster is as specified, or the operator waits for something
	// outside.
	Idle struct{ Why Reason }
	// Wait does nothing during a change that sends no event; the next pass follows shortly.
	Wait struct{ Why string }
	// WaitForPod does nothing until the kubelet reports a pod as ready. etcd has nothing left to say, and
	// the watch of pods starts the next pass.
	WaitForPod struct{ Why string }

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
		// Volume is the UID of the pod's volume if the version has yet to be noted there; ""
		// otherwise.
		Volume types.UID
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
	// SetVolumeVersion records which etcd may have run last on a volume's data.
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
		// Version is that of the pod that is to run as the owner: the API server must accept it first. "":
		// such a pod runs.
		Version string
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
		// VoteUndone is true for an own member to which somebody else has given a vote.
		VoteUndone bool
		// Relies are the pods with the data that is left without a former member. The operator asks
		// for them again before the removal.
		Relies []PodRef
		Why    Reason
	}
	// AdvanceLog appends entries without effect until all members have taken a snapshot of
	// their raft state.
	AdvanceLog struct {
		From, To uint64
		Count    uint64 // the largest snapshot count for which To is enough
	}
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
	// ServeData adds a container to the pod of a survivor. The container serves
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
