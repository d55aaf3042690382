// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import "fmt"

// scheduling says where pods may run, by the rules of ValidateTolerations,
// validateAffinity and validateTopologySpreadConstraints in Kubernetes.
func scheduling() []placed {
	const (
		tolerations = "spec.pod.tolerations[]"
		affinity    = "spec.pod.affinity"
		during      = "DuringSchedulingIgnoredDuringExecution"
	)
	places := []placed{
		at(tolerations,
			must("(has(self.key) && self.key != '') || (has(self.operator) && self.operator == 'Exists')", "a toleration without key must have the operator Exists: it tolerates all taints"),
			must("!has(self.operator) || self.operator != 'Exists' || !has(self.value) || self.value == ''", "a toleration with the operator Exists must not have a value"),
			must("!has(self.tolerationSeconds) || (has(self.effect) && self.effect == 'NoExecute')", "tolerationSeconds must come with the effect NoExecute"),
		),
		at(tolerations+".key", pattern(orEmpty(labelKey)), maxLength(253)),
		at(tolerations+".operator", oneOf("", "Equal", "Exists")),
		at(tolerations+".value", value()...),
		at(tolerations+".effect", oneOf("", "NoSchedule", "PreferNoSchedule", "NoExecute")),

		at(affinity+".nodeAffinity.preferred"+during, maxItems(16)),
		at(affinity+".nodeAffinity.preferred"+during+"[].weight", between(1, 100)),
		at(affinity+".nodeAffinity.required"+during+".nodeSelectorTerms", minItems(1), maxItems(16)),
	}
	places = append(places, nodeTerm(affinity+".nodeAffinity.preferred"+during+"[].preference")...)
	places = append(places, nodeTerm(affinity+".nodeAffinity.required"+during+".nodeSelectorTerms[]")...)
	for _, kind := range []string{"podAffinity", "podAntiAffinity"} {
		preferred := fmt.Sprintf("%s.%s.preferred%s", affinity, kind, during)
		needed := fmt.Sprintf("%s.%s.required%s", affinity, kind, during)
		places = append(places, at(preferred, maxItems(16)), at(needed, maxItems(16)), at(preferred+"[].weight", between(1, 100)))
		places = append(places, podTerm(preferred+"[].podAffinityTerm")...)
		places = append(places, podTerm(needed+"[]")...)
	}
	return append(places, spread("spec.pod.topologySpreadConstraints")...)
}

// orEmpty lets an anchored pattern match the empty string too.
func orEmpty(p string) string { return "^(" + p[1:len(p)-1] + ")?$" }

func nodeTerm(path string) []placed {
	places := []placed{}
	for _, list := range []string{"matchExpressions", "matchFields"} {
		places = append(places, at(path+"."+list, maxItems(16)), at(path+"."+list+"[].values", maxItems(64)))
	}
	expression, field := path+".matchExpressions[]", path+".matchFields[]"
	return append(places,
		at(expression,
			must("!(self.operator in ['In', 'NotIn']) || (has(self.values) && size(self.values) > 0)", "the operators In and NotIn need values"),
			must("!(self.operator in ['Exists', 'DoesNotExist']) || !has(self.values) || size(self.values) == 0", "the operators Exists and DoesNotExist must not have values"),
			must("!(self.operator in ['Gt', 'Lt']) || (has(self.values) && size(self.values) == 1 && self.values[0].matches('^-?[0-9]{1,18}$'))",
				"the operators Gt and Lt need one value, a whole number"),
		),
		at(expression+".key", key()...),
		at(expression+".operator", oneOf("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt")),
		// A number below zero is not a label's value, so Kubernetes refuses it too.
		at(expression+".values[]", value()...),
		at(field, must("has(self.values) && size(self.values) == 1", "a field needs one value")),
		at(field+".key", oneOf("metadata.name")),
		at(field+".operator", oneOf("In", "NotIn")),
		at(field+".values[]", pattern(dnsSubdomain), maxLength(253)),
	)
}

