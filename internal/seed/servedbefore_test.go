// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package seed

import (
	"io"
	"strings"
	"testing"
	"time"

	"context"

	"github.com/etcd-operator/etcd-operator/internal/datadir"
)

// After the loss of a node's disk, nothing there shows that the backup was restored before.
// The operator's note on the pod does.
func TestABackupIsNotRestoredAgainForAMemberThatHasServed(t *testing.T) {
	t.Setenv(datadir.StartedEnv, "8e9e05c52164694d")
	dir, data := t.TempDir(), t.TempDir()
	fetch, err := ParseFetch([]string{"-url=http://s", "-token-file=t", "-size=1", "-sha256=" + strings.Repeat("0", 64), "-dir=" + dir, "-data-dir=" + data}, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	restore, err := ParseRestore([]string{"-dir=" + dir, "-data-dir=" + data, "-tool=t", "-name=n", "-peer-url=u", "-initial-cluster-token=t"}, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	fetch.Out, fetch.Err, restore.Out, restore.Err = io.Discard, io.Discard, io.Discard, io.Discard
	fetch.Transport = Transport()
	for name, run := range map[string]func(context.Context) error{"fetch": fetch.Run, "restore": restore.Run} {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		if err := run(ctx); err == nil || !strings.Contains(err.Error(), "has served from this pod before") {
			t.Errorf("%s: %v", name, err)
		}
		cancel()
	}
}
