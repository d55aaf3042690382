// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package etcd

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// ErrHasLeader is wrapped by the error of NotServing if the member has a leader. It then serves
// clients itself.
var ErrHasLeader = errors.New("the member has a leader and serves clients itself")

// mostMetrics bounds a page of metrics in bytes. etcd's has less than a tenth.
const mostMetrics = 8 << 20

// NotServing returns the state of a member that has started and has had no leader since. etcd then
// serves no clients, and its page of metrics is the only thing that describes the member.
// address is the host and the port of --listen-metrics-urls, in plain text.
//
// RaftIndex equals RaftApplied. After a crash, both can be lower than the last entry whose changes the
// member holds: a crash can lose the commits of the last entries, and their changes are in the
// database already. Revision counts these changes. The page does not contain ClusterID, RaftTerm and Alarms, which
// stay zero, and there is no LeaderID. The error wraps ErrHasLeader if the member has a leader; the
// status is then valid too. It is an error if the page lacks the member's ID, its revision, its
// applied index, or whether it has a leader.
func NotServing(ctx context.Context, address string) (Status, error) {
	s, err := notServing(ctx, address)
	if err != nil {
		return s, fmt.Errorf("metrics of the member at %s: %w", address, err)
	}
	return s, nil
}

func notServing(ctx context.Context, address string) (Status, error) {
	body, err := openMetrics(ctx, address)
	if err != nil {
		return Status{}, err
	}
	defer body.Close()
	page, err := readMetrics(body)
	if err != nil {
		return Status{}, err
	}
	return page.status()
}

// Names of etcd's metrics. The value of the first two is in a label.
const (
	metricID      = "etcd_server_id"
	metricVersion = "etcd_server_version"

	metricLeader   = "etcd_server_has_leader"
	metricLearner  = "etcd_server_is_learner"
	metricApplied  = "etcd_server_proposals_applied_total"
	metricRevision = "etcd_debugging_mvcc_current_revision"
	metricSize     = "etcd_mvcc_db_total_size_in_bytes"
	metricInUse    = "etcd_mvcc_db_total_size_in_use_in_bytes"
	metricQuota    = "etcd_server_quota_backend_bytes"
)

// labelOf names the label that holds the value of a metric.
var labelOf = map[string]string{metricID: "server_id", metricVersion: "server_version"}

// metrics are the values by the names of the metrics above.
type metrics map[string]string

// readMetrics reads a page in the text format of Prometheus. It takes no more than the metrics
// above.
func readMetrics(from io.Reader) (metrics, error) {
	limited := &io.LimitedReader{R: from, N: mostMetrics + 1}
	lines := bufio.NewScanner(limited)
	values := metrics{}
	for lines.Scan() {
		name, rest, _ := strings.Cut(lines.Text(), " ")
		name, label, labelled := strings.Cut(name, "{")
		switch name {
		case metricID, metricVersion:
			// Labels of these have no spaces in their values, and they have one label each.
			value, found := strings.CutPrefix(label, labelOf[name]+`="`)
			if value, closed := strings.CutSuffix(value, `"}`); found && closed {
				values[name] = value
			}
		case metricLeader, metricLearner, metricApplied, metricRevision, metricSize, metricInUse, metricQuota:
			if !labelled {
				values[name] = rest
			}
		}
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("read the page: %w", err)
	}
	if limited.N == 0 {
		return nil, fmt.Errorf("the page has more than %d bytes", mostMetrics)
	}
	return values, nil
}

// status is an error if one of the needed values is missing.
func (m metrics) status() (Status, error) {
	id, err := strconv.ParseUint(m[metricID], 16, 64)
	if err != nil || id == 0 {
		return Status{}, lacks(metricID)
	}
	leader, found := m.number(metricLeader)
	if !found {
		return Status{}, lacks(metricLeader)
	}
	revision, found := m.number(metricRevision)
	if !found || revision == 0 { // etcd begins with 1
		return Status{}, lacks(metricRevision)
	}
	applied, found := m.number(metricApplied)
	if !found {
		return Status{}, lacks(metricApplied)
	}
	learner, _ := m.number(metricLearner)
	size, _ := m.number(metricSize)
	inUse, _ := m.number(metricInUse)
	quota, _ := m.number(metricQuota)
	s := Status{
		MemberID: id, Version: m[metricVersion], Learner: learner == 1,
		DBSize: size, DBInUse: inUse, DBQuota: quota,
		RaftIndex: uint64(applied), RaftApplied: uint64(applied), // not negative
		Revision: revision,
	}
	if leader != 0 {
		return s, ErrHasLeader
	}
	return s, nil
}

func lacks(metric string) error {
	return fmt.Errorf("the page lacks a value of %s: is it a member of etcd, in version 3.5 or later?", metric)
}

// number returns a value that is a whole number and not negative. Prometheus writes a large one
// as 1.234567e+06. It is exact below 2⁵³, as in etcd.
func (m metrics) number(name string) (int64, bool) {
	text, _, _ := strings.Cut(m[name], " ") // a timestamp may follow
	value, err := strconv.ParseFloat(text, 64)
	if err != nil || value < 0 || value >= 1<<62 || value != float64(int64(value)) {
		return 0, false
	}
	return int64(value), true
}
