// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package v1beta2_test

import (
	"testing"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

func TestTheWaysOutThatCanBeChosen(t *testing.T) {
	for value, want := range map[string]v1beta2.ChosenWay{
		"survivor=a":               {Member: "a"},
		"survivor=a,store=nightly": {Member: "a", Store: "nightly"},
		" survivor=a, store=n":     {Member: "a", Store: "n"},
		"backup=nightly":           {Backup: "nightly"},
	} {
		if got, err := v1beta2.ParseChosenWay(value); err != nil || got != want {
			t.Errorf("%q is %+v, %v", value, got, err)
		}
		if again, err := v1beta2.ParseChosenWay(want.String()); err != nil || again != want {
			t.Errorf("%+v is %q, which is %+v, %v", want, want, again, err)
		}
	}
	for _, value := range []string{"", "a", "survivor", "survivor=", "backup=", "store=a", "survivor=a,backup=b", "backup=b,store=s", "survivor=a,survivor=b", "newest=true"} {
		if got, err := v1beta2.ParseChosenWay(value); err == nil {
			t.Errorf("%q is %+v", value, got)
		}
	}
}
