// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"slices"
	"strings"
	"time"

	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/etcd"
	"github.com/etcd-operator/etcd-operator/pkg/manifest"
)

// sourceSilence is how long an etcd to copy is silent before the new cluster takes over without its
// confirmation that no write has followed. One that is slow answers before.
const sourceSilence = time.Minute

// CopySource is what the etcd to copy says.
type CopySource struct {
	ClusterID uint64
	// Raised is true if it has the alarm by which it refuses all writes on behalf of this EtcdCluster. Fenced is true
	// if it also has refused one, and Revision is by a linearizable read after that.
	Raised, Fenced bool
	Revision       int64
	// KeepsFence is false if the alarm NOSPACE makes it accept writes again.
	KeepsFence bool
	// Others are the alarms that are not the operator's.
	Others []etcd.Alarm
	// Version and DatabaseBytes are those of the member that has answered; "" and 0: unknown. Misfits are why the new
	// cluster can't start on such data, which may have changed since the check.
	Version       string
	DatabaseBytes int64
	Misfits       []string
}

// Copying reports whether a copy is to begin, or has begun and is not complete. At any time, at most
// one of two clusters accepts writes: the etcd to copy, until it refuses them, and the new one, from
// the moment in which it holds the last revision of the other. The way back ends when the status says
// that the new one runs, which is before it accepts writes.
func (o *Observation) Copying() bool {
	if !o.Importing() {
		return false
	}
	if o.Status.Import.Begun() {
		return o.Status.Import.Copies()
	}
	return o.Spec.ImportFrom.Copies()
}

// Fenced reports whether the own members refuse all writes because their data is that of a copied etcd.
func (o *Observation) Fenced() bool {
	return o.Quorum && o.Import.Fence != (etcd.Alarm{}) && slices.Contains(o.Alarms(), o.Import.Fence)
}

// stopped reports whether the status says that nobody can write, and since which revision.
func (o *Observation) stopped() (revision int64, recorded bool) {
	if w := o.Status.Import.WriteStop; w != nil && w.BeginDate != "" {
		return w.Revision, true
	}
	return 0, false
}

// WritesStopped reports whether nobody can write.
func (o *Observation) WritesStopped() bool {
	if !o.Copying() || !o.Status.Import.Begun() {
		return false
	}
	_, stopped := o.stopped()
	return stopped
}

// takeBackCopy lets the etcd accept writes again when somebody deletes the EtcdCluster before the new
// cluster runs.
func (o *Observation) takeBackCopy() Step {
	if o.Status.Phase != api.ClusterPhaseNone && o.Status.Phase != api.ClusterPhaseCreating {
		return ReleaseImport{} // the new cluster may have accepted writes
	}
	s, begun := o.Import.Source, o.Status.Import.Begun()
	stopped := false
	if begun {
		_, stopped = o.stopped()
	}
	switch {
	case begun && !stopped:
		return ReleaseImport{}
	case s == nil && o.Spec.ImportFrom == nil:
		return Wait{"for " + putImportBack + "; or disarm the alarm " + AlarmTexts([]etcd.Alarm{o.Import.Fence})[0] + " there by hand, and remove the finalizer " + api.ImportFinalizer}
	case s == nil:
		return Wait{"for the etcd to copy, which must accept writes again (" + o.Import.Silence + "): start its members; or disarm the alarm " +
			AlarmTexts([]etcd.Alarm{o.Import.Fence})[0] + " by hand when they run, and remove the finalizer " + api.ImportFinalizer}
	case stopped && !s.Raised && etcd.FormatID(s.ClusterID) != o.Status.Import.ClusterID:
		// Somebody has edited the endpoints. The alarm is still where they led before.
		return Wait{fmt.Sprintf("for the etcd to copy, which must accept writes again: the etcd at the endpoints has the ID %s, and the one to copy has %s: correct the endpoints; "+
			"or disarm the alarm %s by hand where it is, and remove the finalizer %s",
			etcd.FormatID(s.ClusterID), o.Status.Import.ClusterID, AlarmTexts([]etcd.Alarm{o.Import.Fence})[0], api.ImportFinalizer)}
	case s.Raised, stopped && o.Status.Import.Phase != api.ImportTakingBack:
		// The second case is for a stop that may still be on its way.
		return ResumeWrites{o.Import.Fence}
	}
	return ReleaseImport{}
}

