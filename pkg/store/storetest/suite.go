// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package storetest holds stores to what package store says of them: one suite of
// tests, run by each store against a real server. Nothing but tests may import it.
package storetest

import (
	"testing"

	"github.com/etcd-operator/etcd-operator/pkg/store"
)

// Opener opens a store for one test, which closes it. Each call may open the same
// bucket: tests use keys of their own.
type Opener func(t *testing.T) store.Store

// Options tell the suite about a store and its server. Tests that need what is nil
// are left out.
type Options struct {
	// Denied open the bucket with credentials that must be refused, by what is
	// wrong with them.
	Denied map[string]Opener
	// NoBucket opens a bucket that does not exist.
	NoBucket Opener
	// Secrets must not be found in the text of any error.
	Secrets []string

	// PageSize is how many objects one page of the server's lists holds; the suite
	// stores a few more than that. Default: 1000.
	PageSize int
	// LateMetadataOfSmall: metadata that are known when the body ends are kept only
	// where one request sends all.
	LateMetadataOfSmall bool
	// ForbiddenInKeys are characters that the store's server can't take in keys,
	// for a reason told beside it.
	ForbiddenInKeys string

	// Unfinished lists what the server has of uploads that were begun and neither
	// finished nor given up: it must be empty after each failure. Nil: the server
	// has no such thing.
	Unfinished func(t *testing.T) []string
	// Abandon begins an upload and leaves it so, as the end of the process does.
	// Nil: nothing is left then, or the store removes it itself.
	Abandon func(t *testing.T, key string)

	// Kill makes the server die, and Restart brings it back with its objects.
	Kill, Restart func(t *testing.T)
	// Freeze makes the server accept connections and not answer, until Thaw.
	Freeze, Thaw func(t *testing.T)
}

// Run runs the suite.
func Run(t *testing.T, open Opener, options Options) {
	if options.PageSize == 0 {
		options.PageSize = 1000
	}
	tests := []struct {
		name string
		test func(*testing.T, *suite)
		need bool // what the test needs of the options is there
	}{
		{"objects come back as they were put", objectsComeBack, true},
		{"an object replaces the one before it", replace, true},
		{"objects are read from an offset on", offsets, true},
		{"metadata known at the end are kept", lateMetadata, true},
		{"keys hold unusual characters", unusualKeys, true},
		{"all pages are listed", allPages, true},
		{"prefixes are of keys, not of directories", siblings, true},
		{"a list may be left", leaveList, true},
		{"deleted objects are gone", deleted, true},
		{"absent objects are told", absent, true},
		{"methods are called concurrently", concurrently, true},
		{"an object is invisible until it is whole", invisible, true},
		{"a body that fails leaves nothing", failingBody, true},
		{"a cancelled upload leaves nothing", cancelled, true},
		{"wrong credentials are told", denied, options.Denied != nil},
		{"a missing bucket is told", noBucket, options.NoBucket != nil},
		{"abandoned uploads are swept", sweep, options.Abandon != nil},
		{"a server that dies ends the upload", serverDies, options.Kill != nil},
		{"a server that hangs ends the upload with its context", serverHangs, options.Freeze != nil},
		{"memory does not grow with the object", flatMemory, true},
		{"nothing is left running or open", leaks, true},
	}
	for _, tt := range tests {
		if tt.need {
			t.Run(tt.name, func(t *testing.T) { tt.test(t, &suite{Options: options, opener: open}) })
		}
	}
}

// suite is what one test of a store works with.
type suite struct {
	Options
	opener Opener
}

// open opens the store until the test ends.
func (s *suite) open(t *testing.T) store.Store { return s.openWith(t, s.opener) }

func (s *suite) openWith(t *testing.T, opener Opener) store.Store {
	t.Helper()
	opened := opener(t)
	t.Cleanup(func() {
		if err := opened.Close(); err != nil {
			t.Errorf("close the store: %v", err)
		}
	})
	return opened
}
