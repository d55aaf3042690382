// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package storetest tests stores against the contract of package store: each store runs one
// suite of tests against a real server. Only tests may import it.
package storetest

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/etcd-operator/etcd-operator/pkg/store"
)

// Opener opens a store for one test, which closes it. Each call may open the same
// bucket: tests use keys of their own.
type Opener func(t *testing.T) store.Store

// Case is the name of a test of the suite that needs an option.
type Case string

// Cases that a store may declare in Options.Cannot.
const (
	WrongCredentials Case = "wrong credentials are reported"
	MissingBucket    Case = "a missing bucket is reported"
	SweptUploads     Case = "abandoned uploads are swept"
	DyingServer      Case = "a server that dies ends the upload"
	HangingServer    Case = "a server that hangs ends the upload with its context"
)

// Options describe a store and its server. Each case's options must be set here, or the case
// must be in Cannot: Run refuses options that silently leave out a case.
type Options struct {
	// Denied open the bucket with credentials that the store must refuse, by what is wrong
	// with them.
	Denied map[string]Opener
	// Refusal is the kind of their errors. Default: store.ErrDenied.
	Refusal error
	// Secrets must not be in any error.
	Secrets []string
	// NoBucket opens a bucket that does not exist.
	NoBucket Opener

	// PageSize is how many objects one page of the server's lists holds; the suite
	// stores a few more than that. Default: 1000.
	PageSize int
	// LateMetadataOfSmall: the store keeps metadata that are known when the body ends only if
	// one request sends all.
	LateMetadataOfSmall bool

	// Unfinished lists the uploads that the server has, which were neither finished nor
	// cancelled. It must show a running upload. It must be empty after each failure, except
	// for Lingers.
	Unfinished func(t *testing.T) []string
	// Lingers is why the store can't remove the remains of a failed upload. The next upload of
	// the same key must remove them.
	Lingers string
	// Abandon begins an upload and leaves it unfinished, like a process that dies.
	Abandon func(t *testing.T, key string)

	// Kill kills the server, and Restart starts it again with its objects.
	Kill, Restart func(t *testing.T)
	// Freeze makes the server accept connections and not answer, until Thaw.
	Freeze, Thaw func(t *testing.T)

	// Cannot holds the cases that the store or its server does not support, with the reason.
	Cannot map[Case]string
}

// needs returns the options that each case needs, by their names.
func (o *Options) needs() map[Case]map[string]bool {
	return map[Case]map[string]bool{
		WrongCredentials: {"Denied": len(o.Denied) > 0, "Secrets": len(o.Secrets) > 0},
		MissingBucket:    {"NoBucket": o.NoBucket != nil},
		SweptUploads:     {"Abandon": o.Abandon != nil},
		DyingServer:      {"Kill": o.Kill != nil, "Restart": o.Restart != nil},
		HangingServer:    {"Freeze": o.Freeze != nil, "Thaw": o.Thaw != nil},
	}
}

// check returns what is missing, and entries of Cannot without effect.
func (o *Options) check() error {
	var problems []error
	if o.Unfinished == nil {
		problems = append(problems, errors.New("option Unfinished is nil: without it nobody sees what failed uploads leave"))
	}
	needs := o.needs()
	for _, c := range slices.Sorted(maps.Keys(needs)) {
		reason, cannot := o.Cannot[c]
		for _, option := range slices.Sorted(maps.Keys(needs[c])) {
			switch there := needs[c][option]; {
			case there && cannot:
				problems = append(problems, fmt.Errorf("option Cannot has %q, and %s is there", c, option))
			case !there && !cannot:
				problems = append(problems, fmt.Errorf("%q needs %s, or its reason in Cannot", c, option))
			}
		}
		if cannot && strings.TrimSpace(reason) == "" {
			problems = append(problems, fmt.Errorf("option Cannot has %q without a reason", c))
		}
	}
	for c := range o.Cannot {
		if _, known := needs[c]; !known {
			problems = append(problems, fmt.Errorf("option Cannot has %q, which is none of its cases", c))
		}
	}
	return errors.Join(problems...)
}

// Run runs the suite.
func Run(t *testing.T, open Opener, options Options) {
	if err := options.check(); err != nil {
		t.Fatalf("the options of the suite: %v", err)
	}
	if options.PageSize == 0 {
		options.PageSize = 1000
	}
	if options.Refusal == nil {
		options.Refusal = store.ErrDenied
	}
	for _, tt := range []struct {
		name Case
		test func(*testing.T, *suite)
	}{
		{"objects come back as they were put", objectsComeBack},
		{"an object replaces the one before it", replace},
		{"objects are read from an offset on", offsets},
		{"metadata known at the end are kept", lateMetadata},
		{"keys hold unusual characters", unusualKeys},
		{"all pages are listed", allPages},
		{"prefixes are of keys, not of directories", siblings},
		{"a list may be left", leaveList},
		{"deleted objects are gone", deleted},
		{"absent objects are reported", absent},
		{"methods are called concurrently", concurrently},
		{"an object is invisible until it is whole", invisible},
		{"a body that fails leaves nothing", failingBody},
		{"a cancelled upload leaves nothing", cancelled},
		{WrongCredentials, denied},
		{MissingBucket, noBucket},
		{SweptUploads, sweep},
		{DyingServer, serverDies},
		{HangingServer, serverHangs},
		{"memory does not grow with the object", flatMemory},
		{"nothing is left running or open", leaks},
	} {
		test := tt.test
		if _, cannot := options.Cannot[tt.name]; cannot {
			if tt.name != SweptUploads {
				continue
			}
			test = sweepNothing
		}
		t.Run(string(tt.name), func(t *testing.T) { test(t, &suite{Options: options, opener: open}) })
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
