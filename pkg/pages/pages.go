// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package pages reads databases of bbolt by their pages. It needs no local file and no lock: the
// database may be an object in a store, or the file of an etcd that runs. It reads the pages on the
// way to a key, and nothing else.
package pages

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"math"
)

// ErrNoDatabase means that the content is no database of etcd.
var ErrNoDatabase = errors.New("it is no database of etcd")

func noDatabase(format string, args ...any) error {
	return fmt.Errorf("%w: %w", ErrNoDatabase, fmt.Errorf(format, args...))
}

// Database is one transaction of a database: the newest that was complete when Open read it. A
// writer never changes the pages of that transaction before a newer one is complete. So all that
// was read belongs together, if the newest transaction is still the same afterwards.
//
// A page has a header of 16 bytes: ID, flags, number of elements, number of further pages.
// Elements of 16 bytes follow, then keys and values. All numbers are little-endian.
type Database struct {
	from     io.ReaderAt
	pageSize int64
	root     int64 // offset of the page
	txid     uint64
	pages    int64
	meta     []byte // of the newest meta page, without the header
}

const (
	magic        = 0xED0CDAED
	formatOfFile = 2

	headerSize  = 16
	elementSize = 16
	metaSize    = 64 // without the header

	flagBranch = 0x01
	flagLeaf   = 0x02
	flagMeta   = 0x04
	flagBucket = 0x01 // of an element of a leaf

	// smallestPage and largestPage bound the size of pages. That of a machine has 4 to 64 KiB.
	smallestPage = 1 << 10
	largestPage  = 64 << 10

	// mostDepth bounds the descent in a damaged file. mostKey is bbolt's bound.
	mostDepth = 64
	mostKey   = 32768
)

// Open reads the newer of the two meta pages. The error wraps ErrNoDatabase, or is that of the
// reader.
func Open(from io.ReaderAt) (*Database, error) {
	d := &Database{from: from}
	// The second meta page follows the first. Its place shows the size of pages. Elsewhere, a
	// value of a user can look like a meta page.
	for at := int64(0); at <= largestPage; at = max(2*at, smallestPage) {
		text, err := d.read(at+headerSize, metaSize)
		if errors.Is(err, ErrNoDatabase) {
			break // the file ends here
		}
		if err != nil {
			return nil, err
		}
		number := binary.LittleEndian
		size := int64(number.Uint32(text[8:]))
		if number.Uint32(text) != magic || number.Uint32(text[4:]) != formatOfFile || number.Uint64(text[56:]) != checksum(text) {
			continue
		}
		if at != 0 && at != size || size < smallestPage || size > largestPage || d.pageSize != 0 && d.pageSize != size {
			continue
		}
		if txid := number.Uint64(text[48:]); d.pageSize == 0 || txid > d.txid {
			d.txid, d.pageSize, d.meta = txid, size, text
			d.root = int64(number.Uint64(text[16:])) * size // read checks offsets
			d.pages = int64(number.Uint64(text[40:]))       // checked below
		}
	}
	if d.pageSize == 0 {
		return nil, noDatabase("it has no meta page")
	}
	if d.pages < 2 || d.pages > math.MaxInt64/d.pageSize {
		return nil, noDatabase("it has %d pages", d.pages)
	}
	return d, nil
}

func checksum(meta []byte) uint64 {
	sum := fnv.New64a()
	sum.Write(meta[:56])
	return sum.Sum64()
}

// Transaction is the number of the transaction. Each later one has a higher number.
func (d *Database) Transaction() uint64 { return d.txid }

// Size is the size in bytes of all pages of the transaction. The file may be larger.
func (d *Database) Size() int64 { return d.pages * d.pageSize }

// MetaPages returns the first two pages of a copy, which name this transaction and no other. The
// file's own name an older one too, whose pages a writer may overwrite. They equal those that
// bbolt's Tx.WriteTo writes. The other pages of a copy are those of the file, up to Size.
func (d *Database) MetaPages() []byte {
	text := make([]byte, 2*d.pageSize)
	for id := range uint64(2) {
		number, page := binary.LittleEndian, text[int64(id)*d.pageSize:] // 0 or 1
		number.PutUint64(page, id)
		number.PutUint16(page[8:], flagMeta)
		meta := page[headerSize : headerSize+metaSize]
		copy(meta, d.meta)
		number.PutUint64(meta[48:], d.txid-id)
		number.PutUint64(meta[56:], checksum(meta))
	}
	return text
}

