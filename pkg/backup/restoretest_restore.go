// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package backup

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/etcd"
	"github.com/etcd-operator/etcd-operator/pkg/manifest"
	"github.com/etcd-operator/etcd-operator/pkg/snapshot"
)

const (
	// testSuffix is what the alerts know tests by (example/monitoring/rules.yaml).
	testSuffix = "-restore-test"
	// longestTestName is the limit of the names of EtcdClusters.
	longestTestName = 52
)

// testName is the name of the EtcdRestore and the EtcdCluster of tests. That of an EtcdCluster
// is shorter than that of an EtcdBackup may be, and begins with a letter.
func testName(obj *api.EtcdBackup) string {
	name := strings.ReplaceAll(obj.Name, ".", "-")
	if name[0] >= '0' && name[0] <= '9' {
		name = "b" + name
	}
	if len(name+testSuffix) > longestTestName || name != obj.Name {
		digest := "-" + manifest.ShortDigest(obj.Name)[:8]
		name = strings.TrimRight(name[:min(len(name), longestTestName-len(testSuffix)-len(digest))], "-") + digest
	}
	return name + testSuffix
}

// etcdRestore is the restore of the backup into a cluster of its own.
func (t *restoreTest) etcdRestore(ctx context.Context) (*api.EtcdRestore, error) {
	template, err := t.template(ctx)
	if err != nil {
		return nil, err
	}
	name := testName(t.obj)
	restore := &api.EtcdRestore{
		ObjectMeta: metav1.ObjectMeta{
			Name: name, Namespace: t.obj.Namespace, OwnerReferences: t.owners(),
			Labels: map[string]string{api.RestoreTestLabel: string(t.obj.UID)},
		},
		Spec: api.RestoreSpec{
			EtcdCluster: api.EtcdClusterRef{Name: name}, BackupStorageType: t.obj.Spec.StorageType,
			BackupSource: *t.obj.Spec.BackupSource.DeepCopy(), ClusterTemplate: template,
		},
	}
	if t.point.revision > 0 {
		restore.Spec.Pick, restore.Spec.Revision = api.RestorePickNewest, t.point.revision
		restore.Spec.ClusterID = t.status.Continuous.ClusterID // others may store below the same path
	} else {
		setPath(&restore.Spec.BackupSource, t.obj.Spec.StorageType, t.status.Key)
	}
	if scope, there := t.obj.Annotations[api.ScopeAnnotation]; there {
		restore.Annotations = map[string]string{api.ScopeAnnotation: scope}
	}
	return restore, nil
}

// setPath names a backup in the section of a storage type.
func setPath(s *api.BackupSource, storageType api.BackupStorageType, path string) {
	switch storageType {
	case api.BackupStorageTypeS3:
		s.S3.Path = path
	case api.BackupStorageTypeABS:
		s.ABS.Path = path
	case api.BackupStorageTypeGCS:
		s.GCS.Path = path
	case api.BackupStorageTypeOSS:
		s.OSS.Path = path
	case api.BackupStorageTypeVolume:
		s.Volume.Path = path
	}
}

// template is the one of the spec, or one like the cluster that the backup comes from.
func (t *restoreTest) template(ctx context.Context) (*api.ClusterTemplate, error) {
	template := &api.ClusterTemplate{}
	var spec map[string]any
	if own := t.obj.Spec.RestoreTest.ClusterTemplate; own != nil {
		template = own.DeepCopy()
		if err := json.Unmarshal(own.Spec.Raw, &spec); err != nil {
			return nil, fmt.Errorf("spec.restoreTest.clusterTemplate.spec: %w", err)
		}
		if err := t.fits(spec); err != nil {
			return nil, fmt.Errorf("spec.restoreTest.clusterTemplate.spec.version: %w", err)
		}
	} else {
		var err error
		if spec, template.Metadata.Annotations, err = t.copied(ctx); err != nil {
			return nil, err
		}
	}
	if version, _ := spec["version"].(string); version == "" && t.status.EtcdVersion != "" {
		spec["version"] = t.status.EtcdVersion
	}
	raw, err := json.Marshal(spec)
	if err != nil {
		return nil, err
	}
	template.Spec = runtime.RawExtension{Raw: raw}
	labels := map[string]string{}
	maps.Copy(labels, template.Metadata.Labels)
	labels[api.RestoreTestLabel] = string(t.obj.UID)
	template.Metadata.Labels = labels
	if scope, there := t.obj.Annotations[api.ScopeAnnotation]; there {
		annotations := map[string]string{}
		maps.Copy(annotations, template.Metadata.Annotations)
		annotations[api.ScopeAnnotation] = scope
		template.Metadata.Annotations = annotations
	}
	return template, nil
}

