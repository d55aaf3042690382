// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package survivor

import (
	"fmt"
	"hash/crc32"
	"io"
	"os"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/protobuf/proto"

	"github.com/etcd-operator/etcd-operator/internal/raftlog"
)

// identity is who a member is. etcd keeps the cluster's ID nowhere but in its write-ahead log.
type identity struct{ cluster, member uint64 }

// readIdentity reads the newest file of the write-ahead log. etcd repeats the identity at the
// beginning of each. The names are numbers of the same length.
func (s *Server) readIdentity() (identity, error) {
	names, err := raftlog.Files(raftlog.Dir(s.DataDir))
	if err != nil {
		return identity{}, err
	}
	path := names[len(names)-1]
	file, err := os.Open(path)
	if err != nil {
		return identity{}, err
	}
	defer file.Close()
	id, err := parseIdentity(file)
	if err != nil {
		return identity{}, fmt.Errorf("read %s: %w", path, err)
	}
	return id, nil
}

// mostRecord bounds the first two records. They have less than a hundred bytes.
const mostRecord = 4 << 10

// parseIdentity reads the first two records of a file: the checksum of all before, and the metadata.
func parseIdentity(from io.Reader) (identity, error) {
	first, _, err := raftlog.ReadRecord(from, mostRecord)
	if err != nil {
		return identity{}, err
	}
	second, _, err := raftlog.ReadRecord(from, mostRecord)
	if err != nil {
		return identity{}, err
	}
	if first.Kind != raftlog.Checksum || second.Kind != raftlog.Metadata || second.Checksum != crc32.Update(first.Checksum, raftlog.Castagnoli, second.Data) {
		return identity{}, raftlog.ErrNoLog
	}
	var m etcdserverpb.Metadata
	if err := proto.Unmarshal(second.Data, &m); err != nil || m.GetClusterID() == 0 || m.GetNodeID() == 0 {
		return identity{}, raftlog.ErrNoLog
	}
	return identity{cluster: m.GetClusterID(), member: m.GetNodeID()}, nil
}
