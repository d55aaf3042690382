// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"strings"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

// edits are fields that can't change after creation, and changes of the version that etcd
// can't follow. The latter repeat etcd.CheckChange and etcd.CheckOrigin, which the operator
// uses; a test in pkg/apis/etcd/crd compares them. The rules judge a change by the lowest
// running version, so that users can revert an upgrade in progress, and only if the version
// changes.
func edits() []placed {
	const (
		running = "self.status.currentVersion"
		first   = "self.status.initialVersion"
		asked   = "self.spec.version"
		format  = `'^v?3[.][0-9]{1,6}[.][0-9]{1,6}(-[^@]*)?(@.*)?$'`
	)
	plain := func(v string) string {
		return fmt.Sprintf("(%[1]s.startsWith('v') ? %[1]s.substring(1) : %[1]s).split('@')[0]", v)
	}
	minor := func(v string) string { return fmt.Sprintf("int(%s.split('.')[1])", v) }
	patch := func(v string) string { return fmt.Sprintf("int(%s.split('.')[2].split('-')[0].split('@')[0])", v) }
	changed := fmt.Sprintf("has(%[1]s) && %[1]s != '' && (!has(oldSelf.spec.version) || %[2]s != %[3]s) && %[1]s.matches(%[4]s)",
		asked, plain(asked), plain("oldSelf.spec.version"), format)
	runs := fmt.Sprintf("has(self.status) && has(%[1]s) && %[1]s.matches(%[2]s)", running, format)
	began := fmt.Sprintf("has(%[1]s) && %[1]s.matches(%[2]s)", first, format)

	// The message is: subject, version, cant, asked version, instead.
	version := func(holds, subject, version, cant, instead string) change {
		return mustSaying(".spec.version", fmt.Sprintf("!(%s && %s) || (%s)", changed, runs, holds),
			fmt.Sprintf("%s + %s + %s + %s + %s", quote(subject), version, quote(cant), asked, quote(": "+instead)),
			"the running etcd can't follow this change of version: "+instead)
	}
	method := func(self string) string {
		return fmt.Sprintf("(has(%[1]s.spec.importFrom) && has(%[1]s.spec.importFrom.method) && %[1]s.spec.importFrom.method == 'Copy')", self)
	}
	root := at("",
		mustAt(".spec.importFrom", "has(self.spec.importFrom) || !has(oldSelf.spec.importFrom) || (has(self.status) && has(self.status.__import__) && has(self.status.__import__.completionDate))",
			"importFrom can be removed when the import is complete; to take it back, delete the EtcdCluster"),
		mustAt(".spec.importFrom.method", "!has(self.spec.importFrom) || !has(self.status) || !has(self.status.__import__) || !has(self.status.__import__.clusterID) || "+method("self")+" == "+method("oldSelf"),
			"method can't be changed once the import has begun; to take it back, delete the EtcdCluster"),
		version(minor(asked)+" >= "+minor(running), "etcd ", running, " can't be downgraded to ",
			"set the version back to what runs, or restore a backup into a new cluster"),
		version(minor(asked)+" <= "+minor(running)+" + 1", "etcd ", running, " can't go to ",
			"minor versions can't be skipped, upgrade to the next one first"),
		version(fmt.Sprintf("%s != 5 || %s != 6 || %s >= 20", minor(running), minor(asked), patch(running)), "etcd ", running, " can't go to ",
			"upgrade to 3.5.20 or a later 3.5 release first"),
		version(fmt.Sprintf("%s != 6 || %s != 7 || %s >= 11", minor(running), minor(asked), patch(running)), "etcd ", running, " can't go to ",
			"upgrade to 3.6.11 or a later 3.6 release first"),
		version(fmt.Sprintf("!(%s) || %s >= 5 || %s < 6", began, minor(first), minor(asked)), "a cluster that began with etcd ", first, " can't be upgraded to ",
			"its members would not start; make a new cluster of that version and copy the data"),
	)

	secret := func(self string, fields ...string) string {
		path := self
		var parts []string
		for _, p := range append([]string{"TLS", "static"}, fields...) {
			path += "." + p
			parts = append(parts, "has("+path+")")
		}
		return "(" + strings.Join(parts, " && ") + " && " + path + " != '')"
	}
	// As ClusterSpec.ClientTLS: v0.9.4 ignored a serverSecret without operatorSecret.
	clients := func(self string) string {
		return "(" + secret(self, "member", "serverSecret") + " && " + secret(self, "operatorSecret") + ")"
	}
	domain := func(self string) string {
		return fmt.Sprintf("[has(%[1]s.pod) && has(%[1]s.pod.ClusterDomain) ? %[1]s.pod.ClusterDomain : '']"+
			".map(d, d.startsWith('.') ? d.substring(1) : d).map(d, d.endsWith('.') ? d.substring(0, size(d) - 1) : d).map(d, d.lowerAscii())", self)
	}
	return []placed{root, at("spec",
		mustAt(".TLS", secret("self", "member", "peerSecret")+" == "+secret("oldSelf", "member", "peerSecret"),
			"TLS between members can't be turned on or off after creation: it changes their URLs; make a new cluster and copy the data"),
		mustAt(".TLS", clients("self")+" == "+clients("oldSelf"),
			"TLS for clients can't be turned on or off after creation: it changes the members' URLs; make a new cluster and copy the data"),
		mustAt(".pod", domain("self")+" == "+domain("oldSelf"),
			"ClusterDomain can't be changed after creation: it is part of the members' URLs; make a new cluster and copy the data"),
		mustAt(".importFrom", "has(oldSelf.importFrom) || !has(self.importFrom)",
			"importFrom can be set at creation only: the members of an existing cluster can't join another one"),
	)}
}

// reserved are the settings of etcd that users must not set.
func reserved() []placed {
	flags, env := at("spec.pod.extraArgs"), at("spec.pod.etcdEnv")
	for _, r := range v1beta2.Reserved() {
		flags.changes = append(flags.changes, must(fmt.Sprintf("self.all(a, !a.matches('^%s(=|$)'))", r.FlagPattern()), r.ArgumentsRefused()))
		env.changes = append(env.changes, must(fmt.Sprintf("self.all(e, !e.name.matches('^%s$'))", r.EnvPattern()), r.EnvRefused()))
	}
	return []placed{flags, env}
}
