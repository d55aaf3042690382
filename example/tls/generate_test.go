// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package tls_test tests the script that creates certificates.
package tls_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// The script creates a CA only if it replaces no Secret with it.
func TestNewCASparesExistingSecrets(t *testing.T) {
	for name, c := range map[string]struct {
		flags     []string
		kubectl   string // what "kubectl get secrets" does
		caKey     bool
		createsCA bool
		says      string
	}{
		"a Secret exists":           {kubectl: "echo secret/etcd-server-tls", says: "these Secrets exist in the namespace test: secret/etcd-server-tls."},
		"two Secrets exist":         {kubectl: "printf 'secret/etcd-peer-tls\nsecret/etcd-server-tls\n'", says: "secret/etcd-peer-tls secret/etcd-server-tls."},
		"no Secret exists":          {kubectl: "true", createsCA: true},
		"kubectl fails":             {kubectl: "exit 1", says: "cannot find out whether the Secrets exist"},
		"it writes no Secret":       {flags: []string{"--no-apply"}, kubectl: "exit 1", createsCA: true},
		"the key of the CA exists":  {kubectl: "exit 1", caKey: true, says: "make the certificate peer"},
		"in the form cert-manager":  {flags: []string{"--form=cert-manager", "--cluster=orders"}, kubectl: `[[ "$*" == *" orders-peer orders-server orders-client "* ]] && echo secret/orders-peer`, says: "secret/orders-peer."},
		"another step without a CA": {flags: []string{"--add-ca"}, kubectl: "true", says: "run without --add-ca first"},
	} {
		t.Run(name, func(t *testing.T) {
			bin, dir := t.TempDir(), t.TempDir()
			called := filepath.Join(bin, "ca-created")
			// The run ends at the first use of openssl.
			program(t, bin, "openssl", `[[ $* != *-x509* ]] || touch `+called+"\nexit 1")
			program(t, bin, "kubectl", `[[ "$1 $2" == "get secrets" ]] || exit 9`+"\n"+c.kubectl)
			if c.caKey {
				if err := os.WriteFile(filepath.Join(dir, "ca.key"), nil, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			script := exec.CommandContext(t.Context(), "./generate.sh", append(c.flags, "--namespace=test", "--dir="+dir)...)
			script.Env = append(os.Environ(), "PATH="+bin+":"+os.Getenv("PATH"), "KUBECTL=kubectl")
			output, err := script.CombinedOutput()
			if err == nil {
				t.Fatalf("the script succeeded without openssl:\n%s", output)
			}
			if !strings.Contains(string(output), c.says) {
				t.Errorf("the output lacks %q:\n%s", c.says, output)
			}
			if _, err := os.Stat(called); (err == nil) != c.createsCA {
				t.Errorf("a CA was created: %t, want %t; the output:\n%s", err == nil, c.createsCA, output)
			}
		})
	}
}

func program(t *testing.T, dir, name, script string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/usr/bin/env bash\n"+script+"\n"), 0o700); err != nil {
		t.Fatal(err)
	}
}
