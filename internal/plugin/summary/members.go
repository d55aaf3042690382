// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package summary

import (
	"cmp"
	"errors"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/etcd-operator/etcd-operator/internal/plugin/observe"
	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/etcd"
)

// Role is what a member or a pod is to the cluster.
type Role string

// The roles of members and pods.
const (
	Leader   Role = "leader"
	Follower Role = "follower"
	Learner  Role = "learner"
	// Silent is a member that does not answer.
	Silent Role = "no answer"
	// NoMember is a pod that belongs to no member: it waits to join, or was removed.
	NoMember Role = "not joined"
)

// Member is a member, or a pod that belongs to none.
type Member struct {
	Name    string `json:"name"`
	ID      string `json:"id,omitempty"`
	Role    Role   `json:"role"`
	Healthy bool   `json:"healthy"`
	Version string `json:"version,omitempty"`
	// Sizes are in bytes.
	DBSize  int64    `json:"dbSize,omitempty"`
	DBInUse int64    `json:"dbSizeInUse,omitempty"`
	DBQuota int64    `json:"dbQuota,omitempty"`
	Lag     int64    `json:"raftIndexLag"`
	Alarms  []string `json:"alarms,omitempty"`
	// FsyncP99 is in seconds; absent where it is not known.
	FsyncP99 *float64 `json:"fsyncP99Seconds,omitempty"`
	Node     string   `json:"node,omitempty"`
	Zone     string   `json:"zone,omitempty"`
	Restarts int32    `json:"restarts,omitempty"`
	// Problem is why the member is not healthy, or what its pod waits for.
	Problem string `json:"problem,omitempty"`

	learner bool
	// slowDisk is whether enough writes were slow.
	slowDisk bool
	// reported is whether the plugin has the operator's word alone for the member, beside answers of others.
	reported bool
}

// Asked reports whether the plugin could have asked the member itself.
func (m Member) Asked() bool { return !m.reported }

// Votes reports whether the member has a vote.
func (m Member) Votes() bool { return m.ID != "" && !m.learner }

// members lists the membership, and the pods that belong to nobody in it.
func members(c, earlier *observe.Cluster) []Member {
	ahead := uint64(0)
	for _, a := range c.Answers {
		if a.Err == nil {
			ahead = max(ahead, a.Status.RaftIndex)
		}
	}
	list := []Member{}
	shown := map[string]bool{}
	for _, m := range c.Members {
		entry := Member{Name: cmp.Or(m.Name, strings.Split(m.Host(), ".")[0]), ID: etcd.FormatID(m.ID), Role: Silent, learner: m.Learner}
		pod := c.Pod(entry.Name)
		entry.place(c, pod)
		shown[entry.Name] = true
		switch a := c.Answer(m.ID); {
		case a != nil:
			entry.answered(a, ahead, earlier)
		case pod == nil && former(c, entry.ID):
			entry = formerMember(c, entry)
		case pod == nil:
			entry.Problem = "it has no pod"
		default:
			entry.Problem = cmp.Or(podProblem(pod), silence(c, pod.Name))
		}
		list = append(list, entry)
	}
	for i := range c.Pods {
		pod := &c.Pods[i]
		if shown[pod.Name] {
			continue
		}
		entry := Member{Name: pod.Name, Role: NoMember}
		if len(c.Members) == 0 {
			entry.Role = Silent // nobody has said who the members are
		}
		entry.place(c, pod)
		entry.Problem = cmp.Or(podProblem(pod), silence(c, pod.Name))
		list = append(list, entry)
	}
	slices.SortFunc(list, func(a, b Member) int { return cmp.Compare(a.Name, b.Name) })
	return list
}

// former reports whether a member is one of an import's running etcd. It has no pod of the cluster.
func former(c *observe.Cluster, id string) bool {
	return c.Object.Status.Import != nil && c.Object.Status.Import.Has(id)
}

// formerMember is a member that the plugin cannot ask, as the operator last saw it. Without a quorum now, that is
// no news.
func formerMember(c *observe.Cluster, m Member) Member {
	for _, st := range c.Object.Status.MemberStatuses {
		if st.ID != m.ID {
			continue
		}
		learner := m.learner
		m = memberOfStatus(st)
		m.learner, m.reported = learner, true
		if m.Healthy && !c.Quorum() {
			m.Healthy, m.Problem = false, "the operator last saw it well, and no quorum confirms reads now"
		}
		return m
	}
	m.Problem = "it is a former member of the import, which the plugin does not ask"
	return m
}

// memberOfStatus is a member as the operator last saw it.
func memberOfStatus(m api.MemberStatus) Member {
	entry := Member{
		Name: m.Name, ID: m.ID, Role: Follower, Healthy: m.Healthy, Version: m.Version, DBSize: m.DBSize,
		DBInUse: m.DBSizeInUse, Lag: m.RaftIndexLag, Alarms: m.Alarms, Problem: m.Problem, learner: m.Learner,
	}
	switch {
	case m.Learner:
		entry.Role = Learner
	case m.Leader:
		entry.Role = Leader
	case m.Version == "":
		entry.Role = Silent
	}
	return entry
}

// place adds what is known of the pod.
func (m *Member) place(c *observe.Cluster, pod *corev1.Pod) {
	if pod == nil {
		return
	}
	m.Node = pod.Spec.NodeName
	m.Zone = c.Zones[m.Node]
	for _, s := range pod.Status.ContainerStatuses {
		if s.Name == "etcd" {
			m.Restarts = s.RestartCount
		}
	}
}

