// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

const (
	dnsLabel     = `^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	dnsSubdomain = `^[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`
	labelKey     = `^([a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?[A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?$`
	labelValue   = `^([A-Za-z0-9]([A-Za-z0-9_.-]*[A-Za-z0-9])?)?$`
	noNUL        = `^[^\x00]*$`

	// A quantity that is not negative, and not so large or small that parsing it is expensive.
	amount = `^[+]?([0-9]{1,20}([.][0-9]{0,20})?|[.][0-9]{1,20})([numkMGTPE]|[KMGTPE]i|[eE][+-]?[0-9]{1,2})?$`
)

// key is a label's key, value a label's value, name the name of a Kubernetes object.
func key() []change   { return []change{pattern(labelKey), maxLength(253)} }
func value() []change { return []change{pattern(labelValue), maxLength(63)} }
func name() []change  { return []change{pattern(dnsSubdomain), maxLength(253), noDefault} }

// notes are the sizes of annotations, for the rules on their sum.
func notes() []placed {
	return []placed{
		at("spec.pod.annotations{}", maxLength(1<<16)),
		at("spec.service.annotations{}", maxLength(1<<16)),
	}
}
