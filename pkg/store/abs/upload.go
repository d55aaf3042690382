// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package abs

import (
	"bytes"
	"context"
	"crypto/md5"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
	"io"
	"maps"
	"net/http"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/streaming"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/to"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blockblob"
	"github.com/google/uuid"

	"github.com/etcd-operator/etcd-operator/pkg/store"
)

const (
	contentType = "application/octet-stream"
	// cleanupTime bounds the work after the end of an upload, even if its context has ended.
	cleanupTime = 10 * time.Second
)

// Put stores a blob: in one request if it is small, otherwise in blocks that become the blob
// when they are committed. Azure compares each request's content with its MD5 and refuses a
// difference. The blob keeps the MD5 of the whole as Content-MD5.
//
// After an error there is no blob, or the error says that there is one. Uncommitted blocks may
// remain: they are invisible, and Azure has no request that removes them (see Sweep).
func (s *Store) Put(ctx context.Context, key string, u store.Upload) (store.Object, error) {
	object, err := s.put(ctx, key, u)
	if err != nil {
		return store.Object{}, s.failed("put", key, err)
	}
	return object, nil
}

func (s *Store) put(ctx context.Context, key string, u store.Upload) (store.Object, error) {
	content := &checked{body: u.Body, sum: md5.New()}
	first, whole, err := store.FirstPart(content, store.PartSize(u.Size))
	if err != nil {
		return store.Object{}, err
	}
	if err := context.Cause(ctx); err != nil {
		return store.Object{}, err
	}
	p := put{blob: s.client.NewBlockBlobClient(key), key: key, content: content}
	if whole {
		return p.atOnce(ctx, first, u)
	}
	return p.inBlocks(ctx, first, u)
}

// put is one upload.
type put struct {
	blob    *blockblob.Client
	key     string
	content *checked
}

// atOnce uploads a blob in one request.
func (p put) atOnce(ctx context.Context, data []byte, u store.Upload) (store.Object, error) {
	sum, all := p.content.sum.Sum(nil), allMetadata(u)
	answer, err := p.blob.Upload(ctx, body(data), &blockblob.UploadOptions{
		HTTPHeaders:             headers(sum),
		Metadata:                named(all),
		TransactionalValidation: blob.TransferValidationTypeMD5(sum),
	})
	if err != nil {
		return p.afterAll(ctx, all, explain(ctx, err))
	}
	return store.Object{Key: p.key, Size: p.content.size, Modified: value(answer.LastModified), Metadata: all}, nil
}

// inBlocks uploads a blob in blocks.
func (p put) inBlocks(ctx context.Context, first []byte, u store.Upload) (store.Object, error) {
	blocks := newBlocks()
	count, err := store.SendParts(ctx, first, p.content, func(ctx context.Context, number int, data []byte) error {
		sum := md5.Sum(data)
		_, err := p.blob.StageBlock(ctx, blocks.id(number), body(data), &blockblob.StageBlockOptions{
			TransactionalValidation: blob.TransferValidationTypeMD5(sum[:]),
		})
		if err != nil {
			return fmt.Errorf("block %d: %w", number, explain(ctx, err))
		}
		return nil
	})
	if err != nil {
		return store.Object{}, err
	}
	all := allMetadata(u)
	answer, err := p.blob.CommitBlockList(ctx, blocks.first(count), &blockblob.CommitBlockListOptions{
		HTTPHeaders: headers(p.content.sum.Sum(nil)),
		Metadata:    named(all),
	})
	if err != nil {
		return p.afterAll(ctx, all, fmt.Errorf("commit %d blocks: %w", count, explain(ctx, err)))
	}
	made := store.Object{Key: p.key, Size: p.content.size, Modified: value(answer.LastModified), Metadata: all}
	return p.confirm(ctx, made, answer.ETag)
}

