// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package v1beta2

import (
	"math"
	"strings"
	"time"
)

const (
	// DefaultRepository is the image repository where spec.repository is unset.
	DefaultRepository = "quay.io/coreos/etcd"

	// DefaultVersion is the etcd version where spec.version is unset. The
	// operator's own tests cover it. The field's comment names it too.
	DefaultVersion = "3.6.16"

	// DefaultDNSTimeout bounds check-dns where spec.pod.DNSTimeoutInSecond is
	// unset. The field's comment names it too.
	DefaultDNSTimeout = 120 * time.Second

	// CertificateWarning is how long before a certificate expires the condition
	// CertificatesValid turns False.
	CertificateWarning = 30 * 24 * time.Hour
)

// EffectiveVersion is the etcd version that the spec asks for, without a
// leading v and without a digest.
func (s *ClusterSpec) EffectiveVersion() string {
	v, _, _ := strings.Cut(strings.TrimPrefix(s.Version, "v"), "@")
	if v != "" {
		return v
	}
	return DefaultVersion
}

// Digest is the digest of the image of EffectiveVersion, "" if the spec names none.
func (s *ClusterSpec) Digest() string {
	_, digest, _ := strings.Cut(s.Version, "@")
	return digest
}

// EffectiveRepository is the image repository that the spec asks for.
func (s *ClusterSpec) EffectiveRepository() string {
	if s.Repository != "" {
		return s.Repository
	}
	return DefaultRepository
}

// EffectiveDNSTimeout is how long check-dns may wait; 0 means without bound.
func (s *ClusterSpec) EffectiveDNSTimeout() time.Duration {
	if s.Pod == nil || s.Pod.DNSTimeoutInSecond == nil {
		return DefaultDNSTimeout
	}
	const longest = math.MaxInt64 / int64(time.Second)
	// The schema has no upper limit, and an overflow would be negative. A wait of
	// centuries is close enough to such a request.
	return time.Duration(min(*s.Pod.DNSTimeoutInSecond, longest)) * time.Second
}

// EffectivePriorityClass is the PriorityClass of the members' pods, or "". The fork has it
// below pod.
func (s *ClusterSpec) EffectivePriorityClass() string {
	if s.PriorityClassName == "" && s.Pod != nil {
		return s.Pod.PriorityClassName
	}
	return s.PriorityClassName
}

// PeerTLS reports whether members communicate with each other over TLS.
func (s *ClusterSpec) PeerTLS() bool { return s.memberSecret().PeerSecret != "" }

// ClientTLS reports whether clients communicate with members over TLS. A server certificate alone does
// not count: v0.9.4 used no TLS for clients without operatorSecret, and such clusters run.
func (s *ClusterSpec) ClientTLS() bool { return s.ServerSecret() != "" && s.OperatorSecret() != "" }

// PeerSecret is the name of the Secret with the members' peer certificate, or "".
func (s *ClusterSpec) PeerSecret() string { return s.memberSecret().PeerSecret }

// ServerSecret is the name of the Secret with the members' server certificate, or "".
func (s *ClusterSpec) ServerSecret() string { return s.memberSecret().ServerSecret }

// OperatorSecret is the name of the Secret with the operator's client certificate,
// or "".
func (s *ClusterSpec) OperatorSecret() string { return s.staticTLS().OperatorSecret }

// CredentialsSecret is the name of the Secret with the operator's user of etcd, or "".
func (s *ClusterSpec) CredentialsSecret() string {
	if s.Auth == nil {
		return ""
	}
	return s.Auth.CredentialsSecret
}

// SkipsVerification reports whether the operator accepts any server certificate.
func (s *ClusterSpec) SkipsVerification() bool { return s.staticTLS().AllowSelfSignedCertificates }

func (s *ClusterSpec) staticTLS() StaticTLS {
	if s.TLS == nil || s.TLS.Static == nil {
		return StaticTLS{}
	}
	return *s.TLS.Static
}

func (s *ClusterSpec) memberSecret() MemberSecret {
	if m := s.staticTLS().Member; m != nil {
		return *m
	}
	return MemberSecret{}
}

// ClusterDomain is the suffix of the members' names in their URLs, "" or with a
// leading dot.
func (s *ClusterSpec) ClusterDomain() string {
	if s.Pod == nil || s.Pod.ClusterDomain == "" {
		return ""
	}
	return "." + strings.Trim(s.Pod.ClusterDomain, ".")
}

// HasDisruptionBudget reports whether a cluster of the spec's size gets a
// PodDisruptionBudget.
func (s *ClusterSpec) HasDisruptionBudget() bool {
	return s.Size >= 3 && (s.PodDisruptionBudget == nil || *s.PodDisruptionBudget)
}

// Persistent reports whether members keep their data on PersistentVolumeClaims.
func (s *ClusterSpec) Persistent() bool {
	return s.Pod != nil && s.Pod.PersistentVolumeClaimSpec != nil
}
