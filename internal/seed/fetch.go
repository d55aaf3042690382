// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package seed

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

const (
	// idleTimeout is how long a connection may deliver nothing before a new one replaces it.
	idleTimeout = 30 * time.Second
	// firstPause is the time between two attempts. It doubles up to longestPause while nothing
	// arrives.
	firstPause   = time.Second
	longestPause = 15 * time.Second
	// wrongPause is the wait before a new download, after two complete downloads with other
	// content. The store may hold another object, and each download costs GiBs of traffic. The
	// wait doubles up to longestWrongPause.
	wrongPause        = time.Minute
	longestWrongPause = 15 * time.Minute
	// reportInterval is the time between two lines of progress.
	reportInterval = 10 * time.Second
)

// Fetch fetches a backup from the restore operator.
type Fetch struct {
	// URL serves the backup to the holder of the token in TokenFile. Each attempt reads the
	// file again, since it may appear late.
	URL, TokenFile string
	// Size of the backup in bytes, and its SHA-256 in hexadecimal digits. Fetch accepts no
	// other content.
	Size   int64
	SHA256 string
	// Dir is shared with the container that restores the backup.
	Dir string
	// DataDir is etcd's data directory. If it holds data, there is nothing to do.
	DataDir string
	// Member is the ID of the member that has served from this pod; "": none has.
	Member string
	// Program is this program. Fetch copies it to Dir, unless it is "".
	Program string

	Transport http.RoundTripper
	Out, Err  io.Writer // progress, and what hinders it
}

// Transport returns the transport for Fetch. Each attempt opens a new connection: the server
// may have moved.
func Transport() *http.Transport {
	return &http.Transport{
		DialContext:        (&net.Dialer{Timeout: 10 * time.Second}).DialContext,
		DisableKeepAlives:  true,
		DisableCompression: true,
	}
}

// errWrongContent ends an attempt after which nothing of the download is kept.
var errWrongContent = errors.New("what is served is not the backup that was chosen")

// errSpoilt is an errWrongContent that was detected only at the end of the download.
var errSpoilt = fmt.Errorf("%w: see the EtcdRestore, whose status says what to do if the object in the store has changed", errWrongContent)

// diskError is an error of the local disk. Another attempt would fail like this one.
type diskError struct{ err error }

func (e *diskError) Error() string { return e.err.Error() }
func (e *diskError) Unwrap() error { return e.err }

// Run returns when Dir holds the complete backup, or ctx ends. It retries errors of the
// network and the server forever: the restore operator may be starting, and reports its own
// problems. It returns errors of the disk.
func (f Fetch) Run(ctx context.Context) error {
	restored, err := progress(f.Dir, f.DataDir, f.Member)
	if err != nil {
		return err
	}
	if err := leaveProgram(f.Program, f.Dir, restored); err != nil {
		return err
	}
	if restored {
		f.say("the member has data in %s: nothing to fetch", f.DataDir)
		return nil
	}
	d, err := openDownload(f.Dir, f.Size, f.SHA256)
	if err != nil {
		return err
	}
	defer d.close()
	if d.whole {
		f.say("the backup is here already")
		return nil
	}
	if err := checkSpace(f.Dir, f.Size-d.have, "the backup"); err != nil {
		return fmt.Errorf("%w: the node's disk, or the limit on ephemeral storage, is too small for it", err)
	}
	return f.keepTrying(ctx, d)
}

func (f Fetch) keepTrying(ctx context.Context, d *download) error {
	next, wrong := firstPause, wrongPause
	for spoilt := 0; ; {
		before := d.have
		err := f.attempt(ctx, d)
		if err == nil {
			f.say("fetched and verified %d bytes", f.Size)
			return nil
		}
		var disk *diskError
		switch {
		case ctx.Err() != nil:
			return fmt.Errorf("was asked to stop with %d of %d bytes fetched: %w", d.have, f.Size, context.Cause(ctx))
		case errors.As(err, &disk):
			err = fmt.Errorf("after %d of %d bytes: %w", d.have, f.Size, err)
			if errors.Is(err, syscall.ENOSPC) {
				_ = d.reset() // other pods on the node need the space
			}
			return err
		case d.have > before && !errors.Is(err, errWrongContent):
			next = firstPause
		}
		wait := next
		if errors.Is(err, errSpoilt) {
			// The first failure may be a mix of two objects.
			if spoilt++; spoilt > 1 {
				wait, wrong = wrong, min(2*wrong, longestWrongPause)
			}
		}
		fmt.Fprintf(f.Err, "fetch-backup: %v; %d of %d bytes are here; the next attempt is in %s\n", err, d.have, f.Size, wait)
		pause(ctx, wait)
		next = min(2*next, longestPause)
	}
}

func (f Fetch) say(format string, args ...any) {
	fmt.Fprintf(f.Out, "fetch-backup: %s\n", fmt.Sprintf(format, args...))
}

// leaveProgram copies this program to the directory that restore-backup reads; "": not. If the
// restore is done, an existing copy is enough: a full disk must not stop a member that needs
// no more space.
func leaveProgram(program, dir string, keep bool) (err error) {
	if program == "" {
		return nil
	}
	defer func() {
		if err != nil {
			err = fmt.Errorf("copy the program of restore-backup into %s: %w", dir, err)
		}
	}()
	source, err := os.Open(program)
	if err != nil {
		return err
	}
	defer source.Close()
	info, err := source.Stat()
	if err != nil {
		return err
	}
	name := filepath.Join(dir, programFile)
	if there, err := os.Stat(name); keep && err == nil && there.Size() == info.Size() {
		return nil
	}
	if err := remove(name); err != nil {
		return err
	}
	if err := checkSpace(dir, info.Size()-spare, "it"); err != nil {
		return err
	}
	target, err := os.OpenFile(name+".part", os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o755)
	if err != nil {
		return err
	}
	_, err = io.Copy(target, source)
	if err = errors.Join(err, target.Sync(), target.Close()); err != nil {
		return err
	}
	return os.Rename(name+".part", name)
}
