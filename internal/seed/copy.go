// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package seed

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/etcd-operator/etcd-operator/internal/datadir"
	"github.com/etcd-operator/etcd-operator/pkg/certsecret"
	"github.com/etcd-operator/etcd-operator/pkg/etcd"
	"github.com/etcd-operator/etcd-operator/pkg/rewind"
	"github.com/etcd-operator/etcd-operator/pkg/snapshot"
	"github.com/etcd-operator/etcd-operator/pkg/usersecret"
)

// Names of the commands that copy a running etcd.
const (
	CheckCommand = "check-source"
	ToolCommand  = "check-tool"
	CopyCommand  = "copy-source"
)

const (
	// fencePause is the time between two looks whether the running etcd refuses writes. Nobody can
	// write between its refusal and the look.
	fencePause = 200 * time.Millisecond
	// askTime bounds one look at one member.
	askTime = 3 * time.Second
	// longestCopyPause bounds the time between two attempts. Nobody can write meanwhile.
	longestCopyPause = 2 * time.Second
	// checkTime is how long Check tries before it says why it failed.
	checkTime = 20 * time.Second
)

// Copy copies the data of a running etcd, once that refuses all writes on behalf of Owner.
type Copy struct {
	// Endpoints are client URLs of its members, and ClusterID is its ID in hexadecimal.
	Endpoints []etcd.Endpoint
	ClusterID string
	// Owner is as in etcd.Fence.
	Owner string
	// TLSDir and UserDir are directories with the content of a Secret each; "": none. Each attempt
	// reads them again.
	TLSDir, UserDir  string
	SkipVerification bool
	// Dir, DataDir, Member and Program are those of Fetch.
	Dir, DataDir, Member, Program string

	Out, Err io.Writer // progress, and what hinders it
}

// Check returns nil if the running etcd sends its snapshot to this pod, or if there is nothing left
// to copy. So nobody has to stop writes for a pod that can't copy. It also leaves this program for
// CheckTool.
func (c Copy) Check(ctx context.Context) error {
	restored, err := progress(c.Dir, c.DataDir, c.Member)
	if err != nil {
		return err
	}
	if err := leaveProgram(c.Program, c.Dir, restored); err != nil || restored {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, checkTime)
	defer cancel()
	var why error
	for {
		s, err := c.open(ctx)
		if err == nil {
			c.say("%s sends its data of %d bytes to this pod", s.Endpoint, s.Size)
			return s.Close()
		}
		if why == nil || ctx.Err() == nil { // the end of the time is no reason
			c.complain(CheckCommand, why, err)
			why = err
		}
		if !pause(ctx, firstPause) {
			return fmt.Errorf("the etcd to copy sends no data to this pod: %w", why)
		}
	}
}

// CheckTool returns nil if the image of etcd, in which it runs, has the tool that restores snapshots. It
// makes the node pull that image before writes stop.
func CheckTool(tool string) error {
	_, err := os.Stat(tool)
	return missesTool(tool, err)
}

// Run returns when Dir holds a snapshot of the last revision, or ctx ends. It waits without limit
// for the running etcd to refuse writes, and to answer. It returns errors of the disk.
func (c Copy) Run(ctx context.Context) error {
	restored, err := progress(c.Dir, c.DataDir, c.Member)
	if err != nil {
		return err
	}
	if err := leaveProgram(c.Program, c.Dir, true); err != nil { // Check has left it
		return err
	}
	if restored {
		c.say("the member has data in %s: nothing to copy", c.DataDir)
		return nil
	}
	var why error
	for wait := fencePause; ; wait = min(2*wait, longestCopyPause) {
		err := c.attempt(ctx)
		var disk *diskError
		switch {
		case err == nil:
			return nil
		case ctx.Err() != nil:
			return fmt.Errorf("was asked to stop before the copy was complete: %w", context.Cause(ctx))
		case errors.As(err, &disk):
			return err
		}
		c.complain(CopyCommand, why, err)
		why = err
		pause(ctx, wait)
	}
}

// attempt copies the data once, when the running etcd refuses writes.
func (c Copy) attempt(ctx context.Context) error {
	if err := c.awaitFence(ctx); err != nil {
		return err
	}
	s, err := c.open(ctx)
	if err != nil {
		return err
	}
	defer s.Close()
	// The last write is known to all members that take part in a quorum. Without one, an
	// acknowledged write may be missing.
	if !s.Linearizable {
		return errors.New("the etcd to copy has no quorum: start its members")
	}
	if err := checkSpace(c.Dir, s.Size, "the copy"); err != nil {
		return &diskError{fmt.Errorf("%w: the node's disk, or the limit on ephemeral storage, is too small for it", err)}
	}
	began := time.Now()
	c.say("copying %d bytes from %s", s.Size, s.Endpoint)
	if err := c.keep(s); err != nil {
		return err
	}
	c.say("copied revision %d, %d bytes in %d ms", s.Revision, s.Size, time.Since(began).Milliseconds())
	return nil
}

