// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package environ

import (
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/etcd-operator/etcd-operator/hack/localkube/instance"
)

// foreign are names of variables that lead kubectl, Helm and etcdctl, or scripts that call
// them, to another cluster than the kubeconfig's. KUBERNETES_... count when the kubeconfig is
// gone: a kubectl in a pod then uses the pod's own cluster.
var foreign = regexp.MustCompile(`^(KUBECTL|KUBERNETES_\w+|HELM_KUBE\w+|ETCDCTL_\w+)$`)

// proxies are names of variables that send requests through a proxy.
var proxies = []string{"HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"}

// Local returns the changes after which kubectl and etcdctl use an instance. kubectl caches
// its discovery in a directory below cache.
func Local(i instance.Instance, cache string, environ []string) Changes {
	values := map[string]string{}
	for _, variable := range environ {
		name, value, _ := strings.Cut(variable, "=")
		values[name] = value
	}
	changes := Changes{Set: []string{
		"KUBECONFIG=" + i.Kubeconfig(),
		// ~/.kube/kuberc may add --server, --context or --kubeconfig to every command.
		"KUBERC=off",
		"KUBECACHEDIR=" + filepath.Join(cache, "kubectl"),
	}}
	for name := range values {
		if foreign.MatchString(name) {
			changes.Unset = append(changes.Unset, name)
		}
	}
	slices.Sort(changes.Unset)
	if slices.ContainsFunc(proxies, func(name string) bool { return values[name] != "" }) {
		for _, name := range []string{"NO_PROXY", "no_proxy"} {
			changes.Set = append(changes.Set, name+"="+direct(i, values["NO_PROXY"], values["no_proxy"]))
		}
	}
	return changes
}

// direct adds the instance's networks to the networks without a proxy. As in Go's programs, the
// first of these lists with an entry counts.
func direct(i instance.Instance, lists ...string) string {
	var entries []string
	for _, list := range lists {
		if list != "" {
			entries = strings.Split(list, ",")
			break
		}
	}
	for _, i := range i.Stacks() {
		if network := i.Network.String(); !slices.Contains(entries, network) {
			entries = append(entries, network)
		}
	}
	return strings.Join(entries, ",")
}
