// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package s3 stores backups in Amazon S3, or in a store with the same API.
package s3

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/etcd-operator/etcd-operator/pkg/store"
)

// Config names the bucket, its endpoint and the credentials.
type Config struct {
	Bucket string
	// Endpoint is the URL of a store other than Amazon's. Without a scheme it means https, as
	// in v0.9.4. Default: endpoint_url of ConfigFile, or Amazon's in the region.
	Endpoint string
	// ForcePathStyle: the bucket is in the URL's path instead of its host name.
	ForcePathStyle bool
	// Credentials and ConfigFile are the contents of the AWS command line's files of these
	// names. Their profile default counts. They must not name programs or files: those would
	// be the operator's.
	//
	// Default of Credentials: the credentials of the process, as the SDK finds them. They are
	// only used for Amazon's own endpoints by https, and for the endpoint that the process
	// itself is configured with (AWS_ENDPOINT_URL_S3, AWS_ENDPOINT_URL).
	Credentials, ConfigFile []byte
	// CA are certificates in PEM that the client trusts for the endpoint, in addition to the
	// system's.
	CA []byte
}

// Store is a bucket.
type Store struct {
	client *s3.Client
	// idle holds the connections that Close closes.
	idle   *http.Transport
	bucket string
	// foreign: not Amazon's.
	foreign bool
	// content are options for requests with content.
	content []func(*s3.Options)
}

var _ store.Store = (*Store)(nil)

// Open prepares the access to a bucket. It sends nothing, not even to find the process's
// credentials. Its error is store.ErrConfig if the configuration is not usable.
func Open(ctx context.Context, config Config) (*Store, error) {
	opened, err := open(ctx, config)
	if err != nil {
		return nil, fmt.Errorf("open the S3 bucket %q: %w", config.Bucket, err)
	}
	return opened, nil
}

func open(ctx context.Context, config Config) (*Store, error) {
	if config.Bucket == "" {
		return nil, fmt.Errorf("%w: the name of the bucket is empty", store.ErrConfig)
	}
	client, err := newHTTPClient(config.CA)
	if err != nil {
		return nil, err
	}
	access, err := findAccess(ctx, config, client)
	if err != nil {
		return nil, err
	}
	endpoint := config.Endpoint
	if endpoint == "" {
		endpoint = access.endpoint
	}
	if endpoint, err = checkEndpoint(endpoint); err != nil {
		return nil, err
	}
	if err := access.check(endpoint); err != nil {
		return nil, err
	}
	switch {
	case access.region != "":
	case endpoint != "":
		access.region = "us-east-1" // other stores accept it, and few need another
	case access.own:
		return nil, fmt.Errorf("%w: the region is not known: write `region = ...` below [default] into config, or set AWS_REGION in the operator's pod", store.ErrConfig)
	default: // the operator's own settings do not count for others' keys
		return nil, fmt.Errorf("%w: the region is not known: write `region = ...` below [default] into config", store.ErrConfig)
	}
	transport := newTransport(access.http)
	options := s3.Options{
		Region:           access.region,
		Credentials:      access.credentials,
		UsePathStyle:     config.ForcePathStyle,
		HTTPClient:       &http.Client{Transport: transport, CheckRedirect: dontFollow},
		RetryMaxAttempts: access.attempts,
		// Many stores other than Amazon's refuse the checksums that the SDK adds by default.
		// Uploads carry an MD5 anyway.
		RequestChecksumCalculation: aws.RequestChecksumCalculationWhenRequired,
		ResponseChecksumValidation: aws.ResponseChecksumValidationWhenRequired,
	}
	options.EndpointOptions.UseFIPSEndpoint = access.fips
	options.EndpointOptions.UseDualStackEndpoint = access.dualStack
	if endpoint != "" {
		options.BaseEndpoint = &endpoint
	}
	opened := &Store{client: s3.New(options), idle: transport, bucket: config.Bucket, foreign: endpoint != ""}
	// TLS protects the content on its way, and the content has a signed MD5. A SHA-256 in
	// addition would cost both sides much time.
	if !strings.HasPrefix(endpoint, "http://") {
		opened.content = append(opened.content, s3.WithAPIOptions(v4.SwapComputePayloadSHA256ForUnsignedPayloadMiddleware))
	}
	return opened, nil
}

// Close closes idle connections.
func (s *Store) Close() error {
	s.idle.CloseIdleConnections()
	return nil
}

// checkEndpoint completes the URL of an endpoint. Its errors do not quote the URL: it may hold
// a password.
func checkEndpoint(endpoint string) (string, error) {
	if endpoint == "" {
		return "", nil
	}
	if !strings.Contains(endpoint, "://") {
		endpoint = "https://" + endpoint
	}
	parsed, err := url.Parse(endpoint)
	switch {
	case err != nil || parsed.Host == "" || parsed.Scheme != "http" && parsed.Scheme != "https":
		return "", fmt.Errorf("%w: the endpoint is not a URL such as https://minio.example.com:9000", store.ErrConfig)
	case parsed.User != nil:
		return "", fmt.Errorf("%w: the endpoint's URL must not hold a user and a password: keys belong into credentials", store.ErrConfig)
	case parsed.RawQuery != "" || parsed.Fragment != "":
		return "", fmt.Errorf("%w: the endpoint's URL must end with its path", store.ErrConfig)
	}
	return strings.TrimRight(endpoint, "/"), nil
}

// name returns an object's name for errors.
func (s *Store) name(key string) string { return "s3://" + s.bucket + "/" + key }
