//go:build stores

// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package importsource_test

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/etcd-operator/etcd-operator/pkg/etcd"
	"github.com/etcd-operator/etcd-operator/pkg/finding"
	"github.com/etcd-operator/etcd-operator/pkg/importsource"
	"github.com/etcd-operator/etcd-operator/test/members"
)

func sourceOf(cluster *members.Cluster) *importsource.Source {
	s := &importsource.Source{Dial: func(ctx context.Context, address string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "tcp", address)
	}}
	for _, m := range cluster.Members {
		s.Endpoints = append(s.Endpoints, etcd.Endpoint{URL: m.URL})
	}
	return s
}

// obstacles are the checks that fail. The peer URLs of the members are on the loopback, which
// is always an obstacle.
func obstacles(t *testing.T, cluster *members.Cluster, f importsource.Facts) []string {
	t.Helper()
	version, err := etcd.ParseVersion(cluster.Release.Version)
	must(t, err)
	var checks []string
	findings := importsource.Judge(f, importsource.Target{Version: version, Domain: "orders.default.svc", Quota: 8 << 30, Volume: 8 << 30})
	for _, x := range findings {
		if x.Level == finding.Failure && x.Check != "peers" {
			checks = append(checks, x.Check)
		}
	}
	t.Logf("%+v", findings)
	return slices.Compact(checks)
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// state is what a check must not change. It leaves out the term: on a busy machine, members elect
// another leader by themselves.
func state(t *testing.T, client *clientv3.Client) any {
	t.Helper()
	list, err := client.MemberList(t.Context())
	must(t, err)
	status, err := client.Status(t.Context(), client.Endpoints()[0])
	must(t, err)
	return [2]any{list.Members, status.Header.Revision}
}

func TestALookChangesNothingAndFindsWhatIsWrong(t *testing.T) {
	for _, r := range members.Releases(t) {
		t.Run(r.Version, func(t *testing.T) {
			t.Parallel()
			cluster := r.Start(t, members.Options{Size: 3})
			client := cluster.Client(t)
			members.Put(t, client, "a", "1")
			cluster.WaitServing(t) // each has what was written: digests are of the lowest revision
			before := state(t, client)
			f := sourceOf(cluster).Look(t.Context())
			if got := obstacles(t, cluster, f); len(got) > 0 {
				t.Errorf("obstacles of a healthy etcd: %q", got)
			}
			for _, a := range f.Answers {
				if a.NoDigest != nil || a.Digest != f.Answers[0].Digest || a.Digest.Keys == 0 {
					t.Errorf("data of %s: %+v, %v", a.Endpoint, a.Digest, a.NoDigest)
				}
			}
			if f.NoClusterVersion != nil || f.NotSearched != nil || f.Authentication || f.APIServer != importsource.NoAPIServer {
				t.Errorf("facts: %+v", f)
			}
			if after := state(t, client); !reflect.DeepEqual(after, before) {
				t.Errorf("the look changed %v to %v", before, after)
			}

			members.Put(t, client, "/registry/namespaces/kube-system", "k8s\x00 uid-1 ")
			s := sourceOf(cluster)
			for uid, want := range map[string]importsource.APIServer{"uid-1": importsource.OwnAPIServer, "uid-2": importsource.OtherAPIServer, "": importsource.OtherAPIServer} {
				if s.Own = importsource.MarkOfNamespace(uid); s.Look(t.Context()).APIServer != want {
					t.Errorf("with the UID %q, want the API server %d", uid, want)
				}
			}
			mark := importsource.MarkOfCluster("default", "orders", "uid-3")
			for value, want := range map[string]importsource.APIServer{
				"k8s\x00 uid-3 ":           importsource.OwnAPIServer,
				"k8s\x00 uid-4 ":           importsource.OtherAPIServer,
				"k8s:enc:aescbc:v1:key1:?": importsource.OwnAPIServer,
			} {
				members.Put(t, client, mark.Key, value)
				if s.Own = mark; s.Look(t.Context()).APIServer != want {
					t.Errorf("with the value %q, want the API server %d", value, want)
				}
			}

			cluster.Members[2].Kill(t)
			members.Await(t, "a leader serves", func(ctx context.Context) error {
				_, err := client.Get(ctx, "a")
				return err
			})
			got := obstacles(t, cluster, sourceOf(cluster).Look(t.Context()))
			if !slices.ContainsFunc(got, func(check string) bool { return strings.HasPrefix(check, "endpoint ") }) {
				t.Errorf("obstacles with a dead member: %q", got)
			}
		})
	}
}

func TestALookAtAnEtcdThatAsksForUsers(t *testing.T) {
	cluster := members.ReleaseOf(t, "3.6").Start(t, members.Options{Size: 3})
	ctx := t.Context()
	s := sourceOf(cluster)
	client := etcd.NewClient(nil)
	t.Cleanup(client.Close)
	conn, err := client.Conn(s.Endpoints[0])
	must(t, err)
	must(t, conn.EnableAuth(ctx, "first"))
	members.Await(t, "the second member asks for a user", func(ctx context.Context) error {
		if f := s.Look(ctx); !etcd.AsksForUser(f.Answers[1].Err) {
			return fmt.Errorf("without a user: %+v", f)
		}
		return nil
	})
	s.User = etcd.Credentials{Username: "root", Password: "first"}
	f := s.Look(ctx)
	if got := obstacles(t, cluster, f); len(got) > 0 || !f.Authentication || f.NotSearched != nil {
		t.Errorf("with a user: obstacles %q, %+v", got, f)
	}
}

// A token of a login shows whether others need the source's key.
func TestALookFindsTokensThatNeedAKey(t *testing.T) {
	key := filepath.Join(t.TempDir(), "jwt.key")
	private, err := rsa.GenerateKey(rand.Reader, 2048)
	must(t, err)
	must(t, os.WriteFile(key, pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(private)}), 0o600))
	for algorithm, flags := range map[string][]string{"RS256": {"--auth-token=jwt,priv-key=" + key + ",sign-method=RS256,ttl=10m"}, "": nil} {
		cluster := members.ReleaseOf(t, "3.6").Start(t, members.Options{Size: 1, Flags: flags})
		s := sourceOf(cluster)
		client := etcd.NewClient(nil)
		t.Cleanup(client.Close)
		conn, err := client.Conn(s.Endpoints[0])
		must(t, err)
		must(t, conn.EnableAuth(t.Context(), "first"))
		s.User = etcd.Credentials{Username: "root", Password: "first"}
		f := s.Look(t.Context())
		if want := (etcd.Token{Known: true, Algorithm: algorithm}); f.Token != want {
			t.Errorf("%q: token %+v, want %+v", flags, f.Token, want)
		}
		if got, want := slices.Contains(obstacles(t, cluster, f), "authentication"), algorithm != ""; got != want {
			t.Errorf("%q is an obstacle: %t", flags, got)
		}
	}
}

