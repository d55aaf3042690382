// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package location

import (
	"context"
	"crypto/md5"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/store"
	"github.com/etcd-operator/etcd-operator/test/stores/osstest"
)

// hidden is in every Secret of these tests, and must be in no error.
const hidden = "hunter2"

// secretsOf holds the Secrets of the namespace ns, by name: the content, or the error of
// reading it.
type secretsOf map[string]any

func (s secretsOf) Get(_ context.Context, namespace, name string) (*corev1.Secret, error) {
	resource := schema.GroupResource{Resource: "secrets"}
	if namespace == "ns" {
		switch held := s[name].(type) {
		case map[string]string:
			data := map[string][]byte{}
			for k, v := range held {
				data[k] = []byte(v)
			}
			return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace}, Data: data}, nil
		case error:
			return nil, held
		}
	}
	return nil, apierrors.NewNotFound(resource, name)
}

func TestWhatNamesNoPlaceIsToldSo(t *testing.T) {
	unreachable := errors.New("connection refused")
	forbidden := apierrors.NewForbidden(schema.GroupResource{Resource: "secrets"}, "forbidden", errors.New("RBAC"))
	many := map[string]string{"accessKeyID": hidden}
	for i := range 20 {
		many[fmt.Sprintf("key-%02d", i)] = hidden
	}
	secrets := secretsOf{
		"none":      map[string]string{},
		"other":     map[string]string{"foo": hidden, "bar": hidden},
		"half":      map[string]string{"accessKeyID": hidden, "accessKeySecret": " \n"},
		"many":      many,
		"forbidden": forbidden,
		"down":      unreachable,
		"aliyun":    map[string]string{"accessKeyID": hidden, "accessKeySecret": hidden},
		"azure":     map[string]string{"storage-account": "account", "storage-key": hidden, "cloud": hidden},
	}
	oss := func(path, secret string) api.BackupSource {
		return api.BackupSource{OSS: &api.OSSBackupSource{Path: path, OSSSecret: secret}}
	}
	for name, c := range map[string]struct {
		kind   api.BackupStorageType
		source api.BackupSource
		is     error
		want   string // "": that of is alone
	}{
		"unknown type":    {"FTP", api.BackupSource{}, ErrSpec, `the spec must be edited: there is no storage type "FTP": it must be S3, ABS, GCS, OSS or Volume`},
		"no type":         {"", api.BackupSource{}, ErrSpec, `the spec must be edited: there is no storage type "": it must be S3, ABS, GCS, OSS or Volume`},
		"no section s3":   {"S3", oss("b/k", "aliyun"), ErrSpec, "the spec must be edited: the storage type S3 needs the section spec.s3, which is not there"},
		"no section abs":  {"ABS", oss("b/k", "aliyun"), ErrSpec, "the spec must be edited: the storage type ABS needs the section spec.abs, which is not there"},
		"no section gcs":  {"GCS", oss("b/k", "aliyun"), ErrSpec, "the spec must be edited: the storage type GCS needs the section spec.gcs, which is not there"},
		"no section oss":  {"OSS", api.BackupSource{S3: &api.S3BackupSource{Path: "b/k"}}, ErrSpec, "the spec must be edited: the storage type OSS needs the section spec.oss, which is not there"},
		"no section":      {"Volume", oss("b/k", "aliyun"), ErrSpec, "the spec must be edited: the storage type Volume needs the section spec.volume, which is not there"},
		"a URL":           {"S3", api.BackupSource{S3: &api.S3BackupSource{Path: "s3://mybucket/key"}}, ErrSpec, `the spec must be edited: spec.s3.path is "s3://mybucket/key": it must be a bucket and a key, such as mybucket/etcd.backup`},
		"bucket alone":    {"OSS", oss("mybucket", "aliyun"), ErrSpec, `the spec must be edited: spec.oss.path is "mybucket": it must be a bucket and a key, such as mybucket/etcd.backup`},
		"empty key":       {"S3", api.BackupSource{S3: &api.S3BackupSource{Path: "mybucket/"}}, ErrSpec, `the spec must be edited: spec.s3.path is "mybucket/": it must be a bucket and a key, such as mybucket/etcd.backup`},
		"empty container": {"ABS", api.BackupSource{ABS: &api.ABSBackupSource{Path: "/key"}}, ErrSpec, `the spec must be edited: spec.abs.path is "/key": it must be a bucket and a key, such as mybucket/etcd.backup`},
		"no path":         {"GCS", api.BackupSource{GCS: &api.GCSBackupSource{}}, ErrSpec, `the spec must be edited: spec.gcs.path is "": it must be a bucket and a key, such as mybucket/etcd.backup`},
		"out of the volume": {"Volume", api.BackupSource{Volume: &api.VolumeBackupSource{Path: "../other/etcd.backup"}}, ErrSpec,
			`the spec must be edited: spec.volume.path is "../other/etcd.backup": it must be a path below the volume's directory, such as example/etcd.backup`},
		"no volume": {"Volume", api.BackupSource{Volume: &api.VolumeBackupSource{Path: "etcd.backup"}}, ErrSpec,
			"the spec must be edited: the operator has no volume for backups: start it with -volume-dir, or use another storage type than Volume"},

		"no Secret named":         {"OSS", oss("b/k", ""), ErrSpec, "the spec must be edited: spec.oss.ossSecret is not set: name the Secret with the credentials of the store"},
		"no such Secret":          {"OSS", oss("b/k", "gone"), ErrSecret, "the credentials can't be read: Secret gone (spec.oss.ossSecret) does not exist: create it in the namespace ns"},
		"forbidden":               {"OSS", oss("b/k", "forbidden"), ErrSecret, "the credentials can't be read: Secret forbidden (spec.oss.ossSecret) can't be read by the operator: grant its service account to get Secrets in the namespace ns: apply the roles of the installed release again (install.yaml, helm upgrade, or for example/ create_role.sh)"},
		"API server down":         {"OSS", oss("b/k", "down"), unreachable, "read Secret down (spec.oss.ossSecret): connection refused"},
		"empty Secret":            {"OSS", oss("b/k", "none"), ErrSecret, "the credentials can't be read: Secret none (spec.oss.ossSecret) lacks accessKeyID and accessKeySecret: it has nothing; add what is missing"},
		"other keys":              {"OSS", oss("b/k", "other"), ErrSecret, "the credentials can't be read: Secret other (spec.oss.ossSecret) lacks accessKeyID and accessKeySecret: it has bar, foo; add what is missing"},
		"a key that is empty":     {"OSS", oss("b/k", "half"), ErrSecret, "the credentials can't be read: Secret half (spec.oss.ossSecret) lacks accessKeySecret: it has accessKeyID, accessKeySecret (empty); add what is missing"},
		"many keys":               {"OSS", oss("b/k", "many"), ErrSecret, "the credentials can't be read: Secret many (spec.oss.ossSecret) lacks accessKeySecret: it has accessKeyID, key-00, key-01, key-02, key-03, key-04, key-05, key-06, key-07, key-08 and 11 more; add what is missing"},
		"other keys for S3":       {"S3", api.BackupSource{S3: &api.S3BackupSource{Path: "b/k", AWSSecret: "other"}}, ErrSecret, "the credentials can't be read: Secret other (spec.s3.awsSecret) lacks credentials or config: it has bar, foo; add what is missing"},
		"other keys for ABS":      {"ABS", api.BackupSource{ABS: &api.ABSBackupSource{Path: "b/k", ABSSecret: "other"}}, ErrSecret, "the credentials can't be read: Secret other (spec.abs.absSecret) lacks storage-account: it has bar, foo; add what is missing"},
		"other keys for GCS":      {"GCS", api.BackupSource{GCS: &api.GCSBackupSource{Path: "b/k", GCPSecret: "other"}}, ErrSecret, "the credentials can't be read: Secret other (spec.gcs.gcpSecret) lacks access-token or credentials.json: it has bar, foo; add what is missing"},
		"a bucket OSS can't have": {"OSS", oss("MyBucket/k", "aliyun"), store.ErrConfig, ""},
	} {
		l, err := Open(t.Context(), secrets, "ns", c.kind, c.source, "")
		if err == nil {
			t.Errorf("%s: got %s", name, l.Path(l.Key))
			continue
		}
		if !errors.Is(err, c.is) || c.want != "" && err.Error() != c.want {
			t.Errorf("%s: got  %v\nwant %s", name, err, c.want)
		}
		if strings.Contains(err.Error(), hidden) {
			t.Errorf("%s: the error shows what is in a Secret: %v", name, err)
		}
	}
}

