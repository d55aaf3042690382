// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package render

// A Keeping is how long answers of the DNS are kept, also that there is no such name. A
// name that was asked for too early is missing for that long.
type Keeping struct {
	ttl   int // seconds, of the names of Services and pods
	cache string
}

// FastDNS keeps answers for a second: the names of pods are there as soon as they are.
const FastDNS = "fast"

// DNS are FastDNS, and what users have: kubeadm asks the API server's objects each time
// and lets clients keep the answer (its CoreDNS manifest); the add-on of Kubernetes and
// of many others keeps both kinds of answers (cluster/addons/dns); and NodeLocal DNSCache
// stands before either (cluster/addons/dns/nodelocaldns).
var DNS = map[string]Keeping{
	FastDNS:     {1, "    cache 1\n"},
	"kubeadm":   {30, "    cache 30 {\n        disable success cluster.local\n        disable denial cluster.local\n    }\n"},
	"addon":     {30, "    cache 30\n"},
	"nodelocal": {30, "    cache {\n        success 9984 30\n        denial 9984 5\n    }\n"},
}
