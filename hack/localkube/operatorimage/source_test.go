// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package operatorimage

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestDockerfileBuildsTheSameImage(t *testing.T) {
	b, err := os.ReadFile(filepath.Join("..", "..", "..", "Dockerfile"))
	if err != nil {
		t.Fatal(err)
	}
	wanted := []string{
		"USER 65532:65532", "/etc/ssl/certs/ca-certificates.crt", "install -d -m 1777 /image/tmp",
		versionPackage + ".Version=", versionPackage + ".GitSHA=", "CGO_ENABLED=0", "-trimpath",
		`CMD ["/usr/local/bin/etcd-operator"]`,
	}
	for dir, name := range Programs {
		wanted = append(wanted, "cmd/"+dir+"/) name="+name+" ")
	}
	for _, w := range wanted {
		if !strings.Contains(string(b), w) {
			t.Errorf("the Dockerfile lacks %q", w)
		}
	}
}

func TestVersionsOfReleases(t *testing.T) {
	for _, version := range []string{"v1.0.0", "v1.20.3", "v1.0.0-rc.1", "v1.0.0-dev", "v1.0.0-rc-2.x"} {
		if err := CheckVersion(version); err != nil {
			t.Errorf("%s: %v", version, err)
		}
	}
	for _, version := range []string{"", "1.0.0", "v1.0", "v01.0.0", "v1.0.0-", "v1.0.0-rc.", "v1.0.0+build", "v1.0.0 -X main.a=b", "v1.0.0/.."} {
		if err := CheckVersion(version); err == nil || !strings.Contains(err.Error(), "want something like v1.2.3") {
			t.Errorf("%q: got %v, want an error", version, err)
		}
	}
}
