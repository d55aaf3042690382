// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package osstest simulates Alibaba Cloud's Object Storage Service, which is not installable.
// It follows OSS's documentation and implements what a store for backups needs. It keeps
// objects in a directory.
//
// It is as strict as OSS about clients' mistakes. It computes the signature of each request
// (V1 and V4, see signature.go), and refuses wrong ones and old requests. It checks
// Content-MD5, sizes and ETags of parts. The bucket must be in the host name or, only for IP
// addresses, in the path. It refuses unknown requests as NotImplemented.
package osstest

import (
	"crypto/md5" // OSS's ETags and Content-MD5
	"crypto/rand"
	"encoding/base64"
	"encoding/hex"
	"encoding/xml"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"
)

// Server is an OSS of one region. Set its fields before use.
type Server struct {
	// AccessKeys are the secrets of users with all rights, by access key ID.
	AccessKeys map[string]string
	// Region is the region of V4 signatures. Default: cn-hangzhou.
	Region string
	// Allow reports whether an access key may take an action of RAM (oss:PutObject) on a
	// resource (acs:oss:*:*:bucket/key). Default: all may.
	Allow func(accessKeyID, action, resource string) bool
	// PageSize bounds the pages of lists, whatever the request says. Default: 1000.
	PageSize int
	// Now is the clock. Default: time.Now.
	Now func() time.Time

	mu    sync.Mutex
	disk  disk
	state map[string]*bucket
}

// bucket is a bucket on the disk.
type bucket struct {
	Objects map[string]*object
	Uploads map[string]*upload // by ID
}

// Open prepares the server: it keeps its objects in a directory, continues with those already
// there, and creates absent buckets.
func (s *Server) Open(dir string, buckets ...string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.disk = disk{dir}
	var err error
	if s.state, err = s.disk.load(); err != nil {
		return err
	}
	for _, name := range buckets {
		if s.state[name] == nil {
			s.state[name] = &bucket{Objects: map[string]*object{}, Uploads: map[string]*upload{}}
		}
	}
	return s.disk.save(s.state)
}

// Start serves empty buckets from a directory at a port of 127.0.0.1 until the test ends, and
// returns the URL.
func (s *Server) Start(t testing.TB, dir string, buckets ...string) (endpoint string) {
	t.Helper()
	if err := s.Open(dir, buckets...); err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	return server.URL
}

// Unfinished lists the multipart uploads of all buckets that are neither complete nor aborted,
// as bucket and key, for a server with a directory.
func Unfinished(dir string) ([]string, error) {
	state, err := disk{dir}.load()
	if err != nil {
		return nil, err
	}
	var found []string
	for name, b := range state {
		for _, u := range b.Uploads {
			found = append(found, name+"/"+u.Key)
		}
	}
	return found, nil
}

// request is a request with a known sender.
type request struct {
	*http.Request
	accessKeyID string
	bucket, key string
	query       url.Values
	// content is the body of an object or a part, text that of other requests.
	content blob
	text    []byte
}

// ServeHTTP answers as OSS does.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Server", "AliyunOSS")
	w.Header().Set("x-oss-request-id", strings.ToUpper(random(12)))
	q := &request{Request: r, query: r.URL.Query()}
	answer, err := s.serve(q)
	if err != nil {
		s.disk.remove(q.content)
		err.send(w, r)
		return
	}
	answer(w)
}

// answer sends a result or an error.
type answer func(http.ResponseWriter)

