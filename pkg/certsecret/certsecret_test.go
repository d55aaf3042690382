// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package certsecret

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/etcd-operator/etcd-operator/pkg/etcd/etcdtest"
)

func TestTheFormOfASecret(t *testing.T) {
	peer := Files{"peer.crt", "peer.key", "peer-ca.crt"}
	data := func(keys ...string) map[string][]byte {
		m := map[string][]byte{}
		for _, k := range keys {
			m[k] = []byte("x")
		}
		return m
	}
	static, certManager := []string{"peer.crt", "peer.key", "peer-ca.crt"}, []string{"tls.crt", "tls.key", "ca.crt"}
	for name, c := range map[string]struct {
		data    map[string][]byte
		form    Form
		missing int
	}{
		"v0.9.4":                         {data(static...), Static, 0},
		"cert-manager":                   {data(certManager...), CertManager, 0},
		"both":                           {data(append(static, certManager...)...), Static, 0},
		"cert-manager and a rest":        {data(append(certManager, "peer.crt")...), CertManager, 0},
		"cert-manager without a CA":      {data("tls.crt", "tls.key"), CertManager, 1},
		"v0.9.4 without a CA":            {data("peer.crt", "peer.key"), Static, 1},
		"empty":                          {nil, Static, 3},
		"a key that is there, but empty": {map[string][]byte{"tls.crt": []byte("x"), "tls.key": []byte("x"), "ca.crt": nil}, CertManager, 1},
	} {
		if form, missing := peer.FormOf(c.data); form != c.form || len(missing) != c.missing {
			t.Errorf("%s: form %d, missing %v", name, form, missing)
		}
	}
}

func TestAClientsSecretIsReadInBothForms(t *testing.T) {
	ca := etcdtest.NewCA(t, "ca")
	cert, key := ca.Issue(etcdtest.Leaf{Name: "backup"})
	for _, form := range []Form{Static, CertManager} {
		certKey, keyKey, caKey := Client.Keys(form)
		id, err := ClientIdentity(clientSecret(map[string][]byte{certKey: cert, keyKey: key, caKey: ca.PEM}))
		if err != nil {
			t.Fatalf("form %d: %v", form, err)
		}
		if len(id.Validities()) != 2 {
			t.Errorf("form %d: the identity is not that of the Secret: %v", form, id.Validities())
		}
	}
}

func TestWhatIsWrongWithAClientsSecretIsSaidWithoutItsContent(t *testing.T) {
	ca := etcdtest.NewCA(t, "ca")
	cert, key := ca.Issue(etcdtest.Leaf{})
	_, otherKey := ca.Issue(etcdtest.Leaf{})
	const hidden = "hunter2"
	for name, c := range map[string]struct {
		data map[string][]byte
		want string
	}{
		"nothing in it": {nil,
			"read the client certificate: Secret etcd-client-tls lacks etcd-client.crt and etcd-client.key and etcd-client-ca.crt: it has nothing; add what is missing, " +
				"it must hold etcd-client.crt, etcd-client.key and etcd-client-ca.crt, or tls.crt, tls.key and ca.crt"},
		"no CA": {map[string][]byte{"tls.crt": cert, "tls.key": key},
			"read the client certificate: Secret etcd-client-tls lacks ca.crt: it has tls.crt, tls.key; add what is missing, " +
				"it must hold etcd-client.crt, etcd-client.key and etcd-client-ca.crt, or tls.crt, tls.key and ca.crt"},
		"another's key": {map[string][]byte{"tls.crt": cert, "tls.key": otherKey, "ca.crt": ca.PEM},
			"read the client certificate: Secret etcd-client-tls: tls.key is not the private key of tls.crt, or is encrypted, or of a kind that Go does not know; correct its files"},
		"a password for a key": {map[string][]byte{"tls.crt": cert, "tls.key": []byte(hidden), "ca.crt": ca.PEM},
			"read the client certificate: Secret etcd-client-tls: tls.key holds no private key in PEM; correct its files"},
	} {
		_, err := ClientIdentity(clientSecret(c.data))
		if err == nil || err.Error() != c.want {
			t.Errorf("%s: got %v\nwant %s", name, err, c.want)
		}
		if err != nil && strings.Contains(err.Error(), hidden) {
			t.Errorf("%s: the error shows what is in the Secret: %v", name, err)
		}
	}
}

func TestALongListOfKeysIsCut(t *testing.T) {
	data := map[string][]byte{}
	for _, r := range "abcdefghij" {
		data[strings.Repeat(string(r), 50)] = nil
	}
	_, err := ClientIdentity(clientSecret(data))
	if err == nil || len(err.Error()) > 500 || !strings.Contains(err.Error(), "…") {
		t.Errorf("got %v", err)
	}
}

func clientSecret(data map[string][]byte) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "etcd-client-tls", Namespace: "ns"}, Data: data}
}
