// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package etcd_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/etcd-operator/etcd-operator/pkg/etcd"
)

func TestCopiesDatabase(t *testing.T) {
	const head = "# TYPE etcd_network_snapshot_receive_inflights_total gauge\n"
	for name, c := range map[string]struct {
		metrics string
		code    int
		want    bool
		fails   bool
	}{
		"it does":        {head + "etcd_network_snapshot_receive_inflights_total{From=\"8e9e05c52164694d\"} 1\n", 200, true, false},
		"it did":         {head + "etcd_network_snapshot_receive_inflights_total{From=\"8e9e05c52164694d\"} 0\n", 200, false, false},
		"from another":   {head + "etcd_network_snapshot_receive_inflights_total{From=\"1\"} 0\netcd_network_snapshot_receive_inflights_total{From=\"2\"} 1\n", 200, true, false},
		"it defragments": {"etcd_disk_defrag_inflight 1\n", 200, true, false},
		"it has done so": {"etcd_disk_defrag_inflight 0\n", 200, false, false},
		"it sends one":   {"etcd_network_snapshot_send_inflights_total{To=\"8e9e05c52164694d\"} 1\n", 200, false, false},
		"nothing yet":    {"", 200, false, false},
		"no such page":   {"404 page not found", 404, false, true},
		"it is no etcd":  {"etcd_network_snapshot_receive_inflights_total many\n", 200, false, false},
		"a page too far": {strings.Repeat("x 1\n", 2<<20) + "etcd_network_snapshot_receive_inflights_total 1\n", 200, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path != "/metrics" {
					t.Errorf("it was asked for %s", r.URL)
				}
				w.WriteHeader(c.code)
				fmt.Fprint(w, c.metrics)
			}))
			defer server.Close()
			got, err := etcd.CopiesDatabase(soon(t), strings.TrimPrefix(server.URL, "http://"))
			if got != c.want || (err != nil) != c.fails {
				t.Errorf("%t, %v", got, err)
			}
		})
	}
	if _, err := etcd.CopiesDatabase(soon(t), "127.0.0.1:1"); err == nil {
		t.Error("nobody serves there")
	}
}
