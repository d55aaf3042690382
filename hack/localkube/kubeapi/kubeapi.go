// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package kubeapi sends an API server the few requests for starting and watching a local
// Kubernetes, over plain HTTP and JSON.
package kubeapi

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"time"
)

// A Client talks to one API server.
type Client struct {
	server string
	http   *http.Client
}

// New returns a client. Without a certificate it is anonymous, which is enough
// for Ready.
func New(server string, ca, cert, key []byte) (*Client, error) {
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(ca) {
		return nil, fmt.Errorf("the authority of %s is not a certificate", server)
	}
	conf := &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}
	if cert != nil {
		pair, err := tls.X509KeyPair(cert, key)
		if err != nil {
			return nil, fmt.Errorf("load the client certificate for %s: %w", server, err)
		}
		conf.Certificates = []tls.Certificate{pair}
	}
	return &Client{server: server, http: &http.Client{
		Transport: &http.Transport{TLSClientConfig: conf, ForceAttemptHTTP2: true},
		Timeout:   10 * time.Second,
	}}, nil
}

// Get fetches a path and decodes the answer, unless into is nil.
func (c *Client) Get(ctx context.Context, path string, into any) error {
	return Get(ctx, c.http, c.server+path, into)
}

// Get fetches a URL and decodes the answer, unless into is nil.
func Get(ctx context.Context, client *http.Client, url string, into any) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	resp, err := client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return fmt.Errorf("read the answer of %s: %w", url, err)
	}
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("%s answered %s: %.300s", url, resp.Status, body)
	}
	if into == nil {
		return nil
	}
	return json.Unmarshal(body, into)
}

// Node is the needed fields of a Node object.
type Node struct {
	Metadata struct {
		Name   string            `json:"name"`
		Labels map[string]string `json:"labels"`
	} `json:"metadata"`
	Status struct {
		Conditions []struct {
			Type    string `json:"type"`
			Status  string `json:"status"`
			Message string `json:"message"`
		} `json:"conditions"`
	} `json:"status"`
}

// Ready reports whether the node is Ready, and if not, why.
func (n Node) Ready() (bool, string) {
	for _, c := range n.Status.Conditions {
		if c.Type == "Ready" {
			return c.Status == "True", c.Message
		}
	}
	return false, "it has not reported yet"
}

// Nodes lists the nodes.
func (c *Client) Nodes(ctx context.Context) ([]Node, error) {
	var list struct {
		Items []Node `json:"items"`
	}
	return list.Items, c.Get(ctx, "/api/v1/nodes", &list)
}

// Ready fails unless the API server is ready.
func (c *Client) Ready(ctx context.Context) error { return c.Get(ctx, "/readyz", nil) }
