// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package summary

import (
	"time"

	"github.com/etcd-operator/etcd-operator/internal/plugin/observe"
	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

// Certificate is a certificate of the cluster with the CAs of its Secret.
type Certificate struct {
	Use    string `json:"use"`
	Secret string `json:"secret"`
	// Names are the hosts that the certificate is for.
	Names []string `json:"names,omitempty"`
	// Expires is when the first of the certificate and its CAs expires.
	Expires *time.Time `json:"expires,omitempty"`
	// CA is the CA that expires first; empty where the certificate itself does.
	CA       string `json:"ca,omitempty"`
	Expired  bool   `json:"expired,omitempty"`
	Expiring bool   `json:"expiring,omitempty"`
	Problem  string `json:"problem,omitempty"`

	left time.Duration
}

// Certificates judges the certificates of a cluster by their dates.
func Certificates(c *observe.Cluster) []Certificate {
	list := []Certificate{}
	for _, cert := range c.Certificates {
		entry := Certificate{Use: cert.Use, Secret: cert.Secret}
		if cert.Err != nil {
			entry.Problem = cert.Err.Error()
			list = append(list, entry)
			continue
		}
		first := cert.Identity.Validities()[0]
		entry.Names, entry.Expires, entry.CA = cert.Identity.Names(), &first.To, first.CA
		entry.left = first.To.Sub(c.Time)
		entry.Expired = entry.left <= 0
		entry.Expiring = !entry.Expired && entry.left < api.CertificateWarning
		list = append(list, entry)
	}
	return list
}

// days is how many whole days are left.
func (c Certificate) days() int { return int(c.left / (24 * time.Hour)) }