// confirm checks the stored blob, and deletes it if Azure says that it differs from what was
// sent. The blob exists, so the end of ctx no longer matters. Nor does a failed check: Azure
// has compared each block with its MD5.
func (p put) confirm(ctx context.Context, made store.Object, tag *azcore.ETag) (store.Object, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanupTime)
	defer cancel()
	only := &blob.AccessConditions{ModifiedAccessConditions: &blob.ModifiedAccessConditions{IfMatch: tag}}
	stored, err := p.blob.GetProperties(ctx, &blob.GetPropertiesOptions{AccessConditions: only})
	if err != nil {
		switch err = explain(ctx, err); {
		case store.HasStatus(err, http.StatusPreconditionFailed):
			return store.Object{}, errors.New("another blob has taken its place meanwhile: let nobody else write to this name")
		case isNotFound(err):
			return store.Object{}, errors.New("the store said that it has it, and has nothing now: somebody has deleted it")
		}
		return made, nil
	}
	if err = p.compare(stored); err == nil {
		return object(p.key, stored), nil
	}
	_, left := p.blob.Delete(ctx, &blob.DeleteOptions{
		DeleteSnapshots:  to.Ptr(blob.DeleteSnapshotsOptionTypeInclude),
		AccessConditions: only, // another writer's newer blob stays
	})
	if left == nil {
		return store.Object{}, err
	}
	if left = explain(ctx, left); isNotFound(left) || store.HasStatus(left, http.StatusPreconditionFailed) {
		return store.Object{}, err
	}
	return store.Object{}, fmt.Errorf("%w; %w; delete it, which is there but not to be trusted: %w", err, store.ErrLeft, left)
}

// afterAll is for a lost answer to an upload: the blob may be stored and correct.
func (p put) afterAll(ctx context.Context, metadata map[string]string, lost error) (store.Object, error) {
	if refused(lost) {
		return store.Object{}, lost
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanupTime)
	defer cancel()
	stored, err := p.blob.GetProperties(ctx, nil)
	if err != nil || p.compare(stored) != nil {
		return store.Object{}, lost
	}
	there := object(p.key, stored)
	if !maps.Equal(there.Metadata, metadata) {
		return store.Object{}, lost // it is an older one
	}
	return there, nil
}

// compare returns an error if the stored blob differs from what was sent.
func (p put) compare(stored blob.GetPropertiesResponse) error {
	if size := value(stored.ContentLength); size != p.content.size {
		return fmt.Errorf("%d bytes were sent and %d stored", p.content.size, size)
	}
	if sum := p.content.sum.Sum(nil); !bytes.Equal(stored.ContentMD5, sum) {
		return fmt.Errorf("the blob has the MD5 %x, and that of what was sent is %x", stored.ContentMD5, sum)
	}
	return nil
}

func isNotFound(err error) bool { return errors.Is(err, store.ErrNotFound) }

func body(data []byte) io.ReadSeekCloser { return streaming.NopCloser(bytes.NewReader(data)) }

func headers(sum []byte) *blob.HTTPHeaders {
	return &blob.HTTPHeaders{BlobContentType: to.Ptr(contentType), BlobContentMD5: sum}
}

// allMetadata returns the metadata of an upload whose body was read to its end.
func allMetadata(u store.Upload) map[string]string {
	all := map[string]string{}
	maps.Copy(all, u.Metadata)
	if u.FinalMetadata != nil {
		maps.Copy(all, u.FinalMetadata())
	}
	return all
}

// named returns metadata under names that Azure accepts.
func named(all map[string]string) map[string]*string {
	names := map[string]*string{}
	for key, v := range all {
		names[metadataName(key)] = &v
	}
	return names
}

// blocks names the blocks of one upload, so that Azure does not mix them with another
// upload's. All of a blob's block names must have one length.
type blocks struct{ upload uuid.UUID }

func newBlocks() blocks { return blocks{uuid.New()} }

// id returns the name of a block; numbers begin with 1.
func (b blocks) id(number int) string {
	return base64.StdEncoding.EncodeToString(binary.BigEndian.AppendUint32(b.upload[:], uint32(number)))
}

func (b blocks) first(count int) []string {
	ids := make([]string, count)
	for i := range ids {
		ids[i] = b.id(i + 1)
	}
	return ids
}

// checked is content that computes its checksum and length while it is read.
type checked struct {
	body io.Reader
	size int64
	sum  hash.Hash
}

func (c *checked) Read(p []byte) (int, error) {
	n, err := c.body.Read(p)
	c.size += int64(n)
	_, _ = c.sum.Write(p[:n]) // never fails
	return n, err
}
