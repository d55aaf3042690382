//go:build bench

// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"bufio"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	clientv3 "go.etcd.io/etcd/client/v3"
	"golang.org/x/sync/errgroup"

	"github.com/etcd-operator/etcd-operator/test/members"
	"github.com/etcd-operator/etcd-operator/test/stores"
)

var sizeFlag = flag.Int64("size", 0, "size in MiB of the database that is backed up (default 2048) or restored (default 100)")

// databaseSize returns the flag's or the default size, in bytes.
func databaseSize(mib int64) int64 {
	if *sizeFlag > 0 {
		mib = *sizeFlag
	}
	return mib << 20
}

const bucket = "backups"

// TestBackups measures the backup of an etcd to a MinIO on the same machine. In turns with it,
// it measures the two halves: a snapshot into a file, and a plain copy of that file into
// MinIO.
func TestBackups(t *testing.T) {
	release, size := members.ReleaseOf(t, "3.6"), databaseSize(2048)
	source := release.Start(t, members.Options{Flags: []string{
		"--quota-backend-bytes", fmt.Sprint(4 * size), "--max-request-bytes", fmt.Sprint(16 << 20),
		"--snapshot-count", "200", "--max-wals", "1", "--unsafe-no-fsync",
	}})
	fillDatabase(t, source.Client(t), size)
	server := stores.MinIO(t, stores.Options{})
	server.CreateBucket(t, bucket)
	child := startBackups(t, backupConfig{
		Etcd: source.Members[0].URL, Endpoint: server.Endpoint, Bucket: bucket,
		AccessKey: server.AccessKey, SecretKey: server.SecretKey, Region: server.Region,
	})
	r := &backupReport{idle: child.idle}
	file := filepath.Join(t.TempDir(), "snapshot.db")
	for round := range *rounds {
		start := time.Now()
		release.Run(t, "etcdctl", "--endpoints", source.Members[0].URL, "snapshot", "save", file)
		saved := time.Since(start)

		start = time.Now()
		r.size = putFile(t, server, file)
		copied := time.Since(start)
		discard(t, server)

		backup := child.backup(t, fmt.Sprintf("backup-%d", round))
		discard(t, server)
		r.add(saved, copied, time.Duration(backup.Nanoseconds), time.Duration(backup.Processor))
		r.peak = max(r.peak, backup.PeakBytes)
		if backup.Size != r.size {
			t.Errorf("the backup has %d bytes, the file has %d", backup.Size, r.size)
		}
		if err := os.Remove(file); err != nil {
			t.Fatal(err)
		}
		t.Logf("round %d of %d: saved in %v, copied in %v, backed up in %v with %v of the processor; peak memory %s above idle", round+1, *rounds,
			saved, copied, time.Duration(backup.Nanoseconds), time.Duration(backup.Processor), mebibytes(backup.PeakBytes-child.idle))
	}
	publish(t, backups, release, fmt.Sprintf("%d rounds", *rounds), r)
}

// fillDatabase writes keys of 100 bytes to 1 MB with incompressible content. Most bytes are in
// large values; most keys are small.
func fillDatabase(t *testing.T, client *clientv3.Client, size int64) {
	t.Helper()
	random := rand.NewChaCha8([32]byte{})
	writing, ctx := errgroup.WithContext(t.Context())
	writing.SetLimit(4)
	for key, written := 0, int64(0); written < size; {
		var puts []clientv3.Op
		for length, count := range map[int]int{100: 20, 1000: 20, 10_000: 20, 100_000: 2, 1_000_000: 1} {
			for range count {
				value := make([]byte, length)
				_, _ = random.Read(value) // never fails
				puts = append(puts, clientv3.OpPut(fmt.Sprintf("key-%d", key), string(value)))
				key++
				written += int64(length)
			}
		}
		writing.Go(func() error {
			_, err := client.Txn(ctx).Then(puts...).Commit()
			return err
		})
	}
	if err := writing.Wait(); err != nil {
		t.Fatal(err)
	}
}

// putFile uploads a file in one request with unsigned content, like curl.
func putFile(t *testing.T, server *stores.MinIOServer, path string) int64 {
	t.Helper()
	signed, err := s3.NewPresignClient(server.Client()).PresignPutObject(t.Context(), &s3.PutObjectInput{Bucket: aws.String(bucket), Key: aws.String("copy")})
	if err != nil {
		t.Fatal(err)
	}
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		t.Fatal(err)
	}
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPut, signed.URL, file)
	if err != nil {
		t.Fatal(err)
	}
	request.ContentLength = info.Size()
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(response.Body)
		t.Fatalf("put a file: %s: %s", response.Status, text)
	}
	return info.Size()
}

// discard deletes all objects, so that the disk does not fill up.
func discard(t *testing.T, server *stores.MinIOServer) {
	t.Helper()
	client := server.Client()
	list, err := client.ListObjectsV2(t.Context(), &s3.ListObjectsV2Input{Bucket: aws.String(bucket)})
	if err != nil {
		t.Fatal(err)
	}
	for _, object := range list.Contents {
		if _, err := client.DeleteObject(t.Context(), &s3.DeleteObjectInput{Bucket: aws.String(bucket), Key: object.Key}); err != nil {
			t.Fatal(err)
		}
	}
}

// backupsProcess is the process that takes the backups.
type backupsProcess struct {
	idle    int64 // resident bytes before the first backup
	orders  io.Writer
	answers *bufio.Scanner
}

// startBackups starts this test binary again, as a process that only takes backups.
func startBackups(t *testing.T, config backupConfig) *backupsProcess {
	t.Helper()
	cmd := child(t, backupVariable, config)
	orders, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	answers, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		orders.Close()
		if err := cmd.Wait(); err != nil && t.Context().Err() == nil {
			t.Error(err)
		}
	})
	p := &backupsProcess{orders: orders, answers: bufio.NewScanner(answers)}
	p.idle = p.answer(t).PeakBytes
	return p
}

func (p *backupsProcess) backup(t *testing.T, key string) backupResult {
	t.Helper()
	if _, err := fmt.Fprintln(p.orders, key); err != nil {
		t.Fatal(err)
	}
	return p.answer(t)
}

func (p *backupsProcess) answer(t *testing.T) backupResult {
	t.Helper()
	var result backupResult
	if !p.answers.Scan() {
		t.Fatalf("the process that makes backups has ended: %v", p.answers.Err())
	}
	if err := json.Unmarshal(p.answers.Bytes(), &result); err != nil {
		t.Fatalf("%v: %s", err, p.answers.Text())
	}
	if result.Error != "" {
		t.Fatal(strings.TrimSpace(result.Error))
	}
	return result
}
