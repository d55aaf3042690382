// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package osstest

import (
	"crypto/md5"
	"encoding/base64"
	"encoding/xml"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// client sends requests to a server, signed by V1.
type client struct {
	t      *testing.T
	server *Server
}

// do sends a request to a URL of a bucket and returns the answer. header is names and values.
func (c client) do(method, url, body string, header ...string) *httptest.ResponseRecorder {
	c.t.Helper()
	r := httptest.NewRequestWithContext(c.t.Context(), method, url, strings.NewReader(body))
	r.Header.Set("Date", time.Now().UTC().Format(http.TimeFormat))
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	q := &request{Request: r, query: r.URL.Query()}
	q.bucket, q.key, _ = address(r)
	r.Header.Set("Authorization", "OSS id:"+signatureV1("secret", stringToSignV1(q)))
	w := httptest.NewRecorder()
	c.server.ServeHTTP(w, r)
	return w
}

// code returns the code of the answer's error, or its status.
func code(w *httptest.ResponseRecorder) string {
	var f failure
	text := w.Body.Bytes()
	if e := w.Header().Get("x-oss-err"); e != "" {
		text, _ = base64.StdEncoding.DecodeString(e)
	}
	if w.Code >= 300 && xml.Unmarshal(text, &f) == nil {
		return fmt.Sprintf("%d %s", w.Code, f.Code)
	}
	return fmt.Sprint(w.Code)
}

const bucketURL = "http://backups.oss-cn-hangzhou.aliyuncs.com/"

func newClient(t *testing.T) client {
	t.Helper()
	s := &Server{AccessKeys: map[string]string{"id": "secret"}, PageSize: 2}
	if err := s.Open(t.TempDir(), "backups"); err != nil {
		t.Fatal(err)
	}
	return client{t, s}
}

func md5Of(text string) string {
	sum := md5.Sum([]byte(text))
	return base64.StdEncoding.EncodeToString(sum[:])
}

func TestTheBucketStandsWhereOSSWantsIt(t *testing.T) {
	c := newClient(t)
	c.do("PUT", bucketURL+"dir/key", "content")
	for url, want := range map[string]string{
		bucketURL + "dir/key": "200",
		"http://backups.oss-cn-hangzhou.aliyuncs.com:8080/dir/key":      "200",
		"http://backups.oss.example.com/dir/key":                        "200",
		"http://127.0.0.1:9080/backups/dir/key":                         "200",
		"http://[::1]:9080/backups/dir/key":                             "200",
		bucketURL + "backups/dir/key":                                   "404 NoSuchKey",
		"http://other.oss-cn-hangzhou.aliyuncs.com/dir/key":             "404 NoSuchBucket",
		"http://127.0.0.1:9080/other/dir/key":                           "404 NoSuchBucket",
		"http://oss-cn-hangzhou.aliyuncs.com/backups/dir/key":           "403 SecondLevelDomainForbidden",
		"http://oss-cn-hangzhou.aliyuncs.com/":                          "403 AccessDenied",
		"http://oss-cn-hangzhou-internal.aliyuncs.com/backups/dir/key":  "403 SecondLevelDomainForbidden",
		"http://backups.oss-cn-hangzhou-internal.aliyuncs.com/dir/key/": "404 NoSuchKey",
	} {
		if got := code(c.do("GET", url, "")); got != want {
			t.Errorf("%s: %s, want %s", url, got, want)
		}
		if got := code(c.do("HEAD", url, "")); got != want {
			t.Errorf("HEAD %s: %s, want %s", url, got, want)
		}
	}
}

func TestAnObjectIsToldAsOSSDoes(t *testing.T) {
	c := newClient(t)
	const text = "123456789"
	put := c.do("PUT", bucketURL+"key", text, "Content-MD5", md5Of(text), "x-oss-meta-etcd-revision", "7", "Content-Type", "text/plain")
	for _, w := range []*httptest.ResponseRecorder{put, c.do("HEAD", bucketURL+"key", ""), c.do("GET", bucketURL+"key", "")} {
		for name, want := range map[string]string{
			"ETag":                 `"25F9E794323B453885F5181F1B624D0B"`,
			"x-oss-hash-crc64ecma": "11051210869376104954", // the check value of CRC-64/XZ
		} {
			if got := w.Header().Get(name); got != want {
				t.Errorf("%s: %s, want %s", name, got, want)
			}
		}
	}
	head := c.do("HEAD", bucketURL+"key", "")
	for name, want := range map[string]string{"Content-Length": "9", "Content-Type": "text/plain", "x-oss-meta-etcd-revision": "7", "x-oss-object-type": "Normal"} {
		if got := head.Header().Get(name); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
	for asked, want := range map[string]string{
		"bytes=0-": "123456789", "bytes=3-": "456789", "bytes=3-4": "45", "bytes=8-8": "9", "": "123456789",
		"bytes=9-": "416 InvalidRange", "bytes=3-9": "416 InvalidRange", "bytes=5-4": "416 InvalidRange", "lines=1-": "416 InvalidRange",
	} {
		w := c.do("GET", bucketURL+"key", "", "Range", asked, "x-oss-range-behavior", "standard")
		got := w.Body.String()
		if w.Code >= 300 {
			got = code(w)
		}
		if got != want {
			t.Errorf("range %s: %s, want %s", asked, got, want)
		}
		if whole := want == text; whole != (w.Code == http.StatusOK) {
			t.Errorf("range %s: status %d", asked, w.Code)
		}
		// Without the header, an invalid range is ignored.
		if w := c.do("GET", bucketURL+"key", "", "Range", asked); strings.Contains(want, "416") && w.Body.String() != text {
			t.Errorf("range %s without x-oss-range-behavior: %s", asked, w.Body)
		}
	}
}

func TestWhatIsNotRightIsRefused(t *testing.T) {
	c := newClient(t)
	begin := func() string {
		var begun struct{ UploadId string }
		if err := xml.Unmarshal(c.do("POST", bucketURL+"key?uploads", "").Body.Bytes(), &begun); err != nil {
			t.Fatal(err)
		}
		return begun.UploadId
	}
	part := func(upload string, number int, content string) string {
		return c.do("PUT", fmt.Sprintf("%skey?partNumber=%d&uploadId=%s", bucketURL, number, upload), content).Header().Get("ETag")
	}
	complete := func(upload string, parts ...string) string {
		return code(c.do("POST", bucketURL+"key?uploadId="+upload, "<CompleteMultipartUpload>"+strings.Join(parts, "")+"</CompleteMultipartUpload>"))
	}
	listed := func(number int, etag string) string {
		return fmt.Sprintf("<Part><PartNumber>%d</PartNumber><ETag>%s</ETag></Part>", number, strings.ReplaceAll(etag, `"`, "&quot;"))
	}
	large, small := strings.Repeat("x", minPart), "x"
	u := begin()
	first, second := part(u, 1, large), part(u, 2, small)

	for name, got := range map[string][2]string{
		"another Content-MD5":        {code(c.do("PUT", bucketURL+"key", "content", "Content-MD5", md5Of("other"))), "400 InvalidDigest"},
		"a header it does not know":  {code(c.do("PUT", bucketURL+"key", "content", "x-oss-forbid-overwrite", "true")), "501 NotImplemented"},
		"a parameter likewise":       {code(c.do("GET", bucketURL+"key?acl", "")), "501 NotImplemented"},
		"part 0":                     {code(c.do("PUT", bucketURL+"key?partNumber=0&uploadId="+u, "x")), "400 InvalidArgument"},
		"part 10001":                 {code(c.do("PUT", bucketURL+"key?partNumber=10001&uploadId="+u, "x")), "400 InvalidArgument"},
		"a part of no upload":        {code(c.do("PUT", bucketURL+"key?partNumber=1&uploadId=X", "x")), "404 NoSuchUpload"},
		"a part of another key":      {code(c.do("PUT", bucketURL+"other?partNumber=1&uploadId="+u, "x")), "404 NoSuchUpload"},
		"no parts":                   {complete(u), "400 MalformedXML"},
		"an absent part":             {complete(u, listed(3, first)), "400 InvalidPart"},
		"another ETag":               {complete(u, listed(1, second)), "400 InvalidPart"},
		"a small part before others": {complete(u, listed(2, second), listed(1, first)), "400 EntityTooSmall"},
		"the same part twice":        {complete(u, listed(1, first), listed(1, first)), "400 InvalidPartOrder"},
		"pages of 1001":              {code(c.do("GET", bucketURL+"?list-type=2&max-keys=1001", "")), "400 InvalidArgument"},
		"a continuation of nothing":  {code(c.do("GET", bucketURL+"?list-type=2&continuation-token=!", "")), "400 InvalidArgument"},
		"the old kind of list":       {code(c.do("GET", bucketURL, "")), "501 NotImplemented"},
	} {
		if got[0] != got[1] {
			t.Errorf("%s: %s, want %s", name, got[0], got[1])
		}
	}
	// None of these requests has changed an object.
	if got := code(c.do("HEAD", bucketURL+"key", "")); got != "404 NoSuchKey" {
		t.Errorf("before it is complete: %s", got)
	}
	if got := complete(u, listed(1, first), listed(2, second)); got != "200" {
		t.Errorf("complete: %s", got)
	}
	if got := c.do("GET", bucketURL+"key", "").Body.String(); got != large+small {
		t.Errorf("%d bytes came back", len(got))
	}
	for name, got := range map[string]string{"complete": complete(u, listed(1, first)), "abort": code(c.do("DELETE", bucketURL+"key?uploadId="+u, ""))} {
		if got != "404 NoSuchUpload" {
			t.Errorf("%s again: %s", name, got)
		}
	}
}

func TestEverythingIsThereAfterARestart(t *testing.T) {
	dir := t.TempDir()
	var c client
	for start := range 2 {
		c = client{t, &Server{AccessKeys: map[string]string{"id": "secret"}}}
		if err := c.server.Open(dir, "backups"); err != nil {
			t.Fatal(err)
		}
		if start == 0 {
			c.do("PUT", bucketURL+"key", "content", "x-oss-meta-a", "b")
			c.do("POST", bucketURL+"other?uploads", "")
		}
	}
	w := c.do("GET", bucketURL+"key", "")
	if w.Body.String() != "content" || w.Header().Get("x-oss-meta-a") != "b" {
		t.Errorf("came back: %q, %v", w.Body, w.Header())
	}
	if left, err := Unfinished(dir); err != nil || len(left) != 1 || left[0] != "backups/other" {
		t.Errorf("unfinished: %q, %v", left, err)
	}
}
