// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package v1beta2

import (
	"strings"
)

// ReservedSettings are settings of etcd that users cannot change, with the reason. etcd
// reads a setting from a flag (--data-dir) or an environment variable (ETCD_DATA_DIR).
// The CRD's schema (hack/crdrules) and ValidateEtcdCluster refuse both.
//
// +k8s:deepcopy-gen=false
type ReservedSettings struct {
	// Reason ends the messages to users.
	Reason string
	// Flags without their dashes. A final * stands for any ending.
	Flags []string
}

// Reserved returns the settings that users cannot change.
func Reserved() []ReservedSettings {
	return []ReservedSettings{
		{
			Reason: "the operator sets them itself, for each member",
			Flags: []string{
				"advertise-client-urls", "data-dir", "experimental-max-learners", "initial-advertise-peer-urls",
				"initial-cluster", "initial-cluster-state", "initial-cluster-token", "listen-client-http-urls",
				"listen-client-urls", "listen-metrics-urls", "listen-peer-urls", "max-learners", "name", "wal-dir",
			},
		},
		{
			Reason: "the operator sets them as spec.TLS says",
			Flags: []string{
				"auto-tls", "ca-file", "cert-file", "client-cert-auth", "client-cert-file", "client-crl-file", "client-key-file",
				"key-file", "peer-auto-tls", "peer-ca-file", "peer-cert-file", "peer-client-cert-auth", "peer-client-cert-file",
				"peer-client-key-file", "peer-crl-file", "peer-key-file", "peer-trusted-ca-file", "trusted-ca-file",
			},
		},
		{
			Reason: "with them etcd would start as something else than a member of this cluster",
			Flags: []string{
				"config-file", "discovery*", "force-new-cluster*", "h", "help", "proxy*", "strict-reconfig-check", "version",
			},
		},
	}
}

// FlagPattern is the regular expression, without anchors, of the group's flags.
func (r ReservedSettings) FlagPattern() string {
	return "--" + r.oneOf("[a-z0-9-]*", func(flag string) string { return flag })
}

// EnvPattern is the regular expression, without anchors, of the variables that
// etcd reads for the group's flags.
func (r ReservedSettings) EnvPattern() string { return r.oneOf("[A-Z0-9_]*", envOfFlag) }

// ArgumentsRefused is the message about flags of the group.
func (r ReservedSettings) ArgumentsRefused() string {
	return "extraArgs must not contain any of --" + strings.Join(r.Flags, ", --") + ": " + r.Reason
}

// EnvRefused is the message about variables of the group.
func (r ReservedSettings) EnvRefused() string {
	return "etcdEnv must not contain variables for the flags --" + strings.Join(r.Flags, ", --") +
		" (ETCD_ and the flag in capitals): " + r.Reason
}

func (r ReservedSettings) oneOf(rest string, name func(flag string) string) string {
	var names []string
	for _, flag := range r.Flags {
		prefix, more := strings.CutSuffix(flag, "*")
		n := name(prefix)
		if more {
			n += rest
		}
		names = append(names, n)
	}
	return "(" + strings.Join(names, "|") + ")"
}

// envOfFlag is the variable that etcd reads in place of a flag.
func envOfFlag(flag string) string {
	return "ETCD_" + strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))
}
