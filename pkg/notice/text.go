// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package notice

import (
	"fmt"
	"unicode/utf8"
)

// Shorten limits a text to a number of bytes, without cutting a character. An ellipsis at the
// end marks a shortened text.
func Shorten(text string, limit int) string {
	const end = "…"
	if len(text) <= limit {
		return text
	}
	cut := limit - len(end)
	for cut > 0 && !utf8.RuneStart(text[cut]) {
		cut--
	}
	return text[:cut] + end
}

// Bytes formats a number of bytes for people; a negative one is unknown.
func Bytes(n int64) string {
	switch {
	case n < 0:
		return "an unknown number of bytes"
	case n < 1<<20:
		return fmt.Sprintf("%.1f KiB", float64(n)/(1<<10))
	case n < 1<<30:
		return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20))
	}
	return fmt.Sprintf("%.2f GiB", float64(n)/(1<<30))
}
