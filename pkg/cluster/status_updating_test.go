// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import "testing"

func TestUpdatingTellsHowFarAnEditIs(t *testing.T) {
	const volumes = "\nvolume a\nvolume b refused"
	for name, tc := range map[string]struct{ world, status, reason, message string }{
		"nothing to follow":     {world: "cluster template=t size=2\nmember a leader\nmember b"},
		"under way":             {"cluster template=t size=2\nmember a leader template=old\nmember b", "True", "Cluster updating", "1 of 2 members follow the spec"},
		"a new pod that waits":  {"cluster template=t size=1\nmember a leader template=old\npod n stuck", "True", "Cluster updating", "0 of 1 members follow the spec; the new n waits: no node"},
		"pods are refused":      {"cluster template=t update-refused size=1\nmember a leader template=old", "False", "Update refused", "Kubernetes refuses the pods that the spec describes; the members stay as they are: no"},
		"a volume can't grow":   {"cluster template=t storage=2Gi size=2\nmember a leader\nmember b" + volumes, "False", "Volume expansion refused", "no"},
		"an edit, and a volume": {"cluster template=t storage=2Gi size=2\nmember a leader template=old\nmember b" + volumes, "True", "Cluster updating", "1 of 2 members follow the spec"},
	} {
		t.Run(name, func(t *testing.T) {
			o, err := parseWorld(tc.world)
			if err != nil {
				t.Fatal(err)
			}
			status, reason, message := updating(o)
			if string(status) != tc.status || reason != tc.reason || message != tc.message {
				t.Errorf("%s, %q, %q", status, reason, message)
			}
		})
	}
}
