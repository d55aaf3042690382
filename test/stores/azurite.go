// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package stores

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"fmt"
	"os/exec"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blockblob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"

	"github.com/etcd-operator/etcd-operator/test/environment"
)

// AzuriteServer is an Azurite, which implements the API of Azure Blob Storage.
type AzuriteServer struct {
	Server
	// Account and Key, in base 64, are the only accepted ones.
	Account, Key string
	// Service is the URL of the account's blob service.
	Service string
}

// Azurite starts an Azurite without containers.
func Azurite(t testing.TB, options Options) *AzuriteServer {
	t.Helper()
	key := make([]byte, 64)
	_, _ = rand.Read(key)
	a := &AzuriteServer{Account: "testaccount", Key: base64.StdEncoding.EncodeToString(key)}
	script := program(t, "azurite")
	start(t, &a.Server, options, func(ctx context.Context) *exec.Cmd {
		cmd := exec.CommandContext(ctx, "node", script, "--blobHost", a.ip, "--blobPort", a.port, "--location", a.Data,
			"--disableProductStyleUrl", "--skipApiVersionCheck", "--disableTelemetry")
		cmd.Dir = a.Data
		cmd.Env = environment.Bare("AZURITE_ACCOUNTS=" + a.Account + ":" + a.Key)
		return cmd
	})
	a.Service = a.Endpoint + "/" + a.Account
	return a
}

// CreateContainer makes a container.
func (a *AzuriteServer) CreateContainer(t testing.TB, name string) {
	t.Helper()
	if _, err := a.client(t).CreateContainer(t.Context(), name, nil); err != nil {
		t.Fatalf("create the container %s: %v", name, err)
	}
}

// Uncommitted returns the blocks of a container that were staged and not committed, as the
// blob's name and their number.
func (a *AzuriteServer) Uncommitted(t testing.TB, name string) []string {
	t.Helper()
	in := a.client(t).ServiceClient().NewContainerClient(name)
	var found []string
	pages := in.NewListBlobsFlatPager(&container.ListBlobsFlatOptions{Include: container.ListBlobsInclude{UncommittedBlobs: true}})
	for pages.More() {
		page, err := pages.NextPage(t.Context())
		if err != nil {
			t.Fatalf("list the blobs of container %s: %v", name, err)
		}
		for _, blob := range page.Segment.BlobItems {
			blocks, err := in.NewBlockBlobClient(*blob.Name).GetBlockList(t.Context(), blockblob.BlockListTypeUncommitted, nil)
			if err != nil {
				t.Fatalf("list the blocks of blob %s: %v", *blob.Name, err)
			}
			if n := len(blocks.UncommittedBlocks); n > 0 {
				found = append(found, fmt.Sprintf("%s: %d blocks", *blob.Name, n))
			}
		}
	}
	return found
}

func (a *AzuriteServer) client(t testing.TB) *azblob.Client {
	t.Helper()
	credential, err := azblob.NewSharedKeyCredential(a.Account, a.Key)
	if err != nil {
		t.Fatal(err)
	}
	client, err := azblob.NewClientWithSharedKeyCredential(a.Service, credential, nil)
	if err != nil {
		t.Fatal(err)
	}
	return client
}
