// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package v1beta2

import (
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

const (
	reservedLabelsPrefix = "etcd_"
	maxArguments         = 64
	maxArgumentLength    = 1024
	maxDomainLength      = 64
)

var (
	printable    = regexp.MustCompile(`^[!-~]*$`)
	argument     = regexp.MustCompile(`^--[a-z][a-z0-9-]*=`)
	domainFormat = regexp.MustCompile(`^[.]?[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*[.]?$`)

	profileAnnotation = regexp.MustCompile(`^((container[.])?seccomp[.]security[.]alpha[.]kubernetes[.]io|container[.]apparmor[.]security[.]beta[.]kubernetes[.]io)/`)
	systemAnnotation  = regexp.MustCompile(`^(kubernetes[.]io/config[.].*|scheduler[.]alpha[.]kubernetes[.]io/tolerations|controller[.]kubernetes[.]io/pod-deletion-cost)$`)
)

func validatePod(p *PodPolicy, path *field.Path) (errs field.ErrorList) {
	errs = append(errs, validatePodMetadata(p, path)...)
	errs = append(errs, validateLabels(p.NodeSelector, path.Child("nodeSelector"))...)
	errs = append(errs, validateSettings(p, path)...)
	errs = append(errs, validateObjectName(p.ServiceAccountName, "ServiceAccount", path.Child("serviceAccountName"))...)
	errs = append(errs, validateObjectName(p.PriorityClassName, "PriorityClass", path.Child("priorityClassName"))...)
	errs = append(errs, validateLength(p.BusyboxImage, maxImageLength, path.Child("busyboxImage"))...)
	if !printable.MatchString(p.BusyboxImage) {
		errs = append(errs, field.Invalid(path.Child("busyboxImage"), p.BusyboxImage,
			"must be an image reference such as busybox:1.28, without spaces or letters of other scripts"))
	}
	if t := p.DNSTimeoutInSecond; t != nil && *t < 0 {
		errs = append(errs, field.Invalid(path.Child("DNSTimeoutInSecond"), *t, "must be 0 (no bound) or more"))
	}
	errs = append(errs, validateLength(p.ClusterDomain, maxDomainLength, path.Child("ClusterDomain"))...)
	if p.ClusterDomain != "" && !domainFormat.MatchString(p.ClusterDomain) {
		errs = append(errs, field.Invalid(path.Child("ClusterDomain"), p.ClusterDomain,
			"must be a DNS domain such as .cluster.local, in lowercase letters, digits, dashes and dots"))
	}
	if p.Tmpfs && p.PersistentVolumeClaimSpec != nil {
		errs = append(errs, field.Invalid(path.Child("tmpfs"), p.Tmpfs,
			"tmpfs and persistentVolumeClaimSpec exclude each other: data is kept either in memory or on volumes"))
	}
	return errs
}

func validatePodMetadata(p *PodPolicy, path *field.Path) field.ErrorList {
	errs := validateLabels(p.Labels, path.Child("labels"))
	for _, key := range slices.Sorted(maps.Keys(p.Labels)) {
		if key == AppLabel || strings.HasPrefix(key, reservedLabelsPrefix) {
			errs = append(errs, field.Invalid(path.Child("labels"), key,
				"must not contain the key app or keys that begin with etcd_: the operator finds its pods by them"))
		}
	}
	errs = append(errs, validateAnnotations(p.Annotations, path.Child("annotations"))...)
	for _, key := range slices.Sorted(maps.Keys(p.Annotations)) {
		switch {
		case key == VersionAnnotation || strings.HasPrefix(key, OperatorAnnotations):
			errs = append(errs, field.Invalid(path.Child("annotations"), key,
				"must not contain the key etcd.version or keys that begin with etcd.database.coreos.com/: the operator keeps its notes there"))
		case profileAnnotation.MatchString(key):
			errs = append(errs, field.Invalid(path.Child("annotations"), key,
				"must not contain profiles of seccomp or AppArmor: set pod.securityContext.seccompProfile or appArmorProfile"))
		case systemAnnotation.MatchString(key):
			errs = append(errs, field.Invalid(path.Child("annotations"), key,
				"must not contain keys by which Kubernetes would take the pods for something else"))
		}
	}
	return errs
}

// reservedFormat recognizes reserved settings.
type reservedFormat struct {
	ReservedSettings
	flag, env *regexp.Regexp
}

// reservedFormats are compiled once: the operator judges each cluster in each pass.
var reservedFormats = sync.OnceValue(func() (formats []reservedFormat) {
	for _, r := range Reserved() {
		formats = append(formats, reservedFormat{r, regexp.MustCompile("^" + r.FlagPattern() + "$"), regexp.MustCompile("^" + r.EnvPattern() + "$")})
	}
	return formats
})

// validateSettings judges what the user sets in etcd, by flags and variables.
func validateSettings(p *PodPolicy, path *field.Path) (errs field.ErrorList) {
	args, env := path.Child("extraArgs"), path.Child("etcdEnv")
	if len(p.ExtraArgs) > maxArguments {
		errs = append(errs, field.TooMany(args, len(p.ExtraArgs), maxArguments))
	}
	seen := map[string]bool{}
	for i, arg := range p.ExtraArgs {
		errs = append(errs, validateLength(arg, maxArgumentLength, args.Index(i))...)
		if !argument.MatchString(arg) {
			errs = append(errs, field.Invalid(args.Index(i), arg,
				"must have the form --flag=value, such as --quota-backend-bytes=8589934592 or --pre-vote=true"))
		}
		flag, _, _ := strings.Cut(arg, "=")
		if seen[flag] {
			errs = append(errs, field.Invalid(args.Index(i), arg, "must not contain a flag twice"))
		}
		seen[flag] = true
	}
	variables := map[string]bool{}
	for _, e := range p.EtcdEnv {
		variables[e.Name] = true
	}
	for _, flag := range slices.Sorted(maps.Keys(seen)) {
		if variables[envOfFlag(strings.TrimPrefix(flag, "--"))] {
			errs = append(errs, field.Invalid(args, flag,
				"extraArgs and etcdEnv must not both make a setting: etcd does not start with a flag and a variable for the same"))
		}
	}
	for _, r := range reservedFormats() {
		for _, flag := range slices.Sorted(maps.Keys(seen)) {
			if r.flag.MatchString(flag) {
				errs = append(errs, field.Invalid(args, flag, r.ArgumentsRefused()))
			}
		}
		for i, e := range p.EtcdEnv {
			if r.env.MatchString(e.Name) {
				errs = append(errs, field.Invalid(env.Index(i), e.Name, r.EnvRefused()))
			}
		}
	}
	return errs
}
