// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package oss stores backups in a bucket of Alibaba Cloud's Object Storage
// Service.
package oss

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"strings"
	"time"

	"github.com/aliyun/alibabacloud-oss-go-sdk-v2/oss"
	"github.com/aliyun/alibabacloud-oss-go-sdk-v2/oss/credentials"

	"github.com/etcd-operator/etcd-operator/pkg/store"
)

// DefaultEndpoint is that of v0.9.4.
const DefaultEndpoint = "http://oss-cn-hangzhou.aliyuncs.com"

// Config names the bucket, and the credentials.
type Config struct {
	Bucket string
	// Endpoint is the URL of the service: scheme, host and port. The default scheme is http.
	// Default: DefaultEndpoint.
	//
	// If the host names the region (oss-<region>.aliyuncs.com), requests have OSS's signature
	// V4, otherwise V1. With an IP address, the bucket is in the path, otherwise before the
	// host name.
	Endpoint string
	// AccessKeyID and AccessKeySecret belong to an account, or better to a RAM user.
	AccessKeyID, AccessKeySecret string
}

// Store is a bucket.
type Store struct {
	client    *oss.Client
	transport *http.Transport
	bucket    string
	hidden    *strings.Replacer
}

var _ store.Store = (*Store)(nil)

// Open returns the store of a bucket. It does not check that the bucket exists. Its error is a
// store.ErrConfig.
func Open(_ context.Context, cfg Config) (*Store, error) {
	return open(cfg, store.Transport())
}

func open(cfg Config, transport *http.Transport, options ...func(*oss.Options)) (*Store, error) {
	at, err := parseEndpoint(cfg.Endpoint)
	switch {
	case err != nil:
		return nil, err
	case !oss.IsValidBucketName(&cfg.Bucket):
		return nil, fmt.Errorf("open OSS bucket %q: %w: the name must be 3 to 63 lowercase letters, digits and dashes", cfg.Bucket, store.ErrConfig)
	case cfg.AccessKeyID == "" || cfg.AccessKeySecret == "":
		return nil, fmt.Errorf("open OSS bucket %s: %w: access key ID and secret must both be given", cfg.Bucket, store.ErrConfig)
	}
	config := oss.NewConfig().
		WithEndpoint(at.url).
		WithRegion(at.region).
		WithSignatureVersion(at.signature()).
		WithCredentialsProvider(credentials.NewStaticCredentialsProvider(cfg.AccessKeyID, cfg.AccessKeySecret)).
		WithHttpClient(&http.Client{
			Transport:     store.Exclusive{RoundTripper: transport},
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		}).
		WithDisableUploadCRC64Check(true) // Put compares the whole
	return &Store{
		client: oss.NewClient(config, append(options, func(o *oss.Options) {
			// The SDK's correction of a wrong clock is not safe for concurrent use. Instead,
			// requests fail if the clock is wrong by 15 minutes.
			o.FeatureFlags &^= oss.FeatureCorrectClockSkew | oss.FeatureAutoDetectMimeType
		})...),
		transport: transport,
		bucket:    cfg.Bucket,
		hidden:    strings.NewReplacer(cfg.AccessKeySecret, "…", cfg.AccessKeyID, "…"),
	}, nil
}

// Get reads an object.
func (s *Store) Get(ctx context.Context, key string, offset int64) (io.ReadCloser, error) {
	request := &oss.GetObjectRequest{Bucket: &s.bucket, Key: &key}
	if offset > 0 {
		request.Range = oss.Ptr(fmt.Sprintf("bytes=%d-", offset))
		request.RangeBehavior = oss.Ptr("standard") // otherwise OSS answers a wrong range with everything
	}
	result, err := s.client.GetObject(ctx, request)
	if err == nil {
		return result.Body, nil
	}
	err = s.explain(err)
	if offset > 0 && codeOf(err) == "InvalidRange" {
		if o, err := s.Stat(ctx, key); err == nil && o.Size == offset {
			return http.NoBody, nil
		}
	}
	return nil, s.failed("get", key, err)
}

