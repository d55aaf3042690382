// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package restore

import (
	"strings"

	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

const (
	// replacedByLabel on a volume shows by the UID of the EtcdRestore that its cluster
	// was replaced: it belongs to no cluster any more.
	replacedByLabel = api.GroupName + "/replaced-by"
	// formerMemberAnnotation on such a volume shows whose data it holds, as
	// <cluster>/<member>.
	formerMemberAnnotation = api.GroupName + "/former-member"

	// restoringKey in the selector of a Service is a label that no pod has.
	restoringKey = api.GroupName + "/restoring"
)

// tokenSecret is the name of the Secret with the token of a restore.
func tokenSecret(restore string) string { return restore + "-restore-token" }

// keyIn is the key of an object whose bucket and key are reported together.
func keyIn(bucket, path string) string {
	if bucket == "" {
		return path
	}
	return strings.TrimPrefix(path, bucket+"/")
}