func (s *Server) serve(r *request) (answer, *failure) {
	var err *failure
	if r.bucket, r.key, err = address(r.Request); err != nil {
		return nil, err
	}
	if r.accessKeyID, err = s.authenticate(r); err != nil {
		return nil, err
	}
	op, err := operationOf(r)
	if err != nil {
		return nil, err
	}
	resource := "acs:oss:*:*:" + r.bucket
	if r.key != "" {
		resource += "/" + r.key
	}
	if s.Allow != nil && !s.Allow(r.accessKeyID, op.action, resource) {
		return nil, &failure{status: http.StatusForbidden, Code: "AccessDenied", Message: "You have no right to access this object because of bucket acl."}
	}
	if err := s.readBody(r); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	b := s.state[r.bucket]
	if b == nil {
		return nil, &failure{status: http.StatusNotFound, Code: "NoSuchBucket", Message: "The specified bucket does not exist.", BucketName: r.bucket}
	}
	a, err := op.do(s, b, r)
	if err == nil && r.Method != http.MethodGet && r.Method != http.MethodHead {
		if saved := s.disk.save(s.state); saved != nil {
			return nil, internal(saved)
		}
	}
	return a, err
}

// readBody reads the content and checks its Content-MD5.
func (s *Server) readBody(r *request) *failure {
	var got [md5.Size]byte
	var err error
	if r.Method == http.MethodPut {
		if r.content, err = s.disk.write(r.Body); err == nil {
			got = r.content.MD5
		}
	} else {
		if r.text, err = io.ReadAll(io.LimitReader(r.Body, 8<<20)); err == nil {
			got = md5.Sum(r.text)
		}
	}
	if err != nil {
		return &failure{status: http.StatusBadRequest, Code: "IncompleteBody", Message: "You did not provide the number of bytes specified by the Content-Length HTTP header."}
	}
	if want := r.Header.Get("Content-MD5"); want != "" && want != base64.StdEncoding.EncodeToString(got[:]) {
		return &failure{status: http.StatusBadRequest, Code: "InvalidDigest", Message: "The Content-MD5 you specified was invalid."}
	}
	return nil
}

// address finds bucket and key. OSS reads the bucket from the host name, and from the path
// only if the host is an IP address.
func address(r *http.Request) (bucket, key string, err *failure) {
	host := r.Host
	if h, _, err := net.SplitHostPort(host); err == nil {
		host = h
	}
	path := strings.TrimPrefix(r.URL.Path, "/")
	if net.ParseIP(strings.Trim(host, "[]")) != nil {
		bucket, key, _ = strings.Cut(path, "/")
	} else {
		bucket, _, _ = strings.Cut(host, ".")
		key = path
		if strings.HasPrefix(bucket, "oss-") && strings.HasSuffix(host, ".aliyuncs.com") && strings.Count(host, ".") == 2 {
			if path != "" {
				return "", "", &failure{status: http.StatusForbidden, Code: "SecondLevelDomainForbidden", Message: "The bucket you are attempting to access must be addressed using OSS third level domain."}
			}
			bucket = ""
		}
	}
	if bucket == "" {
		return "", "", denied("This stand-in has nothing to say about the service itself.")
	}
	return bucket, key, nil
}

// operation is the requested operation.
type operation struct {
	action string // of RAM
	do     func(*Server, *bucket, *request) (answer, *failure)
}

func operationOf(r *request) (operation, *failure) {
	object := r.key != ""
	has := r.query.Has
	switch r.Method {
	case http.MethodPut:
		switch {
		case object && has("partNumber") && has("uploadId"):
			return operation{"oss:PutObject", (*Server).uploadPart}, r.knows("partNumber", "uploadId")
		case object:
			return operation{"oss:PutObject", (*Server).putObject}, r.knows()
		}
	case http.MethodPost:
		switch {
		case object && has("uploads"):
			return operation{"oss:PutObject", (*Server).initiateMultipartUpload}, r.knows("uploads", "encoding-type")
		case object && has("uploadId"):
			return operation{"oss:PutObject", (*Server).completeMultipartUpload}, r.knows("uploadId", "encoding-type")
		}
	case http.MethodGet:
		switch {
		case object:
			return operation{"oss:GetObject", (*Server).getObject}, r.knows()
		case has("uploads"):
			return operation{"oss:ListMultipartUploads", (*Server).listMultipartUploads}, r.knows("uploads", "encoding-type", "prefix", "key-marker", "upload-id-marker", "max-uploads")
		case r.query.Get("list-type") == "2":
			return operation{"oss:ListObjects", (*Server).listObjects}, r.knows("list-type", "encoding-type", "prefix", "start-after", "continuation-token", "max-keys")
		}
	case http.MethodHead:
		if object {
			return operation{"oss:GetObject", (*Server).getObject}, r.knows()
		}
	case http.MethodDelete:
		switch {
		case object && has("uploadId"):
			return operation{"oss:AbortMultipartUpload", (*Server).abortMultipartUpload}, r.knows("uploadId")
		case object:
			return operation{"oss:DeleteObject", (*Server).deleteObject}, r.knows()
		}
	}
	return operation{}, notImplemented(r.Method + " " + r.URL.RequestURI())
}

