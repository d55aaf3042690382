// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

// security is pod.securityContext and pod.imagePullSecrets, by the rules of
// ValidatePodSpecSecurityContext in Kubernetes.
func security() []placed {
	const context = "spec.pod.securityContext"
	const ids = 1<<31 - 1
	return []placed{
		at("spec.pod.imagePullSecrets[]", required("name")),
		at("spec.pod.imagePullSecrets[].name", name()...),
		at(context,
			without("windowsOptions", "etcd's images are for Linux"),
			must("!has(self.runAsNonRoot) || !self.runAsNonRoot || !has(self.runAsUser) || self.runAsUser != 0",
				"runAsUser 0 is root, which runAsNonRoot forbids: the pods would not start")),
		at(context+".runAsUser", between(0, ids)),
		at(context+".runAsGroup", between(0, ids)),
		at(context+".fsGroup", between(0, ids)),
		at(context+".supplementalGroups", maxItems(64)),
		at(context+".supplementalGroups[]", between(0, ids)),
		at(context+".supplementalGroupsPolicy", oneOf("Merge", "Strict")),
		at(context+".fsGroupChangePolicy", oneOf("OnRootMismatch", "Always")),
		// API servers accept MountOption only with a feature gate that is off by default.
		at(context+".seLinuxChangePolicy", oneOf("Recursive")),
		at(context+".sysctls", maxItems(64), must("self.all(a, self.exists_one(b, b.name == a.name))", "sysctls must not contain a name twice")),
		at(context+".sysctls[].name", pattern(`^([a-z0-9]([-_a-z0-9]*[a-z0-9])?[./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?$`), maxLength(253)),
		at(context+".sysctls[].value", pattern(noNUL), maxLength(4096)),
		at(context+".seccompProfile",
			must("(self.type == 'Localhost') == has(self.localhostProfile)", "localhostProfile belongs to the type Localhost, and to it alone")),
		at(context+".seccompProfile.type", oneOf("RuntimeDefault", "Unconfined", "Localhost")),
		at(context+".seccompProfile.localhostProfile", maxLength(4095), pattern(`^[!-~]([ -~]*[!-~])?$`),
			must("!self.startsWith('/') && !self.split('/').exists(p, p == '..')", "localhostProfile must be a path below the node's directory of profiles, without ..")),
		at(context+".appArmorProfile",
			must("(self.type == 'Localhost') == has(self.localhostProfile)", "localhostProfile belongs to the type Localhost, and to it alone")),
		at(context+".appArmorProfile.type", oneOf("RuntimeDefault", "Unconfined", "Localhost")),
		at(context+".appArmorProfile.localhostProfile", maxLength(4095), pattern(`^[!-~]([ -~]*[!-~])?$`)),
	}
}
