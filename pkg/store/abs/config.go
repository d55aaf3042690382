// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package abs

import (
	"encoding/base64"
	"fmt"
	"net/url"
	"regexp"
	"strings"

	"github.com/etcd-operator/etcd-operator/pkg/store"
)

// Config says where the objects are, and with which credentials.
type Config struct {
	// Container must exist.
	Container string
	// Account is the storage account (storage-account of a Secret).
	Account string
	// Key is one of the account's two keys in base64 (storage-key of a Secret).
	// Default: the identity of this process, as DefaultAzureCredential finds it.
	Key string
	// Cloud is one of AzurePublicCloud (the default), AzureChinaCloud,
	// AzureUSGovernmentCloud and AzureGermanCloud, in any case: the names that
	// go-autorest gave them.
	Cloud string
	// Endpoint is the URL of the account's blob service if it is not the cloud's, such as
	// http://azurite:10000/devstoreaccount1. Only Azure's own endpoints get the identity of
	// this process. Otherwise anybody who can name an endpoint could steal its token.
	Endpoint string
}

// The patterns are Azure's rules. Both names become parts of the requests' URLs.
var (
	accountName   = regexp.MustCompile(`^[a-z0-9]{3,24}$`)
	containerName = regexp.MustCompile(`^(\$root|[a-z0-9](-?[a-z0-9])+)$`)
)

// place is a parsed Config.
type place struct {
	account string
	key     string // empty: the identity of this process
	cloud   azure
	service string // URL of the blob service, without a slash at its end
}

func (c Config) place() (place, error) {
	p := place{account: strings.TrimSpace(c.Account), key: strings.TrimSpace(c.Key)}
	if n := len(c.Container); c.Container != "$root" && (n < 3 || n > 63) || !containerName.MatchString(c.Container) {
		return place{}, fmt.Errorf("%w: a container has a name of 3 to 63 lowercase letters, digits and single dashes", store.ErrConfig)
	}
	if !accountName.MatchString(p.account) {
		return place{}, fmt.Errorf("%w: storage-account must be the name of a storage account: 3 to 24 lowercase letters and digits", store.ErrConfig)
	}
	if key, err := base64.StdEncoding.DecodeString(p.key); err != nil || p.key != "" && len(key) == 0 {
		return place{}, fmt.Errorf("%w: storage-key is not base64: it must be a key of the storage account as Azure shows it", store.ErrConfig)
	}
	var err error
	if p.cloud, err = cloudNamed(strings.TrimSpace(c.Cloud)); err != nil {
		return place{}, err
	}
	if c.Endpoint == "" {
		p.service = "https://" + p.account + ".blob." + p.cloud.storage
		return p, nil
	}
	u, err := url.Parse(c.Endpoint)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		// The error does not quote the URL: it may hold a signature.
		return place{}, fmt.Errorf("%w: endpoint must be a URL such as https://%s.blob.%s, without a query", store.ErrConfig, p.account, p.cloud.storage)
	}
	if p.key == "" && (u.Scheme != "https" || !isAzure(u.Host)) {
		return place{}, fmt.Errorf("%w: storage-key is missing, which the endpoint %s needs: the identity of the operator's pod is for Azure's own endpoints", store.ErrConfig, u.Host)
	}
	p.service = strings.TrimRight(u.String(), "/")
	return p, nil
}
