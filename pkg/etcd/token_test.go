// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package etcd

import (
	"encoding/base64"
	"testing"
)

func TestATokenTellsHowItIsSigned(t *testing.T) {
	encode := func(text string) string { return base64.RawURLEncoding.EncodeToString([]byte(text)) }
	for token, want := range map[string]Token{
		"":                         {},
		"abcdefghijklmnop.27":      {Known: true},
		"a.b.c":                    {Known: true},
		encode("no JSON") + ".b.c": {Known: true},
		encode(`{"alg":"RS256","typ":"JWT"}`) + "." + encode(`{"username":"root"}`) + ".signature": {Known: true, Algorithm: "RS256"},
	} {
		c := NewClient(nil)
		c.SetCredentials(Credentials{Username: "root", Password: "secret"})
		c.login.hold(token, nil)
		if got := c.Token(); got != want {
			t.Errorf("%q: %+v, want %+v", token, got, want)
		}
	}
	if got := NewClient(nil).Token(); got != (Token{}) {
		t.Errorf("without a user: %+v", got)
	}
}
