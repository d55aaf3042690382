// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package s3

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"github.com/aws/smithy-go"

	"github.com/etcd-operator/etcd-operator/pkg/store"
)

// Get reads an object from an offset on.
func (s *Store) Get(ctx context.Context, key string, offset int64) (io.ReadCloser, error) {
	input := &s3.GetObjectInput{Bucket: &s.bucket, Key: &key}
	if offset > 0 {
		input.Range = aws.String(fmt.Sprintf("bytes=%d-", offset))
	}
	out, err := s.client.GetObject(ctx, input)
	var answered smithy.APIError
	switch {
	case err != nil && errors.As(err, &answered) && answered.ErrorCode() == "InvalidRange":
		return s.nothingAt(ctx, key, offset)
	case err != nil:
		return nil, fmt.Errorf("get %s: %w", s.name(key), explain(err))
	case offset > 0 && !strings.HasPrefix(aws.ToString(out.ContentRange), fmt.Sprintf("bytes %d-", offset)):
		out.Body.Close()
		return nil, fmt.Errorf("get %s from byte %d: the store answered with another range, %q", s.name(key), offset, aws.ToString(out.ContentRange))
	}
	return &body{ReadCloser: out.Body, name: s.name(key)}, nil
}

// nothingAt returns the empty content behind the last byte of an object, which servers refuse
// to send.
func (s *Store) nothingAt(ctx context.Context, key string, offset int64) (io.ReadCloser, error) {
	object, err := s.Stat(ctx, key)
	if err != nil {
		return nil, err
	}
	if offset > object.Size {
		return nil, fmt.Errorf("get %s from byte %d: it has %d bytes", s.name(key), offset, object.Size)
	}
	return io.NopCloser(strings.NewReader("")), nil
}

// body adds the object's name to errors of reads.
type body struct {
	io.ReadCloser
	name string
}

func (b *body) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		err = fmt.Errorf("read %s: %w", b.name, err)
	}
	return n, err
}

// Stat returns an object's properties.
func (s *Store) Stat(ctx context.Context, key string) (store.Object, error) {
	object, _, err := s.head(ctx, key, false)
	if err != nil {
		return store.Object{}, fmt.Errorf("stat %s: %w", s.name(key), err)
	}
	return object, nil
}

// head returns an object's properties. With sums, the store also states the CRC32C if it keeps
// one. Amazon then asks for the right to decrypt content that KMS has encrypted.
func (s *Store) head(ctx context.Context, key string, sums bool) (store.Object, tag, error) {
	input := &s3.HeadObjectInput{Bucket: &s.bucket, Key: &key}
	if sums {
		input.ChecksumMode = types.ChecksumModeEnabled
	}
	out, err := s.client.HeadObject(ctx, input)
	if err != nil {
		return store.Object{}, tag{}, explain(err)
	}
	object := store.Object{Key: key, Size: aws.ToInt64(out.ContentLength), Modified: aws.ToTime(out.LastModified), Metadata: out.Metadata}
	return object, newTag(out.ETag, out.ServerSideEncryption, out.SSECustomerAlgorithm, out.ChecksumCRC32C), nil
}

// List yields the objects with a prefix, page by page.
func (s *Store) List(ctx context.Context, prefix string) iter.Seq2[store.Object, error] {
	return func(yield func(store.Object, error) bool) {
		pages := s3.NewListObjectsV2Paginator(s.client, &s3.ListObjectsV2Input{Bucket: &s.bucket, Prefix: &prefix})
		for pages.HasMorePages() {
			page, err := pages.NextPage(ctx)
			if err == nil && aws.ToBool(page.IsTruncated) && aws.ToString(page.NextContinuationToken) == "" {
				// The SDK takes such a page for the last one. Stores without version 2 of lists answer so.
				err = errors.New("the list is incomplete, and the store does not say where it continues: it does not know ListObjectsV2")
			}
			if err != nil {
				yield(store.Object{}, fmt.Errorf("list %s: %w", s.name(prefix), explain(err)))
				return
			}
			for _, o := range page.Contents {
				object := store.Object{Key: aws.ToString(o.Key), Size: aws.ToInt64(o.Size), Modified: aws.ToTime(o.LastModified)}
				if !yield(object, nil) {
					return
				}
			}
		}
	}
}

// Delete deletes an object.
func (s *Store) Delete(ctx context.Context, key string) error {
	_, err := s.client.DeleteObject(ctx, &s3.DeleteObjectInput{Bucket: &s.bucket, Key: &key})
	if err := explain(err); err != nil && !errors.Is(err, store.ErrNotFound) {
		return fmt.Errorf("delete %s: %w", s.name(key), err)
	}
	return nil
}
