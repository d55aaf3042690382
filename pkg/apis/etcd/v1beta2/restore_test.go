// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package v1beta2_test

import (
	"encoding/json"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

func TestTheTemplateOfARestoreIsLookedInto(t *testing.T) {
	for name, c := range map[string]struct{ spec, want string }{
		"good":          {`{"size": 3, "version": "3.6.16"}`, ""},
		"too large":     {`{"size": 9}`, "spec.clusterTemplate.spec.size"},
		"a wrong field": {`{"sise": 3}`, `unknown field "sise"`},
		"no version":    {`{"size": 3, "version": "latest"}`, "must be a full semantic version"},
		"nothing":       {``, "it is no spec of an EtcdCluster"},
	} {
		r := &v1beta2.EtcdRestore{}
		r.Name = "c"
		r.Spec = v1beta2.RestoreSpec{EtcdCluster: v1beta2.EtcdClusterRef{Name: "c"}, BackupStorageType: v1beta2.BackupStorageTypeVolume}
		r.Spec.Volume = &v1beta2.VolumeBackupSource{Path: "a"}
		r.Spec.ClusterTemplate = &v1beta2.ClusterTemplate{Spec: runtime.RawExtension{Raw: []byte(c.spec)}}
		errs := v1beta2.ValidateEtcdRestore(r)
		if c.want == "" && len(errs) > 0 || c.want != "" && (len(errs) != 1 || !strings.Contains(errs[0].Error(), c.want)) {
			t.Errorf("%s: %v, want %q", name, errs, c.want)
		}
	}
}

func TestSeedBackupIsReadAsItWasWritten(t *testing.T) {
	want := v1beta2.SeedBackup{
		Restore: "c", RestoreUID: "uid", URL: "http://s:19999/v1/backup/c", Secret: "token", Size: 544,
		SHA256: strings.Repeat("0f", 32), BumpRevision: 7, Key: "b/k", EtcdVersion: "3.6.16", EtcdRevision: 5,
	}
	c := &v1beta2.EtcdCluster{}
	if got, err := v1beta2.SeedBackupOf(c); got != nil || err != nil {
		t.Errorf("without the annotation: %v, %v", got, err)
	}
	c.Annotations = map[string]string{v1beta2.RestoreAnnotation: want.String()}
	if got, err := v1beta2.SeedBackupOf(c); err != nil || *got != want {
		t.Errorf("got %v, %v, want %v", got, err, want)
	}
	earlier := want
	earlier.Revision = 4
	c.Annotations[v1beta2.RestoreAnnotation] = earlier.String()
	if got, err := v1beta2.SeedBackupOf(c); err != nil || *got != earlier {
		t.Errorf("with a revision: %v, %v, want %v", got, err, earlier)
	}
	// An etcd operator of an earlier release does not read the revision, and demands this.
	var known struct {
		SHA256 string `json:"sha256"`
	}
	if err := json.Unmarshal([]byte(earlier.String()), &known); err != nil || known.SHA256 != "" {
		t.Errorf("an operator that knows no revisions restores %q, %v", known.SHA256, err)
	}
	for field, change := range map[string]func(*v1beta2.SeedBackup){
		"restoreUID": func(b *v1beta2.SeedBackup) { b.RestoreUID = "" }, "url": func(b *v1beta2.SeedBackup) { b.URL = "file:///etc" }, "secret": func(b *v1beta2.SeedBackup) { b.Secret = "" },
		"revision": func(b *v1beta2.SeedBackup) { b.Revision = -1 },
		"size":     func(b *v1beta2.SeedBackup) { b.Size = 0 }, "sha256": func(b *v1beta2.SeedBackup) { b.SHA256 = "x" }, "bumpRevision": func(b *v1beta2.SeedBackup) { b.BumpRevision = -1 },
		"good bumpRevision": func(b *v1beta2.SeedBackup) { b.BumpRevision = v1beta2.MaxBumpRevision + 1 },
	} {
		broken := want
		change(&broken)
		c.Annotations[v1beta2.RestoreAnnotation] = broken.String()
		if got, err := v1beta2.SeedBackupOf(c); got != nil || err == nil || !strings.Contains(err.Error(), field) {
			t.Errorf("a wrong %s: %v, %v", field, got, err)
		}
	}
	c.Annotations[v1beta2.RestoreAnnotation] = "?"
	if got, err := v1beta2.SeedBackupOf(c); got != nil || err == nil {
		t.Errorf("nonsense: %v, %v", got, err)
	}
}
