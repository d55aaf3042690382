// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package render

// A Keeping is how long DNS answers are cached, including denials. A name that was queried too
// early is missing for that long.
type Keeping struct {
	ttl   int // seconds, of the names of Services and pods
	cache string
}

// FastDNS keeps answers for a second: the names of pods resolve as soon as they exist.
const FastDNS = "fast"

// DNS are FastDNS, and users' configurations. kubeadm queries the API server's objects each
// time and lets clients cache the answer (its CoreDNS manifest). The add-on of Kubernetes and
// of many others caches both kinds of answers (cluster/addons/dns). NodeLocal DNSCache may
// precede either (cluster/addons/dns/nodelocaldns).
var DNS = map[string]Keeping{
	FastDNS:     {1, "    cache 1\n"},
	"kubeadm":   {30, "    cache 30 {\n        disable success cluster.local\n        disable denial cluster.local\n    }\n"},
	"addon":     {30, "    cache 30\n"},
	"nodelocal": {30, "    cache {\n        success 9984 30\n        denial 9984 5\n    }\n"},
}
