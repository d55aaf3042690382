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
	// giveUp bounds the request that takes back an upload.
	giveUp = 5 * time.Second
)

// Put stores a blob: by one request where it is small, and otherwise by blocks, which
// make the blob when they are committed. Azure compares each request's content with
// its MD5 and refuses what differs. The MD5 of the whole is kept with the blob, as
// Content-MD5.
//
// After an error there is no blob, but blocks may be left that nothing shows; Azure
// has no request that removes them (see Sweep).
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
	b := s.client.NewBlockBlobClient(key)
	if whole {
		return upload(ctx, b, key, first, content, u)
	}
	blocks := newBlocks()
	count, err := store.SendParts(ctx, first, content, func(ctx context.Context, number int, data []byte) error {
		sum := md5.Sum(data)
		_, err := b.StageBlock(ctx, blocks.id(number), body(data), &blockblob.StageBlockOptions{
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
	return s.commit(ctx, b, key, blocks.first(count), content, u)
}

// upload makes a blob by one request.
func upload(ctx context.Context, b *blockblob.Client, key string, data []byte, content *checked, u store.Upload) (store.Object, error) {
	sum := content.sum.Sum(nil)
	answer, err := b.Upload(ctx, body(data), &blockblob.UploadOptions{
		HTTPHeaders:             headers(sum),
		Metadata:                metadata(u),
		TransactionalValidation: blob.TransferValidationTypeMD5(sum),
	})
	if err != nil {
		return store.Object{}, explain(ctx, err)
	}
	return store.Object{Key: key, Size: content.size, Modified: value(answer.LastModified)}, nil
}

// commit makes a blob of blocks, and looks at what it made.
func (s *Store) commit(ctx context.Context, b *blockblob.Client, key string, ids []string, content *checked, u store.Upload) (store.Object, error) {
	sum := content.sum.Sum(nil)
	answer, err := b.CommitBlockList(ctx, ids, &blockblob.CommitBlockListOptions{HTTPHeaders: headers(sum), Metadata: metadata(u)})
	if err != nil {
		return store.Object{}, fmt.Errorf("commit %d blocks: %w", len(ids), explain(ctx, err))
	}
	only := &blob.AccessConditions{ModifiedAccessConditions: &blob.ModifiedAccessConditions{IfMatch: answer.ETag}}
	stored, err := b.GetProperties(ctx, &blob.GetPropertiesOptions{AccessConditions: only})
	if err != nil {
		err = fmt.Errorf("look at what was stored: %w", explain(ctx, err))
		return store.Object{}, errors.Join(err, s.takeBack(ctx, b, answer.ETag))
	}
	if size := value(stored.ContentLength); size != content.size || !bytes.Equal(stored.ContentMD5, sum) {
		err = fmt.Errorf("%d bytes were sent and %d stored, or the blob has another checksum", content.size, size)
		return store.Object{}, errors.Join(err, s.takeBack(ctx, b, answer.ETag))
	}
	return store.Object{Key: key, Size: content.size, Modified: value(stored.LastModified)}, nil
}

// takeBack deletes what an upload made, and nothing that somebody else has put there
// since. It does so also where ctx has ended.
func (s *Store) takeBack(ctx context.Context, b *blockblob.Client, tag *azcore.ETag) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), giveUp)
	defer cancel()
	_, err := b.Delete(ctx, &blob.DeleteOptions{
		DeleteSnapshots:  to.Ptr(blob.DeleteSnapshotsOptionTypeInclude),
		AccessConditions: &blob.AccessConditions{ModifiedAccessConditions: &blob.ModifiedAccessConditions{IfMatch: tag}},
	})
	if err == nil {
		return nil
	}
	if err = explain(ctx, err); isNotFound(err) || hasStatus(err, http.StatusPreconditionFailed) {
		return nil
	}
	return fmt.Errorf("delete it, which is there but not to be trusted: %w", err)
}

func isNotFound(err error) bool { return errors.Is(err, store.ErrNotFound) }

func body(data []byte) io.ReadSeekCloser { return streaming.NopCloser(bytes.NewReader(data)) }

func headers(sum []byte) *blob.HTTPHeaders {
	return &blob.HTTPHeaders{BlobContentType: to.Ptr(contentType), BlobContentMD5: sum}
}

// metadata of an upload whose body was read to its end.
func metadata(u store.Upload) map[string]*string {
	all := map[string]*string{}
	for key, v := range u.Metadata {
		all[metadataName(key)] = &v
	}
	if u.FinalMetadata != nil {
		for key, v := range u.FinalMetadata() {
			all[metadataName(key)] = &v
		}
	}
	return all
}

// blocks names the blocks of one upload, so that those of another one of the same
// blob are not taken for them. All of a blob's have to be of one length.
type blocks struct{ upload uuid.UUID }

func newBlocks() blocks { return blocks{uuid.New()} }

// id of a block; numbers begin with 1.
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

// checked is content whose checksum and length are taken as it is read.
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
