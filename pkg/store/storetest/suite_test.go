// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package storetest

import (
	"strings"
	"testing"

	"github.com/etcd-operator/etcd-operator/pkg/store"
)

// complete are the options of a store that is capable of all.
func complete() Options {
	open := func(*testing.T) store.Store { return nil }
	act := func(*testing.T) {}
	return Options{
		Denied: map[string]Opener{"key": open}, Secrets: []string{"secret"}, NoBucket: open,
		Unfinished: func(*testing.T) []string { return nil },
		Abandon:    func(*testing.T, string) {},
		Kill:       act, Restart: act, Freeze: act, Thaw: act,
	}
}

func TestNoCaseIsLeftOutInSilence(t *testing.T) {
	all := complete()
	if err := all.check(); err != nil {
		t.Errorf("options that have all: %v", err)
	}
	for name, tt := range map[string]struct {
		edit func(*Options)
		want string // in the error
	}{
		"nothing is denied":    {func(o *Options) { o.Denied = nil }, `"wrong credentials are reported" needs Denied`},
		"no secrets":           {func(o *Options) { o.Secrets = nil }, `"wrong credentials are reported" needs Secrets`},
		"no missing bucket":    {func(o *Options) { o.NoBucket = nil }, `"a missing bucket is reported" needs NoBucket`},
		"nothing is abandoned": {func(o *Options) { o.Abandon = nil }, `"abandoned uploads are swept" needs Abandon`},
		"nobody kills":         {func(o *Options) { o.Kill = nil }, `"a server that dies ends the upload" needs Kill`},
		"nobody restarts":      {func(o *Options) { o.Restart = nil }, `"a server that dies ends the upload" needs Restart`},
		"nobody freezes":       {func(o *Options) { o.Freeze = nil }, `needs Freeze`},
		"nobody thaws":         {func(o *Options) { o.Thaw = nil }, `needs Thaw`},
		"nobody looks":         {func(o *Options) { o.Unfinished = nil }, "Unfinished is nil"},
		"declared and there":   {func(o *Options) { o.Cannot = map[Case]string{SweptUploads: "it does not"} }, "and Abandon is there"},
		"an unknown case":      {func(o *Options) { o.Cannot = map[Case]string{"fly": "it does not"} }, `"fly", which is none`},
		"no reason": {func(o *Options) {
			o.Abandon = nil
			o.Cannot = map[Case]string{SweptUploads: " "}
		}, "without a reason"},
	} {
		o := complete()
		tt.edit(&o)
		if err := o.check(); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: error %v, want %q", name, err, tt.want)
		}
	}
	none := Options{Unfinished: all.Unfinished, Cannot: map[Case]string{}}
	for c := range all.needs() {
		none.Cannot[c] = "it is a stone"
	}
	if err := none.check(); err != nil {
		t.Errorf("all cases are declared: %v", err)
	}
}
