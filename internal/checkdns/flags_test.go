// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package checkdns

import (
	"bytes"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"
)

func noEnv(string) string { return "" }

func TestParseReadsFlagsAndThePodsAddress(t *testing.T) {
	env := func(key string) string {
		switch key {
		case "MY_POD_IP":
			return "fd00::7"
		case "MEMBER_STARTED":
			return ""
		}
		t.Errorf("asked for %s", key)
		return "?"
	}
	cfg, err := Parse([]string{
		"-name=c.x.ns.svc", "-timeout=0", "-data-dir=/var/etcd/data",
		"-initial-cluster=b=http://b:2380,a=http://a:2380,a=http://a2:2380", "-peer=http://a:2380", "-peer=http://b:2380",
		"-started=/var/check-dns/started", "-peer-cert=/tls/peer.crt", "-peer-key=/tls/peer.key", "-peer-ca=/tls/peer-ca.crt",
	}, env, &bytes.Buffer{})
	if err != nil {
		t.Fatal(err)
	}
	if cfg.Name != "c.x.ns.svc" || cfg.Timeout != 0 || cfg.DataDir != "/var/etcd/data" || cfg.IP != netip.MustParseAddr("fd00::7") {
		t.Errorf("got %+v", cfg)
	}
	if cfg.Started != "/var/check-dns/started" {
		t.Errorf("marker %q", cfg.Started)
	}
	if want := (Certificate{"/tls/peer.crt", "/tls/peer.key", "/tls/peer-ca.crt"}); cfg.Certificate != want {
		t.Errorf("certificate %v, want %v", cfg.Certificate, want)
	}
	if want := []string{"http://a:2380", "http://b:2380"}; !slices.Equal(cfg.Peers, want) {
		t.Errorf("peers %v, want %v", cfg.Peers, want)
	}
	if want := (Membership{"http://a2:2380+http://a:2380", "http://b:2380"}); !slices.Equal(cfg.InitialCluster, want) {
		t.Errorf("initial cluster %v, want %v", cfg.InitialCluster, want)
	}
}

func TestTheTimeoutIsTwoMinutesByDefault(t *testing.T) {
	cfg, err := Parse([]string{"-name=c"}, noEnv, &bytes.Buffer{})
	if err != nil {
		t.Fatal(err)
	}
	if cfg.Timeout != 2*time.Minute {
		t.Errorf("got %s", cfg.Timeout)
	}
}

func TestParseSaysWhatIsWrong(t *testing.T) {
	for args, want := range map[string]string{
		"":                                          "-name is missing",
		"-name=c -timeout=5":                        "invalid value",
		"-name=c -require-data":                     "-require-data needs -data-dir",
		"-name=c -started=/s":                       "-started needs -data-dir",
		"-name=c -timeout=-5s":                      "negative",
		"-name=c -peer=http://a:2380":               "need each other",
		"-name=c -initial-cluster=a=b":              "need each other",
		"-name=c -peer=a:2380":                      "not of the form http://host:2380",
		"-name=c -peer=http://a -initial-cluster=a": "not of the form name=url",
		"-name=c -peer=http://a -initial-cluster=a=http://a,=http://":     "not of the form name=url",
		"-name=c -peer=http://a -initial-cluster=a=a":                     "not of the form http://host:2380",
		"-name=c -peer=http://a -initial-cluster=a=http://a -peer-cert=x": "-peer-cert, -peer-key and -peer-ca need each other",
		"-name=c -peer-cert=x -peer-key=y -peer-ca=z":                     "of no use without -peer",
		"-name=c now": `unexpected argument "now"`,
		"-verbose":    "not defined",
	} {
		var out bytes.Buffer
		_, err := Parse(strings.Fields(args), noEnv, &out)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want %q in it", args, err, want)
		}
		if !strings.Contains(out.String(), "Usage of check-dns") || !strings.Contains(out.String(), want) {
			t.Errorf("%q: usage or reason was not printed: %s", args, out.String())
		}
	}
	broken := func(name string) string { return map[string]string{PodIPEnv: "10.0.0"}[name] }
	if _, err := Parse([]string{"-name=c"}, broken, &bytes.Buffer{}); err == nil || !strings.Contains(err.Error(), "MY_POD_IP") {
		t.Errorf("a broken MY_POD_IP: error %v", err)
	}
}
