// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package abs

import (
	"errors"
	"strings"
	"testing"

	"github.com/etcd-operator/etcd-operator/pkg/store"
)

const key = "aHVudGVyMg==" // in plain text: hunter2

func TestServicesAreThoseOfTheCloud(t *testing.T) {
	for _, tt := range []struct {
		cloud, endpoint, service string
	}{
		{"", "", "https://myaccount.blob.core.windows.net"},
		{"AzurePublicCloud", "", "https://myaccount.blob.core.windows.net"},
		{"AZUREPUBLICCLOUD\n", "", "https://myaccount.blob.core.windows.net"},
		{"AzureCloud", "", "https://myaccount.blob.core.windows.net"},
		{"AzureChinaCloud", "", "https://myaccount.blob.core.chinacloudapi.cn"},
		{"AzureUSGovernmentCloud", "", "https://myaccount.blob.core.usgovcloudapi.net"},
		{"AzureUSGovernment", "", "https://myaccount.blob.core.usgovcloudapi.net"},
		{"AzureGermanCloud", "", "https://myaccount.blob.core.cloudapi.de"},
		{"", "http://azurite:10000/myaccount/", "http://azurite:10000/myaccount"},
	} {
		p, err := Config{Container: "backups", Account: "myaccount\n", Key: key + "\n", Cloud: tt.cloud, Endpoint: tt.endpoint}.place()
		if err != nil || p.service != tt.service || p.account != "myaccount" || p.key != key {
			t.Errorf("cloud %q, endpoint %q: %+v, error %v; want %s", tt.cloud, tt.endpoint, p, err, tt.service)
		}
	}
}

func TestWrongConfigurationIsTold(t *testing.T) {
	good := Config{Container: "backups", Account: "myaccount", Key: key}
	for name, tt := range map[string]struct {
		edit  func(*Config)
		names string // what the error must name
	}{
		"no container":            {func(c *Config) { c.Container = "" }, "container"},
		"short container":         {func(c *Config) { c.Container = "ab" }, "container"},
		"container of long name":  {func(c *Config) { c.Container = strings.Repeat("a", 64) }, "container"},
		"container with a query":  {func(c *Config) { c.Container = "backups?sig=hunter2" }, "container"},
		"container above":         {func(c *Config) { c.Container = ".." }, "container"},
		"no account":              {func(c *Config) { c.Account = " " }, "storage-account"},
		"account of another host": {func(c *Config) { c.Account = "example.com/" }, "storage-account"},
		"key that is no base64":   {func(c *Config) { c.Key = "hunter2!" }, "storage-key"},
		"unknown cloud":           {func(c *Config) { c.Cloud = "hunter2" }, "AzurePublicCloud, AzureChinaCloud, AzureUSGovernmentCloud, AzureGermanCloud"},
		"no URL":                  {func(c *Config) { c.Endpoint = "azurite:10000" }, "endpoint"},
		"signed URL":              {func(c *Config) { c.Endpoint = "https://myaccount.blob.core.windows.net/?sig=hunter2" }, "endpoint"},
		"password in the URL":     {func(c *Config) { c.Endpoint = "http://me:hunter2@azurite" }, "endpoint"},
	} {
		config := good
		tt.edit(&config)
		opened, err := Open(t.Context(), config)
		if !errors.Is(err, store.ErrConfig) {
			t.Errorf("%s: opened %v, error %v, want %v", name, opened, err, store.ErrConfig)
			continue
		}
		told := strings.Replace(err.Error(), config.Container, "", 1)
		if !strings.Contains(told, tt.names) || strings.Contains(told, "hunter2") {
			t.Errorf("%s: the error must name %s and no secret: %v", name, tt.names, err)
		}
	}
}

// Whoever may create a backup names the endpoint, and could have the token of the
// operator's pod sent there.
func TestTheIdentityIsForAzureOnly(t *testing.T) {
	for endpoint, allowed := range map[string]bool{
		"": true,
		"https://myaccount.blob.core.windows.net":       true,
		"https://myaccount.z1.blob.storage.azure.net/":  true,
		"https://myaccount.blob.core.chinacloudapi.cn":  true,
		"http://myaccount.blob.core.windows.net":        false,
		"https://myaccount.blob.core.windows.net:8443":  false,
		"https://blob.core.windows.net.example.com":     false,
		"https://myaccountblob.core.windows.net":        false,
		"https://example.com/x.blob.core.windows.net":   false,
		"https://example.com":                           false,
		"https://example.com:443/.blob.storage.azure.n": false,
	} {
		for _, key := range []string{"", key} {
			_, err := Config{Container: "backups", Account: "myaccount", Key: key, Endpoint: endpoint}.place()
			if want := key != "" || allowed; (err == nil) != want {
				t.Errorf("endpoint %q, key %q: error %v, want none: %v", endpoint, key, err, want)
			}
			if err != nil && (!errors.Is(err, store.ErrConfig) || !strings.Contains(err.Error(), "storage-key")) {
				t.Errorf("endpoint %q: %v", endpoint, err)
			}
		}
	}
}
