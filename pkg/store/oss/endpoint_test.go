// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package oss

import (
	"errors"
	"strings"
	"testing"

	"github.com/etcd-operator/etcd-operator/pkg/store"
)

func TestTheHostTellsTheRegion(t *testing.T) {
	for text, want := range map[string]endpoint{
		"":                                      {"http://oss-cn-hangzhou.aliyuncs.com", "cn-hangzhou"},
		"https://oss-cn-hangzhou.aliyuncs.com":  {"https://oss-cn-hangzhou.aliyuncs.com", "cn-hangzhou"},
		"https://oss-cn-hangzhou.aliyuncs.com/": {"https://oss-cn-hangzhou.aliyuncs.com", "cn-hangzhou"},
		"https://OSS-EU-CENTRAL-1.aliyuncs.com": {"https://OSS-EU-CENTRAL-1.aliyuncs.com", "eu-central-1"},
		"https://oss-cn-shanghai-internal.aliyuncs.com":       {"https://oss-cn-shanghai-internal.aliyuncs.com", "cn-shanghai"},
		"https://vpc100-oss-cn-beijing.aliyuncs.com":          {"https://vpc100-oss-cn-beijing.aliyuncs.com", "cn-beijing"},
		"https://cn-hangzhou.oss.aliyuncs.com":                {"https://cn-hangzhou.oss.aliyuncs.com", "cn-hangzhou"},
		"https://oss-cn-hangzhou.aliyuncs.com:443":            {"https://oss-cn-hangzhou.aliyuncs.com:443", "cn-hangzhou"},
		"https://oss-accelerate.aliyuncs.com":                 {"https://oss-accelerate.aliyuncs.com", ""},
		"https://oss-accelerate-overseas.aliyuncs.com":        {"https://oss-accelerate-overseas.aliyuncs.com", ""},
		"https://oss.example.com":                             {"https://oss.example.com", ""},
		"https://oss-cn-hangzhou.aliyuncs.com.example.com":    {"https://oss-cn-hangzhou.aliyuncs.com.example.com", ""},
		"http://10.0.0.1:9080":                                {"http://10.0.0.1:9080", ""},
		"oss-cn-hangzhou.aliyuncs.com":                        {"http://oss-cn-hangzhou.aliyuncs.com", "cn-hangzhou"}, // as in v0.9.4
		"https://mybucket.oss-cn-hangzhou.aliyuncs.com":       {"https://mybucket.oss-cn-hangzhou.aliyuncs.com", ""},
		"https://oss-cn-shanghai-finance-1-pub.aliyuncs.com/": {"https://oss-cn-shanghai-finance-1-pub.aliyuncs.com", "cn-shanghai-finance-1-pub"},
	} {
		got, err := parseEndpoint(text)
		if err != nil || got != want {
			t.Errorf("%q: got %+v, %v, want %+v", text, got, err, want)
		}
	}
}

func TestEndpointsThatAreNoneAreRefused(t *testing.T) {
	for _, text := range []string{
		"ftp://oss-cn-hangzhou.aliyuncs.com", "https://", "https://host/mybucket", "https://host?x=1", "https://host/#x",
		"https://user:hunter2@host", "https://user:hunter2@host:port", "https://ho st", "://",
	} {
		_, err := parseEndpoint(text)
		if !errors.Is(err, store.ErrConfig) {
			t.Errorf("%q: got %v", text, err)
		} else if strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%q: the error reveals the password: %v", text, err)
		}
	}
}

func TestConfigsThatAreNotWholeAreRefused(t *testing.T) {
	for name, cfg := range map[string]Config{
		"no bucket":        {AccessKeyID: "id", AccessKeySecret: "secret"},
		"no bucket's name": {Bucket: "My_Bucket", AccessKeyID: "id", AccessKeySecret: "secret"},
		"no ID":            {Bucket: "bucket", AccessKeySecret: "hunter2"},
		"no secret":        {Bucket: "bucket", AccessKeyID: "hunter2"},
		"no endpoint":      {Bucket: "bucket", AccessKeyID: "hunter2", AccessKeySecret: "hunter2", Endpoint: "ftp://host"},
	} {
		_, err := Open(t.Context(), cfg)
		if !errors.Is(err, store.ErrConfig) {
			t.Errorf("%s: got %v", name, err)
		} else if strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: the error reveals credentials: %v", name, err)
		}
	}
}
