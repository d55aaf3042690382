// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package osstest

import (
	"crypto/hmac"
	"crypto/sha1" // OSS's signature V1
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
)

// maxSkew bounds the difference between the clocks of client and server.
const maxSkew = 15 * time.Minute

// signed are the request parameters in a V1 signature that this server knows: the
// documentation's sub-resources.
var signed = []string{"continuation-token", "partNumber", "uploadId", "uploads"}

// authenticate returns the sender by the request's signature.
func (s *Server) authenticate(r *request) (accessKeyID string, err *failure) {
	scheme, value, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	switch scheme {
	case "":
		return "", denied("The request has no Authorization header.")
	case "OSS":
		return s.authenticateV1(r, value)
	case "OSS4-HMAC-SHA256":
		return s.authenticateV4(r, value)
	default:
		return "", invalidArgument("Authorization header is invalid.")
	}
}

func denied(message string) *failure {
	return &failure{status: http.StatusForbidden, Code: "AccessDenied", Message: message}
}

// secretOf returns the secret of an access key.
func (s *Server) secretOf(accessKeyID string) (string, *failure) {
	secret, ok := s.AccessKeys[accessKeyID]
	if !ok {
		return "", &failure{status: http.StatusForbidden, Code: "InvalidAccessKeyId", Message: "The OSS Access Key Id you provided does not exist in our records.", AccessKeyID: accessKeyID}
	}
	return secret, nil
}

// inTime refuses requests that were signed too long ago, or with a wrong clock.
func (s *Server) inTime(signed time.Time) *failure {
	if s.now().Sub(signed).Abs() > maxSkew {
		return &failure{status: http.StatusForbidden, Code: "RequestTimeTooSkewed", Message: "The difference between the request time and the current time is too large."}
	}
	return nil
}

func (s *Server) authenticateV1(r *request, value string) (string, *failure) {
	id, signature, ok := strings.Cut(value, ":")
	if !ok {
		return "", invalidArgument("Authorization header is invalid.")
	}
	secret, failed := s.secretOf(id)
	if failed != nil {
		return "", failed
	}
	date, err := http.ParseTime(dateV1(r.Header))
	if err != nil {
		return "", denied("OSS authentication requires a valid Date.")
	}
	if err := s.inTime(date); err != nil {
		return "", err
	}
	if text := stringToSignV1(r); !hmac.Equal([]byte(signatureV1(secret, text)), []byte(signature)) {
		return "", mismatch(id, signature, text, "")
	}
	return id, nil
}

func dateV1(h http.Header) string {
	if date := h.Get("x-oss-date"); date != "" {
		return date
	}
	return h.Get("Date")
}

// stringToSignV1 follows "Include a V1 signature in the Authorization header".
func stringToSignV1(r *request) string {
	var b strings.Builder
	for _, part := range []string{r.Method, r.Header.Get("Content-MD5"), r.Header.Get("Content-Type"), dateV1(r.Header)} {
		b.WriteString(part + "\n")
	}
	for _, name := range headersOf(r.Header, func(name string) bool { return strings.HasPrefix(name, "x-oss-") }) {
		b.WriteString(name + ":" + headerValue(r.Header, name) + "\n")
	}
	b.WriteString("/" + r.bucket + "/" + r.key)
	separator := "?"
	for _, name := range signed { // in order
		if !r.query.Has(name) {
			continue
		}
		b.WriteString(separator + name)
		if v := r.query.Get(name); v != "" {
			b.WriteString("=" + v)
		}
		separator = "&"
	}
	return b.String()
}

func signatureV1(secret, text string) string {
	mac := hmac.New(sha1.New, []byte(secret))
	mac.Write([]byte(text))
	return base64.StdEncoding.EncodeToString(mac.Sum(nil))
}

