// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package process identifies processes beyond their IDs, and waits for ones
// that are nobody's children.
package process

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/etcd-operator/etcd-operator/hack/localkube/instance"
)

// ErrGone is returned for a process that has ended.
var ErrGone = errors.New("the process has ended")

// Identify returns what distinguishes the process from a later one with its ID.
func Identify(pid int) (instance.Process, error) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return instance.Process{}, fmt.Errorf("process %d: %w", pid, ErrGone)
	}
	start, state, err := parseStat(string(stat))
	if err != nil {
		return instance.Process{}, fmt.Errorf("process %d: %w", pid, err)
	}
	if state == "Z" {
		return instance.Process{}, fmt.Errorf("process %d: %w", pid, ErrGone)
	}
	return instance.Process{PID: pid, Start: start}, nil
}

// parseStat returns the start time and the state in /proc/PID/stat. The name in it is in
// parentheses and may contain anything.
func parseStat(stat string) (start uint64, state string, err error) {
	_, rest, ok := cutLast(stat, ") ")
	fields := strings.Fields(rest)
	if !ok || len(fields) < 20 {
		return 0, "", fmt.Errorf("cannot read its status %q", stat)
	}
	start, err = strconv.ParseUint(fields[19], 10, 64)
	return start, fields[0], err
}

func cutLast(s, sep string) (before, after string, found bool) {
	if i := strings.LastIndex(s, sep); i >= 0 {
		return s[:i], s[i+len(sep):], true
	}
	return s, "", false
}

// Alive reports whether exactly this process still runs.
func Alive(p instance.Process) bool {
	now, err := Identify(p.PID)
	return err == nil && now == p
}

// Signal sends a signal to exactly this process. It returns ErrGone if it has
// ended.
func Signal(p instance.Process, sig unix.Signal) error {
	fd, err := open(p)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	if err := unix.PidfdSendSignal(fd, sig, nil, 0); err != nil {
		return fmt.Errorf("signal process %d: %w", p.PID, err)
	}
	return nil
}

// Wait blocks until the process has ended (nil) or ctx ends.
func Wait(ctx context.Context, p instance.Process) error {
	fd, err := open(p)
	if errors.Is(err, ErrGone) {
		return nil
	}
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	// Polling a pidfd cannot be interrupted from Go, so it is cut into pieces.
	const pieceMillis = 200
	for {
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, pieceMillis)
		switch {
		case err != nil && !errors.Is(err, unix.EINTR):
			return fmt.Errorf("wait for process %d: %w", p.PID, err)
		case n > 0:
			return nil
		case ctx.Err() != nil:
			return ctx.Err()
		}
	}
}

// open returns a pidfd that is known to be of this very process.
func open(p instance.Process) (int, error) {
	fd, err := unix.PidfdOpen(p.PID, 0)
	if errors.Is(err, unix.ESRCH) {
		return -1, fmt.Errorf("process %d: %w", p.PID, ErrGone)
	}
	if err != nil {
		return -1, fmt.Errorf("open process %d: %w", p.PID, err)
	}
	if !Alive(p) {
		unix.Close(fd)
		return -1, fmt.Errorf("process %d: %w", p.PID, ErrGone)
	}
	return fd, nil
}
