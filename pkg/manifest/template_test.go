// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"testing"

	"sigs.k8s.io/yaml"

	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

// A digest here that changes restarts every member of every user with such a spec, when the
// operator is upgraded. So correct what changed it: a field of the templates without omitempty, a
// default, or the JSON of a dependency. Only the digest of a case that is new may be new.
func TestTheTemplateOfASpecIsTheSameInEachRelease(t *testing.T) {
	const cas = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
	const emptyDir = "c0b9e15d6ccbf68b"
	bare := Template{Pod: "bc418a9fa0caa92a", Volume: emptyDir}
	for name, tc := range map[string]struct {
		spec         string
		certificates string // as pkg/cluster composes them: CAs, and the forms of the Secrets
		want         Template
	}{
		"no policy":       {`{size: 3}`, "", bare},
		"an empty policy": {`{size: 3, pod: {}}`, "", bare},
		"what running members follow in place, or new pods alone": {`
size: 5
version: 3.6.16
repository: registry.example.com/etcd
paused: true
service: {name: s}
TLS: {static: {operatorSecret: operators}}
pod:
  labels: {team: storage}
  annotations: {example.com/scrape: "true"}
  busyboxImage: busybox:1.28
  DNSTimeoutInSecond: 60
  ClusterDomain: .cluster.local
`, "", bare},
		"every field": {`
size: 3
priorityClassName: important
TLS: {static: {member: {peerSecret: peers, serverSecret: servers}, operatorSecret: operators}}
pod:
  nodeSelector: {disk: ssd, zone: a}
  affinity:
    nodeAffinity:
      requiredDuringSchedulingIgnoredDuringExecution:
        nodeSelectorTerms: [{matchExpressions: [{key: disk, operator: In, values: [ssd]}]}]
    podAntiAffinity:
      preferredDuringSchedulingIgnoredDuringExecution:
      - {weight: 1, podAffinityTerm: {topologyKey: rack, labelSelector: {matchLabels: {etcd_cluster: c}}}}
  antiAffinity: true
  tolerations: [{key: dedicated, operator: Equal, value: etcd, effect: NoExecute, tolerationSeconds: 60}]
  topologySpreadConstraints:
  - {maxSkew: 1, topologyKey: rack, whenUnsatisfiable: DoNotSchedule, labelSelector: {matchLabels: {app: etcd}}}
  resources: {requests: {cpu: "0.5", memory: 1024Mi}, limits: {memory: 2Gi}}
  etcdEnv:
  - {name: ETCD_AUTO_COMPACTION_RETENTION, value: "1"}
  - {name: ETCD_LOG_LEVEL, valueFrom: {configMapKeyRef: {name: logs, key: level}}}
  extraArgs: [--quota-backend-bytes=8589934592]
  securityContext: {runAsUser: 1000, runAsGroup: 1000, fsGroup: 2000, seccompProfile: {type: RuntimeDefault}}
  imagePullSecrets: [{name: registry}]
  serviceAccountName: etcd
  priorityClassName: ignored
  persistentVolumeClaimSpec:
    storageClassName: fast
    accessModes: [ReadWriteOncePod]
    selector: {matchLabels: {disk: ssd}}
    resources: {requests: {storage: 8Gi}, limits: {storage: 16Gi}}
`, cas + "0 0", Template{Pod: "aa0bf11e46b9df7b", Volume: "a20789784fcf0bcd"}},
		"antiAffinity":                                {`{size: 3, pod: {antiAffinity: true}}`, "", Template{Pod: "8a18df97c403d039", Volume: emptyDir}},
		"no constraints":                              {`{size: 3, pod: {topologySpreadConstraints: []}}`, "", Template{Pod: "08863303e433d011", Volume: emptyDir}},
		"the priority below pod":                      {`{size: 3, pod: {priorityClassName: important}}`, "", Template{Pod: "221d6128a96f0153", Volume: emptyDir}},
		"in memory":                                   {`{size: 3, pod: {tmpfs: true}}`, "", Template{Pod: bare.Pod, Volume: "8b6c57afe9f90b77"}},
		"on a volume that has grown":                  {`{size: 3, pod: {persistentVolumeClaimSpec: {resources: {requests: {storage: 9Gi}}}}}`, "", Template{Pod: bare.Pod, Volume: "433441bd9c428226"}},
		"on a volume":                                 {`{size: 3, pod: {persistentVolumeClaimSpec: {resources: {requests: {storage: 1Gi}}}}}`, "", Template{Pod: bare.Pod, Volume: "433441bd9c428226"}},
		"TLS, before its Secrets are read":            {tlsSpec, "", Template{Pod: "93e843fb4709a585", Volume: emptyDir}},
		"TLS, in the form of v0.9.4":                  {tlsSpec, cas + "0 0", Template{Pod: "e65f94c851aaddc4", Volume: emptyDir}},
		"TLS, in the form of cert-manager":            {tlsSpec, cas + "1 1", Template{Pod: "6b59cb83d3b98c63", Volume: emptyDir}},
		"TLS, of peers in the form of cert-manager":   {tlsSpec, cas + "1 0", Template{Pod: "b73bf051570cbd6d", Volume: emptyDir}},
		"TLS, of clients in the form of cert-manager": {tlsSpec, cas + "0 1", Template{Pod: "71c57a1d226c7dc4", Volume: emptyDir}},
	} {
		t.Run(name, func(t *testing.T) {
			var spec api.ClusterSpec
			if err := yaml.UnmarshalStrict([]byte(tc.spec), &spec); err != nil {
				t.Fatal(err)
			}
			if got, err := TemplateOf(&spec, tc.certificates); err != nil || got != tc.want {
				t.Errorf("the templates are %+v, want %+v: %v", got, tc.want, err)
			}
		})
	}
}

const tlsSpec = `{size: 3, TLS: {static: {member: {peerSecret: peers, serverSecret: servers}, operatorSecret: operators}}}`
