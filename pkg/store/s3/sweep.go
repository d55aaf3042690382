// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package s3

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
)

// Sweep aborts multipart uploads.
//
// MinIO lists the uploads of exactly the key that it gets as a prefix. Without a prefix it
// lists all uploads since its start, and removes older ones after a day. So Sweep also asks
// stores other than Amazon's for all uploads.
func (s *Store) Sweep(ctx context.Context, prefix string, before time.Time, mine func(key string) bool) (int, error) {
	asked := []string{prefix}
	if s.foreign && prefix != "" {
		asked = append(asked, "")
	}
	swept := 0
	for _, ask := range asked {
		old, err := s.unfinished(ctx, ask, func(u types.MultipartUpload) bool {
			key := aws.ToString(u.Key)
			return strings.HasPrefix(key, prefix) && u.Initiated != nil && u.Initiated.Before(before) && mine(key)
		})
		if err != nil {
			return swept, fmt.Errorf("list unfinished uploads of %s: %w", s.name(prefix), err)
		}
		for _, upload := range old {
			key := aws.ToString(upload.Key)
			switch err := s.abort(ctx, key, upload.UploadId); {
			case errors.Is(err, errNoUpload): // ended meanwhile
			case err != nil:
				return swept, fmt.Errorf("remove an unfinished upload of %s: %w", s.name(key), err)
			default:
				swept++
			}
		}
	}
	return swept, nil
}

// unfinished lists uploads, of all pages.
func (s *Store) unfinished(ctx context.Context, prefix string, wanted func(types.MultipartUpload) bool) ([]types.MultipartUpload, error) {
	var found []types.MultipartUpload
	pages := s3.NewListMultipartUploadsPaginator(s.client, &s3.ListMultipartUploadsInput{Bucket: &s.bucket, Prefix: &prefix})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, explain(err)
		}
		for _, upload := range page.Uploads {
			if wanted(upload) {
				found = append(found, upload)
			}
		}
	}
	return found, nil
}
