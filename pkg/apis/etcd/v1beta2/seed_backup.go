// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package v1beta2

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"

	"k8s.io/apimachinery/pkg/types"
)

// RestoreAnnotation on an EtcdCluster names the backup that its first member starts
// from. The restore operator creates the EtcdCluster with it, because the API server
// drops the status of a new object. The etcd operator bootstraps such a cluster in no
// other way. The restore operator removes it when the cluster has all its members.
const RestoreAnnotation = GroupName + "/restore"

// SeedBackupTokenKey is the key of the token in the Secret of a SeedBackup. The server
// of the backup requires that token.
const SeedBackupTokenKey = "token"

// SeedBackup is the value of RestoreAnnotation: the source of the first member's data.
type SeedBackup struct {
	// Restore is the name of the EtcdRestore, RestoreUID its UID.
	Restore    string    `json:"restore"`
	RestoreUID types.UID `json:"restoreUID"`
	// URL serves the backup to the holder of the token.
	URL string `json:"url"`
	// Secret contains the token, under SeedBackupTokenKey, in the cluster's namespace.
	Secret string `json:"secret"`
	// Size of the backup in bytes, and its SHA-256 in hexadecimal digits. The first
	// member accepts no other content.
	Size   int64  `json:"size"`
	SHA256 string `json:"sha256"`
	// SnapshotSize is the size in bytes of the snapshot at the beginning, if a log follows
	// it; 0: the backup is a snapshot alone.
	SnapshotSize int64 `json:"snapshotSize,omitempty"`
	// Revision to take the data to; 0: that of the backup. With a SnapshotSize there is one.
	Revision int64 `json:"revision,omitempty"`
	// BumpRevision is the number of revisions to add.
	BumpRevision int64 `json:"bumpRevision,omitempty"`
	// Key, EtcdVersion and EtcdRevision are those of the RestoredBackup.
	Key          string `json:"key"`
	EtcdVersion  string `json:"etcdVersion,omitempty"`
	EtcdRevision int64  `json:"etcdRevision,omitempty"`

	// Copy is set if the first member copies the data of a running etcd, in place of a backup
	// from a server. It is never in the annotation.
	Copy *SeedCopy `json:"-"`
}

// SeedCopy is a running etcd whose data the first member copies.
type SeedCopy struct {
	// Endpoints are client URLs.
	Endpoints []string
	// ClientTLSSecret and CredentialsSecret are Secrets in the cluster's namespace; "": none.
	ClientTLSSecret, CredentialsSecret string
	// SkipVerification means that nobody compares the name in an endpoint with its certificate.
	SkipVerification bool
	// ClusterID is that of the running etcd.
	ClusterID string
	// Owner is in whose name the running etcd refuses writes: etcd.Fence.
	Owner string
}

// seedAnnotation is the stored form of a SeedBackup.
type seedAnnotation struct {
	SeedBackup
	// RewindSHA256 is the SHA-256 if there is a Revision. An etcd operator that does not
	// know revisions then refuses the annotation. It would restore the whole backup.
	RewindSHA256 string `json:"rewindSHA256,omitempty"`
}

// String is the value of the annotation.
func (b SeedBackup) String() string {
	stored := seedAnnotation{SeedBackup: b}
	if b.Revision > 0 {
		stored.SHA256, stored.RewindSHA256 = "", b.SHA256
	}
	text, err := json.Marshal(stored)
	if err != nil { // strings and numbers
		return ""
	}
	return string(text)
}

var sha256Digits = regexp.MustCompile(`^[0-9a-f]{64}$`)

// SeedBackupOf reads the annotation of a cluster. It returns nil without one. After an
// error, the source of the first member's data is unknown.
func SeedBackupOf(c *EtcdCluster) (*SeedBackup, error) {
	text, ok := c.Annotations[RestoreAnnotation]
	if !ok {
		return nil, nil
	}
	var stored seedAnnotation
	if err := json.Unmarshal([]byte(text), &stored); err != nil {
		return nil, fmt.Errorf("the annotation %s can't be read: %w", RestoreAnnotation, err)
	}
	b := &stored.SeedBackup
	if b.Revision > 0 {
		b.SHA256 = stored.RewindSHA256
	}
	var missing []string
	for _, field := range []struct {
		name string
		good bool
	}{
		{"restoreUID", b.RestoreUID != ""},
		{"url", strings.HasPrefix(b.URL, "http://") || strings.HasPrefix(b.URL, "https://")},
		{"secret", b.Secret != ""},
		{"size", b.Size > 0},
		{"sha256", sha256Digits.MatchString(b.SHA256)},
		{"snapshotSize", b.SnapshotSize >= 0 && b.SnapshotSize <= b.Size},
		{"revision", b.Revision >= 0 && (b.Revision > 0 || b.SnapshotSize == 0)},
		{"bumpRevision", b.BumpRevision >= 0 && b.BumpRevision <= MaxBumpRevision},
	} {
		if !field.good {
			missing = append(missing, field.name)
		}
	}
	if len(missing) > 0 {
		return nil, fmt.Errorf("the annotation %s has no good %s", RestoreAnnotation, strings.Join(missing, ", "))
	}
	return b, nil
}
