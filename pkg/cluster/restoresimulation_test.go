// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"cmp"
	"fmt"

	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/cluster/plan"
	"github.com/etcd-operator/etcd-operator/pkg/etcd"
	"github.com/etcd-operator/etcd-operator/pkg/manifest"
)

// modelRestore is the restore by which a simulated life begins, if it does.
type modelRestore struct {
	source             *api.SeedBackup // what the annotation says
	hidden, unreadable bool            // the annotation is gone, or invalid
	content            string          // that the seed has started on: its UID
	alarm              bool            // came with the backup
}

func (r *modelRestore) observe(o *plan.Observation) {
	switch {
	case r.source == nil || r.hidden:
	case r.unreadable:
		o.SourceUnreadable = "it can't be read"
	default:
		o.Source = r.source
	}
}

// check compares the new record with the actual state.
func (r *modelRestore) check(m *model, s plan.Step) {
	if _, ok := s.(plan.MarkRunning); !ok || r.source == nil || r.content == "" {
		return
	}
	if from := m.status.RestoredFrom; from != nil && string(from.RestoreUID) != r.content {
		m.t.Errorf("on record is a restore from %s, and the data is of %s", from.RestoreUID, r.content)
	}
}

// starts looks at the data with which a seed starts.
func (r *modelRestore) starts(m *model, p *modelPod) {
	if r.source == nil {
		return
	}
	content := p.content
	if v := m.volumes[p.Name]; v != nil {
		content = v.content
	}
	if p.Source == nil || content != string(p.Source.RestoreUID) {
		m.t.Errorf("seed %s starts on the data of %q", p.Name, content)
	}
	r.content, r.alarm = content, true
}

// alarms returns the alarms that the members report.
func (r *modelRestore) alarms() []etcd.Alarm {
	if !r.alarm {
		return nil
	}
	return []etcd.Alarm{{MemberID: formerMember, Type: etcd.AlarmNoSpace}}
}

// formerMember is the ID of a member of the cluster in the backup.
const formerMember = 1 << 40

// serves reports whether clients can write, unless the operator has to ask a person. It asks if
// the record of the restore is lost.
func (r *modelRestore) serves(m *model) bool {
	return !r.alarm || m.status.RestoredFrom == nil
}

// trouble is what others do to the annotation before the cluster serves.
func (r *modelRestore) trouble(m *model) {
	if r.source == nil || m.status.RestoredFrom == nil || m.rand.IntN(4) > 0 {
		return
	}
	switch m.rand.IntN(4) {
	case 0:
		r.hidden = !r.hidden
	case 1:
		r.unreadable = !r.unreadable
	case 2:
		m.serial++
		r.source = scriptSource(fmt.Sprintf("r%d", m.serial))
	case 3:
		r.source = scriptSource(string(r.source.RestoreUID) + ":moved")
	}
	m.note("!! the annotation says %s; gone %t, unreadable %t", r.source.RestoreUID, r.hidden, r.unreadable)
}

// restoreStage lets a seed fetch the backup, and then restore it, unless its volume
// holds data: then it continues with that.
func (m *model) restoreStage(p *modelPod) {
	p.stage++
	if p.stage < 2 {
		return
	}
	if v := m.volumes[p.Name]; v != nil {
		v.content = cmp.Or(v.content, string(p.Source.RestoreUID))
		return
	}
	p.content = string(p.Source.RestoreUID)
}

func (p *modelPod) preparing() string {
	switch {
	case p.Source != nil && p.stage < 2:
		return []string{manifest.FetchContainer, manifest.RestoreContainer}[p.stage]
	case p.started:
		return ""
	}
	return manifest.CheckDNSContainer
}