// Stat returns an object's properties.
func (s *Store) Stat(ctx context.Context, key string) (store.Object, error) {
	head, err := s.head(ctx, key)
	if err != nil {
		return store.Object{}, s.failed("stat", key, err)
	}
	return head.object(key), nil
}

// head is OSS's answer about an object.
type head struct{ *oss.HeadObjectResult }

func (s *Store) head(ctx context.Context, key string) (head, error) {
	result, err := s.client.HeadObject(ctx, &oss.HeadObjectRequest{Bucket: &s.bucket, Key: &key})
	if err != nil {
		return head{}, s.explain(err)
	}
	return head{result}, nil
}

func (h head) object(key string) store.Object {
	return store.Object{Key: key, Size: h.ContentLength, Modified: oss.ToTime(h.LastModified), Metadata: h.Metadata}
}

// List yields all objects with a prefix.
func (s *Store) List(ctx context.Context, prefix string) iter.Seq2[store.Object, error] {
	return func(yield func(store.Object, error) bool) {
		request := &oss.ListObjectsV2Request{Bucket: &s.bucket, MaxKeys: 1000}
		if prefix != "" {
			request.Prefix = &prefix
		}
		for {
			page, err := s.client.ListObjectsV2(ctx, request)
			if err != nil {
				err = s.explain(err)
			} else if page.IsTruncated && oss.ToString(page.NextContinuationToken) == "" {
				err = errors.New("the list is incomplete, and OSS does not say where it continues")
			}
			if err != nil {
				yield(store.Object{}, s.failed("list", prefix, err))
				return
			}
			for _, o := range page.Contents {
				if !yield(store.Object{Key: oss.ToString(o.Key), Size: o.Size, Modified: oss.ToTime(o.LastModified)}, nil) {
					return
				}
			}
			if !page.IsTruncated {
				return
			}
			request.ContinuationToken = page.NextContinuationToken
		}
	}
}

// Delete deletes an object. For OSS, an absent object is no error.
func (s *Store) Delete(ctx context.Context, key string) error {
	if _, err := s.client.DeleteObject(ctx, &oss.DeleteObjectRequest{Bucket: &s.bucket, Key: &key}); err != nil {
		return s.failed("delete", key, s.explain(err))
	}
	return nil
}

// Sweep aborts interrupted multipart uploads.
func (s *Store) Sweep(ctx context.Context, prefix string, before time.Time, mine func(key string) bool) (int, error) {
	swept := 0
	request := &oss.ListMultipartUploadsRequest{Bucket: &s.bucket, MaxUploads: 1000}
	if prefix != "" {
		request.Prefix = &prefix
	}
	for {
		page, err := s.client.ListMultipartUploads(ctx, request)
		if err != nil {
			err = s.explain(err)
		} else if page.IsTruncated && oss.ToString(page.NextKeyMarker) == "" {
			err = errors.New("the list is incomplete, and OSS does not say where it continues")
		}
		if err != nil {
			return swept, s.failed("list uploads to", prefix, err)
		}
		for _, u := range page.Uploads {
			key := oss.ToString(u.Key)
			if !strings.HasPrefix(key, prefix) || !oss.ToTime(u.Initiated).Before(before) || !mine(key) {
				continue
			}
			switch err := s.abort(ctx, key, oss.ToString(u.UploadId)); {
			case err == nil:
				swept++
			case codeOf(err) != noSuchUpload:
				return swept, s.failed("abort an upload to", key, err)
			}
		}
		if !page.IsTruncated {
			return swept, nil
		}
		request.KeyMarker, request.UploadIdMarker = page.NextKeyMarker, page.NextUploadIdMarker
	}
}

func (s *Store) abort(ctx context.Context, key, upload string) error {
	_, err := s.client.AbortMultipartUpload(ctx, &oss.AbortMultipartUploadRequest{Bucket: &s.bucket, Key: &key, UploadId: &upload})
	if err != nil {
		return s.explain(err)
	}
	return nil
}

// Close closes idle connections.
func (s *Store) Close() error {
	s.transport.CloseIdleConnections()
	return nil
}
