// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package v1beta2

import (
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Earlier operators accepted specs that this one refuses. A cluster that runs with such a
// spec must not lose its care, so the operator follows the spec without the refused parts.

// Tolerated returns a running cluster with the spec that the operator can follow. In place of
// each refused part, it has what the cluster ran with, or nothing. The errors say what is wrong
// even so. The result shares nothing with c.
func Tolerated(c *EtcdCluster) (*EtcdCluster, field.ErrorList) {
	c = c.DeepCopy()
	s := &c.Spec
	if !validVersion(s.Version) && c.Status.CurrentVersion != "" && validVersion(c.Status.CurrentVersion) {
		s.Version = c.Status.CurrentVersion
	}
	if s.Pod != nil {
		tolerateInPod(s.Pod)
	}
	if t := s.staticTLS(); t.OperatorSecret == "" && t.Member != nil && t.Member.ServerSecret != "" {
		// Without operatorSecret, v0.9.4 used no TLS for clients.
		s.TLS.Static.Member.ServerSecret = ""
	}
	if s.Service != nil {
		if s.Service.Name == c.Name {
			s.Service.Name = ""
		}
		maps.DeleteFunc(s.Service.Annotations, func(key, _ string) bool {
			return key == sourceRangesAnnotation || strings.HasPrefix(key, OperatorAnnotations)
		})
	}
	size := field.NewPath("spec", "size").String()
	return c, slices.DeleteFunc(ValidateEtcdCluster(c), func(err *field.Error) bool {
		return err.Field == size && s.Size > maxSize // the members run; more of them are only slower
	})
}

func validVersion(version string) bool {
	return version == "" || versionFormat.MatchString(version) && supportedVersion.MatchString(version)
}

func tolerateInPod(p *PodPolicy) {
	maps.DeleteFunc(p.Labels, func(key, value string) bool {
		return key == AppLabel || strings.HasPrefix(key, reservedLabelsPrefix) ||
			len(validateLabels(map[string]string{key: value}, nil)) > 0
	})
	for _, key := range slices.Sorted(maps.Keys(p.Annotations)) {
		if profileAnnotation.MatchString(key) {
			followProfile(p, key, p.Annotations[key])
		}
	}
	maps.DeleteFunc(p.Annotations, func(key, value string) bool {
		return key == VersionAnnotation || strings.HasPrefix(key, OperatorAnnotations) ||
			profileAnnotation.MatchString(key) || systemAnnotation.MatchString(key) ||
			len(validateAnnotations(map[string]string{key: value}, nil)) > 0
	})
	tolerateSettings(p)
	if !printable.MatchString(p.BusyboxImage) {
		p.BusyboxImage = ""
	}
	if lower := strings.ToLower(p.ClusterDomain); domainFormat.MatchString(lower) {
		p.ClusterDomain = lower // DNS makes no difference
	}
	if p.DNSTimeoutInSecond != nil && *p.DNSTimeoutInSecond < 0 {
		*p.DNSTimeoutInSecond = 0 // v0.9.4 never came to its end
	}
	if p.PersistentVolumeClaimSpec != nil {
		p.Tmpfs = false // as in the fork
	}
}

// tolerateSettings leaves out reserved settings of etcd: with some, a member would harm the
// others.
func tolerateSettings(p *PodPolicy) {
	reserved := func(format func(reservedFormat) bool) bool { return slices.ContainsFunc(reservedFormats(), format) }
	flags := map[string]bool{}
	p.ExtraArgs = slices.DeleteFunc(p.ExtraArgs, func(arg string) bool {
		flag, _, _ := strings.Cut(arg, "=")
		refused := flags[flag] || !argument.MatchString(arg) || reserved(func(r reservedFormat) bool { return r.flag.MatchString(flag) })
		flags[flag] = true
		return refused
	})
	variables := map[string]bool{}
	for _, arg := range p.ExtraArgs {
		flag, _, _ := strings.Cut(arg, "=")
		variables[envOfFlag(strings.TrimPrefix(flag, "--"))] = true
	}
	p.EtcdEnv = slices.DeleteFunc(p.EtcdEnv, func(e corev1.EnvVar) bool {
		return variables[e.Name] || reserved(func(r reservedFormat) bool { return r.env.MatchString(e.Name) })
	})
}

// followProfile moves a profile from an annotation, where Kubernetes once read it, to the
// security context, unless that has one. An annotation about check-dns alone has no such place.
func followProfile(p *PodPolicy, key, value string) {
	_, container, _ := strings.Cut(key, "/")
	appArmor := strings.Contains(key, "apparmor")
	if container != "etcd" && (appArmor || container != "pod") {
		return
	}
	if p.SecurityContext == nil {
		p.SecurityContext = &corev1.PodSecurityContext{}
	}
	s := p.SecurityContext
	localhost, isLocal := strings.CutPrefix(value, "localhost/")
	switch {
	case appArmor && s.AppArmorProfile == nil:
		switch {
		case isLocal:
			s.AppArmorProfile = &corev1.AppArmorProfile{Type: corev1.AppArmorProfileTypeLocalhost, LocalhostProfile: &localhost}
		case value == "unconfined":
			s.AppArmorProfile = &corev1.AppArmorProfile{Type: corev1.AppArmorProfileTypeUnconfined}
		case value == "runtime/default":
			s.AppArmorProfile = &corev1.AppArmorProfile{Type: corev1.AppArmorProfileTypeRuntimeDefault}
		}
	case !appArmor && s.SeccompProfile == nil:
		switch {
		case isLocal:
			s.SeccompProfile = &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeLocalhost, LocalhostProfile: &localhost}
		case value == "unconfined":
			s.SeccompProfile = &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeUnconfined}
		case value == "runtime/default" || value == "docker/default":
			s.SeccompProfile = &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault}
		}
	}
}
