// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

// volumes is pod.persistentVolumeClaimSpec, by the rules of ValidatePersistentVolumeClaimSpec
// in Kubernetes and a member's needs.
func volumes() []placed {
	const claim = "spec.pod.persistentVolumeClaimSpec"
	const each = "each member needs a volume of its own, which starts empty"
	places := []placed{
		at(claim, required("resources"),
			without("dataSource", each), without("dataSourceRef", each), without("volumeName", each)),
		at(claim+".accessModes", maxItems(4), must("!('ReadWriteOncePod' in self) || size(self) == 1", "ReadWriteOncePod can't be combined with other access modes"),
			must("size(self) == 0 || self.exists(m, m != 'ReadOnlyMany')", "a member writes to its volume: ReadOnlyMany alone does not do"),
			describe("How the volume can be mounted. Default: ReadWriteOnce.")),
		at(claim+".accessModes[]", oneOf("ReadWriteOnce", "ReadOnlyMany", "ReadWriteMany", "ReadWriteOncePod")),
		at(claim+".resources", required("requests")),
		at(claim+".storageClassName", pattern(orEmpty(dnsSubdomain)), maxLength(253)),
		at(claim+".volumeAttributesClassName", pattern(orEmpty(dnsSubdomain)), maxLength(253)),
		at(claim+".volumeMode", oneOf("Filesystem")),
		at(claim+".resources.requests",
			must("'storage' in self && quantity(string(self['storage'])).isGreaterThan(quantity('0'))", "the size of the volume, resources.requests.storage, must be set and not be 0")),
		at(claim+".resources",
			must("!has(self.limits) || !('storage' in self.limits) || !has(self.requests) || !('storage' in self.requests) || "+
				"quantity(string(self.requests['storage'])).compareTo(quantity(string(self.limits['storage']))) <= 0",
				"the request of storage must not be more than its limit")),
	}
	for _, list := range []string{".resources.limits", ".resources.requests"} {
		places = append(places,
			at(claim+list, maxProperties(4), must("self.all(k, k == 'storage')", "a volume has no resource but storage")),
			at(claim+list+"{}", amounts()...))
	}
	return append(places, selector(claim+".selector")...)
}
