// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package osstest

import (
	"encoding/base64"
	"encoding/xml"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

// object is the object of a key.
type object struct {
	Kind     string // Normal or Multipart
	Parts    []blob
	Size     int64
	CRC      string // the value of x-oss-hash-crc64ecma
	ETag     string
	Header   http.Header // metadata and content type, as given
	Modified time.Time
}

// keptHeader matches the headers of an upload that the object keeps.
func keptHeader(r *request) (http.Header, *failure) {
	kept := http.Header{}
	for name, values := range r.Header {
		lower := strings.ToLower(name)
		switch {
		case lower == "content-type" || strings.HasPrefix(lower, "x-oss-meta-"):
			kept[name] = values
		case lower == "x-oss-date" || lower == "x-oss-content-sha256" || !strings.HasPrefix(lower, "x-oss-"):
		default:
			return nil, notImplemented("the header " + lower)
		}
	}
	return kept, nil
}

// put makes an object visible, and replaces the previous one.
func (s *Server) put(b *bucket, key string, o *object) {
	if old := b.Objects[key]; old != nil {
		s.disk.remove(old.Parts...)
	}
	b.Objects[key] = o
}

func (s *Server) putObject(b *bucket, r *request) (answer, *failure) {
	header, err := keptHeader(r)
	if err != nil {
		return nil, err
	}
	c := r.content
	o := &object{Kind: "Normal", Parts: []blob{c}, Size: c.Size, CRC: c.crc(), ETag: c.etag(), Header: header, Modified: s.now()}
	s.put(b, r.key, o)
	return func(w http.ResponseWriter) {
		w.Header().Set("Content-MD5", base64.StdEncoding.EncodeToString(c.MD5[:]))
		w.Header().Set("ETag", o.ETag)
		w.Header().Set("x-oss-hash-crc64ecma", o.CRC)
	}, nil
}

// getObject answers GET and HEAD.
func (s *Server) getObject(b *bucket, r *request) (answer, *failure) {
	o := b.Objects[r.key]
	if o == nil {
		return nil, &failure{status: http.StatusNotFound, Code: "NoSuchKey", Message: "The specified key does not exist.", Key: r.key}
	}
	from, to, err := rangeOf(r.Header.Get("Range"), o.Size)
	if err != nil {
		if r.Header.Get("x-oss-range-behavior") == "standard" {
			return nil, err
		}
		from, to = 0, o.Size // an invalid range is ignored
	}
	var body io.ReadCloser
	if r.Method == http.MethodGet {
		var err error
		if body, err = s.disk.read(o.Parts, from); err != nil { // it stays readable after its deletion
			return nil, internal(err)
		}
	}
	return func(w http.ResponseWriter) {
		h := w.Header()
		maps.Copy(h, o.Header)
		h.Set("ETag", o.ETag)
		h.Set("Last-Modified", o.Modified.UTC().Format(http.TimeFormat))
		h.Set("Accept-Ranges", "bytes")
		h.Set("Content-Length", strconv.FormatInt(to-from, 10))
		h.Set("x-oss-object-type", o.Kind)
		h.Set("x-oss-storage-class", "Standard")
		h.Set("x-oss-hash-crc64ecma", o.CRC) // of the whole, even for a range
		if from > 0 || to < o.Size {
			h.Set("Content-Range", fmt.Sprintf("bytes %d-%d/%d", from, to-1, o.Size))
			w.WriteHeader(http.StatusPartialContent)
		}
		if body != nil {
			defer body.Close()
			_, _ = io.CopyN(w, body, to-from)
		}
	}, nil
}

// rangeOf parses a Range header. to is behind the last byte.
func rangeOf(header string, size int64) (from, to int64, err *failure) {
	if header == "" {
		return 0, size, nil
	}
	unsatisfiable := &failure{status: http.StatusRequestedRangeNotSatisfiable, Code: "InvalidRange", Message: "The requested range cannot be satisfied"}
	value, ok := strings.CutPrefix(header, "bytes=")
	first, last, dash := strings.Cut(value, "-")
	if !ok || !dash || first == "" {
		return 0, 0, unsatisfiable
	}
	from, e1 := strconv.ParseInt(first, 10, 64)
	to = size - 1
	var e2 error
	if last != "" {
		to, e2 = strconv.ParseInt(last, 10, 64)
	}
	if e1 != nil || e2 != nil || from > to || to >= size {
		return 0, 0, unsatisfiable
	}
	return from, to + 1, nil
}

// deleteObject succeeds even if there is no object.
func (s *Server) deleteObject(b *bucket, r *request) (answer, *failure) {
	if o := b.Objects[r.key]; o != nil {
		s.disk.remove(o.Parts...)
		delete(b.Objects, r.key)
	}
	return noContent, nil
}

func noContent(w http.ResponseWriter) { w.WriteHeader(http.StatusNoContent) }

type listedObject struct {
	Key          string
	LastModified string
	ETag         string
	Type         string
	Size         int64
	StorageClass string
}

type objectList struct {
	XMLName               xml.Name `xml:"ListBucketResult"`
	Name                  string
	Prefix                string
	StartAfter            string `xml:",omitempty"`
	MaxKeys               int
	EncodingType          string `xml:",omitempty"`
	IsTruncated           bool
	ContinuationToken     string `xml:",omitempty"`
	NextContinuationToken string `xml:",omitempty"`
	Contents              []listedObject
	KeyCount              int
}

// listTime is the format of times in lists.
const listTime = "2006-01-02T15:04:05.000Z"

// listObjects is ListObjectsV2.
func (s *Server) listObjects(b *bucket, r *request) (answer, *failure) {
	page, err := s.page(r.query.Get("max-keys"))
	if err != nil {
		return nil, err
	}
	encode, err := encoding(r)
	if err != nil {
		return nil, err
	}
	list := objectList{Name: r.bucket, Prefix: encode(r.query.Get("prefix")), StartAfter: encode(r.query.Get("start-after")), MaxKeys: page, EncodingType: r.query.Get("encoding-type")}
	after := r.query.Get("start-after")
	if list.ContinuationToken = r.query.Get("continuation-token"); list.ContinuationToken != "" {
		key, err := base64.URLEncoding.DecodeString(list.ContinuationToken)
		if err != nil {
			return nil, invalidArgument("The continuation token provided is incorrect.")
		}
		after = string(key)
	}
	for _, key := range slices.Sorted(maps.Keys(b.Objects)) {
		if !strings.HasPrefix(key, r.query.Get("prefix")) || key <= after {
			continue
		}
		if list.KeyCount == page {
			list.IsTruncated = true
			list.NextContinuationToken = base64.URLEncoding.EncodeToString([]byte(after))
			break
		}
		o := b.Objects[key]
		list.Contents = append(list.Contents, listedObject{Key: encode(key), LastModified: o.Modified.UTC().Format(listTime), ETag: o.ETag, Type: o.Kind, Size: o.Size, StorageClass: "Standard"})
		list.KeyCount++
		after = key
	}
	return sendXML(list)
}

// encoding is the encoding of keys in lists.
func encoding(r *request) (func(string) string, *failure) {
	switch r.query.Get("encoding-type") {
	case "":
		return func(s string) string { return s }, nil
	case "url":
		return url.QueryEscape, nil
	default:
		return nil, invalidArgument("Invalid encoding type.")
	}
}

func atoi(s string, unset int) (int, error) {
	if s == "" {
		return unset, nil
	}
	return strconv.Atoi(s)
}
