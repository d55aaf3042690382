// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package seed

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/etcd-operator/etcd-operator/internal/datadir"
	"github.com/etcd-operator/etcd-operator/pkg/rewind"
)

// Restore makes a member's data directory from a backup.
type Restore struct {
	// Dir is the directory in which Fetch has left the backup.
	Dir string
	// DataDir is etcd's data directory. It appears when it is complete.
	DataDir string
	// Member is the ID of the member that has served from this pod; "": none has.
	Member string
	// Tool is etcdutl, or etcdctl before etcd 3.5.
	Tool string
	// Name, PeerURL and ClusterToken identify the member and the cluster.
	Name, PeerURL, ClusterToken string
	// SnapshotSize is the size in bytes of the snapshot at the beginning of the backup, if a
	// log of changes follows it; 0: none does.
	SnapshotSize int64
	// Revision is what to take the backup to; 0: that of the backup.
	Revision int64
	// BumpRevision is how much to raise the revision; 0: not at all.
	BumpRevision int64

	// stall is how long etcd may apply no entry of a survivor's log; 0: replayStall.
	stall time.Duration

	Out, Err io.Writer
}

// restoringSuffix ends the name of an incomplete data directory.
const restoringSuffix = ".restoring"

// Run returns when the data directory is complete. A caller may run it again however it ended.
func (r Restore) Run(ctx context.Context) error {
	restored, err := progress(r.Dir, r.DataDir, r.Member)
	if err != nil {
		return err
	}
	if restored {
		if err := r.checkData(); err != nil {
			return err
		}
		fmt.Fprintf(r.Out, "restore-backup: the member has data in %s: nothing to restore\n", r.DataDir)
		return r.conclude()
	}
	snapshot := filepath.Join(r.Dir, snapshotFile)
	info, err := os.Stat(snapshot)
	if err != nil {
		return fmt.Errorf("look for the backup that fetch-backup was to leave: %w", err)
	}
	// Nothing here creates an incomplete one under this name. An empty one does no harm.
	if err := remove(r.DataDir); err != nil {
		return fmt.Errorf("%s holds no data of etcd, and blocks the restore: %w", r.DataDir, err)
	}
	restoring := r.DataDir + restoringSuffix
	if err := os.RemoveAll(restoring); err != nil {
		return fmt.Errorf("remove what an earlier attempt has left: %w", err)
	}
	if err := checkSpace(filepath.Dir(r.DataDir), info.Size(), "the restored data"); err != nil {
		return fmt.Errorf("%w: ask for a larger volume in spec.pod.persistentVolumeClaimSpec; without one, the node's disk or memory is too small", err)
	}
	if r.Revision > 0 {
		if snapshot, err = r.rewind(snapshot, info.Size()); err != nil {
			return err
		}
	}
	extra := ""
	if r.Revision == 0 {
		replayed, err := r.replay(ctx, snapshot, info.Size())
		if err != nil {
			return err
		}
		if replayed != "" {
			snapshot, extra = replayed, "--skip-hash-check" // a file of etcd has no hash
		}
	}
	if err := r.makeData(ctx, snapshot, restoring, extra); err != nil {
		return err
	}
	if err := syncTree(restoring); err != nil {
		return fmt.Errorf("write the restored data to the disk: %w", err)
	}
	if err := datadir.WriteDurably(r.DataDir+memberSuffix, r.Name); err != nil {
		return fmt.Errorf("note whose data it is: %w", err)
	}
	if err := os.Rename(restoring, r.DataDir); err != nil {
		return fmt.Errorf("put the restored data in place: %w", err)
	}
	if err := datadir.SyncDir(filepath.Dir(r.DataDir)); err != nil {
		return fmt.Errorf("put the restored data in place: %w", err)
	}
	fmt.Fprintf(r.Out, "restore-backup: restored %d bytes into %s\n", info.Size(), r.DataDir)
	return r.conclude()
}

// memberSuffix ends the name of a file beside the data directory. It contains the name of the member for
// which a restore has made the data.
const memberSuffix = ".member"

// checkData fails if the data is not from a restore for this member. A claim can get a volume on which
// somebody has left the data of a former cluster. etcd would start on that in the place of the backup.
func (r Restore) checkData() error {
	if _, err := os.Stat(filepath.Join(r.Dir, doneFile)); err == nil || r.Member != "" {
		return nil // it was restored in this pod
	}
	member, err := os.ReadFile(r.DataDir + memberSuffix)
	switch {
	case err != nil && !errors.Is(err, os.ErrNotExist):
		return fmt.Errorf("look whose data is in %s: %w", r.DataDir, err)
	case string(member) != r.Name:
		return fmt.Errorf("the volume holds data of another etcd in %s, from before this restore: this member must not start on it; "+
			"keep a copy if it matters; empty the volume, or delete the PersistentVolumeClaim %s (kubectl delete pvc --wait=false); then delete the pod", r.DataDir, r.Name)
	}
	return nil
}

