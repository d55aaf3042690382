// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package s3

import (
	"hash/crc32"
	"io"
	"net/http"
	"strings"
	"testing"
)

// sumsOfParts are which sums the parts of an upload carried.
func (s *server) sumsOfParts() (md5s, crcs, parts int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range s.requests {
		if !r.URL.Query().Has("partNumber") {
			continue
		}
		parts++
		if r.Header.Get("Content-Md5") != "" {
			md5s++
		}
		if r.Header.Get("X-Amz-Checksum-Crc32c") != "" {
			crcs++
		}
	}
	return md5s, crcs, parts
}

func TestPartsCarryOneSumThatTheStoreKnows(t *testing.T) {
	for name, tt := range map[string]struct {
		server *server
		crcs   bool
	}{
		"it knows CRC32Cs":            {&server{knows: true}, true},
		"it names them otherwise":     {&server{knows: true, names: "crc32c"}, true},
		"it ignores them":             {&server{}, false},
		"it refuses them":             {&server{refuses: http.StatusBadRequest}, false},
		"it does not implement them":  {&server{refuses: http.StatusNotImplemented}, false},
		"it knows them and says none": {&server{knows: true, keepsNone: true}, true},
	} {
		t.Run(name, func(t *testing.T) {
			object, err := tt.server.open(t).Put(t.Context(), "key", upload(sizes["parts"]))
			if err != nil || object.Size != int64(sizes["parts"]) {
				t.Fatalf("put: %+v, error %v", object, err)
			}
			md5s, crcs, parts := tt.server.sumsOfParts()
			if want := map[bool][2]int{true: {0, parts}, false: {parts, 0}}[tt.crcs]; parts < 2 || md5s != want[0] || crcs != want[1] {
				t.Errorf("of %d parts, %d carry an MD5 and %d a CRC32C", parts, md5s, crcs)
			}
		})
	}
}

// Stores disagree about the CRC32C of an object of parts. Amazon states that of the parts' CRC32Cs and
// the number of parts, MinIO before April 2023 leaves out the number, and Ceph 20 states that of all
// content.
func TestEachFormOfTheRightCRCIsASuccess(t *testing.T) {
	for name, states := range map[string]func(content []byte, parts []uint32) crc{
		"of the parts": nil,
		"of the parts, without their number": func(_ []byte, parts []uint32) crc {
			sum, _, _ := strings.Cut(string(compositeCRC(parts)), "-")
			return crc(sum)
		},
		"of the whole": func(content []byte, _ []uint32) crc { return encoded(crc32.Checksum(content, castagnoli)) },
	} {
		for answer, visible := range map[string]func(){"": nil, ", and the answer is lost": func() { panic(http.ErrAbortHandler) }} {
			t.Run(name+answer, func(t *testing.T) {
				s := &server{knows: true, states: states, visible: visible}
				content := upload(sizes["parts"])
				content.Body = io.MultiReader(strings.NewReader("etcd"), content.Body)
				object, err := s.open(t).Put(t.Context(), "key", content)
				if err != nil || object.Size != int64(sizes["parts"])+4 {
					t.Errorf("put: %+v, error %v", object, err)
				}
				if got := s.deletions(); len(got) > 0 {
					t.Errorf("deleted: %q", got)
				}
			})
		}
	}
}

func TestAWrongCRCIsAnErrorAndDeletesWhatIsStored(t *testing.T) {
	for _, other := range []string{"AAAAAA==-2", "AAAAAA=="} {
		t.Run(other, func(t *testing.T) { deletesWhatHas(t, other) })
	}
}

func deletesWhatHas(t *testing.T, other string) {
	t.Helper()
	s := &server{knows: true}
	s.answered = func(h http.Header) { h.Set("X-Amz-Checksum-Crc32c", other) }
	s.visible = func() { s.crc = other }
	object, err := s.open(t).Put(t.Context(), "key", upload(sizes["parts"]))
	if err == nil || !strings.Contains(err.Error(), "its CRC32C is "+other) {
		t.Errorf("put: %+v, error %v", object, err)
	}
	if got := s.deletions(); len(got) != 1 || got[0] == "" {
		t.Errorf("deletions with the conditions %q", got)
	}
}

