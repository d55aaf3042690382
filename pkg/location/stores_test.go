// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package location

import (
	"encoding/base64"
	"errors"
	"strings"
	"testing"

	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/store"
)

// The stores don't verify the credentials here: that needs the network, or the cloud.
func TestStoresAreGivenWhatTheirSecretsHold(t *testing.T) {
	secrets := secretsOf{
		"aws":     map[string]string{"credentials": "[default]\naws_access_key_id = id\naws_secret_access_key = " + hidden, "config": "[default]\nregion = eu-central-1\n"},
		"region":  map[string]string{"config": "[default]\nregion = eu-central-1\n"},
		"azure":   map[string]string{"storage-account": "account\n", "storage-key": base64.StdEncoding.EncodeToString([]byte(hidden)) + "\n", "cloud": "AzureChinaCloud\n"},
		"ca":      map[string]string{"credentials": "[default]\naws_access_key_id = id\naws_secret_access_key = " + hidden, "config": "[default]\nregion = eu-central-1\n", "ca.crt": hidden},
		"cloud":   map[string]string{"storage-account": "account", "storage-key": base64.StdEncoding.EncodeToString([]byte(hidden)), "cloud": "Sky"},
		"token":   map[string]string{"access-token": hidden},
		"account": map[string]string{"credentials.json": "{"},
		"bad":     map[string]string{"credentials": hidden, "config": "[default]\nregion"},
	}
	for name, c := range map[string]struct {
		kind   api.BackupStorageType
		source api.BackupSource
		is     error // of opening
	}{
		"S3":                {"S3", api.BackupSource{S3: &api.S3BackupSource{Path: "bucket/a/key", AWSSecret: "aws"}}, nil},
		"S3, region alone":  {"S3", api.BackupSource{S3: &api.S3BackupSource{Path: "bucket/a/key", AWSSecret: "region"}}, nil},
		"S3, no such files": {"S3", api.BackupSource{S3: &api.S3BackupSource{Path: "bucket/a/key", AWSSecret: "bad"}}, store.ErrConfig},
		"ABS":               {"ABS", api.BackupSource{ABS: &api.ABSBackupSource{Path: "bucket/a/key", ABSSecret: "azure"}}, nil},
		"S3, no CA":         {"S3", api.BackupSource{S3: &api.S3BackupSource{Path: "bucket/a/key", AWSSecret: "ca"}}, store.ErrConfig},
		"ABS, no cloud":     {"ABS", api.BackupSource{ABS: &api.ABSBackupSource{Path: "bucket/a/key", ABSSecret: "cloud"}}, store.ErrConfig},
		"GCS":               {"GCS", api.BackupSource{GCS: &api.GCSBackupSource{Path: "bucket/a/key", GCPSecret: "token"}}, nil},
		"GCS, no key file":  {"GCS", api.BackupSource{GCS: &api.GCSBackupSource{Path: "bucket/a/key", GCPSecret: "account"}}, store.ErrConfig},
	} {
		l, err := Open(t.Context(), secrets, "ns", c.kind, c.source, "")
		switch {
		case !errors.Is(err, c.is):
			t.Errorf("%s: %v", name, err)
		case err != nil && strings.Contains(err.Error(), hidden):
			t.Errorf("%s: the error shows what is in the Secret: %v", name, err)
		case err == nil:
			if path := l.Path(l.Key); path != "bucket/a/key" {
				t.Errorf("%s: it is at %s", name, path)
			}
			l.Close()
		}
	}
}