// Only the namespace of the backup itself counts.
func TestSecretsOfOtherNamespacesAreNotRead(t *testing.T) {
	secrets := secretsOf{"aliyun": map[string]string{"accessKeyID": "id", "accessKeySecret": hidden}}
	source := api.BackupSource{OSS: &api.OSSBackupSource{Path: "b/k", OSSSecret: "aliyun"}}
	if _, err := Open(t.Context(), secrets, "other", api.BackupStorageTypeOSS, source, ""); !errors.Is(err, ErrSecret) {
		t.Errorf("got %v", err)
	}
}

func TestOSSIsOpenedWithWhatItsSecretHolds(t *testing.T) {
	server := &osstest.Server{AccessKeys: map[string]string{"id": hidden}}
	endpoint := server.Start(t, t.TempDir(), "backups")
	// As `echo` leaves it in a file.
	secrets := secretsOf{"aliyun": map[string]string{"accessKeyID": "id\n", "accessKeySecret": hidden + "\n"}}
	source := api.BackupSource{
		OSS: &api.OSSBackupSource{Path: "backups/ns/etcd.backup", OSSSecret: "aliyun", Endpoint: endpoint},
		S3:  &api.S3BackupSource{}, // does not count
	}
	use(t, secrets, api.BackupStorageTypeOSS, source, "", "backups", "ns/etcd.backup")
}

