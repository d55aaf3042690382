// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/cluster/plan"
	"github.com/etcd-operator/etcd-operator/pkg/etcd"
)

// setScriptRecord puts on record what the members are, but for what the script says
// in its cluster line:
//
//	record=a:1,b:2:removing  the members on record, by name and ID; no-record: none
//	record-id, record-index, record-revision  what else is on record
//	id, index, revision      what a quorum says now
//	accept                   a person overrules the record; accept=ID: another one
//	went-back                Available says already that the data went back
func setScriptRecord(o *plan.Observation, text string) error {
	o.Record = &api.ClusterRecord{}
	for _, m := range o.Members {
		o.Record.Members = append(o.Record.Members, api.RecordedMember{ID: etcd.FormatID(m.ID), Name: m.PodName})
	}
	accept := false
	var words []string
	for line := range strings.SplitSeq(text, "\n") {
		if strings.HasPrefix(line, "cluster ") {
			words = strings.Fields(line)
		}
	}
	for _, word := range words {
		key, value, _ := strings.Cut(word, "=")
		var err error
		var n uint64
		switch key {
		case "record":
			o.Record.Members = nil
			for member := range strings.SplitSeq(value, ",") {
				parts := append(strings.Split(member, ":"), "", "")
				o.Record.Members = append(o.Record.Members, api.RecordedMember{Name: parts[0], ID: parts[1], Removing: parts[2] == "removing"})
			}
		case "record-id":
			o.Record.ClusterID = value
		case "record-index":
			o.Record.RaftIndex, err = strconv.ParseInt(value, 10, 64)
		case "record-revision":
			o.Record.Revision, err = strconv.ParseInt(value, 10, 64)
		case "id":
			n, err = strconv.ParseUint(value, 16, 64)
			o.Seen.ClusterID = n
		case "index":
			n, err = strconv.ParseUint(value, 10, 64)
			o.Seen.Index = n
		case "revision":
			o.Seen.Revision, err = strconv.ParseInt(value, 10, 64)
		case "accept":
			accept, o.Accepted = value == "", value
		case "went-back":
			o.Status.Conditions = []api.ClusterCondition{{Type: api.ClusterConditionAvailable, Status: "False", Reason: plan.ReasonWentBack, Message: "data may be lost: it went back"}}
		}
		if err != nil {
			return fmt.Errorf("%s: %w", word, err)
		}
	}
	if slices.Contains(words, "no-record") {
		o.Record = nil
	}
	o.Status.Record = o.Record
	if accept {
		o.Accepted = o.RecordID()
	}
	return nil
}
