// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package store

import (
	"errors"
	"fmt"
	"io"
	"net/url"
	"strings"
	"testing"
)

func TestErrorsAreToldWithoutTheirURL(t *testing.T) {
	secret := "https://store.example.com/upload?upload_id=secret"
	inner := &url.Error{Op: "Post", URL: secret, Err: io.ErrUnexpectedEOF}
	for _, err := range []error{
		inner,
		fmt.Errorf("chunk 3: %w", inner),
		&url.Error{Op: "Get", URL: secret, Err: fmt.Errorf("get a token: %w", inner)},
	} {
		got := WithoutURL(err)
		if !errors.Is(got, io.ErrUnexpectedEOF) || strings.Contains(got.Error(), "secret") {
			t.Errorf("%v\nis reported as %v", err, got)
		}
	}
	other := errors.New("of no request")
	if got := WithoutURL(other); got != other { //nolint:errorlint // the very same is expected
		t.Errorf("%v is reported as %v", other, got)
	}
}

func TestMessagesOfServersFitInALine(t *testing.T) {
	for message, want := range map[string]string{
		"":                               "",
		" no such\n\tbucket\r\n":         "no such bucket",
		"<a>\x1b[31mred\x00</a>":         "<a> [31mred </a>",
		"ünïcode " + "日本":                "ünïcode 日本",
		strings.Repeat("é", 299) + "abc": strings.Repeat("é", 299) + "a…",
	} {
		if got := Excerpt(message); got != want {
			t.Errorf("%q becomes %q, want %q", message, got, want)
		}
	}
}