// conclude notes that the restore is done, and deletes the backup.
func (r Restore) conclude() error {
	if err := datadir.WriteDurably(filepath.Join(r.Dir, doneFile), ""); err != nil {
		return fmt.Errorf("note that the backup is restored: %w", err)
	}
	for _, name := range []string{snapshotFile, partFile, rewoundFile} {
		if err := remove(filepath.Join(r.Dir, name)); err != nil {
			return fmt.Errorf("remove the backup after it was restored: %w", err)
		}
	}
	if err := os.RemoveAll(filepath.Join(r.Dir, replayDir)); err != nil {
		return fmt.Errorf("remove the backup after it was restored: %w", err)
	}
	return nil
}

// rewind writes the backup as it was at the revision, and returns the name of that file.
func (r Restore) rewind(snapshot string, size int64) (string, error) {
	target := filepath.Join(r.Dir, rewoundFile)
	if err := remove(target); err != nil {
		return "", fmt.Errorf("remove what an earlier attempt has left: %w", err)
	}
	if err := checkSpace(r.Dir, size, "the backup at an earlier revision"); err != nil {
		return "", fmt.Errorf("%w: the node's disk, or the limit on ephemeral storage, is too small for it", err)
	}
	result, err := rewind.ToWithLog(snapshot, cmp.Or(r.SnapshotSize, -1), target, r.Revision)
	if err != nil {
		return "", err
	}
	fmt.Fprintf(r.Out, "restore-backup: took the backup to revision %d: %d keys; they refer to %d leases, of which %d had ended before the backup and live for %d seconds now\n",
		r.Revision, result.Keys, result.Leases, result.EndedLeases, rewind.EndedLeaseTTL)
	if result.Checkpoint > 0 {
		fmt.Fprintf(r.Out, "restore-backup: the keys at revision %d have the hash that etcd reported\n", result.Checkpoint)
	}
	return target, nil
}

// makeData makes the data directory from a snapshot. extra is another flag of the tool; "": none.
func (r Restore) makeData(ctx context.Context, snapshot, dataDir, extra string) error {
	args := []string{
		"snapshot", "restore", snapshot, "--data-dir=" + dataDir, "--name=" + r.Name,
		"--initial-cluster=" + r.Name + "=" + r.PeerURL, "--initial-advertise-peer-urls=" + r.PeerURL,
		"--initial-cluster-token=" + r.ClusterToken,
	}
	if r.BumpRevision > 0 {
		args = append(args, "--bump-revision="+strconv.FormatInt(r.BumpRevision, 10), "--mark-compacted")
	}
	if extra != "" {
		args = append(args, extra)
	}
	return r.runTool(ctx, args...)
}

func (r Restore) runTool(ctx context.Context, args ...string) error {
	cmd := exec.CommandContext(ctx, r.Tool, args...)
	cmd.Env = append(os.Environ(), "ETCDCTL_API=3")
	// The tool ends with this program: two must never write at a time.
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	last := &lastLine{}
	cmd.Stdout, cmd.Stderr = r.Out, io.MultiWriter(r.Err, last)
	err := cmd.Run()
	tool := filepath.Base(r.Tool)
	var exit *exec.ExitError
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return fmt.Errorf("was asked to stop while %s restores the backup: %w", tool, context.Cause(ctx))
	case errors.Is(err, fs.ErrNotExist):
		return missesTool(r.Tool, err)
	case errors.As(err, &exit) && exit.ExitCode() < 0:
		return fmt.Errorf("%s was ended while it restores the backup (%w): the limit on memory may be too small (spec.pod.resources)", tool, err)
	}
	return fmt.Errorf("%s can't restore the backup (%w): %s", tool, err, last)
}

// missesTool explains the error of a tool that does not exist.
func missesTool(tool string, err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("the image of etcd has no %s, which restores backups: use one that has it, as etcd's own images do (spec.repository)", tool)
	}
	return err
}

// lastLine keeps the last line of a program's output.
type lastLine struct{ end []byte }

func (l *lastLine) Write(p []byte) (int, error) {
	l.end = append(l.end, p...)
	l.end = l.end[max(0, len(l.end)-1024):]
	return len(p), nil
}

func (l *lastLine) String() string {
	text := strings.TrimSpace(string(l.end))
	return strings.ToValidUTF8(text[strings.LastIndexByte(text, '\n')+1:], "")
}

// syncTree syncs a directory and its contents to the disk.
func syncTree(root string) error {
	return filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() {
			return datadir.SyncDir(path)
		}
		f, err := os.OpenFile(path, os.O_RDWR, 0)
		if err != nil {
			return err
		}
		return errors.Join(f.Sync(), f.Close())
	})
}