// fits reports why the version of a template can't restore the backup: that says nothing of the backup. A version
// that is not readable is for the restore operator to judge.
func (t *restoreTest) fits(spec map[string]any) error {
	text, _ := spec["version"].(string)
	version, err := etcd.ParseVersion(text)
	taken, unknown := etcd.ParseVersion(t.status.EtcdVersion)
	if err != nil || unknown != nil {
		return nil //nolint:nilerr // as above
	}
	return etcd.RestoreFits(taken, version)
}

// errReadable is the error for a template that would show the data to more people than the
// cluster does.
var errReadable = errors.New("the cluster has TLS for clients, and everybody in the network could read a copy without it: describe one with TLS in spec.restoreTest.clusterTemplate")

// copied is one member like those of the cluster that the backup comes from.
func (t *restoreTest) copied(ctx context.Context) (spec map[string]any, annotations map[string]string, err error) {
	spec = map[string]any{"size": 1}
	ref := t.obj.Spec.EtcdCluster
	if ref == nil {
		if asksForTLS(&t.obj.Spec) {
			return nil, nil, errReadable
		}
		setUser(spec, t.obj.Spec.CredentialsSecret)
		return spec, nil, nil
	}
	obj, err := t.cfg.Etcd.EtcdV1beta2().EtcdClusters(t.obj.Namespace).Get(ctx, ref.Name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil, fmt.Errorf("the EtcdCluster %s is gone, and the test copies its settings: describe a cluster in spec.restoreTest.clusterTemplate", ref.Name)
	case err != nil:
		return nil, nil, fmt.Errorf("look at the EtcdCluster %s: %w", ref.Name, granted(err, "get etcdclusters"))
	case obj.Spec.ClientTLS():
		return nil, nil, errReadable
	}
	if obj.Spec.Repository != "" {
		spec["repository"] = obj.Spec.Repository
	}
	if obj.Status.LiteralTags && !strings.HasPrefix(obj.Spec.Version, "v") {
		annotations = map[string]string{api.LiteralTagsAnnotation: "true"}
	}
	setUser(spec, cmp.Or(obj.Spec.CredentialsSecret(), t.obj.Spec.CredentialsSecret))
	if p := obj.Spec.Pod; p != nil {
		spec["pod"] = &api.PodPolicy{Resources: p.Resources, ImagePullSecrets: p.ImagePullSecrets, NodeSelector: p.NodeSelector, Tolerations: p.Tolerations, SecurityContext: p.SecurityContext}
	}
	return spec, annotations, nil
}

// asksForTLS reports whether endpoints have TLS for clients. A certificate of a public CA needs no Secret.
func asksForTLS(s *api.BackupSpec) bool {
	return s.ClientTLSSecret != "" || s.AllowSelfSignedCertificates || slices.ContainsFunc(s.EtcdEndpoints, func(text string) bool {
		ep, err := etcd.ParseEndpoint(text, false)
		return err == nil && strings.HasPrefix(ep.URL, "https:")
	})
}

// setUser names the user in a copy, which has the users of the backup.
func setUser(spec map[string]any, secret string) {
	if secret != "" {
		spec["auth"] = map[string]any{"credentialsSecret": secret}
	}
}

// openRestored connects to the one member, or to the first of them.
func openRestored(src snapshot.Source) (Restored, error) {
	client := etcd.NewClient(src.TLS)
	client.SetCredentials(src.User)
	conn, err := client.Conn(src.Endpoints[0])
	if err != nil {
		client.Close()
		return nil, err
	}
	return restoredEtcd{conn, client}, nil
}

type restoredEtcd struct {
	*etcd.Conn
	client *etcd.Client
}

func (r restoredEtcd) Close() { r.client.Close() }

// Tests bounds how many tests of a process run at once: each needs a pod, and reads a backup
// twice. To nil Tests there is no limit.
type Tests struct{ slots chan struct{} }

// NewTests returns a limit.
func NewTests(atOnce int) *Tests { return &Tests{make(chan struct{}, atOnce)} }

func (s *Tests) take(ctx context.Context) (release func(), err error) {
	if s == nil {
		return func() {}, nil
	}
	select {
	case s.slots <- struct{}{}:
		return func() { <-s.slots }, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}
