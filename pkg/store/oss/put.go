// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package oss

import (
	"bytes"
	"context"
	"crypto/md5" // the checksum of OSS's requests
	"encoding/base64"
	"errors"
	"fmt"
	"hash"
	"hash/crc64"
	"io"
	"maps"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/aliyun/alibabacloud-oss-go-sdk-v2/oss"

	"github.com/etcd-operator/etcd-operator/pkg/store"
)

// cleanupTime bounds the work after the end of an upload, even if its context has ended.
const cleanupTime = 10 * time.Second

// contentType is the type of all objects.
var contentType = oss.Ptr("application/octet-stream")

var crcTable = crc64.MakeTable(crc64.ECMA)

// put is the upload of one object.
type put struct {
	*Store
	key      string
	metadata map[string]string
	// size and crc are of the content read so far.
	size int64
	crc  hash.Hash64
}

// stored is OSS's answer to a stored object.
type stored struct {
	etag, crc string
	version   string // empty in a bucket without versions
}

func answered(etag, crc, version *string) stored {
	return stored{strings.Trim(oss.ToString(etag), `"`), oss.ToString(crc), oss.ToString(version)}
}

// Put stores an object: in one request if it fits into one, otherwise in parts. OSS checks the
// MD5 of each request. Put compares the size and the CRC-64 of the whole.
func (s *Store) Put(ctx context.Context, key string, u store.Upload) (store.Object, error) {
	p := &put{Store: s, key: key, metadata: u.Metadata, crc: crc64.New(crcTable)}
	o, err := p.run(ctx, u)
	if err != nil {
		return store.Object{}, s.failed("put", key, err)
	}
	return o, nil
}

func (p *put) run(ctx context.Context, u store.Upload) (store.Object, error) {
	body := io.TeeReader(u.Body, p)
	first, whole, err := store.FirstPart(body, store.PartSize(u.Size))
	if err != nil {
		return store.Object{}, fmt.Errorf("read the content: %w", err)
	}
	if !whole {
		return p.inParts(ctx, first, body)
	}
	if u.FinalMetadata != nil {
		p.metadata = maps.Clone(u.Metadata)
		if p.metadata == nil {
			p.metadata = map[string]string{}
		}
		maps.Copy(p.metadata, u.FinalMetadata())
	}
	return p.atOnce(ctx, first)
}

// Write counts the content.
func (p *put) Write(content []byte) (int, error) {
	p.size += int64(len(content))
	return p.crc.Write(content)
}

func (p *put) sum() string { return strconv.FormatUint(p.crc.Sum64(), 10) }

func (p *put) atOnce(ctx context.Context, content []byte) (store.Object, error) {
	result, err := p.client.PutObject(ctx, &oss.PutObjectRequest{
		Bucket: &p.bucket, Key: &p.key, ContentType: contentType, Metadata: p.metadata,
		ContentMD5: contentMD5(content), Body: bytes.NewReader(content),
	})
	cleanup, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanupTime)
	defer cancel()
	if err != nil {
		return p.afterAll(cleanup, p.explain(err))
	}
	return p.confirm(cleanup, answered(result.ETag, result.HashCRC64, result.VersionId))
}

func (p *put) inParts(ctx context.Context, first []byte, body io.Reader) (store.Object, error) {
	upload, err := p.client.InitiateMultipartUpload(ctx, &oss.InitiateMultipartUploadRequest{
		Bucket: &p.bucket, Key: &p.key, ContentType: contentType, Metadata: p.metadata,
	})
	if err != nil {
		return store.Object{}, p.explain(err)
	}
	result, err := p.sendParts(ctx, oss.ToString(upload.UploadId), first, body)
	cleanup, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanupTime)
	defer cancel()
	if err == nil {
		return p.confirm(cleanup, answered(result.ETag, result.HashCRC64, result.VersionId))
	}
	left := p.abort(cleanup, p.key, oss.ToString(upload.UploadId))
	if left == nil {
		return store.Object{}, err // the upload was not created, nor will be
	}
	if object, lost := p.afterAll(cleanup, err); lost == nil {
		return object, nil
	}
	if codeOf(left) != noSuchUpload {
		err = fmt.Errorf("%w; its parts could not be removed: %w", err, left)
	}
	return store.Object{}, err
}