// read returns bytes at an offset.
func (d *Database) read(offset int64, size int) ([]byte, error) {
	if offset < 0 {
		return nil, noDatabase("a page is at %d", offset)
	}
	text := make([]byte, size)
	n, err := d.from.ReadAt(text, offset)
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

func (d *Database) page(at int64) (page, error) {
	header, err := d.read(at, headerSize)
	if err != nil {
		return page{}, err
	}
	flags, count := binary.LittleEndian.Uint16(header[8:]), binary.LittleEndian.Uint16(header[10:])
	if flags != flagBranch && flags != flagLeaf {
		return page{}, noDatabase("the page at %d has the flags %#x", at, flags)
	}
	elements, err := d.read(at+headerSize, int(count)*elementSize)
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

func (d *Database) key(p page, element int) ([]byte, error) {
	at, size := p.place(element)
	if size > mostKey {
		return nil, noDatabase("a key at %d has %d bytes", at, size)
	}
	return d.read(at, int(size))
}

// below returns the offset of the page below an element of a branch.
func (d *Database) below(p page, element int) int64 {
	return int64(binary.LittleEndian.Uint64(p.elements[element*elementSize+8:])) * d.pageSize // read checks offsets
}

// descend goes from a page down to a leaf. choose returns the element to follow.
func (d *Database) descend(at int64, choose func(page) (int, error)) (page, error) {
	for range mostDepth {
		p, err := d.page(at)
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
		at = d.below(p, element)
	}
	return page{}, noDatabase("its pages form a circle")
}

// find returns the element of a leaf with a key; -1: there is none.
func (d *Database) find(root int64, key []byte) (page, int, error) {
	leaf, err := d.descend(root, func(p page) (int, error) {
		found, err := d.lastNotAfter(p, key)
		return max(found, 0), err
	})
	if err != nil {
		return page{}, -1, err
	}
	element, err := d.lastNotAfter(leaf, key)
	if err != nil || element < 0 {
		return leaf, -1, err
	}
	there, err := d.key(leaf, element)
	if err != nil || !bytes.Equal(there, key) {
		return leaf, -1, err
	}
	return leaf, element, nil
}

// lastNotAfter returns the last element whose key is not after another; -1: all are.
func (d *Database) lastNotAfter(p page, key []byte) (int, error) {
	low, high := 0, p.count()
	for low < high {
		middle := (low + high) / 2
		there, err := d.key(p, middle)
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

// Bucket is a top-level bucket of a Database.
type Bucket struct {
	in   *Database
	root int64 // offset of the page
}

// mostValue bounds what Get reads. Values of etcd's own records are much smaller.
const mostValue = 1 << 20

// Bucket finds a bucket by its name.
func (d *Database) Bucket(name []byte) (bucket Bucket, found bool, err error) {
	leaf, element, err := d.find(d.root, name)
	if err != nil || element < 0 || leaf.number(element, 0)&flagBucket == 0 {
		return Bucket{}, false, err
	}
	at, size := leaf.place(element)
	at += size
	// The value is the page of the root and a sequence number. A small bucket has page 0, and
	// its content follows.
	value, err := d.read(at, headerSize)
	if err != nil {
		return Bucket{}, false, err
	}
	if id := int64(binary.LittleEndian.Uint64(value)); id != 0 { // read checks offsets
		return Bucket{d, id * d.pageSize}, true, nil
	}
	return Bucket{d, at + headerSize}, true, nil
}

// Get returns the value of a key. It refuses values that are larger than 1 MiB.
func (b Bucket) Get(key []byte) (value []byte, found bool, err error) {
	leaf, element, err := b.in.find(b.root, key)
	if err != nil || element < 0 {
		return nil, false, err
	}
	at, size := leaf.place(element)
	length := leaf.number(element, 3)
	if length > mostValue {
		return nil, false, noDatabase("the value of the key %q has %d bytes", key, length)
	}
	value, err = b.in.read(at+size, int(length))
	return value, err == nil, err
}

// Last returns the last key of the bucket; nil: it is empty.
func (b Bucket) Last() ([]byte, error) {
	leaf, err := b.in.descend(b.root, func(p page) (int, error) { return p.count() - 1, nil })
	if err != nil || leaf.count() == 0 {
		return nil, err
	}
	return b.in.key(leaf, leaf.count()-1)
}
