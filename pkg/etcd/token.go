// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package etcd

import (
	"encoding/base64"
	"encoding/json"
	"strings"
)

// Token is what is known of the tokens that an etcd issues to users.
type Token struct {
	// Known is true if a user has logged in.
	Known bool
	// Algorithm is that of a JWT's signature, such as RS256; "" for a simple token.
	Algorithm string
}

// Token describes the token of the client's user. The token itself is a secret.
func (c *Client) Token() Token {
	user := c.user()
	if user == nil {
		return Token{}
	}
	token, _ := user.current()
	return Token{Known: token != "", Algorithm: algorithm(token)}
}

// algorithm reads the header of a JWT (RFC 7519). A simple token is 16 letters, a dot, and a
// number.
func algorithm(token string) string {
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return ""
	}
	text, err := base64.RawURLEncoding.DecodeString(parts[0])
	if err != nil {
		return ""
	}
	var header struct {
		Alg string `json:"alg"`
	}
	if json.Unmarshal(text, &header) != nil {
		return ""
	}
	return header.Alg
}
