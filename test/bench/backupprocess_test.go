//go:build bench

// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/etcd-operator/etcd-operator/pkg/etcd"
	"github.com/etcd-operator/etcd-operator/pkg/snapshot"
	"github.com/etcd-operator/etcd-operator/pkg/store"
	s3store "github.com/etcd-operator/etcd-operator/pkg/store/s3"
)

// backupVariable marks the process that takes backups, in which nothing else uses memory.
const backupVariable = "ETCD_OPERATOR_BENCH_BACKUPS"

// backupConfig names the source and the store.
type backupConfig struct {
	Etcd, Endpoint, Bucket, Region string
	AccessKey, SecretKey           string
}

// backupResult is a line that the process prints at its start, and after each backup.
type backupResult struct {
	Nanoseconds int64
	// Processor is the process's processor time in nanoseconds.
	Processor int64
	Size      int64
	// PeakBytes is the peak of resident memory since the last line.
	PeakBytes int64
	Error     string
}

func TestMain(m *testing.M) {
	for variable, work := range map[string]func(string) error{
		backupVariable:    func(config string) error { return makeBackups(context.Background(), config) },
		rewindVariable:    rewindAsOrdered,
		recordingVariable: recordAsOrdered,
	} {
		if order := os.Getenv(variable); order != "" {
			if err := work(order); err != nil {
				fmt.Fprintln(os.Stderr, err)
				os.Exit(1)
			}
			return
		}
	}
	os.Exit(m.Run())
}

// makeBackups takes a backup for each key in a line of the standard input.
func makeBackups(ctx context.Context, text string) error {
	var config backupConfig
	if err := json.Unmarshal([]byte(text), &config); err != nil {
		return err
	}
	endpoint, err := etcd.ParseEndpoint(config.Etcd, false)
	if err != nil {
		return err
	}
	bucket, err := openBucket(ctx, config)
	if err != nil {
		return err
	}
	defer bucket.Close()
	out := json.NewEncoder(os.Stdout)
	result := backupResult{}
	keys := bufio.NewScanner(os.Stdin)
	for {
		if result.PeakBytes, err = peak(); err != nil {
			return err
		}
		if err := out.Encode(result); err != nil {
			return err
		}
		if !keys.Scan() {
			return keys.Err()
		}
		start, before := time.Now(), processorTime()
		result = backupResult{}
		if result.Size, err = makeBackup(ctx, endpoint, bucket, keys.Text()); err != nil {
			result.Error = err.Error()
		}
		result.Nanoseconds, result.Processor = time.Since(start).Nanoseconds(), processorTime()-before
	}
}

func openBucket(ctx context.Context, config backupConfig) (store.Store, error) {
	return s3store.Open(ctx, s3store.Config{
		Bucket: config.Bucket, Endpoint: config.Endpoint, ForcePathStyle: true,
		Credentials: fmt.Appendf(nil, "[default]\naws_access_key_id = %s\naws_secret_access_key = %s\n", config.AccessKey, config.SecretKey),
		ConfigFile:  fmt.Appendf(nil, "[default]\nregion = %s\n", config.Region),
	})
}

func makeBackup(ctx context.Context, endpoint etcd.Endpoint, bucket store.Store, key string) (int64, error) {
	s, err := snapshot.Open(ctx, snapshot.Source{Endpoints: []etcd.Endpoint{endpoint}})
	if err != nil {
		return 0, err
	}
	defer s.Close()
	object, err := bucket.Put(ctx, key, store.Upload{Body: s, Size: s.Size, FinalMetadata: func() map[string]string {
		return map[string]string{"sha256": s.SHA256()}
	}})
	return object.Size, err
}

// processorTime returns this process's processor time in nanoseconds.
func processorTime() int64 {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		return 0 // never fails for the own process
	}
	return usage.Utime.Nano() + usage.Stime.Nano()
}

// peak returns the peak of resident memory since the last call, and resets it.
func peak() (int64, error) {
	most, err := statusBytes(os.Getpid(), "VmHWM")
	if err != nil {
		return 0, err
	}
	return most, os.WriteFile("/proc/self/clear_refs", []byte("5"), 0) // proc(5)
}
