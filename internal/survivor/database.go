// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package survivor

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"go.etcd.io/etcd/api/v3/authpb"
	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/protobuf/proto"

	"github.com/etcd-operator/etcd-operator/pkg/pages"
	"github.com/etcd-operator/etcd-operator/pkg/rewind"
)

// Names of etcd's buckets and keys (server/storage/schema/bucket.go).
var (
	metaBucket  = []byte("meta")
	authBucket  = []byte("auth")
	usersBucket = []byte("authUsers")
	alarmBucket = []byte("alarm")

	consistentIndexKey = []byte("consistent_index")
	termKey            = []byte("term")
	storageVersionKey  = []byte("storageVersion")
	authEnabledKey     = []byte("authEnabled")
)

// errMoved means that etcd has committed another transaction meanwhile.
var errMoved = errors.New("etcd has written to its database meanwhile")

// mostLooks is how often a read of a few pages begins again. etcd commits ten times a second at the
// most, and such a read takes less than a millisecond.
const mostLooks = 5

// openDatabase opens the file. etcd locks it exclusively, which keeps bbolt out, and no reader. The
// caller closes the file.
func (s *Server) openDatabase() (*os.File, error) {
	return os.Open(filepath.Join(s.DataDir, "member", "snap", "db"))
}

// inDatabase reads a few pages. It repeats read until all pages are of one transaction.
func inDatabase(file *os.File, read func(*pages.Database) error) error {
	err := errMoved
	for range mostLooks {
		if err = once(file, read); !errors.Is(err, errMoved) {
			return err
		}
	}
	return err
}

func once(file *os.File, read func(*pages.Database) error) error {
	db, err := pages.Open(file)
	if err != nil {
		return err
	}
	err = read(db)
	if moved := unmoved(file, db); moved != nil {
		return moved // the cause of any other error
	}
	return err
}

// unmoved returns errMoved if the database's newest transaction is another one than before.
func unmoved(file *os.File, db *pages.Database) error {
	now, err := pages.Open(file)
	if err != nil {
		return err
	}
	if now.Transaction() != db.Transaction() {
		return errMoved
	}
	return nil
}

// facts are what the database says of itself.
type facts struct {
	db       *pages.Database
	revision int64
	// consistentIndex is the last raft entry that the database certainly holds. Entries after it
	// may change nothing there.
	consistentIndex uint64
	term            uint64
	storageVersion  string
	// corrupt means that an alarm says that the data of the member differs from that of others.
	corrupt bool
}

// readFacts reads what the database says of itself and of a member.
func readFacts(file *os.File, member uint64) (f facts, err error) {
	err = inDatabase(file, func(db *pages.Database) error {
		f = facts{db: db}
		span, err := rewind.ReadSpan(file)
		if err != nil {
			return err
		}
		f.revision = span.Newest
		meta, found, err := db.Bucket(metaBucket)
		if err != nil || !found {
			return err
		}
		if f.consistentIndex, err = number(meta, consistentIndexKey); err != nil {
			return err
		}
		if f.term, err = number(meta, termKey); err != nil {
			return err
		}
		version, _, err := meta.Get(storageVersionKey)
		f.storageVersion = string(version)
		if err == nil {
			f.corrupt, err = readCorrupt(db, member)
		}
		return err
	})
	return f, err
}

// readCorrupt reports whether etcd has raised the alarm CORRUPT for a member, or for one that it does not know.
// The keys of the bucket are the alarms (server/storage/schema/alarm.go).
func readCorrupt(db *pages.Database, member uint64) (bool, error) {
	alarms, found, err := db.Bucket(alarmBucket)
	if err != nil || !found {
		return false, err
	}
	for _, id := range []uint64{member, 0} {
		key, err := proto.Marshal(&etcdserverpb.AlarmMember{MemberID: id, Alarm: etcdserverpb.AlarmType_CORRUPT})
		if err != nil {
			return false, err
		}
		if _, found, err := alarms.Get(key); err != nil || found {
			return found, err
		}
	}
	return false, nil
}

// number returns a value of 8 bytes; 0: there is none.
func number(in pages.Bucket, key []byte) (uint64, error) {
	value, found, err := in.Get(key)
	if err != nil || !found {
		return 0, err
	}
	if len(value) != 8 {
		return 0, fmt.Errorf("%w: its %s has %d bytes", pages.ErrNoDatabase, key, len(value))
	}
	return binary.BigEndian.Uint64(value), nil
}

// account is what the database says of a user.
type account struct {
	// enabled means that etcd asks for users.
	enabled bool
	user    *authpb.User // nil: there is no such user
}

// readAccount looks for a user, unless the database has authentication disabled.
func (s *Server) readAccount(name string) (a account, err error) {
	file, err := s.openDatabase()
	if err != nil {
		return account{}, err
	}
	defer file.Close()
	err = inDatabase(file, func(db *pages.Database) error {
		a = account{}
		auth, found, err := db.Bucket(authBucket)
		if err != nil || !found {
			return err
		}
		value, found, err := auth.Get(authEnabledKey)
		if err != nil || !found || string(value) != "\x01" {
			return err
		}
		a.enabled = true
		users, found, err := db.Bucket(usersBucket)
		if err != nil || !found || name == "" {
			return err
		}
		value, found, err = users.Get([]byte(name))
		if err != nil || !found {
			return err
		}
		a.user = &authpb.User{}
		if err := proto.Unmarshal(value, a.user); err != nil {
			return fmt.Errorf("%w: the user %q: %w", pages.ErrNoDatabase, name, err)
		}
		return nil
	})
	if err != nil {
		return account{}, fmt.Errorf("%s: %w", file.Name(), err)
	}
	return a, nil
}
