// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// formerMember is a member of the etcd that is imported: a process on a host outside of Kubernetes, which
// a tool of somebody else starts again whenever it ends.
type formerMember struct {
	run   *podRun
	disk  *disk
	flags flags
	next  time.Time // it does not start before
}

func peerURL(name string) string { return "http://" + name + ".old.ns.svc:2380" }

func clientURL(name string) string { return "http://" + name + ".old.ns.svc:2379" }

// startFormers starts the etcd that is imported.
func (w *world) startFormers(n int) []*formerMember {
	initial := map[string]string{}
	for i := range n {
		name := fmt.Sprintf("old-%d", i)
		initial[peerURL(name)] = name
	}
	var formers []*formerMember
	for i := range n {
		name := fmt.Sprintf("old-%d", i)
		host := &node{w: w, name: "host-of-" + name, up: true, seen: time.Now(), runs: map[types.UID]*podRun{}}
		f := &formerMember{
			run:  &podRun{w: w, node: host, uid: types.UID(name), name: name, stage: inEtcd},
			disk: &disk{}, flags: flags{name: name, token: "old", fresh: true, initialCluster: initial},
		}
		host.add(f.run)
		w.hosts[peerURL(name)] = name
		w.addresses[clientURL(name)] = f.run
		formers = append(formers, f)
		w.every(time.Duration(i)*31*time.Millisecond, kubeletPeriod, f.sync)
	}
	return formers
}

// sync starts the process if it has ended, unless its member was removed.
func (f *formerMember) sync() {
	r, w := f.run, f.run.w
	if r.proc != nil && r.proc.stopped {
		w.narrate(r.name, "etcd ends: %s", r.proc.why)
		f.next = time.Now().Add(w.life.between(time.Second, 5*time.Second, "former", r.name, w.nth("former", r.name)))
		if strings.Contains(r.proc.why, "permanently removed") {
			f.next = w.start.Add(1000 * time.Hour)
		}
		r.proc = nil
	}
	if !r.node.up || r.proc != nil || time.Now().Before(f.next) {
		return
	}
	m, err := w.startMember(r, f.disk, f.flags, oldVersion)
	if err != nil || m.stopped {
		f.next = time.Now().Add(5 * time.Second)
		return
	}
	r.proc = m
}

// kill ends the process.
func (f *formerMember) kill() {
	if f.run.proc != nil {
		f.run.proc.stop("killed")
	}
}

func (f *formerMember) powerOff() {
	f.run.node.up = false
	if f.run.proc != nil {
		f.run.proc.stop("the power is off")
	}
}

func (f *formerMember) powerOn() { f.run.node.up = true }

// serving returns the former members that serve clients.
func (i *imports) serving() []*podRun {
	if i == nil {
		return nil
	}
	var runs []*podRun
	for _, f := range i.formers {
		if r := f.run; r.node.up && r.proc != nil && !r.proc.stopped && r.proc.serving {
			runs = append(runs, r)
		}
	}
	return runs
}

// formerAt returns the process of a former member at a host name.
func (i *imports) formerAt(name string) *member {
	if i == nil {
		return nil
	}
	for _, f := range i.formers {
		if r := f.run; r.name == name && r.node.up && r.proc != nil && !r.proc.stopped {
			return r.proc
		}
	}
	return nil
}

// keeps reports whether a former member's data is on a host that can come back.
func (i *imports) keeps(id uint64) bool {
	return i != nil && slices.ContainsFunc(i.formers, func(f *formerMember) bool {
		return f.disk.hasData() && f.disk.member == id && !f.run.node.gone
	})
}