func TestALookMeasuresHowFastASnapshotComes(t *testing.T) {
	cluster := members.ReleaseOf(t, "3.5").Start(t, members.Options{Size: 3})
	for i := range 20 {
		members.Put(t, cluster.Client(t), fmt.Sprint("key-", i), strings.Repeat("x", 200_000))
	}
	cluster.WaitServing(t) // each has what was written: any of them may send the snapshot
	s := sourceOf(cluster)
	if f := s.Look(t.Context()); f.Yield != (importsource.Yield{}) {
		t.Errorf("without a copy: %+v", f.Yield)
	}
	s.Copies = true
	f := s.Look(t.Context())
	expected, how, err := f.WriteStop()
	if f.Yield.Bytes < 4_000_000 || f.Yield.Took <= 0 || expected < 10*time.Second || how == "" || err != nil {
		t.Errorf("%+v (%v): %v, %s, %v", f.Yield, f.NotYielded, expected, how, err)
	}
}

func TestALookAtTwoClusters(t *testing.T) {
	r := members.ReleaseOf(t, "3.6")
	one, other := r.Start(t, members.Options{Size: 1}), r.Start(t, members.Options{Size: 1})
	s := sourceOf(one)
	s.Endpoints = append(s.Endpoints, sourceOf(other).Endpoints...)
	if got := obstacles(t, one, s.Look(t.Context())); !slices.Equal(got, []string{"cluster"}) {
		t.Errorf("obstacles: %q", got)
	}
}

func TestALookWithACertificateFindsALearner(t *testing.T) {
	pki := members.NewTLS(t)
	secure := members.ReleaseOf(t, "3.6").Start(t, members.Options{Size: 1, TLS: pki})
	s := sourceOf(secure)
	s.TLS = pki.ClientConfig(t, "operator")
	f := s.Look(t.Context())
	if got := obstacles(t, secure, f); len(got) > 0 || f.NoClusterVersion != nil {
		t.Errorf("obstacles with TLS: %q, %+v", got, f)
	}
	cluster := members.ReleaseOf(t, "3.7").Start(t, members.Options{Size: 1})
	cluster.Members = append(cluster.Members, cluster.JoinLearner(t, cluster.Client(t)))
	members.Await(t, "the learner is found", func(ctx context.Context) error {
		if got := obstacles(t, cluster, sourceOf(cluster).Look(ctx)); !slices.Equal(got, []string{"members"}) {
			return fmt.Errorf("obstacles: %q", got)
		}
		return nil
	})
}
