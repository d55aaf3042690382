// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package environment

import (
	"os"
	"slices"
	"testing"
)

func TestServersGetWhatIsSetForThemAlone(t *testing.T) {
	t.Setenv("PATH", "/bin")
	t.Setenv("TMPDIR", "/tmp/here")
	t.Setenv("ETCD_NAME", "production")
	if got, want := Bare("A=1"), []string{"PATH=/bin", "TMPDIR=/tmp/here", "A=1"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestVariablesAreForgottenUntilTheTestEnds(t *testing.T) {
	t.Setenv("CLOUD_KEY", "production")
	t.Setenv("CLOUDY", "yes")
	t.Run("test", func(t *testing.T) {
		Forget(t, "CLOUD_", "OTHER_")
		if value, found := os.LookupEnv("CLOUD_KEY"); found {
			t.Errorf("CLOUD_KEY is still %q", value)
		}
		if os.Getenv("CLOUDY") != "yes" {
			t.Error("CLOUDY is forgotten too")
		}
	})
	if got := os.Getenv("CLOUD_KEY"); got != "production" {
		t.Errorf("afterwards CLOUD_KEY is %q", got)
	}
}
