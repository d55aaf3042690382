// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
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
func setScriptRecord(o *observation, text string) error {
	o.record = &api.ClusterRecord{}
	for _, m := range o.members {
		o.record.Members = append(o.record.Members, api.RecordedMember{ID: etcd.FormatID(m.ID), Name: m.name})
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
			o.record.Members = nil
			for member := range strings.SplitSeq(value, ",") {
				parts := append(strings.Split(member, ":"), "", "")
				o.record.Members = append(o.record.Members, api.RecordedMember{Name: parts[0], ID: parts[1], Removing: parts[2] == "removing"})
			}
		case "record-id":
			o.record.ClusterID = value
		case "record-index":
			o.record.RaftIndex, err = strconv.ParseInt(value, 10, 64)
		case "record-revision":
			o.record.Revision, err = strconv.ParseInt(value, 10, 64)
		case "id":
			n, err = strconv.ParseUint(value, 16, 64)
			o.seen.clusterID = n
		case "index":
			n, err = strconv.ParseUint(value, 10, 64)
			o.seen.index = n
		case "revision":
			o.seen.revision, err = strconv.ParseInt(value, 10, 64)
		case "accept":
			accept, o.accepted = value == "", value
		case "went-back":
			o.status.Conditions = []api.ClusterCondition{{Type: api.ClusterConditionAvailable, Status: "False", Reason: reasonWentBack, Message: "data may be lost: it went back"}}
		}
		if err != nil {
			return fmt.Errorf("%s: %w", word, err)
		}
	}
	if slices.Contains(words, "no-record") {
		o.record = nil
	}
	o.status.Record = o.record
	if accept {
		o.accepted = o.recordID()
	}
	return nil
}