// sendParts uploads the parts and completes the upload.
func (p *put) sendParts(ctx context.Context, upload string, first []byte, body io.Reader) (*oss.CompleteMultipartUploadResult, error) {
	var mu sync.Mutex
	var parts []oss.UploadPart
	_, err := store.SendParts(ctx, first, content{body}, func(ctx context.Context, number int, data []byte) error {
		result, err := p.client.UploadPart(ctx, &oss.UploadPartRequest{
			Bucket: &p.bucket, Key: &p.key, UploadId: &upload, PartNumber: int32(number),
			ContentMD5: contentMD5(data), Body: bytes.NewReader(data),
		})
		if err != nil {
			return fmt.Errorf("part %d: %w", number, p.explain(err))
		}
		mu.Lock()
		defer mu.Unlock()
		parts = append(parts, oss.UploadPart{PartNumber: int32(number), ETag: result.ETag})
		return nil
	})
	if err != nil {
		return nil, err
	}
	// The SDK sorts them.
	result, err := p.client.CompleteMultipartUpload(ctx, &oss.CompleteMultipartUploadRequest{
		Bucket: &p.bucket, Key: &p.key, UploadId: &upload, CompleteMultipartUpload: &oss.CompleteMultipartUpload{Parts: parts},
	})
	if err != nil {
		return nil, p.explain(err)
	}
	return result, nil
}

// content marks errors of a body as the body's.
type content struct{ io.Reader }

func (c content) Read(b []byte) (int, error) {
	n, err := c.Reader.Read(b)
	if err != nil && err != io.EOF { //nolint:errorlint // readers return it as it is
		err = fmt.Errorf("read the content: %w", err)
	}
	return n, err
}

// confirm compares the visible object with what was sent. It only deletes an object that
// differs by OSS's own answer. An object that can't be checked may be good, and a newer one is
// another writer's.
func (p *put) confirm(ctx context.Context, s stored) (store.Object, error) {
	wrong := p.checksum(s.crc)
	h, unseen := p.head(ctx, p.key)
	etag := ""
	if unseen == nil {
		etag = strings.Trim(oss.ToString(h.ETag), `"`)
	}
	switch {
	case errors.Is(unseen, store.ErrNotFound):
		return store.Object{}, errors.New("OSS said that it has it, and has nothing now: somebody has deleted it")
	case unseen != nil && wrong != nil:
	case unseen != nil && s.crc != "":
		return store.Object{Key: p.key, Size: p.size, Modified: time.Now(), Metadata: p.metadata}, nil
	case unseen != nil:
		return store.Object{}, fmt.Errorf("stored, but not confirmed: it can't be looked at: %w", unseen)
	case etag != "" && s.etag != "" && etag != s.etag:
		return store.Object{}, errReplaced
	default:
		if differs := p.differs(h); differs != nil {
			wrong = differs
		}
		if wrong == nil {
			return h.object(p.key), nil
		}
		if etag != "" && s.etag == "" {
			return store.Object{}, errReplaced
		}
	}
	if left := p.takeBack(ctx, s.version); left != nil {
		wrong = fmt.Errorf("%w; %w: %w", wrong, store.ErrLeft, left)
	}
	return store.Object{}, wrong
}

var errReplaced = errors.New("another object has taken its place meanwhile: let nobody else write to this key")

// takeBack deletes the object: only its own version in a bucket with versions, if that is
// allowed. OSS supports no other conditions.
func (p *put) takeBack(ctx context.Context, version string) error {
	if version != "" {
		_, err := p.client.DeleteObject(ctx, &oss.DeleteObjectRequest{Bucket: &p.bucket, Key: &p.key, VersionId: &version})
		if err == nil {
			return nil
		}
		if err = p.explain(err); !errors.Is(err, store.ErrDenied) {
			return err
		}
	}
	return p.Delete(ctx, p.key)
}

// differs returns an error if the object is not what was sent.
func (p *put) differs(h head) error {
	if h.ContentLength != p.size {
		return fmt.Errorf("OSS has %d bytes, %d were sent", h.ContentLength, p.size)
	}
	return p.checksum(oss.ToString(h.HashCRC64))
}

// checksum returns an error if OSS has reported another checksum than that of the content.
func (p *put) checksum(crc string) error {
	if crc != "" && crc != p.sum() {
		return fmt.Errorf("OSS has content with the checksum %s, %s was sent", crc, p.sum())
	}
	return nil
}

// afterAll is for a lost answer to an upload: the object may be stored and correct.
func (p *put) afterAll(ctx context.Context, lost error) (store.Object, error) {
	if refused(lost) {
		return store.Object{}, lost
	}
	h, err := p.head(ctx, p.key)
	if err != nil || p.differs(h) != nil || !maps.Equal(h.Metadata, p.metadata) {
		return store.Object{}, lost
	}
	return h.object(p.key), nil
}

func contentMD5(content []byte) *string {
	sum := md5.Sum(content)
	return oss.Ptr(base64.StdEncoding.EncodeToString(sum[:]))
}
