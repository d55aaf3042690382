// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package etcd_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/etcd-operator/etcd-operator/pkg/etcd"
)

func TestEndpointsAreReadAsUsersWriteThem(t *testing.T) {
	for _, c := range []struct {
		text         string
		certificates bool
		url          string
	}{
		{"http://example-etcd-cluster-client:2379", false, "http://example-etcd-cluster-client:2379"},
		{"https://example-etcd-cluster-client.default.svc:2379", true, "https://example-etcd-cluster-client.default.svc:2379"},
		{"https://10.0.0.1:2379", false, "https://10.0.0.1:2379"},
		{"http://10.0.0.1:2379", true, "http://10.0.0.1:2379"},
		{"example:2379", false, "http://example:2379"},
		{"example:2379", true, "https://example:2379"},
		{"10.0.0.1:2379", true, "https://10.0.0.1:2379"},
		{"[::1]:2379", false, "http://[::1]:2379"},
		{"https://[fd00::1]:2379/", true, "https://[fd00::1]:2379"},
		{"http://example:2379/ignored?as=well", false, "http://example:2379"},
		{"HTTP://example:2379", false, "http://example:2379"},
	} {
		got, err := etcd.ParseEndpoint(c.text, c.certificates)
		if err != nil || got != (etcd.Endpoint{URL: c.url}) {
			t.Errorf("%q with certificates %t is %+v, %v, want %s", c.text, c.certificates, got, err, c.url)
		}
	}
}

func TestWrongEndpointsAreToldInWords(t *testing.T) {
	for text, want := range map[string]string{
		"":                               "it names no host",
		"http://":                        "it names no host",
		"http://:2379":                   "it names no host",
		"example":                        "it names no port",
		"http://example":                 "it names no port",
		"http://example:":                "it names no port",
		"http://example:0":               "there is no port 0",
		"http://example:70000":           "there is no port 70000",
		"http://example:etcd":            "invalid port",
		"ftp://example:2379":             `the scheme "ftp" is neither http nor https`,
		"unix:///run/etcd.sock":          `the scheme "unix" is neither http nor https`,
		"<etcd-cluster-endpoints>":       "it names no port",
		"http://exa mple:2379":           "invalid character",
		"http://root:secret@example:237": "omit it",
		"http://root:secret%zz@example":  "can't be parsed",
	} {
		_, err := etcd.ParseEndpoint(text, false)
		if !errors.Is(err, etcd.ErrEndpoint) || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q in it", text, err, want)
		}
		if err != nil && strings.Contains(err.Error(), "secret") {
			t.Errorf("%q: the error repeats the password: %v", text, err)
		}
	}
}
