// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package abs

import (
	"fmt"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/cloud"

	"github.com/etcd-operator/etcd-operator/pkg/store"
)

// azure is one of the clouds that Azure runs.
type azure struct {
	names   []string // errors use the first one
	storage string   // the end of its storage services' domains
	login   cloud.Configuration
}

// clouds by the names of go-autorest, which etcd-operator v0.9.4 accepted. Azure closed the
// one of Germany in 2021. It stays because the name is no typo.
var clouds = []azure{
	{[]string{"AzurePublicCloud", "AzureCloud"}, "core.windows.net", cloud.AzurePublic},
	{[]string{"AzureChinaCloud"}, "core.chinacloudapi.cn", cloud.AzureChina},
	{[]string{"AzureUSGovernmentCloud", "AzureUSGovernment"}, "core.usgovcloudapi.net", cloud.AzureGovernment},
	{[]string{"AzureGermanCloud"}, "core.cloudapi.de", cloud.Configuration{ActiveDirectoryAuthorityHost: "https://login.microsoftonline.de/"}},
}

func cloudNamed(name string) (azure, error) {
	if name == "" {
		return clouds[0], nil
	}
	var known []string
	for _, c := range clouds {
		for _, n := range c.names {
			if strings.EqualFold(n, name) {
				return c, nil
			}
		}
		known = append(known, c.names[0])
	}
	return azure{}, fmt.Errorf("%w: cloud is unknown: it must be one of %s", store.ErrConfig, strings.Join(known, ", "))
}

// isAzure reports whether Azure itself runs a host as a storage service. A token sent to it
// does not reach the account's owner.
func isAzure(host string) bool {
	if strings.HasSuffix(host, ".blob.storage.azure.net") {
		return true // of accounts in a DNS zone
	}
	for _, c := range clouds {
		if strings.HasSuffix(host, ".blob."+c.storage) {
			return true
		}
	}
	return false
}
