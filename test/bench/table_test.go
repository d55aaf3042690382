// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"strings"
	"testing"
	"time"
)

func TestMedian(t *testing.T) {
	cases := []struct {
		times []time.Duration
		want  time.Duration
	}{
		{nil, 0},
		{[]time.Duration{3}, 3},
		{[]time.Duration{9, 1, 5}, 5},
		{[]time.Duration{8, 2, 4, 6}, 5},
	}
	for _, c := range cases {
		if got := median(c.times); got != c.want {
			t.Errorf("median of %v is %v, want %v", c.times, got, c.want)
		}
	}
}

func TestTable(t *testing.T) {
	var measured table
	for _, ms := range []time.Duration{2000, 1900, 2300} {
		measured.add("U: one", aim{}, ms*time.Millisecond)
		measured.add("S: three", aim{}, 2*ms*time.Millisecond)
		measured.add("create", aim{1.6, "S"}, 3*ms*time.Millisecond)
		measured.add("replace", aim{1.3, "U"}, 2*ms*time.Millisecond)
	}
	want := `| what | median | min–max | rounds | ratio | aim |
|---|---|---|---|---|---|
| U: one | 2.00 s | 1.90 s–2.30 s | 3 | 1.00 U |  |
| S: three | 4.00 s | 3.80 s–4.60 s | 3 | 2.00 U |  |
| create | 6.00 s | 5.70 s–6.90 s | 3 | 1.50 S | ≤ 1.6 S: met |
| replace | 4.00 s | 3.80 s–4.60 s | 3 | 2.00 U | ≤ 1.3 U: missed |
`
	if got := measured.String(); got != want {
		t.Errorf("table:\n%s\nwant:\n%s", got, want)
	}
}

func TestComparison(t *testing.T) {
	var measured comparison
	for _, ms := range []time.Duration{2000, 1900, 2300} {
		measured.add("create", false, ms*time.Millisecond)
		measured.add("create", true, 3*ms*time.Millisecond)
	}
	measured.add("grow", false, time.Second)
	measured.fail("grow", "2 pods instead of 3")
	want := `| what | this operator | the other one | ratio |
|---|---|---|---|
| create | 2.00 s (1.90 s–2.30 s) | 6.00 s (5.70 s–6.90 s) | 3.00 |
| grow | 1.00 s (1.00 s–1.00 s) | failed: 2 pods instead of 3 |  |
`
	if got := measured.String(); got != want {
		t.Errorf("table:\n%s\nwant:\n%s", got, want)
	}
}

func TestAPartOfTheDocumentIsReplaced(t *testing.T) {
	document := "# Title\n\n" + backups.begin + "\nold backups\n" + backups.end + "\n\n" + clusterTimes.begin + "\nold\n" + clusterTimes.end + "\n\nwritten by people\n"
	got, err := clusterTimes.replace(document, "new\n")
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(got, "\nold\n") || !strings.Contains(got, "\nold backups\n") || !strings.Contains(got, "\nnew\n") ||
		!strings.HasPrefix(got, "# Title") || !strings.HasSuffix(got, "written by people\n") {
		t.Errorf("got:\n%s", got)
	}
	if _, err := backups.replace("no lines", "new"); err == nil {
		t.Error("a document without the lines was accepted")
	}
}

func TestEachKindOfDNSHasItsPart(t *testing.T) {
	seen := map[part]bool{}
	for _, dns := range []string{"fast", "addon"} {
		p, err := timesOf(dns)
		if err != nil || seen[p] {
			t.Errorf("%s: %v, %v", dns, p, err)
		}
		seen[p] = true
	}
	if _, err := timesOf("kubeadm"); err == nil {
		t.Error("a table was to be written over that of another DNS")
	}
}
