// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package checkdns

import (
	"bytes"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/etcd-operator/etcd-operator/internal/datadir"
)

// A node that restarts with an empty disk starts the same pod again.
func TestAMemberThatHasServedDoesNotStartWithoutItsData(t *testing.T) {
	args := map[string][]string{
		"a seed":   {"-name=c", "-timeout=20s"},
		"a joiner": {"-name=c", "-timeout=20s", "-initial-cluster=a=http://a,c=http://c", "-peer=http://a"},
	}
	for name, args := range args {
		for _, data := range []bool{true, false} {
			t.Run(name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					dir := t.TempDir()
					if data {
						putWAL(t, dir)
					}
					env := map[string]string{datadir.StartedEnv: "8e9e05c52164694d"}
					cfg, err := Parse(append(args, "-data-dir="+dir), func(key string) string { return env[key] }, &bytes.Buffer{})
					if err != nil {
						t.Fatal(err)
					}
					cfg.Resolver, cfg.Out, cfg.Transport = &dns{answers: []any{"10.0.0.1"}}, &bytes.Buffer{}, peers{"a": knows("a", "c")}
					switch err := Run(t.Context(), cfg); {
					case data && err != nil:
						t.Errorf("with its data: %v", err)
					case !data && (err == nil || !strings.Contains(err.Error(), "member 8e9e05c52164694d has served from this pod before")):
						t.Errorf("without its data: %v", err)
					}
				})
			})
		}
	}
}

// The membership shows which members have started. So the others know, without the operator,
// that this member has lost its data.
func TestAJoinerThatOthersHaveSeenStartDoesNotStartAgain(t *testing.T) {
	for name, answer := range map[string]string{
		"by one URL":   `[{"id":1,"name":"a","peerURLs":["http://a"]},{"id":2,"name":"c","peerURLs":["http://c"]}]`,
		"two of three": `[{"id":1,"name":"a","peerURLs":["http://a"]},{"id":2,"name":"c","peerURLs":["http://c"]},{"id":3,"name":"b","peerURLs":["http://b","http://b2"]}]`,
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				start := time.Now()
				err := Run(t.Context(), Config{
					Name: "c", Timeout: time.Minute, Resolver: &dns{answers: []any{"10.0.0.1"}}, Out: &bytes.Buffer{},
					InitialCluster: expect(t, "a=http://a,c=http://c"), Peers: []string{"http://a"}, DataDir: t.TempDir(),
					Transport: text{"a": answer},
				})
				if err == nil || !strings.Contains(err.Error(), "has started before") {
					t.Errorf("got %v", err)
				}
				if took := time.Since(start); took > time.Second {
					t.Errorf("it waited for %s", took)
				}
			})
		})
	}
}

func TestAMemberWithSeveralURLsIsNotTakenForThisOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		err := Run(t.Context(), Config{
			Name: "c", Timeout: time.Minute, Resolver: &dns{answers: []any{"10.0.0.1"}}, Out: &bytes.Buffer{},
			InitialCluster: expect(t, "a=http://a,a=http://a2,c=http://c"), Peers: []string{"http://a", "http://a2"}, DataDir: t.TempDir(),
			Transport: text{"a": `[{"id":1,"name":"a","peerURLs":["http://a","http://a2"]},{"id":2,"peerURLs":["http://c"]}]`},
		})
		if err != nil {
			t.Error(err)
		}
	})
}

// text maps a peer's host to the text that it answers.
type text map[string]string

func (p text) RoundTrip(req *http.Request) (*http.Response, error) {
	return peers{req.URL.Host: func() (int, any) { return http.StatusOK, raw(p[req.URL.Host]) }}.RoundTrip(req)
}

type raw string

func (r raw) MarshalJSON() ([]byte, error) { return []byte(r), nil }
