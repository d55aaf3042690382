// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package summary

import (
	"fmt"
	"time"
)

// Bytes prints a size as Kubernetes does, such as 1.2Gi.
func Bytes(n int64) string {
	const step = 1024
	value, unit := float64(n), "B"
	for _, next := range []string{"Ki", "Mi", "Gi", "Ti"} {
		if value < step {
			break
		}
		value, unit = value/step, next
	}
	if unit == "B" {
		return fmt.Sprintf("%d", n)
	}
	return fmt.Sprintf("%.1f%s", value, unit)
}

// Seconds prints a short time in seconds, such as 2.1 ms.
func Seconds(s float64) string {
	if s >= 1 {
		return fmt.Sprintf("%.1f s", s)
	}
	return fmt.Sprintf("%.1f ms", s*1000)
}

// Age prints how long something took or is ago, such as 6 h.
func Age(d time.Duration) string {
	const day = 24 * time.Hour
	switch {
	case d < 0:
		return "0 s"
	case d < 2*time.Minute:
		return fmt.Sprintf("%d s", d/time.Second)
	case d < 2*time.Hour:
		return fmt.Sprintf("%d min", d/time.Minute)
	case d < 2*day:
		return fmt.Sprintf("%d h", d/time.Hour)
	default:
		return fmt.Sprintf("%d d", d/day)
	}
}
