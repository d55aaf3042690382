// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/backupobject"
	"github.com/etcd-operator/etcd-operator/pkg/cluster/plan"
	"github.com/etcd-operator/etcd-operator/pkg/etcd"
	"github.com/etcd-operator/etcd-operator/pkg/manifest"
)

// begunInScripts is when the operator began to follow a choice.
const begunInScripts = "2026-01-01T11:59:00Z"

// parseRecovery reads a word of a cluster line:
//
//	lost=20s             the quorum, so long ago
//	chosen=backup=b      a person's choice
//	choice=Phase:81:name  how far that is, its revision and its EtcdBackup
//	unread               the EtcdBackups can't be read
//	automatic=2:1h       the mode, with how many revisions may be lost, and of which time
//	quorum-seen=8s       by the operator, before the loss
//	watched=30s          by this operator
//	announced=WAY        by the automatic recovery; announced=yielded: to a person
//	confirmed, unconfirmed=why  by the API server
//	automatic-choice=Phase:81:name:WAY  how far that is
//	created=2h           the EtcdCluster, so long ago
//	learner=2            by its ID, as the status says
func parseRecovery(o *plan.Observation, key, value string) error {
	switch key {
	case "lost":
		d, err := time.ParseDuration(value)
		o.Recovery.LostSince = o.Now.Add(-d)
		return err
	case "chosen":
		o.Recovery.Chosen = value
	case "automatic":
		o.Spec.Recovery = &api.RecoveryPolicy{Mode: api.RecoveryAutomatic}
		revisions, unseen, _ := strings.Cut(value, ":")
		n, err := strconv.ParseInt("0"+revisions, 10, 64)
		if o.Spec.Recovery.MaxLostRevisions = n; err != nil || unseen == "" {
			return err
		}
		d, err := time.ParseDuration(unseen)
		seconds := int64(d / time.Second)
		o.Spec.Recovery.MaxLostInSecond = &seconds
		return err
	case "quorum-seen":
		d, err := time.ParseDuration(value)
		st := scriptRecovery(o)
		st.LostDate = o.Recovery.LostSince.Format(time.RFC3339)
		st.LastQuorumDate = o.Recovery.LostSince.Add(-d).Format(time.RFC3339)
		return err
	case "watched":
		d, err := time.ParseDuration(value)
		o.Recovery.WatchedSince = o.Now.Add(-d)
		return err
	case "announced":
		scriptRecovery(o).Automatic = &api.AutomaticRecovery{Phase: api.AutomaticWaiting, Value: value, Time: o.Recovery.LostSince.Add(10 * time.Minute).Format(time.RFC3339)}
		if value == "yielded" {
			scriptRecovery(o).Automatic = &api.AutomaticRecovery{Phase: api.AutomaticYielded}
		}
	case "confirmed":
		o.Recovery.Confirmed = true
	case "unconfirmed":
		o.Recovery.Unconfirmed = value
	case "automatic-choice":
		parts := strings.SplitN(value, ":", 4)
		revision, err := strconv.ParseInt("0"+parts[1], 10, 64)
		scriptRecovery(o).Choice = &api.RecoveryChoice{
			Value: parts[3], Automatic: true, Phase: api.RecoveryPhase(parts[0]), StartDate: begunInScripts, Revision: revision, Backup: parts[2],
		}
		return err
	case "created":
		d, err := time.ParseDuration(value)
		o.Created = o.Now.Add(-d)
		return err
	case "learner":
		o.Status.MemberStatuses = append(o.Status.MemberStatuses, api.MemberStatus{ID: value, Learner: true})
	case "unread":
		o.Recovery.Unread = "read the EtcdBackups: no"
	case "choice":
		parts := append(strings.Split(value, ":"), "", "")
		revision, err := strconv.ParseInt("0"+parts[1], 10, 64)
		o.Status.Recovery = &api.RecoveryStatus{Choice: &api.RecoveryChoice{
			Value: o.Recovery.Chosen, Phase: api.RecoveryPhase(parts[0]), StartDate: begunInScripts, Revision: revision, Backup: parts[2],
		}}
		return err
	}
	return nil
}

func scriptRecovery(o *plan.Observation) *api.RecoveryStatus {
	if o.Status.Recovery == nil {
		o.Status.Recovery = &api.RecoveryStatus{}
	}
	return o.Status.Recovery
}