func TestAWrongCRCOfAPartEndsTheUpload(t *testing.T) {
	s := &server{knows: true, lies: true}
	object, err := s.open(t).Put(t.Context(), "key", upload(sizes["parts"]))
	if err == nil || !strings.Contains(err.Error(), "part ") || !strings.Contains(err.Error(), "its CRC32C is") {
		t.Errorf("put: %+v, error %v", object, err)
	}
	if s.etag != "" {
		t.Error("the object has become visible")
	}
}

func TestALostAnswerIsASuccessIfTheCRCIsThatOfTheContent(t *testing.T) {
	for name, other := range map[string]string{"ours": "", "another's": "AAAAAA==-2"} {
		t.Run(name, func(t *testing.T) {
			s := &server{knows: true}
			s.visible = func() {
				if other != "" {
					s.crc = other
				}
				panic(http.ErrAbortHandler)
			}
			_, err := s.open(t).Put(t.Context(), "key", upload(sizes["parts"]))
			if (err == nil) != (other == "") {
				t.Errorf("put: error %v", err)
			}
			if got := s.deletions(); len(got) > 0 {
				t.Errorf("deleted: %q", got)
			}
		})
	}
}

// Alibaba's interface of S3 does not compute the ETag of an object of parts as Amazon does.
func TestAnETagOfTheRightNumberOfProvenPartsIsNoDifference(t *testing.T) {
	for tag, good := range map[string]bool{
		`"D41D8CD98F00B204E9800998ECF8427E-2"`: true,
		`"D41D8CD98F00B204E9800998ECF8427E-3"`: false,
		`"D41D8CD98F00B204E9800998ECF8427E"`:   false,
	} {
		t.Run(tag, func(t *testing.T) {
			s := &server{answered: func(h http.Header) { h.Set("ETag", tag) }}
			s.visible = func() { s.etag = tag }
			object, err := s.open(t).Put(t.Context(), "key", upload(sizes["parts"]))
			if got := s.deletions(); (err == nil) != good || (len(got) == 0) != good {
				t.Errorf("put: %+v, error %v; deletions with the conditions %q", object, err, got)
			}
		})
	}
}

// The ETags of a store that states no CRC32Cs still count where they are MD5s.
func TestAPartWithoutAStatedCRCIsComparedByItsETag(t *testing.T) {
	s := &server{knows: true, keepsNone: true}
	opened := s.open(t)
	p, err := opened.beginParts(t.Context(), "key", nil)
	if err != nil || !p.crcs {
		t.Fatalf("begin: %+v, %v", p, err)
	}
	if err := p.send(t.Context(), 1, []byte("content")); err != nil || !p.sent[1].proven {
		t.Errorf("send: %v, proven %t", err, p.sent[1].proven)
	}
}

func TestEachPartIsSentOnceAndARefusalCostsOneRequest(t *testing.T) {
	for name, tt := range map[string]struct {
		server *server
		begun  int
	}{
		"it knows CRC32Cs": {&server{knows: true}, 1},
		"it ignores them":  {&server{}, 1},
		"it refuses them":  {&server{refuses: http.StatusBadRequest}, 2},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := tt.server.open(t).Put(t.Context(), "key", upload(sizes["parts"])); err != nil {
				t.Fatal(err)
			}
			tt.server.mu.Lock()
			defer tt.server.mu.Unlock()
			begun, parts := 0, map[string]int{}
			for _, r := range tt.server.requests {
				if number := r.URL.Query().Get("partNumber"); number != "" {
					parts[number]++
				}
				if r.URL.Query().Has("uploads") {
					begun++
				}
			}
			if begun != tt.begun || len(parts) < 2 {
				t.Errorf("%d requests begin an upload, of the parts %v", begun, parts)
			}
			for number, times := range parts {
				if times != 1 {
					t.Errorf("the part %s was sent %d times", number, times)
				}
			}
		})
	}
}
