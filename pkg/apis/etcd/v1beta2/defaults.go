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
)

// EffectiveVersion is the etcd version that the spec asks for, without a
// leading v.
func (s *ClusterSpec) EffectiveVersion() string {
	if v := strings.TrimPrefix(s.Version, "v"); v != "" {
		return v
	}
	return DefaultVersion
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
	// The schema has no upper bound, and a product that overflowed would be
	// negative: a wait of centuries is close enough to what was asked for.
	return time.Duration(min(*s.Pod.DNSTimeoutInSecond, longest)) * time.Second
}
