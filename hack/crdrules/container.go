// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import "fmt"

// environment is pod.etcdEnv, by the rules of ValidateEnv in Kubernetes.
func environment() []placed {
	const env = "spec.pod.etcdEnv[]"
	const from = env + ".valueFrom"
	sources := "[has(self.fieldRef), has(self.resourceFieldRef), has(self.configMapKeyRef), has(self.secretKeyRef)]"
	places := []placed{
		at(env, must("!has(self.valueFrom) || !has(self.value) || self.value == ''",
			"value and valueFrom exclude each other")),
		at("spec.pod.extraArgs[]", pattern(noNUL), maxLength(1024)),
		at(env+".name", pattern(`^[-._a-zA-Z][-._a-zA-Z0-9]*$`), maxLength(256)),
		at(env+".value", pattern(noNUL), maxLength(32768)),
		at(from,
			must(sources+".filter(s, s).size() == 1",
				"valueFrom must have exactly one of fieldRef, resourceFieldRef, configMapKeyRef and secretKeyRef"),
			without("fileKeyRef", "pods of etcd have no volumes with files of variables")),
		at(from+".fieldRef.apiVersion", oneOf("", "v1")),
		at(from+".fieldRef.fieldPath", maxLength(400), pattern(`^(metadata[.](name|namespace|uid)|spec[.](nodeName|serviceAccountName)|status[.](hostIPs?|podIPs?)`+
			`|metadata[.](labels|annotations)\['([a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?[A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?'\])$`)),
		at(from+".resourceFieldRef",
			// No string(), as for the resources.
			must(`!has(self.divisor) || type(self.divisor) != string || self.divisor in ['0', '1'] || self.resource.endsWith('cpu') == (self.divisor == '1m')`,
				"divisor of cpu must be 1 or 1m, and that of memory and storage 1 or 1 with a suffix such as 1Mi"),
		),
		at(from+".resourceFieldRef.containerName", oneOf("", "etcd")),
		at(from+".resourceFieldRef.resource", oneOf("limits.cpu", "limits.memory", "limits.ephemeral-storage",
			"requests.cpu", "requests.memory", "requests.ephemeral-storage")),
		at(from+".resourceFieldRef.divisor", maxLength(8), between(0, 1), pattern(`^(0|1([mkMGTPE]|[KMGTPE]i)?)$`)),
	}
	for _, source := range []string{"configMapKeyRef", "secretKeyRef"} {
		places = append(places,
			at(fmt.Sprintf("%s.%s", from, source), required("name")),
			at(fmt.Sprintf("%s.%s.name", from, source), name()...),
			at(fmt.Sprintf("%s.%s.key", from, source), maxLength(253), pattern(`^([-_a-zA-Z0-9]|[.][-_a-zA-Z0-9])[-._a-zA-Z0-9]*$`)),
		)
	}
	return places
}

// resources is pod.resources, by the rules of ValidateResourceRequirements.
func resources() []placed {
	const r = "spec.pod.resources"
	// Keys that Kubernetes knows, and those of devices and the like, which have a
	// domain.
	known := `self.all(k, k in ['cpu', 'memory', 'ephemeral-storage'] || (size(k) <= 200 && k.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*/[A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?$') && !k.contains('kubernetes.io/') && !k.startsWith('requests.')))`
	const unknown = "resources must be cpu, memory, ephemeral-storage, or of a domain of their own, such as example.com/device"
	// Up to Kubernetes 1.33, string() of an integer or a string costs as much as that of any length.
	whole := `self.all(k, !k.contains('/') || type(self[k]) != string || quantity(self[k]).isInteger())`
	const parts = "resources of a domain of their own come in whole numbers"
	places := []placed{
		at(r, without("claims", "pods of etcd have no resource claims")),
	}
	for _, list := range []string{"limits", "requests"} {
		places = append(places,
			at(r+"."+list, maxProperties(16), must(known, unknown), must(whole, parts)),
			at(r+"."+list+"{}", amounts()...))
	}
	for _, k := range []string{"cpu", "memory", "ephemeral-storage"} {
		places = append(places, at(r, mustAt(".requests", fmt.Sprintf(
			"!has(self.requests) || !has(self.limits) || !('%[1]s' in self.requests) || !('%[1]s' in self.limits) || "+
				"quantity(string(self.requests['%[1]s'])).compareTo(quantity(string(self.limits['%[1]s']))) <= 0", k),
			"the request of "+k+" must not be more than its limit")))
	}
	places = append(places, at(r, mustAt(".requests",
		"!has(self.requests) || self.requests.all(k, !k.contains('/') || (has(self.limits) && k in self.limits && (self.limits[k] == self.requests[k] || int(self.limits[k]) == int(self.requests[k]))))",
		"the request of a resource with a domain of its own must be its limit")))
	return places
}

// amounts are quantities of resources.
func amounts() []change {
	return []change{
		pattern(amount), maxLength(32),
		must("type(self) == string || self >= 0", "quantities must not be negative"),
	}
}
