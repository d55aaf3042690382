// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/etcd"
)

// step is the one next thing to do. Its String is what logs and tests show.
type step interface{ String() string }

type (
	// idle: the cluster is as it should be, or nothing can be done until
	// something outside changes.
	idle struct{ why string }
	// wait: something is under way that sends no event; look again shortly.
	wait struct{ why string }

	createService struct{ client bool }
	// mendService puts right a Service that somebody has edited.
	mendService struct {
		client bool
		edited string
	}
	deleteService struct {
		name string
		uid  types.UID
		why  string
	}
	createBudget struct{ minAvailable int }
	// mendBudget makes it fit the membership, or puts right one that somebody has
	// edited.
	mendBudget struct {
		from, to int
		edited   string
	}
	deleteBudget struct {
		uid types.UID
		why string
	}
	// chooseSeed records the seed's name before its pod is made, so that
	// operators that come and go can't bootstrap twice. With it goes on record what
	// the seed starts on.
	chooseSeed struct {
		name   string
		source *api.SeedBackup // nil: it starts empty
		why    string          // another was chosen before; "" for the first
	}
	// markRunning records that the cluster was bootstrapped: from here on it is
	// never bootstrapped again.
	markRunning struct{}
	// markFailed records that only somebody else can bring the cluster back.
	markFailed struct{ why string }

	createPods struct {
		pods []newPod
		why  string
	}
	deletePod struct {
		name string
		uid  types.UID
		// creating is true where it rests on the cluster being created, which is
		// asked of the API server once more.
		creating bool
		why      string
	}
	// setVersion changes the image of a pod in place.
	setVersion struct {
		pod      string
		uid      types.UID
		from, to string
		// previous is the version that ran on the pod's data last.
		previous string
		// admitted is the pod's image before the change.
		admitted string
	}

	// recyclePod deletes a pod that the operator then makes again by the spec of
	// now, on its volume.
	recyclePod struct {
		name    string
		uid     types.UID
		version string
		why     string
	}
	// setMetadata brings a pod's labels and annotations up to date.
	setMetadata struct {
		pod      string
		uid      types.UID
		template template // to record where none is
	}
	// noteMember notes on a pod which member has served from it.
	noteMember struct {
		pod string
		uid types.UID
		id  uint64
	}
	deleteVolume struct {
		name string
		uid  types.UID
	}
	expandVolume struct {
		name     string
		uid      types.UID
		from, to string
	}
	// setVolumeVersion records which etcd ran on a volume's data.
	setVolumeVersion struct {
		name    string
		uid     types.UID
		version string
	}

	addMember struct {
		name    string
		learner bool
	}
	promoteMember struct {
		id   uint64
		name string
	}
	removeMember struct {
		id   uint64
		name string
		// pod is deleted with the member, if it is still there.
		pod types.UID
		// volume is true when the plan knew of the member's volume.
		volume bool
		// last is true where too few members are left for the record to be of use
		// without the mark that this one goes.
		last bool
		// dead is true when the member is replaced, false when the cluster
		// shrinks.
		dead bool
		why  string
	}
	// advanceLog appends entries without effect until all members have taken a
	// snapshot of their raft state.
	advanceLog struct{ from, to uint64 }
	moveLeader struct {
		from, to string
		ip       string // of the pod of the member that leads
		id       uint64 // of the member that is to lead
	}
	// liftAlarms lifts alarms that came with a backup.
	liftAlarms struct{ alarms []etcd.Alarm }
)

// newPod is a pod to make.
type newPod struct {
	name    string
	version string
	seed    bool
	token   string // of the new cluster that the seed starts
	// source is the backup that a seed starts on; nil: it starts empty.
	source         *api.SeedBackup
	initialCluster etcd.InitialCluster
	// volume is true for a pod on a PersistentVolumeClaim of its name.
	volume bool
	// rejoins is true for a member that comes back with its data: without data it
	// must not start, for it could vote twice.
	rejoins bool
}

// observing stands for a step when the look at the world failed.
type observing struct{}

func (observing) String() string { return "observe the cluster" }

func (s idle) String() string          { return "idle: " + s.why }
func (s wait) String() string          { return "wait: " + s.why }
func (s createService) String() string { return "create " + whichService(s.client) }
func (s mendService) String() string   { return "mend " + whichService(s.client) + ": " + s.edited }
func (s deleteService) String() string { return "delete service " + s.name + ": " + s.why }
func (s createBudget) String() string {
	return fmt.Sprintf("create disruption budget: min available %d", s.minAvailable)
}
func (s mendBudget) String() string {
	if s.edited != "" {
		return "mend disruption budget: " + s.edited
	}
	return fmt.Sprintf("set disruption budget from %d to %d", s.from, s.to)
}
func (s deleteBudget) String() string { return "delete disruption budget: " + s.why }

func whichService(client bool) string {
	if client {
		return "client service"
	}
	return "peer service"
}

func (s chooseSeed) String() string {
	text := "choose seed " + s.name
	if s.source != nil {
		text += " for backup " + s.source.Key
	}
	if s.why != "" {
		text += ": " + s.why
	}
	return text
}
func (s markRunning) String() string { return "mark running" }
func (s markFailed) String() string  { return "mark failed: " + s.why }
func (s createPods) String() string {
	names := make([]string, len(s.pods))
	for i, p := range s.pods {
		names[i] = fmt.Sprintf("%s v%s of %d", p.name, p.version, len(p.initialCluster))
		switch {
		case p.seed && p.source != nil:
			names[i] += " (seed, restored)"
		case p.seed:
			names[i] += " (seed)"
		case p.rejoins:
			names[i] += " (rejoins)"
		}
	}
	return "create pods " + strings.Join(names, ", ") + ": " + s.why
}
func (s deletePod) String() string { return "delete pod " + s.name + ": " + s.why }
func (s setVersion) String() string {
	return fmt.Sprintf("set version of %s from %s to %s", s.pod, s.from, s.to)
}
func (s recyclePod) String() string  { return "recycle pod " + s.name + ": " + s.why }
func (s setMetadata) String() string { return "set labels and annotations of " + s.pod }
func (s noteMember) String() string  { return "note that " + s.pod + " has served" }
func (s deleteVolume) String() string {
	return "delete volume " + s.name + ": its member has left"
}
func (s expandVolume) String() string {
	return fmt.Sprintf("expand volume %s from %s to %s", s.name, s.from, s.to)
}
func (s setVolumeVersion) String() string {
	return fmt.Sprintf("record %s on volume %s", s.version, s.name)
}
func (s addMember) String() string {
	if s.learner {
		return "add learner " + s.name
	}
	return "add voter " + s.name
}
func (s promoteMember) String() string { return "promote " + s.name }
func (s removeMember) String() string  { return "remove member " + s.name + ": " + s.why }
func (s advanceLog) String() string {
	return fmt.Sprintf("advance the log from index %d to %d", s.from, s.to)
}
func (s liftAlarms) String() string {
	return "lift alarms that came with the backup: " + strings.Join(alarmTexts(s.alarms), ", ")
}
func (s moveLeader) String() string {
	return fmt.Sprintf("move leader from %s to %s", s.from, s.to)
}
