// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"encoding/json"
	"strings"

	"github.com/etcd-operator/etcd-operator/pkg/notice"
)

// etcdUsage ends the usage that etcd prints for an unknown flag. Kubernetes does not keep the
// lines before it, with the reason.
const etcdUsage = "Run the stateless etcd v3 gRPC L7 reverse proxy."

// lastWords returns the line of a container's termination message with the reason: a panic, a
// fatal log entry of etcd, or else the last line. It bounds the length, because the line
// becomes a part of events and status.
func failureLine(message string) string {
	if strings.Contains(message, etcdUsage) {
		return "etcd does not know one of its flags, and printed its usage; see the first lines of its log, and spec.pod.extraArgs"
	}
	lines := strings.Split(strings.TrimSpace(message), "\n")
	for _, line := range lines {
		if strings.HasPrefix(line, "panic: ") {
			return notice.Shorten(line, 300)
		}
		var entry struct{ Level, Msg, Error string }
		if json.Unmarshal([]byte(line), &entry) == nil && (entry.Level == "fatal" || entry.Level == "panic") {
			return notice.Shorten(strings.TrimSuffix(entry.Msg+": "+entry.Error, ": "), 300)
		}
	}
	return notice.Shorten(lines[len(lines)-1], 300)
}