func podTerm(path string) []placed {
	places := []placed{
		at(path+".topologyKey", key()...),
		at(path+".namespaces", maxItems(16)),
		at(path+".namespaces[]", pattern(dnsLabel), maxLength(63)),
		at(path+".matchLabelKeys", maxItems(16)),
		at(path+".mismatchLabelKeys", maxItems(16)),
		at(path+".matchLabelKeys[]", key()...),
		at(path+".mismatchLabelKeys[]", key()...),
		at(path,
			must("!has(self.mismatchLabelKeys) || size(self.mismatchLabelKeys) == 0 || has(self.labelSelector)", "mismatchLabelKeys need a labelSelector"),
			must("!has(self.mismatchLabelKeys) || !has(self.matchLabelKeys) || self.matchLabelKeys.all(k, !(k in self.mismatchLabelKeys))",
				"a key must not be in both matchLabelKeys and mismatchLabelKeys"),
		),
	}
	places = append(places, labelKeys(path)...)
	places = append(places, selector(path+".labelSelector")...)
	return append(places, selector(path+".namespaceSelector")...)
}

// labelKeys are the rules of matchLabelKeys. The API server takes their values from the pod
// and adds them to the labelSelector.
func labelKeys(path string) []placed {
	return []placed{at(path,
		must("!has(self.matchLabelKeys) || size(self.matchLabelKeys) == 0 || has(self.labelSelector)", "matchLabelKeys need a labelSelector"),
		must("!has(self.matchLabelKeys) || self.matchLabelKeys.all(k, self.matchLabelKeys.exists_one(o, o == k))", "matchLabelKeys must not contain a key twice"),
		must("!has(self.matchLabelKeys) || !has(self.labelSelector) || self.matchLabelKeys.all(k, "+
			"(!has(self.labelSelector.matchLabels) || !(k in self.labelSelector.matchLabels)) && "+
			"(!has(self.labelSelector.matchExpressions) || !self.labelSelector.matchExpressions.exists(e, e.key == k)))",
			"a key must not be in both matchLabelKeys and labelSelector"),
	)}
}

// selector is a selector by labels, by the rules of ValidateLabelSelector.
func selector(path string) []placed {
	expression := path + ".matchExpressions[]"
	return []placed{
		at(path+".matchLabels", maxProperties(32),
			must("self.all(k, k.indexOf('/') <= 253 && k.matches('"+labelKey+"'))", "matchLabels must have keys as Kubernetes knows them")),
		at(path+".matchLabels{}", value()...),
		at(path+".matchExpressions", maxItems(16)),
		at(expression,
			must("!(self.operator in ['In', 'NotIn']) || (has(self.values) && size(self.values) > 0)", "the operators In and NotIn need values"),
			must("!(self.operator in ['Exists', 'DoesNotExist']) || !has(self.values) || size(self.values) == 0", "the operators Exists and DoesNotExist must not have values"),
		),
		at(expression+".key", key()...),
		at(expression+".operator", oneOf("In", "NotIn", "Exists", "DoesNotExist")),
		at(expression+".values", maxItems(64)),
		at(expression+".values[]", value()...),
	}
}

func spread(path string) []placed {
	places := []placed{
		at(path, must("self.all(a, self.exists_one(b, b.topologyKey == a.topologyKey && b.whenUnsatisfiable == a.whenUnsatisfiable))",
			"a topologyKey must not come twice with the same whenUnsatisfiable")),
		at(path+"[].maxSkew", between(1, 1<<31-1)),
		at(path+"[].minDomains", between(1, 1<<31-1)),
		at(path+"[].topologyKey", key()...),
		at(path+"[].whenUnsatisfiable", oneOf("DoNotSchedule", "ScheduleAnyway")),
		at(path+"[].nodeAffinityPolicy", oneOf("Honor", "Ignore")),
		at(path+"[].nodeTaintsPolicy", oneOf("Honor", "Ignore")),
		at(path+"[].matchLabelKeys", maxItems(16)),
		at(path+"[].matchLabelKeys[]", key()...),
		at(path+"[]", must("!has(self.minDomains) || self.whenUnsatisfiable == 'DoNotSchedule'", "minDomains need whenUnsatisfiable DoNotSchedule")),
	}
	places = append(places, labelKeys(path+"[]")...)
	return append(places, selector(path+"[].labelSelector")...)
}
