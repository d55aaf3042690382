// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package v1beta2

import "time"

// DefaultMaxLag is the time from a change to its storage where maxLagInSecond is unset.
const DefaultMaxLag = 5 * time.Second

// MaxLag is the intended time from a change to its storage.
func (c *ContinuousBackup) MaxLag() time.Duration {
	if c.MaxLagInSecond > 0 {
		return seconds(c.MaxLagInSecond)
	}
	return DefaultMaxLag
}
