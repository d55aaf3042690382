// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os/exec"
	"strings"
	"testing"

	awsconfig "github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"k8s.io/client-go/tools/clientcmd"
)

// set sets the environment of a bait until the test ends.
func set(t *testing.T, address string) {
	t.Helper()
	b := baitFor(t.TempDir(), address)
	if err := b.write(); err != nil {
		t.Fatal(err)
	}
	for name, value := range b.environ {
		t.Setenv(name, value)
	}
}

func TestClientsOfKubernetesAskTheServer(t *testing.T) {
	set(t, "127.0.0.1:1")
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, &clientcmd.ConfigOverrides{}).ClientConfig()
	if err != nil || config.Host != "http://127.0.0.1:1" {
		t.Errorf("they would ask %+v, %v", config, err)
	}
}

func TestClientsOfAmazonAskTheServer(t *testing.T) {
	address, found := start(t)
	set(t, address)
	config, err := awsconfig.LoadDefaultConfig(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	_, err = s3.NewFromConfig(config, func(o *s3.Options) { o.UsePathStyle = true }).ListBuckets(t.Context(), nil)
	if err == nil || !strings.Contains(found.String(), "GET /") {
		t.Errorf("noted %q, error %v", found, err)
	}
}

func TestAShellSetsTheEnvironment(t *testing.T) {
	b := baitFor("/it's home", "127.0.0.1:1")
	out, err := exec.CommandContext(t.Context(), "bash", "-euc", `eval "$0"; echo "$HOME $KUBECONFIG $ETCDCTL_ENDPOINTS"`, b.shell()).Output()
	if want := "/it's home /it's home/.kube/config http://127.0.0.1:1\n"; err != nil || string(out) != want {
		t.Errorf("got %q, %v, want %q", out, err, want)
	}
}
