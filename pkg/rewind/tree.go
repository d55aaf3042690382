// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package rewind

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
)

// ErrNoDatabase means that the content is no database of etcd.
var ErrNoDatabase = errors.New("it is no database of etcd")

func noDatabase(format string, args ...any) error {
	return fmt.Errorf("%w: %w", ErrNoDatabase, fmt.Errorf(format, args...))
}

// tree finds single keys in a bbolt database that is not a local file, such as an object in a
// store. It reads the pages on the way and no values.
//
// A page has a header of 16 bytes: ID, flags, number of elements, number of further pages.
// Elements of 16 bytes follow, then keys and values. All numbers are little-endian.
type tree struct {
	from     io.ReaderAt
	pageSize int64
	root     int64 // offset of the page
}

const (
	magic        = 0xED0CDAED
	formatOfFile = 2

	headerSize  = 16
	elementSize = 16
	metaSize    = 64 // without the header

	flagBranch = 0x01
	flagLeaf   = 0x02
	flagBucket = 0x01 // of an element of a leaf

	// mostDepth bounds the descent in a damaged file. mostKey is bbolt's bound.
	mostDepth = 64
	mostKey   = 32768
)

// openTree reads the newer of the two meta pages.
func openTree(from io.ReaderAt) (*tree, error) {
	t := &tree{from: from}
	var newest uint64
	// The second meta page follows the first. Its place shows the size of pages.
	for size := int64(0); size <= 64<<10; size = max(2*size, 1<<10) {
		text, err := t.read(size+headerSize, metaSize)
		if errors.Is(err, ErrNoDatabase) {
			break // the file ends here
		}
		if err != nil {
			return nil, err
		}
		number := binary.LittleEndian
		sum := fnv.New64a()
		sum.Write(text[:56])
		if number.Uint32(text) != magic || number.Uint32(text[4:]) != formatOfFile || number.Uint64(text[56:]) != sum.Sum64() {
			continue
		}
		if txid := number.Uint64(text[48:]); t.pageSize == 0 || txid > newest {
			newest, t.pageSize = txid, int64(number.Uint32(text[8:]))
			t.root = int64(number.Uint64(text[16:])) * t.pageSize // read checks offsets
		}
	}
	if t.pageSize == 0 {
		return nil, noDatabase("it has no meta page")
	}
	return t, nil
}

// read returns bytes at an offset.
func (t *tree) read(offset int64, size int) ([]byte, error) {
	if offset < 0 {
		return nil, noDatabase("a page is at %d", offset)
	}
	text := make([]byte, size)
	n, err := t.from.ReadAt(text, offset)
	switch {
	case n == size:
		return text, nil
	case errors.Is(err, io.EOF):
		return nil, noDatabase("it ends before byte %d", offset+int64(size))
	}
	return nil, err
}

// page is the header and the elements of a page.
type page struct {
	at       int64
	leaf     bool
	elements []byte
}

func (t *tree) page(at int64) (page, error) {
	header, err := t.read(at, headerSize)
	if err != nil {
		return page{}, err
	}
	flags, count := binary.LittleEndian.Uint16(header[8:]), binary.LittleEndian.Uint16(header[10:])
	if flags != flagBranch && flags != flagLeaf {
		return page{}, noDatabase("the page at %d has the flags %#x", at, flags)
	}
	elements, err := t.read(at+headerSize, int(count)*elementSize)
	return page{at, flags == flagLeaf, elements}, err
}

func (p page) count() int { return len(p.elements) / elementSize }

// number returns one of the four numbers of an element.
func (p page) number(element, which int) int64 {
	return int64(binary.LittleEndian.Uint32(p.elements[element*elementSize+4*which:]))
}

// place returns where the key of an element is, and its size.
func (p page) place(element int) (at, size int64) {
	which := 0 // a branch: position, size, page
	if p.leaf {
		which = 1 // flags, position, size of the key, of the value
	}
	return p.at + headerSize + int64(element*elementSize) + p.number(element, which), p.number(element, which+1)
}

func (t *tree) key(p page, element int) ([]byte, error) {
	at, size := p.place(element)
	if size > mostKey {
		return nil, noDatabase("a key at %d has %d bytes", at, size)
	}
	return t.read(at, int(size))
}

// below returns the offset of the page below an element of a branch.
func (t *tree) below(p page, element int) int64 {
	return int64(binary.LittleEndian.Uint64(p.elements[element*elementSize+8:])) * t.pageSize // read checks offsets
}

// descend goes from a page down to a leaf. choose returns the element to follow.
func (t *tree) descend(at int64, choose func(page) (int, error)) (page, error) {
	for range mostDepth {
		p, err := t.page(at)
		if err != nil || p.leaf {
			return p, err
		}
		if p.count() == 0 {
			return page{}, noDatabase("the branch at %d is empty", at)
		}
		element, err := choose(p)
		if err != nil {
			return page{}, err
		}
		at = t.below(p, element)
	}
	return page{}, noDatabase("its pages form a circle")
}

// find returns the element of a leaf with a key; -1: there is none.
func (t *tree) find(root int64, key []byte) (page, int, error) {
	leaf, err := t.descend(root, func(p page) (int, error) {
		found, err := t.lastNotAfter(p, key)
		return max(found, 0), err
	})
	if err != nil {
		return page{}, -1, err
	}
	element, err := t.lastNotAfter(leaf, key)
	if err != nil || element < 0 {
		return leaf, -1, err
	}
	there, err := t.key(leaf, element)
	if err != nil || !bytes.Equal(there, key) {
		return leaf, -1, err
	}
	return leaf, element, nil
}

// lastNotAfter returns the last element whose key is not after another; -1: all are.
func (t *tree) lastNotAfter(p page, key []byte) (int, error) {
	low, high := 0, p.count()
	for low < high {
		middle := (low + high) / 2
		there, err := t.key(p, middle)
		if err != nil {
			return 0, err
		}
		if bytes.Compare(there, key) <= 0 {
			low = middle + 1
		} else {
			high = middle
		}
	}
	return low - 1, nil
}

// get returns where the value of a key is, and its size.
func (t *tree) get(root int64, key []byte) (at, size int64, found bool, err error) {
	leaf, element, err := t.find(root, key)
	if err != nil || element < 0 {
		return 0, 0, false, err
	}
	at, size = leaf.place(element)
	return at + size, leaf.number(element, 3), true, nil
}

// bucket returns the offset of the first page of a bucket.
func (t *tree) bucket(name []byte) (root int64, found bool, err error) {
	leaf, element, err := t.find(t.root, name)
	if err != nil || element < 0 || leaf.number(element, 0)&flagBucket == 0 {
		return 0, false, err
	}
	at, size := leaf.place(element)
	at += size
	// The value is the page of the root and a sequence number. A small bucket has page 0, and
	// its content follows.
	value, err := t.read(at, headerSize)
	if err != nil {
		return 0, false, err
	}
	if id := int64(binary.LittleEndian.Uint64(value)); id != 0 { // read checks offsets
		return id * t.pageSize, true, nil
	}
	return at + headerSize, true, nil
}

// last returns the last key of a bucket; nil: it is empty.
func (t *tree) last(root int64) ([]byte, error) {
	leaf, err := t.descend(root, func(p page) (int, error) { return p.count() - 1, nil })
	if err != nil || leaf.count() == 0 {
		return nil, err
	}
	return t.key(leaf, leaf.count()-1)
}
