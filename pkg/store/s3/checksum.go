// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package s3

import (
	"crypto/md5"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"hash/crc32"
	"io"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
)

// etag is the MD5 of the stored content, or empty if the store's ETag is no MD5. It is none
// under encryption by keys of KMS or of the customer, nor in some stores other than Amazon's.
type etag string

func newETag(answered *string, encryption types.ServerSideEncryption, customer *string) etag {
	text := strings.Trim(aws.ToString(answered), `"`)
	sum, _, _ := strings.Cut(text, "-")
	if _, err := hex.DecodeString(sum); err != nil || len(sum) != 2*md5.Size {
		return ""
	}
	if encryption != "" && encryption != types.ServerSideEncryptionAes256 || customer != nil {
		return ""
	}
	return etag(strings.ToLower(text))
}

// tag is an ETag from the store, which identifies the content, and what the store states of the
// content besides.
type tag struct {
	raw  string // empty: the store has returned none
	etag etag
	crc  crc
}

func newTag(answered *string, encryption types.ServerSideEncryption, customer, crc32c *string) tag {
	return tag{
		raw:  strings.Trim(aws.ToString(answered), `"`),
		etag: newETag(answered, encryption, customer),
		crc:  crc(aws.ToString(crc32c)),
	}
}

// check returns an error if the MD5s show that the store has other content.
func (e etag) check(want etag) error {
	if e != "" && e != want {
		return fmt.Errorf("what the store has kept is not what was sent: its ETag is %s, and not %s", e, want)
	}
	return nil
}

// parts returns the number of parts in the ETag of an object of parts; "": it is not one.
func (e etag) parts() string {
	_, number, _ := strings.Cut(string(e), "-")
	return number
}

// sum is the checksum of sent content, for the request and for the answer.
type sum [md5.Size]byte

func (s sum) header() *string { return aws.String(base64.StdEncoding.EncodeToString(s[:])) }

func (s sum) etag() etag { return etag(hex.EncodeToString(s[:])) }

// composite returns the ETag of an object of parts: the MD5 of their MD5s.
func composite(parts []sum) etag {
	all := md5.New()
	for _, part := range parts {
		all.Write(part[:])
	}
	return etag(fmt.Sprintf("%x-%d", all.Sum(nil), len(parts)))
}

// crc is a CRC32C as requests and answers state it, or empty if the store has stated none.
type crc string

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func encoded(sum uint32) crc {
	return crc(base64.StdEncoding.EncodeToString(binary.BigEndian.AppendUint32(nil, sum)))
}

// check returns an error if the store states another CRC32C.
func (c crc) check(want crc) error {
	if c != "" && c != want {
		return fmt.Errorf("what the store has kept is not what was sent: its CRC32C is %s, and not %s", c, want)
	}
	return nil
}

// withoutParts returns the CRC32C of an object of parts without their number, which earlier
// MinIOs leave out.
func (c crc) withoutParts() crc {
	sum, _, _ := strings.Cut(string(c), "-")
	return crc(sum)
}

// summed is content that computes its CRC32C while it is read.
type summed struct {
	io.Reader
	crc uint32
}

func (s *summed) Read(p []byte) (int, error) {
	n, err := s.Reader.Read(p)
	s.crc = crc32.Update(s.crc, castagnoli, p[:n])
	return n, err
}

// compositeCRC returns the CRC32C of an object of parts: that of their CRC32Cs.
func compositeCRC(parts []uint32) crc {
	var all []byte
	for _, part := range parts {
		all = binary.BigEndian.AppendUint32(all, part)
	}
	return crc(fmt.Sprintf("%s-%d", encoded(crc32.Checksum(all, castagnoli)), len(parts)))
}
