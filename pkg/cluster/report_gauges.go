// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/cluster/plan"
)

// clusterGauge is one number of each cluster, from the last pass.
type clusterGauge func(o *plan.Observation, st *api.ClusterStatus) float64

// clusterGauges are the numbers of each cluster for alerts and dashboards. Their labels are
// only the cluster's namespace and name: members come and go, and export their own metrics.
type clusterGauges struct {
	table  *gaugeTable
	ofPass []clusterGauge // in the columns from firstOfPass on
}

const (
	lastPass = iota // columns
	failing
	firstOfPass
)

func newClusterGauges() clusterGauges {
	g := clusterGauges{table: newGaugeTable()}
	g.table.add("last_pass_timestamp_seconds", "When the last pass over the cluster ended, whether it failed or not, or the last look at it.")
	g.table.add("failed_passes", "Number of passes in a row, up to now, that ended with an error.")
	gauge := func(name, help string, value clusterGauge) {
		g.table.add(name, help)
		g.ofPass = append(g.ofPass, value)
	}
	gauge("available", "1 while the condition Available is True: the cluster serves reads and writes.", func(_ *plan.Observation, st *api.ClusterStatus) float64 {
		return truth(conditionIsTrue(st, api.ClusterConditionAvailable))
	})
	gauge("availability_unknown", "1 while the condition Available is Unknown: the operator can't connect to the members, and Kubernetes finds enough of them ready.", func(_ *plan.Observation, st *api.ClusterStatus) float64 {
		return truth(st.Condition(api.ClusterConditionAvailable).Status == corev1.ConditionUnknown)
	})
	gauge("data_missing", "1 while the cluster contradicts what is on record: it has lost members or data, and the operator changes nothing.", func(_ *plan.Observation, st *api.ClusterStatus) float64 {
		return truth(contradicts(st.Condition(api.ClusterConditionAvailable)))
	})
	gauge("bootstrapped", "1 once the first member has served: from there on there is data.", func(_ *plan.Observation, st *api.ClusterStatus) float64 {
		ran := st.Phase == api.ClusterPhaseRunning || st.Phase == api.ClusterPhaseFailed
		return truth(ran && st.Condition(api.ClusterConditionAvailable).Reason != reasonImporting)
	})
	gauge("size", "Number of members that the spec asks for.", func(o *plan.Observation, _ *api.ClusterStatus) float64 {
		return float64(o.Spec.Size)
	})
	gauge("members", "Number of members that etcd itself counts.", func(_ *plan.Observation, st *api.ClusterStatus) float64 {
		return float64(st.Size)
	})
	gauge("voters", "Number of members with a vote.", func(o *plan.Observation, _ *api.ClusterStatus) float64 {
		return float64(len(o.Voters()))
	})
	gauge("healthy_members", "Number of members that answer and take part in a quorum.", func(_ *plan.Observation, st *api.ClusterStatus) float64 {
		n := 0
		for _, m := range st.MemberStatuses {
			if m.Healthy {
				n++
			}
		}
		return float64(n)
	})
	gauge("alarms", "Number of alarms that hold in the cluster.", func(o *plan.Observation, _ *api.ClusterStatus) float64 {
		return float64(len(o.Alarms()))
	})
	gauge("db_size_bytes", "Size of the largest database file of a member.", func(o *plan.Observation, _ *api.ClusterStatus) float64 {
		return largest(o, func(m api.MemberStatus) int64 { return m.DBSize })
	})
	gauge("raft_index_lag", "Raft entries that the member which lags most has not applied.", func(o *plan.Observation, _ *api.ClusterStatus) float64 {
		return largest(o, func(m api.MemberStatus) int64 { return m.RaftIndexLag })
	})
	gauge("paused", "1 while the operator leaves the cluster alone because of spec.paused.", func(_ *plan.Observation, st *api.ClusterStatus) float64 {
		return truth(st.ControlPaused)
	})
	gauge("refused", "1 while the spec, a part of it, or its version is refused.", func(o *plan.Observation, _ *api.ClusterStatus) float64 {
		return truth(!specRefusal(o).IsZero() || !toleration(o).IsZero())
	})
	gauge("upgrading", "1 while members move to another version.", func(_ *plan.Observation, st *api.ClusterStatus) float64 {
		return truth(st.TargetVersion != "")
	})
	gauge("recovering", "1 while the operators take a way out of a lost quorum.", func(_ *plan.Observation, st *api.ClusterStatus) float64 {
		return truth(recovers(st.Recovery))
	})
	gauge("recovery_needs_person", "1 while a quorum is lost, and the operators wait for a person to choose a way out.", func(_ *plan.Observation, st *api.ClusterStatus) float64 {
		return truth(needsPerson(st.Recovery))
	})
	gauge("import_needs_person", "1 while an import waits until a person sets spec.importFrom.commit.", func(_ *plan.Observation, st *api.ClusterStatus) float64 {
		return truth(st.Import != nil && (st.Import.Phase == api.ImportPrepared || st.Import.Phase == api.ImportJoined))
	})
	return g
}

// saw stores the results of a pass.
func (g clusterGauges) saw(obj *api.EtcdCluster, o *plan.Observation, st *api.ClusterStatus) {
	values := make([]float64, len(g.ofPass))
	for i, value := range g.ofPass {
		values[i] = value(o, st)
	}
	g.table.set(keyOf(obj), firstOfPass, values...)
}

func (g clusterGauges) passEnded(obj *api.EtcdCluster, at time.Time, failures int) {
	g.table.set(keyOf(obj), lastPass, float64(at.UnixMilli())/1000, float64(failures))
}

// forget drops the numbers of a cluster that this operator no longer manages: otherwise the
// last ones would stay forever.
func (g clusterGauges) forget(obj *api.EtcdCluster) { g.table.forget(keyOf(obj)) }

func keyOf(obj *api.EtcdCluster) types.NamespacedName {
	return types.NamespacedName{Namespace: obj.Namespace, Name: obj.Name}
}

// recovers reports whether the operators take a way out of a lost quorum. r is nil with a quorum.
func recovers(r *api.RecoveryStatus) bool {
	return r != nil && r.Choice != nil && (r.Choice.Phase == api.RecoveryBackingUp || r.Choice.Phase == api.RecoveryRestoring)
}

// needsPerson reports whether neither a choice nor the automatic recovery does anything.
func needsPerson(r *api.RecoveryStatus) bool {
	return r != nil && !recovers(r) && (r.Choice != nil || r.Automatic == nil || r.Automatic.Phase != api.AutomaticWaiting)
}

func truth(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

// largest uses the members' current answers; the status may be a tenth off.
func largest(o *plan.Observation, of func(api.MemberStatus) int64) float64 {
	var n int64
	for _, m := range memberStatuses(o) {
		n = max(n, of(m))
	}
	return float64(n)
}