// followCopy leads a copy from the check to the end. It leaves the first member to bootstrap.
func (o *Observation) followCopy() Step {
	if !o.Status.Import.Begun() {
		return o.beginCopy()
	}
	if !o.Import.Held && !o.Ending {
		return HoldImport{}
	}
	if o.Status.Phase == api.ClusterPhaseRunning {
		if o.Quorum && !o.Fenced() && slices.ContainsFunc(o.ownVoters(), MemberState.Healthy) {
			return FinishImport{}
		}
		return nil // LiftFormerAlarms is next
	}
	if why := o.copyTrouble(); why != "" {
		return Idle{Reason{ImportHeld, why}}
	}
	if !o.Committed() {
		return o.awaitWord()
	}
	revision, stopped := o.stopped()
	waits := o.seedAwaitsCopy()
	switch {
	case o.Import.Source == nil && (waits || stopped && revision == 0):
		return Idle{Reason{ImportHeld, "the etcd to copy does not answer (" + o.Import.Silence + "): start its members, or delete the EtcdCluster to go back"}}
	case revision == 0 && stopped && o.Import.Source.Fenced:
		return RecordStop{o.Import.Source.Revision}
	case revision == 0 && (stopped || waits):
		return StopWrites{o.Import.Fence}
	case o.Quorum && o.Import.Source == nil && o.Import.SilentFor < sourceSilence:
		return Wait{"for the etcd to copy to confirm that no write has followed (" + o.Import.Silence + "), at most for a minute"}
	case o.Quorum:
		return o.acceptCopy(revision)
	}
	return nil
}

// beginCopy records the etcd to copy after a check without obstacles. Where there may be data of this
// cluster, somebody has wiped the status: the operator continues with that data, and copies nothing
// over it.
func (o *Observation) beginCopy() Step {
	switch {
	case o.Quorum, len(o.Volumes) > 0, slices.ContainsFunc(o.Pods, func(p manifest.PodState) bool { return p.Started }):
		return MarkRunning{}
	case !o.Import.Checked:
		return Wait{"for the check of the etcd to copy"}
	case len(o.Import.Obstacles) > 0:
		return Idle{Reason{ImportHeld, strings.Join(o.Import.Obstacles, "; ")}}
	case !o.Import.Held:
		return HoldImport{}
	}
	return BeginImport{ClusterID: o.Import.ClusterID, Members: o.Import.Members, WriteStop: &o.Import.WriteStop}
}

// copyTrouble says what stops a copy before the new cluster runs; "" if nothing does. The etcd to copy
// has all data until then: a deletion of the EtcdCluster takes the copy back.
func (o *Observation) copyTrouble() string {
	const back = "delete the EtcdCluster to go back"
	s := o.Import.Source
	switch {
	case o.Spec.ImportFrom == nil:
		return o.importGone()
	case !o.Spec.ImportFrom.Copies():
		return "spec.importFrom.method has changed: set it to Copy again, or delete the EtcdCluster"
	case o.StopLapsed():
		return "the etcd to copy may have taken writes since it stopped: before 3.6, etcd accepts writes again once its database has reached the quota (alarm NOSPACE): " + back +
			"; then make room there (compact, defragment, disarm NOSPACE), and create the EtcdCluster again"
	case s == nil && !o.Import.Disarmed:
		return ""
	case s == nil:
		return o.disarmed()
	case etcd.FormatID(s.ClusterID) != o.Status.Import.ClusterID:
		return fmt.Sprintf("the etcd at the endpoints has the ID %s, and the one to copy has %s: correct the endpoints, or %s", etcd.FormatID(s.ClusterID), o.Status.Import.ClusterID, back)
	case len(s.Others) > 0:
		return "the etcd to copy has alarms: " + strings.Join(AlarmTexts(s.Others), ", ") + ": solve the cause and disarm them, or " + back
	case len(s.Misfits) > 0 && !o.WritesStopped():
		// Once writes have stopped, the copy continues: this must not prolong the stop.
		return "the etcd to copy, or the EtcdCluster, has changed since the check: " + strings.Join(s.Misfits, "; ") + "; or " + back
	}
	if o.SourceDisarmed() {
		return o.disarmed()
	}
	return ""
}

