// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package s3

import (
	"bytes"
	"context"
	"crypto/md5"
	"errors"
	"fmt"
	"hash/crc32"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"github.com/aws/smithy-go"

	"github.com/etcd-operator/etcd-operator/pkg/store"
)

// cleanupTime bounds the removal of what was sent, when the upload's own context may have
// ended.
const cleanupTime = 15 * time.Second

// Put stores an object: in one request if it fits into one part, otherwise by a multipart
// upload. The store compares each part with its CRC32C if it knows that sum, and with its MD5
// otherwise. The size, and the CRC32C or the ETag where it is an MD5, must be right in the store's
// answer and in the answer to a HEAD request. If the store has proven each part, an ETag
// of the object must only have their number. The SDK retries each request; RetryMaxAttempts in
// s3.go limits the attempts.
func (s *Store) Put(ctx context.Context, key string, u store.Upload) (store.Object, error) {
	object, err := s.put(ctx, key, u)
	if err != nil {
		return store.Object{}, fmt.Errorf("put %s: %w", s.name(key), explain(err))
	}
	return object, nil
}

func (s *Store) put(ctx context.Context, key string, u store.Upload) (store.Object, error) {
	body := &summed{Reader: u.Body}
	first, whole, err := store.FirstPart(body, store.PartSize(u.Size))
	if err != nil {
		return store.Object{}, err
	}
	if whole {
		return s.putWhole(ctx, key, first, u)
	}
	return s.putParts(ctx, key, first, body, u.Metadata)
}

func (s *Store) putWhole(ctx context.Context, key string, content []byte, u store.Upload) (store.Object, error) {
	metadata := maps.Clone(u.Metadata)
	if u.FinalMetadata != nil {
		if metadata == nil {
			metadata = map[string]string{}
		}
		maps.Copy(metadata, u.FinalMetadata())
	}
	checksum := sum(md5.Sum(content))
	out, err := s.client.PutObject(ctx, &s3.PutObjectInput{
		Bucket: &s.bucket, Key: &key, Body: bytes.NewReader(content), ContentLength: aws.Int64(int64(len(content))),
		ContentMD5: checksum.header(), Metadata: metadata,
	}, s.content...)
	if refused(err) {
		return store.Object{}, err // and nothing was stored
	}
	want := stored{key: key, size: int64(len(content)), etag: checksum.etag(), metadata: metadata}
	if err == nil {
		want.answered = newTag(out.ETag, out.ServerSideEncryption, out.SSECustomerAlgorithm, nil)
	}
	return s.confirm(ctx, want, err)
}

func (s *Store) putParts(ctx context.Context, key string, first []byte, body *summed, metadata map[string]string) (store.Object, error) {
	p, err := s.beginParts(ctx, key, metadata)
	if err != nil {
		return store.Object{}, err
	}
	if _, err := store.SendParts(ctx, first, body, p.send); err != nil {
		return store.Object{}, p.abort(ctx, err)
	}
	content, err := p.complete(ctx, body.crc)
	content.metadata = metadata
	if err == nil {
		return s.confirm(ctx, content, nil)
	}
	// The store may have completed the upload and the answer was lost, for example because the
	// SDK retried. Not all stores report then that there is nothing to abort.
	return s.confirm(ctx, content, p.abort(ctx, err))
}

// beginParts begins an upload in parts, with CRC32Cs if the store knows them: an MD5 takes ten
// times as long. A store that knows them names them in its answer. Others ignore the request for
// them or refuse it, and get MD5s.
func (s *Store) beginParts(ctx context.Context, key string, metadata map[string]string) (*parts, error) {
	input := &s3.CreateMultipartUploadInput{
		Bucket: &s.bucket, Key: &key, Metadata: metadata, ChecksumAlgorithm: types.ChecksumAlgorithmCrc32c,
	}
	begun, err := s.client.CreateMultipartUpload(ctx, input)
	if code := statusOf(err); code == http.StatusBadRequest || code == http.StatusNotImplemented {
		input.ChecksumAlgorithm = ""
		begun, err = s.client.CreateMultipartUpload(ctx, input)
	}
	if err != nil {
		return nil, err
	}
	crcs := strings.EqualFold(string(begun.ChecksumAlgorithm), string(types.ChecksumAlgorithmCrc32c))
	return &parts{s: s, key: key, id: begun.UploadId, crcs: crcs}, nil
}

