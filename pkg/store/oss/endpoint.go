// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package oss

import (
	"fmt"
	"net/url"
	"regexp"
	"strings"

	"github.com/aliyun/alibabacloud-oss-go-sdk-v2/oss"

	"github.com/etcd-operator/etcd-operator/pkg/store"
)

// endpoint is a parsed endpoint.
type endpoint struct {
	url    string
	region string // "": the host does not name it
}

// regional matches the hosts that name their region: the public one, -internal for the
// region's own network, vpc100- as an older form of it, and hosts with IPv6.
var regional = regexp.MustCompile(`^(?:(?:vpc100-)?oss-([a-z0-9-]+?)(?:-internal)?|([a-z0-9-]+)\.oss)\.aliyuncs\.com$`)

func parseEndpoint(text string) (endpoint, error) {
	if text == "" {
		text = DefaultEndpoint
	}
	if !strings.Contains(text, "://") {
		text = "http://" + text
	}
	u, err := url.Parse(text)
	switch {
	case err != nil:
		// The parse error would quote the text, which may hold a password.
		return endpoint{}, fmt.Errorf("open OSS: %w: the endpoint is no URL: it must be one such as https://oss-cn-hangzhou.aliyuncs.com", store.ErrConfig)
	case u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "":
		return endpoint{}, fmt.Errorf("open OSS: %w: the endpoint %s must begin with http:// or https:// and a host name", store.ErrConfig, u.Redacted())
	case strings.Trim(u.Path, "/") != "" || u.RawQuery != "" || u.Fragment != "" || u.User != nil:
		return endpoint{}, fmt.Errorf("open OSS: %w: the endpoint %s must be scheme, host and port alone; the bucket belongs into the path of the backup", store.ErrConfig, u.Redacted())
	}
	return endpoint{url: u.Scheme + "://" + u.Host, region: regionOf(u.Hostname())}, nil
}

func regionOf(host string) string {
	match := regional.FindStringSubmatch(strings.ToLower(host))
	if match == nil {
		return ""
	}
	region := match[1] + match[2]
	if region == "accelerate" || region == "accelerate-overseas" {
		return "" // these serve buckets of all regions
	}
	return region
}

// signature returns the signature's version for the endpoint. V4 needs a region; Alibaba Cloud
// phases V1 out.
func (e endpoint) signature() oss.SignatureVersionType {
	if e.region == "" {
		return oss.SignatureVersionV1
	}
	return oss.SignatureVersionV4
}
