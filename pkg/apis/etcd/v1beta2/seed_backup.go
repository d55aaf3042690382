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

// RestoreAnnotation on an EtcdCluster says that its first member starts on the data
// of a backup. The restore operator makes the EtcdCluster with it, since the API
// server drops the status of what is made; the etcd operator bootstraps no cluster
// that has it in any other way. When the cluster has all its members, it goes.
const RestoreAnnotation = GroupName + "/restore"

// SeedBackupTokenKey is the key, in the Secret of a SeedBackup, of the token that
// the server of the backup asks for.
const SeedBackupTokenKey = "token"

// SeedBackup says from where the first member of a cluster gets the data that it
// starts on: the value of RestoreAnnotation.
type SeedBackup struct {
	// Restore is the name of the EtcdRestore, RestoreUID its UID.
	Restore    string    `json:"restore"`
	RestoreUID types.UID `json:"restoreUID"`
	// URL serves the backup, to those who have the token.
	URL string `json:"url"`
	// Secret holds the token, under SeedBackupTokenKey, in the cluster's namespace.
	Secret string `json:"secret"`
	// Size of the backup in bytes, and its SHA-256 in hexadecimal digits: no other
	// content is taken.
	Size   int64  `json:"size"`
	SHA256 string `json:"sha256"`
	// BumpRevision is how much to raise the revision.
	BumpRevision int64 `json:"bumpRevision,omitempty"`
	// Key, EtcdVersion and EtcdRevision are those of the RestoredBackup.
	Key          string `json:"key"`
	EtcdVersion  string `json:"etcdVersion,omitempty"`
	EtcdRevision int64  `json:"etcdRevision,omitempty"`
}

// String is the value of the annotation.
func (b SeedBackup) String() string {
	text, err := json.Marshal(b)
	if err != nil { // strings and numbers
		return ""
	}
	return string(text)
}

var sha256Digits = regexp.MustCompile(`^[0-9a-f]{64}$`)

// SeedBackupOf reads the annotation of a cluster. It returns nil where there is none.
// After an error nobody knows what the first member is to start on.
func SeedBackupOf(c *EtcdCluster) (*SeedBackup, error) {
	text, ok := c.Annotations[RestoreAnnotation]
	if !ok {
		return nil, nil
	}
	b := &SeedBackup{}
	if err := json.Unmarshal([]byte(text), b); err != nil {
		return nil, fmt.Errorf("the annotation %s can't be read: %w", RestoreAnnotation, err)
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
