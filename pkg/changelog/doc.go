// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package changelog is the format of continuous backups: immutable segments, each with all
// changes of etcd's data from one revision to another, as etcd stores them. A snapshot and the
// segments after it hold the data at each revision that they cover.
//
// Each transaction that changes data raises etcd's revision by exactly 1. So a missing change
// of a whole revision is detectable. A missing segment is, too.
package changelog
