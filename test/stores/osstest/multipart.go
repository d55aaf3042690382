// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package osstest

import (
	"cmp"
	"crypto/md5" // OSS's ETags
	"encoding/xml"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"
)

const (
	// minPart is the minimal size of all parts but the last.
	minPart = 100 << 10
	maxPart = 10_000 // number of the last part
)

// upload is a multipart upload that is neither complete nor aborted.
type upload struct {
	ID, Key string
	Header  http.Header
	Begun   time.Time
	Parts   map[int]blob
}

// find returns a request's upload.
func (b *bucket) find(r *request) (*upload, *failure) {
	u := b.Uploads[r.query.Get("uploadId")]
	if u == nil || u.Key != r.key {
		return nil, &failure{status: http.StatusNotFound, Code: "NoSuchUpload", UploadID: r.query.Get("uploadId"),
			Message: "The specified upload does not exist. The upload ID may be invalid, or the upload may have been aborted or completed."}
	}
	return u, nil
}

func (s *Server) initiateMultipartUpload(b *bucket, r *request) (answer, *failure) {
	encode, err := encoding(r)
	if err != nil {
		return nil, err
	}
	header, err := keptHeader(r)
	if err != nil {
		return nil, err
	}
	u := &upload{ID: strings.ToUpper(random(16)), Key: r.key, Header: header, Begun: s.now(), Parts: map[int]blob{}}
	b.Uploads[u.ID] = u
	return sendXML(struct {
		XMLName      xml.Name `xml:"InitiateMultipartUploadResult"`
		Bucket       string
		Key          string
		UploadID     string `xml:"UploadId"`
		EncodingType string `xml:",omitempty"`
	}{Bucket: r.bucket, Key: encode(r.key), UploadID: u.ID, EncodingType: r.query.Get("encoding-type")})
}

func (s *Server) uploadPart(b *bucket, r *request) (answer, *failure) {
	u, err := b.find(r)
	if err != nil {
		return nil, err
	}
	number, bad := atoi(r.query.Get("partNumber"), 0)
	if bad != nil || number < 1 || number > maxPart {
		return nil, invalidArgument("Part number must be an integer between 1 and 10000, inclusive.")
	}
	if old, there := u.Parts[number]; there {
		s.disk.remove(old)
	}
	part := r.content
	u.Parts[number] = part
	return func(w http.ResponseWriter) {
		w.Header().Set("ETag", part.etag())
		w.Header().Set("x-oss-hash-crc64ecma", part.crc())
	}, nil
}

func (s *Server) completeMultipartUpload(b *bucket, r *request) (answer, *failure) {
	u, err := b.find(r)
	if err != nil {
		return nil, err
	}
	encode, err := encoding(r)
	if err != nil {
		return nil, err
	}
	var list struct {
		XMLName xml.Name `xml:"CompleteMultipartUpload"`
		Part    []struct {
			PartNumber int
			ETag       string
		}
	}
	if xml.Unmarshal(r.text, &list) != nil || len(list.Part) == 0 {
		return nil, &failure{status: http.StatusBadRequest, Code: "MalformedXML", Message: "The XML you provided was not well-formed or did not validate against our published schema."}
	}
	o := &object{Kind: "Multipart", Header: u.Header, Modified: s.now()}
	sums := md5.New()
	for i, p := range list.Part {
		part, there := u.Parts[p.PartNumber]
		switch {
		case i > 0 && p.PartNumber <= list.Part[i-1].PartNumber:
			return nil, &failure{status: http.StatusBadRequest, Code: "InvalidPartOrder", Message: "The list of parts was not in ascending order."}
		case !there || strings.Trim(p.ETag, `"`) != strings.Trim(part.etag(), `"`):
			return nil, &failure{status: http.StatusBadRequest, Code: "InvalidPart", Message: "One or more of the specified parts could not be found or the specified entity tag might not have matched the part's entity tag."}
		case i < len(list.Part)-1 && part.Size < minPart:
			return nil, &failure{status: http.StatusBadRequest, Code: "EntityTooSmall", Message: "Your proposed upload smaller than the minimum allowed size."}
		}
		o.Parts = append(o.Parts, part)
		o.Size += part.Size
		sums.Write(part.MD5[:])
	}
	o.ETag = fmt.Sprintf(`"%X-%d"`, sums.Sum(nil), len(list.Part))
	sum, failed := s.disk.crcOf(o.Parts)
	if failed != nil {
		return nil, internal(failed)
	}
	o.CRC = sum
	for _, p := range list.Part {
		delete(u.Parts, p.PartNumber) // they belong to the object now
	}
	s.put(b, u.Key, o)
	s.drop(b, u)
	reply, err := sendXML(struct {
		XMLName      xml.Name `xml:"CompleteMultipartUploadResult"`
		EncodingType string   `xml:",omitempty"`
		Location     string
		Bucket       string
		Key          string
		ETag         string
	}{EncodingType: r.query.Get("encoding-type"), Location: "http://" + r.Host + "/" + encode(r.key), Bucket: r.bucket, Key: encode(r.key), ETag: o.ETag})
	return func(w http.ResponseWriter) {
		w.Header().Set("x-oss-hash-crc64ecma", o.CRC)
		reply(w)
	}, err
}

