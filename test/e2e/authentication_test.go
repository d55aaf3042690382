//go:build e2e

// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"testing"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/etcd"
	"github.com/etcd-operator/etcd-operator/test/harness"
)

// A cluster with TLS asks clients for a user, while a client writes. The operators do all that
// they do for others, from an upgrade to a restore, whose snapshot brings the users along.
func TestAClusterThatAsksForAUser(t *testing.T) {
	t.Parallel()
	r := newRestores(t)
	r.DeployBackupOperator(nil)
	p := newPKI(t, r.Namespace)
	p.writeAll()
	r.SetSecret("user", map[string][]byte{"username": []byte("root"), "password": []byte("a-password-that-nobody-tells")})
	object := p.cluster(3, etcd35, nil)
	object.Spec.Auth = &v1beta2.AuthPolicy{CredentialsSecret: "user"}
	cluster := r.CreateObject(object)
	r.cluster = cluster
	cluster.WaitSettled()
	enableAuthentication(t, cluster)
	cluster.Reconnect()
	writer := cluster.StartWriter()
	if err := cluster.DialWithoutUser(t.Context(), cluster.Pods()[0]); !etcd.AsksForUser(err) && !etcd.LacksRole(err) {
		t.Errorf("a client without a user: %v", err)
	}
	cluster.Put("kept", "yes")

	lost := cluster.Follower()
	r.DeletePod(lost)
	cluster.WaitSettled(lost)
	cluster.Resize(4)
	cluster.WaitSettled()
	cluster.Resize(3)
	cluster.WaitSettled()
	cluster.SetVersion(etcd36)
	cluster.WaitSettled()
	if history := cluster.VerifyWrites(writer); len(history.Acks) == 0 {
		t.Error("no write was acknowledged")
	}

	spec := r.spec("etcd", "backup")
	backup := r.backups.spec("backup")
	backup.ClientTLSSecret = cluster.Object().Spec.OperatorSecret()
	r.CreateBackup("backup", backup).WaitSucceeded(cluster.Object().CreationTimestamp.Time)
	cluster.Put("later", "yes")
	restored := r.CreateRestore(spec).WaitSucceeded()
	cluster, _ = r.checkRestored("etcd", restored)
	if err := cluster.DialWithoutUser(t.Context(), cluster.Pods()[0]); !etcd.AsksForUser(err) && !etcd.LacksRole(err) {
		t.Errorf("after the restore, a client without a user: %v", err)
	}
	r.CheckNoSecretIsTold()
}

// enableAuthentication creates the user in the Secret, and makes etcd ask for it.
func enableAuthentication(t *testing.T, cluster *harness.Cluster) {
	t.Helper()
	client, err := cluster.Client()
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(t.Context(), harness.Settle)
	defer cancel()
	if _, err = client.UserAdd(ctx, client.Username, client.Password); err == nil {
		_, err = client.UserGrantRole(ctx, client.Username, "root")
	}
	if err == nil {
		_, err = client.AuthEnable(ctx)
	}
	if err != nil {
		t.Fatalf("enable authentication: %v", err)
	}
}
