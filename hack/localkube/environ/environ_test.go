// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package environ

import (
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/etcd-operator/etcd-operator/hack/localkube/instance"
)

// production is the environment of a person who works on other clusters.
var production = []string{
	"PATH=/usr/bin", "HOME=/home/somebody", "TERM=xterm", "EDITOR=vi",
	"KUBECONFIG=/home/somebody/production", "KUBERC=/home/somebody/kuberc", "KUBECACHEDIR=/home/somebody/cache",
	"KUBECTL=kubectl --context=production", "KUBERNETES_MASTER=https://production", "KUBERNETES_SERVICE_HOST=10.0.0.1",
	"KUBE_EDITOR=nano", "HELM_KUBEAPISERVER=https://production", "ETCDCTL_ENDPOINTS=https://production:2379",
	"ETCDCTL_$(touch injected)=", "ETCD_NAME=production", "GOARCH=s390x", "GOWORK=/home/somebody/go.work",
}

func local(t *testing.T, environ []string) Changes {
	t.Helper()
	i, err := instance.FromEnv(func(name string) string {
		return map[string]string{"LOCALKUBE_STATE": "/var/lib/it's", "LOCALKUBE_NETWORK": "10.96.0.0/16"}[name]
	})
	if err != nil {
		t.Fatal(err)
	}
	return Local(i, "/cache", environ)
}

var wantLocal = map[string]string{
	"PATH": "/usr/bin", "HOME": "/home/somebody", "TERM": "xterm", "EDITOR": "vi", "KUBE_EDITOR": "nano",
	"KUBECONFIG": "/var/lib/it's/kubeconfig", "KUBERC": "off", "KUBECACHEDIR": "/cache/kubectl",
	"KUBECTL": "", "KUBERNETES_MASTER": "", "KUBERNETES_SERVICE_HOST": "", "HELM_KUBEAPISERVER": "", "ETCDCTL_ENDPOINTS": "",
}

func TestKubectlWorksOnTheInstanceWhateverTheEnvironmentSays(t *testing.T) {
	got := local(t, production).Apply(production)
	for name, value := range wantLocal {
		var want []string
		if value != "" {
			want = []string{name + "=" + value}
		}
		if is := named(got, name); !slices.Equal(is, want) {
			t.Errorf("%s: got %q, want %q", name, is, want)
		}
	}
}

func TestAShellMakesTheSameChanges(t *testing.T) {
	for name, want := range wantLocal {
		shell := exec.CommandContext(t.Context(), "/bin/sh", "-euc", `eval "$0"; eval "printf %s \"\${$1-}\""`, local(t, production).Shell(), name)
		shell.Env = production
		if out, err := shell.CombinedOutput(); err != nil || string(out) != want {
			t.Errorf("%s: got %q, %v, want %q", name, out, err, want)
		}
	}
}

func TestTheLocalNetworkIsReachedWithoutAProxy(t *testing.T) {
	for _, tt := range []struct {
		environ []string
		want    string // of NO_PROXY and no_proxy; empty: not set
	}{
		{[]string{"NO_PROXY=example.com"}, ""},
		{[]string{"HTTPS_PROXY="}, ""},
		{[]string{"HTTPS_PROXY=http://proxy"}, "10.96.0.0/16"},
		{[]string{"http_proxy=http://proxy", "no_proxy=example.com"}, "example.com,10.96.0.0/16"},
		{[]string{"ALL_PROXY=http://proxy", "NO_PROXY=a,b", "no_proxy=c"}, "a,b,10.96.0.0/16"},
		{[]string{"HTTP_PROXY=http://proxy", "NO_PROXY=10.96.0.0/16,a"}, "10.96.0.0/16,a"},
	} {
		changes := local(t, tt.environ)
		for _, name := range []string{"NO_PROXY", "no_proxy"} {
			var want []string
			if tt.want != "" {
				want = []string{name + "=" + tt.want}
			}
			if got := named(changes.Set, name); !slices.Equal(got, want) {
				t.Errorf("%q: got %q, want %q", tt.environ, got, want)
			}
		}
	}
}

func TestTheClustersProgramsGetNothingOfThePerson(t *testing.T) {
	if got, want := Bare(production), []string{"PATH=/usr/bin", "HOME=/"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestBuildsAreForTheArchitectureTheyAreKeptFor(t *testing.T) {
	got := Go(production, "arm64", "GOTMPDIR=/tmp/x")
	for name, want := range map[string]string{"GOARCH": "arm64", "GOWORK": "off", "GOTMPDIR": "/tmp/x", "PATH": "/usr/bin"} {
		if is := named(got, name); !slices.Equal(is, []string{name + "=" + want}) {
			t.Errorf("%s: got %q, want %s", name, is, want)
		}
	}
}

// named are the variables of that name.
func named(environ []string, name string) []string {
	return slices.DeleteFunc(slices.Clone(environ), func(variable string) bool { return !strings.HasPrefix(variable, name+"=") })
}