// drop ends an upload, and removes its remaining parts.
func (s *Server) drop(b *bucket, u *upload) {
	for _, part := range u.Parts {
		s.disk.remove(part)
	}
	delete(b.Uploads, u.ID)
}

func (s *Server) abortMultipartUpload(b *bucket, r *request) (answer, *failure) {
	u, err := b.find(r)
	if err != nil {
		return nil, err
	}
	s.drop(b, u)
	return noContent, nil
}

type listedUpload struct {
	Key       string
	UploadID  string `xml:"UploadId"`
	Initiated string
}

type uploadList struct {
	XMLName            xml.Name `xml:"ListMultipartUploadsResult"`
	EncodingType       string   `xml:",omitempty"`
	Bucket             string
	KeyMarker          string
	UploadIDMarker     string `xml:"UploadIdMarker"`
	NextKeyMarker      string
	NextUploadIDMarker string `xml:"NextUploadIdMarker"`
	Prefix             string
	MaxUploads         int
	IsTruncated        bool
	Upload             []listedUpload
}

func (s *Server) listMultipartUploads(b *bucket, r *request) (answer, *failure) {
	page, err := s.page(r.query.Get("max-uploads"))
	if err != nil {
		return nil, err
	}
	encode, err := encoding(r)
	if err != nil {
		return nil, err
	}
	key, id := r.query.Get("key-marker"), r.query.Get("upload-id-marker")
	var rest []*upload
	for _, u := range b.Uploads {
		behind := u.Key > key || u.Key == key && id != "" && u.ID > id
		if strings.HasPrefix(u.Key, r.query.Get("prefix")) && (key == "" || behind) {
			rest = append(rest, u)
		}
	}
	slices.SortFunc(rest, func(a, b *upload) int {
		return cmp.Or(strings.Compare(a.Key, b.Key), strings.Compare(a.ID, b.ID))
	})
	list := uploadList{EncodingType: r.query.Get("encoding-type"), Bucket: r.bucket, KeyMarker: encode(key), UploadIDMarker: id, Prefix: encode(r.query.Get("prefix")), MaxUploads: page}
	if len(rest) > page {
		rest = rest[:page]
		list.IsTruncated = true
		list.NextKeyMarker, list.NextUploadIDMarker = encode(rest[page-1].Key), rest[page-1].ID
	}
	for _, u := range rest {
		list.Upload = append(list.Upload, listedUpload{Key: encode(u.Key), UploadID: u.ID, Initiated: u.Begun.UTC().Format(listTime)})
	}
	return sendXML(list)
}