// awaitFence waits until a member says that the etcd refuses all writes on behalf of the owner. All
// members apply that at the same entry.
func (c Copy) awaitFence(ctx context.Context) error {
	config, user, err := c.identity()
	if err != nil {
		return err
	}
	client := etcd.NewClient(config)
	client.SetCredentials(user)
	defer client.Close()
	for said := false; ; {
		status, err := c.status(ctx, client)
		switch {
		case err != nil:
			return err
		case slices.Contains(status.Alarms, etcd.Fence(c.Owner)):
			return nil
		case !said:
			said = true
			c.say("waiting until the etcd to copy refuses all writes")
		}
		if !pause(ctx, fencePause) {
			return context.Cause(ctx)
		}
	}
}

// status is that of the first member that answers.
func (c Copy) status(ctx context.Context, client *etcd.Client) (etcd.Status, error) {
	var failed error
	for _, ep := range c.Endpoints {
		conn, err := client.Conn(ep)
		if err != nil {
			return etcd.Status{}, err
		}
		asking, cancel := context.WithTimeout(ctx, askTime)
		status, err := conn.Status(asking)
		cancel()
		if err == nil {
			return status, nil
		}
		failed = errors.Join(failed, err)
	}
	return etcd.Status{}, failed
}

// open begins the snapshot of the best member.
func (c Copy) open(ctx context.Context) (*snapshot.Snapshot, error) {
	config, user, err := c.identity()
	if err != nil {
		return nil, err
	}
	s, err := snapshot.Open(ctx, snapshot.Source{Endpoints: c.Endpoints, TLS: config, User: user})
	if err != nil {
		return nil, err
	}
	if id := etcd.FormatID(s.ClusterID); id != c.ClusterID {
		_ = s.Close()
		return nil, fmt.Errorf("the etcd at %s has the ID %s, and the one to copy has %s", s.Endpoint, id, c.ClusterID)
	}
	return s, nil
}

// keep writes the snapshot to the disk, verifies it, and gives it its final name.
func (c Copy) keep(s *snapshot.Snapshot) error {
	part := filepath.Join(c.Dir, partFile)
	file, err := os.OpenFile(part, os.O_CREATE|os.O_TRUNC|os.O_RDWR, 0o600)
	if err != nil {
		return &diskError{fmt.Errorf("make a file for the copy: %w", err)}
	}
	defer file.Close() // complete data is synced below
	if _, err := io.Copy(&disk{file}, s); err != nil {
		return err
	}
	span, err := rewind.ReadSpan(file)
	if err != nil {
		return fmt.Errorf("the copy from %s: %w", s.Endpoint, err)
	}
	// Nobody writes, so the revision of the linearizable read is that of the snapshot.
	if span.Newest != s.Revision {
		return fmt.Errorf("the copy from %s is at revision %d, and the etcd at %d: somebody writes", s.Endpoint, span.Newest, s.Revision)
	}
	err = file.Sync()
	if err == nil {
		err = os.Rename(part, filepath.Join(c.Dir, snapshotFile))
	}
	if err == nil {
		err = datadir.SyncDir(c.Dir)
	}
	if err != nil {
		return &diskError{fmt.Errorf("keep the copy on the disk: %w", err)}
	}
	return nil
}

// disk marks the errors of a file's writes.
type disk struct{ file *os.File }

func (d *disk) Write(p []byte) (int, error) {
	n, err := d.file.Write(p)
	if err != nil {
		err = &diskError{fmt.Errorf("write the copy to the disk: %w", err)}
	}
	return n, err
}

// identity reads the client certificate and the user. Its errors contain no content.
func (c Copy) identity() (*tls.Config, etcd.Credentials, error) {
	var config *tls.Config
	var user etcd.Credentials
	if c.TLSDir != "" {
		secret, err := mounted(c.TLSDir)
		if err != nil {
			return nil, user, err
		}
		id, err := certsecret.ClientIdentity(secret)
		if err != nil {
			return nil, user, err
		}
		config = id.ClientConfig(c.SkipVerification)
	}
	if c.UserDir != "" {
		secret, err := mounted(c.UserDir)
		if err != nil {
			return nil, user, err
		}
		if user, err = usersecret.Of(secret); err != nil {
			return nil, user, err
		}
	}
	return config, user, nil
}

// mounted reads a Secret that is mounted in a directory. The kubelet adds entries of its own, which
// begin with two dots.
func mounted(dir string) (*corev1.Secret, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("read the mounted Secret: %w", err)
	}
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "in " + dir}, Data: map[string][]byte{}}
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), "..") {
			continue
		}
		if secret.Data[e.Name()], err = os.ReadFile(filepath.Join(dir, e.Name())); err != nil {
			return nil, fmt.Errorf("read the mounted Secret: %w", err)
		}
	}
	return secret, nil
}

func (c Copy) say(format string, args ...any) {
	fmt.Fprintf(c.Out, "%s: %s\n", CopyCommand, fmt.Sprintf(format, args...))
}

// complain says what hinders a command, unless the attempt before failed for the same reason.
func (c Copy) complain(command string, before, now error) {
	if before == nil || before.Error() != now.Error() {
		fmt.Fprintf(c.Err, "%s: %v\n", command, now)
	}
}

// pause reports whether ctx lasts so long.
func pause(ctx context.Context, wait time.Duration) bool {
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}
