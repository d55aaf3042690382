// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package usersecret

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/etcd-operator/etcd-operator/pkg/etcd"
)

func TestASecretHoldsAUser(t *testing.T) {
	for name, c := range map[string]struct {
		data map[string][]byte
		want etcd.Credentials
		says string
	}{
		"complete":        {map[string][]byte{"username": []byte("root"), "password": []byte("p w\n")}, etcd.Credentials{Username: "root", Password: "p w\n"}, ""},
		"no password":     {map[string][]byte{"username": []byte("root")}, etcd.Credentials{}, "the Secret login lacks password: "},
		"an empty name":   {map[string][]byte{"username": nil, "password": []byte("p")}, etcd.Credentials{}, "the Secret login lacks username: "},
		"for other users": {map[string][]byte{"etcd-root-password": []byte("hidden")}, etcd.Credentials{}, "lacks username and password: fill it with the keys username and password of a user"},
	} {
		got, err := Of(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "login"}, Data: c.data})
		if got != c.want || (err == nil) != (c.says == "") || err != nil && (!strings.Contains(err.Error(), c.says) || strings.Contains(err.Error(), "hidden")) {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
}
