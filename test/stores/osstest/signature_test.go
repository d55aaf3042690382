// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package osstest

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// signedRequest is a request that somebody else has signed.
func signedRequest(t *testing.T, method, target, authorization string, header ...string) *http.Request {
	r := httptest.NewRequestWithContext(t.Context(), method, target, nil)
	for i := 0; i < len(header); i += 2 {
		r.Header.Add(header[i], header[i+1])
	}
	r.Header.Set("Authorization", authorization)
	return r
}

// published are signatures that Alibaba Cloud has published.
//
// V1: the example of "Add a signature to the header" in OSS's documentation. Its Content-MD5
// is the one of empty content.
//
// V4: the documentation's own examples leave out the secret. These are the vectors in the test
// suites of all of Alibaba's SDKs: for the object 1234+-/123/1.txt in the bucket named bucket,
// with the access key ak / sk.
var published = map[string]struct {
	accessKeys map[string]string
	at         time.Time
	request    func(*testing.T) *http.Request
	key        string
}{
	"V1": {
		accessKeys: map[string]string{"44CF9590006BF252F707": "OtxrzxIsfpFjA7SwPzILwy8Bw21TLhquhboDYROV"},
		at:         time.Date(2005, 11, 17, 18, 50, 0, 0, time.UTC),
		request: func(t *testing.T) *http.Request {
			return signedRequest(t, "PUT", "http://oss-example.oss-cn-hangzhou.aliyuncs.com/nelson",
				"OSS 44CF9590006BF252F707:26NBxoKdsyly4EDv6inkoDft/yA=",
				"Content-MD5", "ODBGOERFMDMzQTczRUY3NUE3NzA5QzdFNUYzMDQxNEM=", "Content-Type", "text/html", "Date", "Thu, 17 Nov 2005 18:49:58 GMT",
				"X-OSS-Meta-Author", "foo@bar.com", "X-OSS-Magic", "abracadabra")
		},
		key: "nelson",
	},
	"V4": {
		accessKeys: map[string]string{"ak": "sk"},
		at:         time.Unix(1702743657, 0),
		request: func(t *testing.T) *http.Request {
			return v4Request(t, "20231216T162057Z",
				"OSS4-HMAC-SHA256 Credential=ak/20231216/cn-hangzhou/oss/aliyun_v4_request,Signature=e21d18daa82167720f9b1047ae7e7f1ce7cb77a31e8203a7d5f4624fa0284afe")
		},
		key: "1234+-/123/1.txt",
	},
	"V4 with a security token": {
		accessKeys: map[string]string{"ak": "sk"},
		at:         time.Unix(1702784856, 0),
		request: func(t *testing.T) *http.Request {
			return v4Request(t, "20231217T034736Z",
				"OSS4-HMAC-SHA256 Credential=ak/20231217/cn-hangzhou/oss/aliyun_v4_request,Signature=b94a3f999cf85bcdc00d332fbd3734ba03e48382c36fa4d5af5df817395bd9ea",
				"x-oss-security-token", "token")
		},
		key: "1234+-/123/1.txt",
	},
	"V4 with additional headers": {
		accessKeys: map[string]string{"ak": "sk"},
		at:         time.Unix(1702747512, 0),
		request: func(t *testing.T) *http.Request {
			return v4Request(t, "20231216T172512Z",
				"OSS4-HMAC-SHA256 Credential=ak/20231216/cn-hangzhou/oss/aliyun_v4_request,AdditionalHeaders=abc;zabc,Signature=4a4183c187c07c8947db7620deb0a6b38d9fbdd34187b6dbaccb316fa251212f")
		},
		key: "1234+-/123/1.txt",
	},
}

func v4Request(t *testing.T, date, authorization string, header ...string) *http.Request {
	return signedRequest(t, "PUT", "http://bucket.oss-cn-hangzhou.aliyuncs.com/1234%2B-/123/1.txt?%2Bparam1=value3&%2Bparam2=&param1=value1&param2=&%7Cparam1=value4&%7Cparam2=",
		authorization, append(header, "x-oss-head1", "value", "abc", "value", "ZAbc", "value", "XYZ", "value", "content-type", "text/plain",
			"x-oss-content-sha256", "UNSIGNED-PAYLOAD", "x-oss-date", date)...)
}