func (s *Server) authenticateV4(r *request, value string) (string, *failure) {
	fields := map[string]string{}
	for _, field := range strings.Split(value, ",") {
		name, v, _ := strings.Cut(strings.TrimSpace(field), "=")
		fields[name] = v
	}
	credential := strings.Split(fields["Credential"], "/")
	if len(credential) != 5 || fields["Signature"] == "" {
		return "", invalidArgument("Authorization header is invalid.")
	}
	id, scope := credential[0], credential[1:]
	secret, failed := s.secretOf(id)
	if failed != nil {
		return "", failed
	}
	date := r.Header.Get("x-oss-date")
	at, err := time.Parse("20060102T150405Z", date)
	if err != nil {
		return "", denied("OSS authentication requires a valid x-oss-date.")
	}
	if err := s.inTime(at); err != nil {
		return "", err
	}
	switch {
	case scope[0] != date[:8]:
		return "", invalidArgument("Invalid signing date in Authorization header.")
	case scope[1] != s.region():
		return "", invalidArgument(fmt.Sprintf("Invalid signing region in Authorization header: %s, want %s.", scope[1], s.region()))
	case scope[2] != "oss":
		return "", invalidArgument("Invalid signing product in Authorization header.")
	case scope[3] != "aliyun_v4_request":
		return "", invalidArgument("Invalid signing terminator in Authorization header.")
	case r.Header.Get("x-oss-content-sha256") != "UNSIGNED-PAYLOAD":
		return "", invalidArgument("x-oss-content-sha256 must be UNSIGNED-PAYLOAD.")
	}
	var additional []string
	if list := fields["AdditionalHeaders"]; list != "" {
		additional = strings.Split(strings.ToLower(list), ";")
	}
	canonical := canonicalRequestV4(r, additional)
	text := stringToSignV4(date, scope, canonical)
	if !hmac.Equal([]byte(signatureV4(secret, scope, text)), []byte(fields["Signature"])) {
		return "", mismatch(id, fields["Signature"], text, canonical)
	}
	return id, nil
}

// canonicalRequestV4 follows "Include a V4 signature in the Authorization header".
func canonicalRequestV4(r *request, additional []string) string {
	var query []string
	for name, values := range r.query {
		for _, v := range values {
			pair := escape(name)
			if v != "" {
				pair += "=" + escape(v)
			}
			query = append(query, pair)
		}
	}
	slices.SortFunc(query, func(a, b string) int {
		a, _, _ = strings.Cut(a, "=")
		b, _, _ = strings.Cut(b, "=")
		return strings.Compare(a, b)
	})
	var headers strings.Builder
	for _, name := range headersOf(r.Header, func(name string) bool {
		return name == "content-type" || name == "content-md5" || strings.HasPrefix(name, "x-oss-") || slices.Contains(additional, name)
	}) {
		headers.WriteString(name + ":" + headerValue(r.Header, name) + "\n")
	}
	slices.Sort(additional)
	return strings.Join([]string{
		r.Method,
		strings.ReplaceAll(escape("/"+r.bucket+"/"+r.key), "%2F", "/"),
		strings.Join(query, "&"),
		headers.String(),
		strings.Join(additional, ";"),
		r.Header.Get("x-oss-content-sha256"),
	}, "\n")
}

func stringToSignV4(date string, scope []string, canonical string) string {
	sum := sha256.Sum256([]byte(canonical))
	return strings.Join([]string{"OSS4-HMAC-SHA256", date, strings.Join(scope, "/"), hex.EncodeToString(sum[:])}, "\n")
}

// signatureV4 derives a key from the secret and each part of the scope, and signs with it.
func signatureV4(secret string, scope []string, text string) string {
	key := []byte("aliyun_v4" + secret)
	for _, part := range append(slices.Clone(scope), text) {
		mac := hmac.New(sha256.New, key)
		mac.Write([]byte(part))
		key = mac.Sum(nil)
	}
	return hex.EncodeToString(key)
}

// mismatch is the error for a wrong signature, which contains the string to sign, like OSS's.
func mismatch(accessKeyID, provided, text, canonical string) *failure {
	return &failure{status: http.StatusForbidden, Code: "SignatureDoesNotMatch",
		Message:           "The request signature we calculated does not match the signature you provided. Check your key and signing method.",
		AccessKeyID:       accessKeyID,
		SignatureProvided: provided,
		StringToSign:      text,
		StringToSignBytes: fmt.Sprintf("% X", text),
		CanonicalRequest:  canonical,
	}
}

// headersOf returns the names of headers, in lowercase and order.
func headersOf(h http.Header, wanted func(name string) bool) []string {
	var names []string
	for name := range h {
		if name = strings.ToLower(name); wanted(name) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

func headerValue(h http.Header, name string) string {
	var values []string
	for _, v := range h.Values(name) {
		values = append(values, strings.TrimSpace(v))
	}
	return strings.Join(values, ",")
}

// escape encodes all characters except RFC 3986's unreserved ones.
func escape(s string) string {
	return strings.ReplaceAll(url.QueryEscape(s), "+", "%20")
}
