// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package etcd

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// page is an excerpt from a member of etcd 3.6.16.
const page = `# HELP etcd_debugging_mvcc_current_revision The current revision of store.
# TYPE etcd_debugging_mvcc_current_revision gauge
etcd_debugging_mvcc_current_revision 1.234567e+06
etcd_debugging_mvcc_pending_events_total 0
etcd_mvcc_db_total_size_in_bytes 2.0717568e+07
etcd_mvcc_db_total_size_in_use_in_bytes 8.192e+06
etcd_server_has_leader 0
# TYPE etcd_server_id gauge
etcd_server_id{server_id="69b38ac7138de88d"} 1
etcd_server_is_learner 0
etcd_server_proposals_applied_total 2.469134e+06
etcd_server_proposals_committed_total 2.469135e+06
etcd_server_quota_backend_bytes 2.147483648e+09
etcd_server_version{server_version="3.6.16"} 1
grpc_server_handled_total{grpc_code="OK",grpc_method="Range"} 7
`

// pageAt serves a page of metrics, and returns the address.
func pageAt(t *testing.T, handler http.HandlerFunc) string {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	return strings.TrimPrefix(server.URL, "http://")
}

func text(content string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/metrics" {
			http.NotFound(w, r)
			return
		}
		_, _ = w.Write([]byte(content))
	}
}

func TestAMemberWithoutALeaderIsKnownByItsMetrics(t *testing.T) {
	want := Status{
		MemberID: 0x69b38ac7138de88d, Version: "3.6.16", DBSize: 20717568, DBInUse: 8192000, DBQuota: 2 << 30,
		RaftIndex: 2469134, RaftApplied: 2469134, Revision: 1234567,
	}
	got, err := NotServing(t.Context(), pageAt(t, text(page)))
	if err != nil {
		t.Fatal(err)
	}
	if got.MemberID != want.MemberID || got.Version != want.Version || got.DBSize != want.DBSize || got.DBInUse != want.DBInUse || got.DBQuota != want.DBQuota ||
		got.RaftIndex != want.RaftIndex || got.RaftApplied != want.RaftApplied || got.Revision != want.Revision || got.Learner || got.LeaderID != 0 || got.ClusterID != 0 {
		t.Errorf("got %+v, want %+v", got, want)
	}
	got, err = NotServing(t.Context(), pageAt(t, text(strings.Replace(page, "is_learner 0", "is_learner 1", 1))))
	if err != nil || !got.Learner {
		t.Errorf("a learner: %+v, %v", got, err)
	}
}

func TestAMemberWithALeaderHasItsMetricsRefused(t *testing.T) {
	got, err := NotServing(t.Context(), pageAt(t, text(strings.Replace(page, "has_leader 0", "has_leader 1", 1))))
	if !errors.Is(err, ErrHasLeader) || got.Revision != 1234567 {
		t.Errorf("got %+v, %v", got, err)
	}
}

func TestAPageThatLacksAValueIsAnError(t *testing.T) {
	for name, wrong := range map[string]string{
		"no ID":                 strings.Replace(page, "etcd_server_id{", "other{", 1),
		"another label":         strings.Replace(page, "{server_id=", "{other=", 1),
		"an ID that is none":    strings.Replace(page, "69b38ac7138de88d", "member", 1),
		"no revision":           strings.Replace(page, "etcd_debugging_mvcc_current_revision 1", "other 1", 1),
		"revision 0":            strings.Replace(page, "current_revision 1.234567e+06", "current_revision 0", 1),
		"a negative revision":   strings.Replace(page, "current_revision 1.234567e+06", "current_revision -1", 1),
		"a fraction":            strings.Replace(page, "current_revision 1.234567e+06", "current_revision 1.5", 1),
		"no applied index":      strings.Replace(page, "proposals_applied_total", "other", 1),
		"an index that is none": strings.Replace(page, "2.469134e+06", "NaN", 1),
		"no leader or not":      strings.Replace(page, "etcd_server_has_leader", "other", 1),
		"nothing":               "",
		"too much":              page + strings.Repeat("other 1\n", mostMetrics/8),
	} {
		t.Run(name, func(t *testing.T) {
			if got, err := NotServing(t.Context(), pageAt(t, text(wrong))); err == nil || errors.Is(err, ErrHasLeader) {
				t.Errorf("got %+v, %v", got, err)
			}
		})
	}
}

func TestAServerWithoutAPageIsAnError(t *testing.T) {
	elsewhere := pageAt(t, text(page))
	for name, address := range map[string]string{
		"not found": pageAt(t, http.NotFound),
		"redirected": pageAt(t, func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "http://"+elsewhere+"/metrics", http.StatusFound)
		}),
		"closed": "127.0.0.1:1",
	} {
		if _, err := NotServing(t.Context(), address); err == nil || !strings.Contains(err.Error(), address) {
			t.Errorf("%s: %v", name, err)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := NotServing(ctx, pageAt(t, func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a server that hangs: %v", err)
	}
}
