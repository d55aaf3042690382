// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package redact

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestTextsLoseTheirSecrets(t *testing.T) {
	for _, test := range []struct{ text, want string }{
		{"nothing secret", "nothing secret"},
		{"https://user:s3cret@store.example.com/x", "https://REDACTED@store.example.com/x"},
		{"https://user:p@s3cret@store.example.com/x by me@example.com", "https://REDACTED@store.example.com/x by me@example.com"},
		{"http://orders-a.orders.default.svc:2379", "http://orders-a.orders.default.svc:2379"},
		{"Authorization: Bearer s3cret-s3cret", "Authorization: Bearer REDACTED"},
		{"--auth-token=jwt,sign-key=s3cret", "--auth-token=REDACTED"},
		{"AWS_SECRET_ACCESS_KEY=s3cret next", "AWS_SECRET_ACCESS_KEY=REDACTED next"},
		{"-----BEGIN EC PRIVATE KEY-----\ns3cret\n-----END EC PRIVATE KEY-----\nafter", "REDACTED\nafter"},
		{"-----BEGIN EC PRIVATE KEY-----\ns3cret", "REDACTED"},
		{
			`{"level":"warn","msg":"apply request took too long","request":"header:<ID:1 > put:<key:\"s3cret\" value_size:3 >","response":"size:5"}`,
			`{"level":"warn","msg":"apply request took too long","request":"REDACTED","response":"size:5"}`,
		},
		{
			`request: range:<key:\"s3cret/a\\\\000b\" range_end:\"s3creu\" >`,
			`request: range:<key:\"REDACTED\" range_end:\"REDACTED\" >`,
		},
		{
			`"msg":"trace","detail":"{range_begin:s3cret; range_end:; response_count:0; }","duration":"1ms"`,
			`"msg":"trace","detail":"REDACTED","duration":"1ms"`,
		},
		{`{"range-begin":"s3cret","range-end":"","took":"1s"}`, `{"range-begin":"REDACTED","range-end":"REDACTED","took":"1s"}`},
	} {
		if got := Text(test.text); got != test.want {
			t.Errorf("%s\nbecomes\n%s\nwant\n%s", test.text, got, test.want)
		}
	}
}

func TestObjectsLoseTheirSecrets(t *testing.T) {
	const text = `{"kind":"Pod",
	"metadata":{"name":"orders-a","managedFields":["s3cret"],"labels":{"app":"etcd"},"annotations":{
		"kubectl.kubernetes.io/last-applied-configuration":"s3cret","mine/note":"s3cret","etcd.version":"3.7.3"}},
	"spec":{"containers":[{"command":["etcd","--name=orders-a","--experimental-password=s3cret"],"env":[
		{"name":"ETCD_SNAPSHOT_COUNT","value":"10000"},{"name":"ETCD_AUTH_TOKEN","value":"s3cret"},{"name":"PGPASS","value":"s3cret"},
		{"name":"FROM","valueFrom":{"secretKeyRef":{"name":"credentials","key":"a"}}}]}]}}`
	var object map[string]any
	if err := json.Unmarshal([]byte(text), &object); err != nil {
		t.Fatal(err)
	}
	Object(object)
	content, err := json.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	got := string(content)
	if strings.Contains(got, "s3cret") {
		t.Errorf("a secret is left in %s", got)
	}
	for _, want := range []string{`"10000"`, `"etcd.version":"3.7.3"`, `"--name=orders-a"`, `"name":"credentials"`, `"mine/note":"REDACTED"`, `"app":"etcd"`} {
		if !strings.Contains(got, want) {
			t.Errorf("%s is missing in %s", want, got)
		}
	}
}

func TestASecretIsEmpty(t *testing.T) {
	object := map[string]any{"kind": "Secret", "data": map[string]any{"tls.key": "c2VjcmV0"}, "stringData": map[string]any{"a": "b"}}
	Object(object)
	if len(object) != 1 {
		t.Errorf("it holds %v", object)
	}
}