// parseEtcdBackup reads a line such as: etcdbackup NAME revision=81 [began=1h] [log=90]
// [phase=Retrying] [once] [uncertain]. Without a revision, it has not succeeded.
func parseEtcdBackup(o *plan.Observation, words []string) error {
	taken := metav1.NewTime(o.Now.Add(-time.Hour))
	b := api.EtcdBackup{ObjectMeta: metav1.ObjectMeta{Name: words[0], Namespace: "ns"}}
	b.Spec.StorageType = api.BackupStorageTypeS3
	b.Spec.S3 = &api.S3BackupSource{Path: "bucket/" + words[0]}
	b.Spec.BackupPolicy = &api.BackupPolicy{BackupIntervalInSecond: 60}
	var err error
	for _, w := range words[1:] {
		key, value, _ := strings.Cut(w, "=")
		switch key {
		case "revision":
			b.Status.EtcdRevision, err = strconv.ParseInt(value, 10, 64)
			b.Status.Key, b.Status.Succeeded, b.Status.LastSuccessDate = "bucket/"+words[0]+"_v"+value, true, &taken
		case "log":
			b.Status.ClusterID, b.Status.Continuous = "07", &api.ContinuousStatus{ClusterID: "07", NewestDate: &taken}
			b.Status.Continuous.NewestRevision, err = strconv.ParseInt(value, 10, 64)
		case "began": // so long ago
			var d time.Duration
			if d, err = time.ParseDuration(value); err == nil {
				b.Status.Key = backupobject.Key("bucket/"+words[0], b.Status.EtcdRevision, o.Now.Add(-d))
			}
		case "once":
			b.Spec.BackupPolicy = nil
		case "uncertain":
			b.Status.Uncertain = true
		case "phase":
			b.Status.Phase, b.Status.Reason = api.BackupPhase(value), "because"
		default:
			err = fmt.Errorf("unknown word %q", w)
		}
		if err != nil {
			return err
		}
	}
	o.Recovery.Backups = append(o.Recovery.Backups, b)
	return nil
}

// parseEtcdRestore reads a line such as: etcdrestore phase=Stopping [ours|earlier] [committed].
func parseEtcdRestore(o *plan.Observation, words []string) error {
	r := &api.EtcdRestore{ObjectMeta: metav1.ObjectMeta{Name: "c", Namespace: "ns", UID: "restore"}}
	for _, w := range words {
		key, value, _ := strings.Cut(w, "=")
		switch key {
		case "phase":
			r.Status.Phase, r.Status.Reason, r.Status.Succeeded = api.RestorePhase(value), "because", value == "Succeeded"
		case "ours":
			metav1.SetMetaDataAnnotation(&r.ObjectMeta, api.RecoveryAnnotation, begunInScripts)
		case "earlier":
			metav1.SetMetaDataAnnotation(&r.ObjectMeta, api.RecoveryAnnotation, "2026-01-01T10:00:00Z")
		case "committed":
			r.Status.Backup, r.Status.Cluster = &api.RestoredBackup{}, &runtime.RawExtension{}
		case "deleting":
			r.DeletionTimestamp = &metav1.Time{Time: o.Now}
		default:
			return fmt.Errorf("unknown word %q", w)
		}
	}
	o.Recovery.Restore = r
	return nil
}

// recoveryInFull shows the ways out and the choice, as the status has them.
func recoveryInFull(o *plan.Observation, s plan.Step) string {
	st := statusAfter(o, s, 1).Recovery
	if st == nil {
		return ""
	}
	var text strings.Builder
	for _, w := range st.Ways {
		fmt.Fprintf(&text, "\n  way %s %s%s revision=%d term=%d index=%d: %s", w.Way, w.Member, w.Backup, w.Revision, w.RaftTerm, w.RaftIndex, w.Message)
	}
	if a := st.Automatic; a != nil {
		fmt.Fprintf(&text, "\n  automatic %s %s at=%s: %s", a.Phase, a.Value, a.Time, a.Message)
	}
	if c := st.Choice; c != nil {
		fmt.Fprintf(&text, "\n  choice %s: %s startDate=%s revision=%d backup=%s: %s", c.Value, c.Phase, c.StartDate, c.Revision, c.Backup, c.Reason)
		if c.Automatic {
			text.WriteString(" (automatic)")
		}
	}
	return strings.TrimRight(text.String(), ": ")
}

// parseNotServing reads a word of a pod:
//
//	not-serving=1:80      the member with this ID runs, serves no clients, and holds this revision
//	data-server=2:state   the second container that serves its data: running, waiting or ended
func parseNotServing(o *plan.Observation, p *manifest.PodState, key, value string) error {
	number, rest, _ := strings.Cut(value, ":")
	n, err := strconv.ParseUint(number, 16, 32)
	if err != nil {
		return err
	}
	if key == "data-server" {
		p.DataServer = manifest.DataServer{Begun: int(n), Running: rest == "running", Ended: rest == "ended"}
		if rest != "running" {
			p.DataServer.Problem = "a problem"
		}
		return nil
	}
	revision, err := strconv.ParseInt(rest, 10, 64)
	if o.Recovery.NotServing == nil {
		o.Recovery.NotServing = map[string]etcd.Status{}
	}
	o.Recovery.NotServing[p.Name] = etcd.Status{MemberID: n, Revision: revision, RaftTerm: 4, RaftIndex: 5000, RaftApplied: 5000}
	return err
}