func TestS3IsOpenedWithWhatItsSecretHolds(t *testing.T) {
	bucket := &s3Bucket{objects: map[string][]byte{}}
	server := httptest.NewTLSServer(bucket)
	t.Cleanup(server.Close)
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	secrets := secretsOf{"aws": map[string]string{
		"credentials": "[default]\naws_access_key_id = AKIDEXAMPLE\naws_secret_access_key = " + hidden + "\n",
		"config":      "[default]\nregion = eu-central-1\n",
		"ca.crt":      string(ca),
	}}
	source := api.BackupSource{S3: &api.S3BackupSource{Path: "backups/ns/etcd.backup", AWSSecret: "aws", Endpoint: server.URL, ForcePathStyle: true}}
	use(t, secrets, api.BackupStorageTypeS3, source, "", "backups", "ns/etcd.backup")
	if want := "Credential=AKIDEXAMPLE/"; !strings.Contains(bucket.authorization, want) || !strings.Contains(bucket.authorization, "/eu-central-1/s3/") {
		t.Errorf("authorization %s", bucket.authorization)
	}
	if content := bucket.objects["/backups/ns/etcd.backup"]; string(content) != "content" {
		t.Errorf("there is %q in %v", content, slices.Collect(maps.Keys(bucket.objects)))
	}
}

// s3Bucket answers to the few requests of a small upload as S3 does.
type s3Bucket struct {
	objects       map[string][]byte
	authorization string
}

func (b *s3Bucket) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	b.authorization = r.Header.Get("Authorization")
	if r.Method == http.MethodPut {
		b.objects[r.URL.Path], _ = io.ReadAll(r.Body)
	}
	content := b.objects[r.URL.Path]
	w.Header().Set("ETag", fmt.Sprintf(`"%x"`, md5.Sum(content)))
	if r.Method == http.MethodHead {
		w.Header().Set("Content-Length", strconv.Itoa(len(content)))
	}
}

func TestVolumesAreDividedByNamespace(t *testing.T) {
	dir := t.TempDir()
	source := api.BackupSource{Volume: &api.VolumeBackupSource{Path: "example/etcd.backup"}}
	use(t, secretsOf{}, api.BackupStorageTypeVolume, source, dir, "", "example/etcd.backup")
	content, err := os.ReadFile(filepath.Join(dir, "ns", "example", "etcd.backup"))
	if err != nil || string(content) != "content" {
		t.Errorf("%q, error %v", content, err)
	}
	if _, err := Open(t.Context(), secretsOf{}, "ns", api.BackupStorageTypeVolume, source, filepath.Join(dir, "none")); !errors.Is(err, store.ErrNoBucket) {
		t.Errorf("a volume that is not mounted: %v", err)
	}
}

// use opens a location and puts an object there.
func use(t *testing.T, secrets Secrets, kind api.BackupStorageType, source api.BackupSource, volumeDir, bucket, key string) {
	t.Helper()
	l, err := Open(t.Context(), secrets, "ns", kind, source, volumeDir)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if l.Bucket != bucket || l.Key != key {
		t.Errorf("bucket %q, key %q", l.Bucket, l.Key)
	}
	if _, err := l.Put(t.Context(), l.Key, store.Upload{Body: strings.NewReader("content"), Size: -1}); err != nil {
		t.Fatal(err)
	}
	if o, err := l.Stat(t.Context(), key); err != nil || o.Size != int64(len("content")) {
		t.Errorf("got %+v, %v", o, err)
	}
}