// leftover adds to an upload's error that its parts could not all be removed.
func leftover(err, removal error) error {
	if removal == nil {
		return err
	}
	return fmt.Errorf("%w; %w: %w", explain(err), store.ErrLeft, removal)
}

// parts are the parts of an upload.
type parts struct {
	s   *Store
	key string
	id  *string
	// crcs: parts have CRC32Cs, and otherwise MD5s.
	crcs bool

	mu   sync.Mutex
	sent map[int]part
}

type part struct {
	size   int64
	sum    sum    // without crcs
	crc    uint32 // with crcs
	etag   *string
	proven bool // the store has returned its sum
}

func (p *parts) send(ctx context.Context, number int, data []byte) error {
	input := &s3.UploadPartInput{
		Bucket: &p.s.bucket, Key: &p.key, UploadId: p.id, PartNumber: aws.Int32(int32(number)),
		Body: bytes.NewReader(data), ContentLength: aws.Int64(int64(len(data))),
	}
	sent := part{size: int64(len(data))}
	if p.crcs {
		sent.crc = crc32.Checksum(data, castagnoli)
		input.ChecksumCRC32C = aws.String(string(encoded(sent.crc)))
	} else {
		sent.sum = md5.Sum(data)
		input.ContentMD5 = sent.sum.header()
	}
	out, err := p.s.client.UploadPart(ctx, input, p.s.content...)
	if err != nil {
		return fmt.Errorf("part %d: %w", number, explain(err))
	}
	told := newTag(out.ETag, out.ServerSideEncryption, out.SSECustomerAlgorithm, out.ChecksumCRC32C)
	if p.crcs && told.crc != "" {
		sent.proven, err = true, told.crc.check(encoded(sent.crc))
	} else {
		if p.crcs && told.etag != "" { // the store has named the CRC32C, and states none
			sent.sum = md5.Sum(data)
		}
		sent.proven, err = told.etag != "", told.etag.check(sent.sum.etag())
	}
	if err != nil {
		return fmt.Errorf("part %d: %w", number, err)
	}
	sent.etag = out.ETag
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.sent == nil {
		p.sent = map[int]part{}
	}
	p.sent[number] = sent
	return nil
}

// complete makes the object visible, and returns what to expect of it. whole is the CRC32C of all
// content.
func (p *parts) complete(ctx context.Context, whole uint32) (stored, error) {
	content := stored{key: p.key, proven: true}
	var sums []sum
	var crcs []uint32
	var completed []types.CompletedPart
	for _, number := range slices.Sorted(maps.Keys(p.sent)) {
		part := p.sent[number]
		content.size += part.size
		content.proven = content.proven && part.proven
		sums, crcs = append(sums, part.sum), append(crcs, part.crc)
		named := types.CompletedPart{ETag: part.etag, PartNumber: aws.Int32(int32(number))}
		if p.crcs {
			named.ChecksumCRC32C = aws.String(string(encoded(part.crc)))
		}
		completed = append(completed, named)
	}
	if p.crcs {
		content.crc, content.whole = compositeCRC(crcs), encoded(whole)
	} else {
		content.etag = composite(sums)
	}
	out, err := p.s.client.CompleteMultipartUpload(ctx, &s3.CompleteMultipartUploadInput{
		Bucket: &p.s.bucket, Key: &p.key, UploadId: p.id, MultipartUpload: &types.CompletedMultipartUpload{Parts: completed},
	})
	if err == nil {
		content.answered = newTag(out.ETag, out.ServerSideEncryption, nil, out.ChecksumCRC32C)
	}
	return content, err
}

// errNoUpload: the store knows no such upload; it was completed or aborted.
var errNoUpload = errors.New("there is no such upload")

// abort removes the upload with its parts after an error, to which it adds its own.
func (p *parts) abort(ctx context.Context, err error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanupTime)
	defer cancel()
	aborted := p.s.abort(ctx, p.key, p.id)
	if errors.Is(aborted, errNoUpload) {
		return err
	}
	return leftover(err, aborted)
}

func (s *Store) abort(ctx context.Context, key string, id *string) error {
	_, err := s.client.AbortMultipartUpload(ctx, &s3.AbortMultipartUploadInput{Bucket: &s.bucket, Key: &key, UploadId: id})
	var answered smithy.APIError
	if errors.As(err, &answered) && answered.ErrorCode() == "NoSuchUpload" {
		return errNoUpload
	}
	return explain(err)
}
