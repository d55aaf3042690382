// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/xml"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestScreensBeginWithTheirFirstLine(t *testing.T) {
	var clock time.Duration
	now := func() time.Duration { clock += time.Second; return clock }
	got := read(strings.NewReader("warming up\norders  3.6\n\nMEMBER\na  \n\norders  3.6  DOWN\n\nMEMBER\n\n"), "orders ", now)
	if len(got) != 2 {
		t.Fatalf("%d screens: %+v", len(got), got)
	}
	if want := []string{"orders  3.6", "", "MEMBER", "a"}; !slices.Equal(got[0].lines, want) || got[0].at != time.Second {
		t.Errorf("the first is %+v", got[0])
	}
	if want := []string{"orders  3.6  DOWN", "", "MEMBER"}; !slices.Equal(got[1].lines, want) || got[1].at != 2*time.Second {
		t.Errorf("the second is %+v", got[1])
	}
}

func TestTheMovieIsXMLAndShowsEachScreenInItsTime(t *testing.T) {
	picture := movie{
		title: "kubectl etcd status orders --watch", length: 10 * time.Second, note: "$ kubectl delete <pod>", noteAt: 4 * time.Second,
		screens: []screen{{at: time.Second, lines: []string{"a & b", "", "c"}}, {at: 5 * time.Second, lines: []string{"<d>"}}},
	}.svg()
	var texts []string
	decoder := xml.NewDecoder(strings.NewReader(picture))
	for {
		token, err := decoder.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatalf("%v in\n%s", err, picture)
		}
		if start, ok := token.(xml.StartElement); ok && start.Name.Local == "text" {
			var line string
			if err := decoder.DecodeElement(&line, &start); err != nil {
				t.Fatal(err)
			}
			texts = append(texts, line)
		}
	}
	if want := []string{"$ kubectl etcd status orders --watch", "a & b", "c", "<d>", "$ kubectl delete <pod>"}; !slices.Equal(texts, want) {
		t.Errorf("the texts are %q", texts)
	}
	for _, want := range []string{
		"@keyframes s0 { 0% { visibility: hidden } 0.01% { visibility: visible } 50.00% ",
		"@keyframes s1 { 0% { visibility: hidden } 50.00% { visibility: visible } 99.99% ",
		"@keyframes note { 0% { visibility: hidden } 40.00% ",
	} {
		if !strings.Contains(picture, want) {
			t.Errorf("no %q in\n%s", want, picture)
		}
	}
}
