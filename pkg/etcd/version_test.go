// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package etcd

import (
	"strings"
	"testing"
)

func TestParseVersion(t *testing.T) {
	for in, want := range map[string]string{
		"3.6.16": "3.6.16", "v3.5.35": "3.5.35", "3.7.0-rc.1": "3.7.0-rc.1", "3.2.13": "3.2.13",
		"": "", "latest": "", "3": "", "3.6": "", "4.0.0": "", "2.3.8": "", "3.0.17": "", "vv3.6.16": "", "3.6.16 ": "",
	} {
		v, err := ParseVersion(in)
		switch {
		case want == "" && err == nil:
			t.Errorf("ParseVersion(%q) = %s, want an error", in, v)
		case want != "" && (err != nil || v.String() != want):
			t.Errorf("ParseVersion(%q) = %s, %v, want %s", in, v, err, want)
		}
	}
}

func TestCheckChange(t *testing.T) {
	for _, c := range []struct{ from, to, refusal string }{
		{"3.5.35", "3.5.35", ""},
		{"3.5.20", "3.6.16", ""},
		{"3.5.35", "3.6.0", ""},
		{"3.6.11", "3.7.3", ""},
		{"3.4.23", "3.5.0", ""},
		{"3.5.35", "3.5.20", ""}, // a bad patch release can be taken back
		{"3.5.19", "3.6.16", "3.5.20"},
		{"3.6.10", "3.7.3", "3.6.11"},
		{"3.5.35", "3.7.3", "skipped"},
		{"3.4.23", "3.7.3", "skipped"},
		{"3.6.16", "3.5.35", "downgraded"},
		{"3.7.3", "3.6.16", "downgraded"},
	} {
		from, err := ParseVersion(c.from)
		if err != nil {
			t.Fatal(err)
		}
		to, err := ParseVersion(c.to)
		if err != nil {
			t.Fatal(err)
		}
		err = CheckChange(from, to)
		if (err != nil) != (c.refusal != "") || err != nil && !strings.Contains(err.Error(), c.refusal) {
			t.Errorf("CheckChange(%s, %s) = %v, want a refusal that says %q", c.from, c.to, err, c.refusal)
		}
	}
}

func TestFeaturesByVersion(t *testing.T) {
	for _, c := range []struct {
		version                              string
		learners, maxLearners, metrics, live bool
	}{
		{"3.2.32", false, false, false, false},
		{"3.3.27", false, false, true, false},
		{"3.4.23", true, false, true, false},
		{"3.4.29", true, false, true, true},
		{"3.5.10", true, false, true, false},
		{"3.5.11", true, false, true, true},
		{"3.6.0", true, true, true, true},
		{"3.7.3", true, true, true, true},
	} {
		v, err := ParseVersion(c.version)
		if err != nil {
			t.Fatal(err)
		}
		if v.HasLearners() != c.learners || v.HasMaxLearners() != c.maxLearners || v.HasMetricsListener() != c.metrics || v.HasLivez() != c.live {
			t.Errorf("%s: learners %t, max learners %t, metrics %t, livez %t", v, v.HasLearners(), v.HasMaxLearners(), v.HasMetricsListener(), v.HasLivez())
		}
	}
}

func TestCheckOrigin(t *testing.T) {
	for _, c := range []struct {
		first, to string
		ok        bool
	}{
		{"3.4.23", "3.5.35", true}, {"3.5.35", "3.6.16", true}, {"3.5.35", "3.7.3", true}, {"3.4.23", "3.6.16", false}, {"3.3.27", "3.7.3", false},
	} {
		first, err := ParseVersion(c.first)
		if err != nil {
			t.Fatal(err)
		}
		to, err := ParseVersion(c.to)
		if err != nil {
			t.Fatal(err)
		}
		if err := CheckOrigin(first, to); (err == nil) != c.ok {
			t.Errorf("CheckOrigin(%s, %s) = %v", first, to, err)
		}
	}
}

func TestMembersLookedThemselvesUpUntil355(t *testing.T) {
	for version, want := range map[string]bool{"3.1.10": true, "3.4.44": true, "3.5.5": true, "3.5.6": false, "3.6.0": false, "3.7.3": false} {
		if v, err := ParseVersion(version); err != nil || v.LooksUpItself() != want {
			t.Errorf("%s: %t, %v", version, v.LooksUpItself(), err)
		}
	}
}
