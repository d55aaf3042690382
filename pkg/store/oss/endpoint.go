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

// endpoint is where the service is.
type endpoint struct {
	url    string
	region string // "": its host does not tell
}

// regional are the hosts that tell the region: the public one, with -internal that
// of the region's own network, with vpc100- an older form of it; and those that
// are reached by IPv6 as well.
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
		// The error would quote the text, in which there may be a password.
		return endpoint{}, fmt.Errorf("open OSS: %w: the endpoint is no URL: it must be one such as https://oss-cn-hangzhou.aliyuncs.com", store.ErrConfig)
	case u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "":
		return endpoint{}, fmt.Errorf("open OSS: %w: the endpoint %s must begin with http:// or https:// and a host name", store.ErrConfig, u.Redacted())
	case strings.Trim(u.Path, "/") != "" || u.RawQuery != "" || u.Fragment != "" || u.User != nil:
		return endpoint{}, fmt.Errorf("open OSS: %w: the endpoint %s must be scheme, host and port alone; the bucket stands in the path of the backup", store.ErrConfig, u.Redacted())
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
		return "" // for buckets of all regions
	}
	return region
}

// signature is the version for the endpoint. V4 needs a region; Alibaba Cloud
// phases V1 out.
func (e endpoint) signature() oss.SignatureVersionType {
	if e.region == "" {
		return oss.SignatureVersionV1
	}
	return oss.SignatureVersionV4
}
