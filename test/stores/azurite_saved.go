// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package stores

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// saveTime bounds the time until Azurite has saved its state; it does so every 5 seconds.
const saveTime = 30 * time.Second

// AwaitSaved waits until a blob would survive the server's death. Unlike Azure, Azurite
// confirms data that are only in memory.
func (a *AzuriteServer) AwaitSaved(t testing.TB, blob string) {
	t.Helper()
	ticker := time.NewTicker(50 * time.Millisecond)
	defer ticker.Stop()
	deadline := time.NewTimer(saveTime)
	defer deadline.Stop()
	for {
		err := a.saved(blob)
		if err == nil {
			return
		}
		select {
		case <-ticker.C:
		case <-deadline.C:
			t.Errorf("Azurite has not saved the blob %s in %v: %v", blob, saveTime, err)
			return
		}
	}
}

// saved reports whether the files of Azurite's database contain a blob and the place of its
// content.
func (a *AzuriteServer) saved(blob string) error {
	blobs, err := a.collection("__azurite_db_blob__.json", "$BLOBS_COLLECTION$")
	if err != nil {
		return err
	}
	for _, b := range blobs {
		if b.Name != blob || !b.IsCommitted {
			continue
		}
		extents, err := a.collection("__azurite_db_blob_extent__.json", "$EXTENTS_COLLECTION$")
		if err != nil {
			return err
		}
		for _, e := range extents {
			if e.ID == b.Persistency.ID {
				return nil
			}
		}
		return fmt.Errorf("the extent %s is not saved", b.Persistency.ID)
	}
	return fmt.Errorf("it is not saved")
}

// row is an entry in a collection of blobs, or of extents of their contents.
type row struct {
	ID          string `json:"id"`
	Name        string `json:"name"`
	IsCommitted bool   `json:"isCommitted"`
	Persistency struct {
		ID string `json:"id"`
	} `json:"persistency"`
}

func (a *AzuriteServer) collection(file, name string) ([]row, error) {
	text, err := os.ReadFile(filepath.Join(a.Data, file))
	if err != nil {
		return nil, err
	}
	var database struct {
		Collections []struct {
			Name string `json:"name"`
			Data []row  `json:"data"`
		} `json:"collections"`
	}
	if err := json.Unmarshal(text, &database); err != nil {
		return nil, err
	}
	for _, c := range database.Collections {
		if c.Name == name {
			return c.Data, nil
		}
	}
	return nil, fmt.Errorf("%s has no collection %s", file, name)
}