// StopLapsed reports whether the etcd to copy may have taken writes since its stop, although nobody has lifted the
// alarm by which it refuses them. The status keeps that: the etcd may look as before afterwards.
func (o *Observation) StopLapsed() bool {
	if !o.WritesStopped() || o.Status.Phase == api.ClusterPhaseRunning {
		return false
	}
	s := o.Import.Source
	if o.Status.Import.WriteStop.Lapsed || s == nil || etcd.FormatID(s.ClusterID) != o.Status.Import.ClusterID {
		return o.Status.Import.WriteStop.Lapsed
	}
	full := slices.ContainsFunc(s.Others, func(a etcd.Alarm) bool { return a.Type == etcd.AlarmNoSpace })
	return s.Raised && !s.Fenced || full && !s.KeepsFence
}

// SourceDisarmed reports whether the etcd to copy may have taken writes after the last one that the copy
// holds.
func (o *Observation) SourceDisarmed() bool {
	s := o.Import.Source
	if s == nil || !o.Status.Import.Begun() {
		return false
	}
	revision, _ := o.stopped()
	return revision > 0 && (!s.Fenced || s.Revision != revision)
}

func (o *Observation) disarmed() string {
	revision, _ := o.stopped()
	return fmt.Sprintf("somebody has disarmed the alarm by which the etcd to copy refuses writes, and its data may have changed since revision %d: delete the EtcdCluster to go back, and create it again", revision)
}

// awaitWord waits for the user's word.
func (o *Observation) awaitWord() Step {
	w := o.Status.Import.WriteStop
	switch {
	case o.Import.Source == nil:
		return Idle{Reason{ImportHeld, "the etcd to copy does not answer (" + o.Import.Silence + "): start its members, or delete the EtcdCluster"}}
	case o.Spec.ImportFrom.Commit:
		return CommitImport{}
	}
	expected := "for an unknown time"
	if w != nil && w.ExpectedSeconds > 0 {
		expected = fmt.Sprintf("for about %d s", w.ExpectedSeconds)
	}
	return Idle{Reason{ImportPrepared, "set spec.importFrom.commit to true when clients can do without writes: all writes stop then " + expected +
		", until the new cluster serves the data; or delete the EtcdCluster to go back"}}
}

// seedAwaitsCopy reports whether the first member's pod has reached the etcd to copy, and waits for its
// data. Writes stop only then: no write has to wait for a pod that finds no node, or no way.
func (o *Observation) seedAwaitsCopy() bool {
	return slices.ContainsFunc(o.Pods, func(p manifest.PodState) bool {
		return o.startsOnSource(p) && p.Preparing == manifest.CopyContainer && p.Problem == ""
	})
}

// acceptCopy lets bootstrap record that the cluster runs, if it holds every write that the etcd to copy
// has acknowledged. Before, it refuses writes, by the alarm that came with the copy.
func (o *Observation) acceptCopy(revision int64) Step {
	for _, m := range o.ownVoters() {
		switch {
		case m.Status == nil:
			return Wait{"for an answer of " + m.Title() + ", which has the copy"}
		case m.Status.Revision != revision:
			return Idle{Reason{ImportHeld, fmt.Sprintf("the new cluster is at revision %d, and the etcd to copy has stopped at %d: nothing is lost there; delete the EtcdCluster to go back, and create it again",
				m.Status.Revision, revision)}}
		}
	}
	return nil
}

// CopiedFrom is where a first member gets the data of a copy; nil before the commit, and without one.
func CopiedFrom(o *Observation, owner string, skipVerification bool) *api.SeedBackup {
	if !o.Copying() || !o.Committed() || o.Spec.ImportFrom == nil {
		return nil
	}
	from := o.Spec.ImportFrom
	source := &api.SeedBackup{
		Key: "the data of the etcd " + o.Status.Import.ClusterID,
		Copy: &api.SeedCopy{
			Endpoints: from.Endpoints, ClientTLSSecret: from.ClientTLSSecret, CredentialsSecret: o.Spec.CredentialsSecret(),
			SkipVerification: skipVerification, ClusterID: o.Status.Import.ClusterID, Owner: owner,
		},
	}
	if source.Copy.ClientTLSSecret == "" && o.Spec.ClientTLS() {
		source.Copy.ClientTLSSecret = o.Spec.OperatorSecret()
	}
	if w := o.Status.Import.WriteStop; w != nil {
		source.Size = w.DatabaseBytes
	}
	return source
}
