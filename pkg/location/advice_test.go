// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package location

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/store"
)

// Errors about wrong endpoints say what to do.
func TestErrorsOfStoresSayWhatToDo(t *testing.T) {
	secrets := secretsOf{"aws": map[string]string{"credentials": "[default]\naws_access_key_id = " + hidden + "\naws_secret_access_key = " + hidden + "\n"}}
	answers := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadRequest) })
	plain, encrypted := httptest.NewServer(answers), httptest.NewTLSServer(answers)
	defer plain.Close()
	defer encrypted.Close()
	nobody, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	nobody.Close()
	for name, c := range map[string]struct{ endpoint, want string }{
		"https where http is spoken": {strings.Replace(plain.URL, "http://", "https://", 1), "write http:// before it"},
		"http where https is spoken": {strings.Replace(encrypted.URL, "https://", "http://", 1), "look at the name of the bucket, and at the scheme and the region of the endpoint"},
		"a CA that is not known":     {encrypted.URL, "into the Secret that spec.s3.awsSecret names, as ca.crt"},
		"nobody there":               {"http://" + nobody.Addr().String(), "check that the store is up and reachable from the operator's pod, and that spec.s3.endpoint is right"},
	} {
		t.Run(name, func(t *testing.T) {
			source := api.BackupSource{S3: &api.S3BackupSource{Path: "mybucket/key", AWSSecret: "aws", Endpoint: c.endpoint}}
			place, err := Open(t.Context(), secrets, "ns", api.BackupStorageTypeS3, source, "")
			if err != nil {
				t.Fatal(err)
			}
			defer place.Close()
			_, err = place.Stat(t.Context(), place.Key)
			if err == nil {
				t.Fatal("there is no such object")
			}
			if told := Advised(err, api.BackupStorageTypeS3, source); !strings.Contains(told.Error(), c.want) || !errors.Is(told, err) || strings.Contains(told.Error(), hidden) {
				t.Errorf("%v\nwant %s", told, c.want)
			}
		})
	}
}

func TestABucketBeforeAHostThatIsNotThereIsTold(t *testing.T) {
	lookup := func(host string) error {
		return fmt.Errorf("no answer: %w", &net.OpError{Op: "dial", Err: &net.DNSError{Err: "no such host", Name: host, IsNotFound: true}})
	}
	const want = "set spec.s3.forcePathStyle to true"
	for host, c := range map[string]struct {
		storageType api.BackupStorageType
		pathStyle   bool
		told        bool
	}{
		"mybucket.minio.default.svc":          {api.BackupStorageTypeS3, false, true},
		"minio.default.svc":                   {api.BackupStorageTypeS3, true, false},
		"mybucket.minio.example.com":          {api.BackupStorageTypeS3, true, false},
		"mybucket.s3.eu-west-1.amazonaws.com": {api.BackupStorageTypeS3, false, false},
		"mybucket.oss-cn-x.aliyuncs.com":      {api.BackupStorageTypeOSS, false, false},
	} {
		source := api.BackupSource{S3: &api.S3BackupSource{Path: "mybucket/key", ForcePathStyle: c.pathStyle}}
		if told := Advised(lookup(host), c.storageType, source); strings.Contains(told.Error(), want) != c.told {
			t.Errorf("%s: %v", host, told)
		}
	}
}

func TestWhatNobodyCanActOnIsToldAsItIs(t *testing.T) {
	for _, err := range []error{errors.New("status 500"), store.ErrNotFound} {
		if told := Advised(err, api.BackupStorageTypeGCS, api.BackupSource{}); told != err { //nolint:errorlint // the very same
			t.Errorf("%v became %v", err, told)
		}
	}
}
