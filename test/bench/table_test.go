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
		measured.add("U", 0, ms*time.Millisecond)
		measured.add("create", 3, 2*ms*time.Millisecond)
		measured.add("replace", 1.7, 2*ms*time.Millisecond)
	}
	want := `| what | median | min–max | rounds | ratio to U | target |
|---|---|---|---|---|---|
| U | 2.00 s | 1.90 s–2.30 s | 3 | 1.00 |  |
| create | 4.00 s | 3.80 s–4.60 s | 3 | 2.00 | ≤ 3: met |
| replace | 4.00 s | 3.80 s–4.60 s | 3 | 2.00 | ≤ 1.7: missed |
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