// answered adds what the member says.
func (m *Member) answered(a *observe.Answer, ahead uint64, earlier *observe.Cluster) {
	st := a.Status
	m.Version, m.DBSize, m.DBInUse, m.DBQuota = st.Version, st.DBSize, st.DBInUse, st.DBQuota
	m.learner = m.learner || st.Learner
	m.Healthy = a.Commits == nil && st.LeaderID != 0
	if ahead > st.RaftApplied {
		m.Lag = int64(ahead - st.RaftApplied) // raft indexes stay below 2^63
	}
	for _, alarm := range st.Alarms {
		if alarm.MemberID == st.MemberID {
			m.Alarms = append(m.Alarms, alarm.Type)
		}
	}
	switch {
	case m.learner:
		m.Role = Learner
		// A learner confirms no reads of its own.
		m.Healthy = st.LeaderID != 0
	case st.LeaderID == st.MemberID:
		m.Role = Leader
	default:
		m.Role = Follower
	}
	switch {
	case st.LeaderID == 0:
		m.Problem = "it knows no leader"
	case !m.Healthy:
		m.Problem = "it confirms no reads: " + short(a.Commits)
	}
	if a.Metrics != nil {
		fsync := a.Metrics.WALFsync
		if before := metricsOf(earlier, st.MemberID); before != nil && before.Started == a.Metrics.Started {
			fsync = fsync.Since(before.WALFsync)
		}
		p99, ok := fsync.Quantile(0.99)
		if !ok { // nothing was written in between
			p99, ok = a.Metrics.WALFsync.Quantile(0.99)
		}
		if ok {
			m.FsyncP99 = &p99
			m.slowDisk = p99 >= slowFsync && a.Metrics.WALFsync.Events() >= fewFsyncs
		}
	}
}

func metricsOf(c *observe.Cluster, id uint64) *observe.Metrics {
	if c == nil {
		return nil
	}
	if a := c.Answer(id); a != nil {
		return a.Metrics
	}
	return nil
}

// silence is why a pod that runs has not answered.
func silence(c *observe.Cluster, pod string) string {
	for _, a := range c.Answers {
		if a.Pod == pod && a.Err != nil {
			return short(a.Err)
		}
	}
	return ""
}

// short is the end of an error's chain, which says why.
func short(err error) string {
	if err == nil {
		return ""
	}
	if errors.Is(err, etcd.ErrTLS) {
		return "TLS: " + etcd.TLSCause(err)
	}
	text := err.Error()
	if strings.Contains(text, "context deadline exceeded") || strings.Contains(text, "DeadlineExceeded") {
		return "no answer within 5 s"
	}
	if _, desc, ok := strings.Cut(text, "desc = "); ok {
		text = desc
	}
	const limit = 160
	if runes := []rune(text); len(runes) > limit {
		text = string(runes[:limit]) + "…"
	}
	return text
}

// podProblem is why a pod's etcd does not run, as Kubernetes says it.
func podProblem(pod *corev1.Pod) string {
	if pod.DeletionTimestamp != nil {
		return "its pod is being deleted"
	}
	for _, condition := range pod.Status.Conditions {
		if condition.Type == corev1.PodScheduled && condition.Status == corev1.ConditionFalse {
			return "its pod is not scheduled: " + condition.Message
		}
	}
	for _, s := range append(slices.Clone(pod.Status.InitContainerStatuses), pod.Status.ContainerStatuses...) {
		switch {
		case s.State.Waiting != nil && s.State.Waiting.Reason != "" && s.State.Waiting.Reason != "PodInitializing":
			text := s.Name + ": " + s.State.Waiting.Reason
			if message := strings.TrimSpace(s.State.Waiting.Message); message != "" {
				text += ": " + message
			}
			return short(errors.New(text))
		case s.State.Terminated != nil && s.State.Terminated.ExitCode != 0:
			return short(errors.New(s.Name + " has ended: " + cmp.Or(strings.TrimSpace(s.State.Terminated.Message), s.State.Terminated.Reason)))
		}
	}
	if !observe.Running(pod) {
		return "its pod starts"
	}
	return ""
}

// membersOfStatus lists the members as the operator last saw them. That may be long ago: what Kubernetes
// says of a pod now comes first.
func membersOfStatus(c *observe.Cluster) []Member {
	list := []Member{}
	for _, m := range c.Object.Status.MemberStatuses {
		entry := memberOfStatus(m)
		pod := c.Pod(m.Name)
		entry.place(c, pod)
		if problem := podLost(pod); problem != "" && !former(c, m.ID) {
			entry.lost(problem)
		}
		list = append(list, entry)
	}
	slices.SortFunc(list, func(a, b Member) int { return cmp.Compare(a.Name, b.Name) })
	return list
}

// podLost is why no healthy member runs in a pod; "" if one may.
func podLost(pod *corev1.Pod) string {
	if pod == nil {
		return "it has no pod"
	}
	for _, condition := range pod.Status.Conditions {
		if condition.Type == corev1.PodReady && condition.Status != corev1.ConditionTrue {
			return cmp.Or(podProblem(pod), "its pod is not ready")
		}
	}
	return podProblem(pod)
}

// lost notes that the member has failed since the operator saw it.
func (m *Member) lost(problem string) {
	if m.Healthy || m.Problem == "" {
		m.Problem = problem
	}
	if m.Healthy = false; !m.learner {
		m.Role = Silent
	}
}