// authenticated asks the server only about the sender: it does not implement the operations of
// the published examples.
func authenticated(s *Server, r *http.Request) (string, *failure) {
	q := &request{Request: r, query: r.URL.Query()}
	var err *failure
	if q.bucket, q.key, err = address(r); err != nil {
		return "", err
	}
	return s.authenticate(q)
}

func TestPublishedSignaturesAreTaken(t *testing.T) {
	for name, p := range published {
		s := &Server{AccessKeys: p.accessKeys, Now: func() time.Time { return p.at }}
		r := p.request(t)
		if _, key, err := address(r); err != nil || key != p.key {
			t.Errorf("%s: the key is %q, error %v", name, key, err)
		}
		id, err := authenticated(s, r)
		if err != nil {
			t.Errorf("%s: %s: %s\nto sign: %q\nrequest: %q", name, err.Code, err.Message, err.StringToSign, err.CanonicalRequest)
		} else if p.accessKeys[id] == "" {
			t.Errorf("%s: signed by %q", name, id)
		}
	}
}

// Any change of a signed part invalidates the signature.
func TestChangedRequestsAreRefused(t *testing.T) {
	for name, p := range published {
		for change, f := range map[string]struct {
			do   func(*http.Request, *Server)
			code string
		}{
			"another method":         {func(r *http.Request, _ *Server) { r.Method = "DELETE" }, "SignatureDoesNotMatch"},
			"another key":            {func(r *http.Request, _ *Server) { r.URL.Path += "2" }, "SignatureDoesNotMatch"},
			"another bucket":         {func(r *http.Request, _ *Server) { r.Host = "other" + r.Host }, "SignatureDoesNotMatch"},
			"another content type":   {func(r *http.Request, _ *Server) { r.Header.Set("Content-Type", "text/xml") }, "SignatureDoesNotMatch"},
			"another Content-MD5":    {func(r *http.Request, _ *Server) { r.Header.Set("Content-MD5", "eB5eJF1ptWaXm4bijSPyxw==") }, "SignatureDoesNotMatch"},
			"one more header of OSS": {func(r *http.Request, _ *Server) { r.Header.Set("x-oss-meta-more", "1") }, "SignatureDoesNotMatch"},
			"one more parameter":     {func(r *http.Request, _ *Server) { r.URL.RawQuery += "&uploadId=1" }, "SignatureDoesNotMatch"},
			"another secret": {func(_ *http.Request, s *Server) {
				s.AccessKeys = map[string]string{"ak": "s", "44CF9590006BF252F707": "s"}
			}, "SignatureDoesNotMatch"},
			"an unknown access key":    {func(_ *http.Request, s *Server) { s.AccessKeys = map[string]string{"bk": "sk"} }, "InvalidAccessKeyId"},
			"half an hour later":       {func(_ *http.Request, s *Server) { s.Now = func() time.Time { return p.at.Add(30 * time.Minute) } }, "RequestTimeTooSkewed"},
			"half an hour early":       {func(_ *http.Request, s *Server) { s.Now = func() time.Time { return p.at.Add(-30 * time.Minute) } }, "RequestTimeTooSkewed"},
			"no signature":             {func(r *http.Request, _ *Server) { r.Header.Del("Authorization") }, "AccessDenied"},
			"a signature of something": {func(r *http.Request, _ *Server) { r.Header.Set("Authorization", "AWS4-HMAC-SHA256 Credential=x") }, "InvalidArgument"},
			"half of a signature":      {func(r *http.Request, _ *Server) { r.Header.Set("Authorization", "OSS ak") }, "InvalidArgument"},
		} {
			s := &Server{AccessKeys: p.accessKeys, Now: func() time.Time { return p.at }}
			r := p.request(t)
			f.do(r, s)
			_, err := authenticated(s, r)
			if err == nil || err.Code != f.code {
				t.Errorf("%s, %s: got %+v, want %s", name, change, err, f.code)
			}
		}
	}
}

func TestSignaturesV4AreForOneRegion(t *testing.T) {
	p := published["V4"]
	s := &Server{AccessKeys: p.accessKeys, Region: "eu-central-1", Now: func() time.Time { return p.at }}
	if _, err := authenticated(s, p.request(t)); err == nil || !strings.Contains(err.Message, "region") {
		t.Errorf("got %+v", err)
	}
}