// knows refuses unknown parameters.
func (r *request) knows(parameters ...string) *failure {
	known := map[string]bool{}
	for _, p := range parameters {
		known[p] = true
	}
	for name := range r.query {
		if !known[name] {
			return notImplemented("the parameter " + name)
		}
	}
	return nil
}

// failure is an error in OSS's form.
type failure struct {
	status int

	XMLName    xml.Name `xml:"Error"`
	Code       string
	Message    string
	RequestID  string `xml:"RequestId"`
	HostID     string `xml:"HostId"`
	BucketName string `xml:",omitempty"`
	Key        string `xml:",omitempty"`
	UploadID   string `xml:"UploadId,omitempty"`
	// For wrong signatures.
	AccessKeyID       string `xml:"OSSAccessKeyId,omitempty"`
	SignatureProvided string `xml:",omitempty"`
	StringToSign      string `xml:",omitempty"`
	StringToSignBytes string `xml:",omitempty"`
	CanonicalRequest  string `xml:",omitempty"`
}

func (f *failure) send(w http.ResponseWriter, r *http.Request) {
	f.RequestID, f.HostID = w.Header().Get("x-oss-request-id"), r.Host
	body, err := xml.Marshal(f)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/xml")
	if r.Method == http.MethodHead {
		w.Header().Set("x-oss-err", base64.StdEncoding.EncodeToString(append([]byte(xml.Header), body...)))
	}
	w.WriteHeader(f.status)
	_, _ = io.WriteString(w, xml.Header+string(body))
}

func notImplemented(what string) *failure {
	return &failure{status: http.StatusNotImplemented, Code: "NotImplemented", Message: "This stand-in does not implement " + what + "."}
}

func invalidArgument(message string) *failure {
	return &failure{status: http.StatusBadRequest, Code: "InvalidArgument", Message: message}
}

func internal(err error) *failure {
	return &failure{status: http.StatusInternalServerError, Code: "InternalError", Message: err.Error()}
}

// sendXML answers a list or the like.
func sendXML(body any) (answer, *failure) {
	text, err := xml.Marshal(body)
	if err != nil {
		return nil, internal(err)
	}
	return func(w http.ResponseWriter) {
		w.Header().Set("Content-Type", "application/xml")
		_, _ = io.WriteString(w, xml.Header+string(text))
	}, nil
}

func (s *Server) now() time.Time {
	if s.Now == nil {
		return time.Now()
	}
	return s.Now()
}

func (s *Server) region() string {
	if s.Region == "" {
		return "cn-hangzhou"
	}
	return s.Region
}

// page returns the number of items to list, from the request or the default.
func (s *Server) page(asked string) (int, *failure) {
	limit := 1000
	if s.PageSize > 0 {
		limit = s.PageSize
	}
	n, err := atoi(asked, 100)
	if err != nil || n < 1 || n > 1000 {
		return 0, invalidArgument("The number of items asked for must be between 1 and 1000.")
	}
	return min(n, limit), nil
}

func random(bytes int) string {
	b := make([]byte, bytes)
	_, _ = rand.Read(b) // never fails
	return hex.EncodeToString(b)
}
