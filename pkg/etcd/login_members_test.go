//go:build stores

// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package etcd_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/etcd-operator/etcd-operator/pkg/etcd"
	"github.com/etcd-operator/etcd-operator/test/members"
)

// enableAuth creates the user root and makes etcd ask for users.
func enableAuth(t *testing.T, admin *clientv3.Client, password string) {
	t.Helper()
	must(t, errors.Join(
		second(admin.UserAdd(t.Context(), "root", password)),
		second(admin.UserGrantRole(t.Context(), "root", "root")),
		second(admin.UserAdd(t.Context(), "app", "secret")),
		second(admin.AuthEnable(t.Context())),
	))
}

func second[T any](_ T, err error) error { return err }

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// connect returns connections to all members as a user.
func connect(t *testing.T, c *members.Cluster, user etcd.Credentials) []*etcd.Conn {
	t.Helper()
	client := etcd.NewClient(nil)
	t.Cleanup(client.Close)
	client.SetCredentials(user)
	var conns []*etcd.Conn
	for _, m := range c.Members {
		conn, err := client.Conn(etcd.Endpoint{URL: m.URL})
		must(t, err)
		conns = append(conns, conn)
	}
	return conns
}

// uses makes the requests of a pass.
func uses(ctx context.Context, conn *etcd.Conn) error {
	_, status := conn.Status(ctx)
	_, list := conn.Members(ctx)
	_, local := conn.LocalMembers(ctx)
	p, commits := conn.Commits(ctx)
	return errors.Join(status, list, local, commits, p.Refusal)
}

func TestAUserLogsIn(t *testing.T) {
	for _, r := range members.Releases(t) {
		if r.Minor() == "3.4" {
			continue
		}
		t.Run(r.Version, func(t *testing.T) {
			t.Parallel()
			c := r.Start(t, members.Options{Size: 3})
			admin := c.Client(t)
			root := etcd.Credentials{Username: "root", Password: "first"}
			before := connect(t, c, root)
			anonymous := connect(t, c, etcd.Credentials{})
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			for i := range before {
				must(t, uses(ctx, before[i]))
			}
			enableAuth(t, admin, root.Password)
			for i := range before {
				if err := uses(ctx, before[i]); err != nil {
					t.Errorf("member %d, with a connection from before: %v", i, err)
				}
				if _, err := anonymous[i].Status(ctx); !etcd.AsksForUser(err) {
					t.Errorf("member %d, without a user: %v", i, err)
				}
			}
			if _, err := connect(t, c, etcd.Credentials{Username: "root", Password: "wrong"})[0].Status(ctx); !etcd.RefusesUser(err) {
				t.Errorf("with a wrong password: %v", err)
			}
			if err := before[0].Disarm(ctx, etcd.Alarm{MemberID: 1, Type: etcd.AlarmNoSpace}); err != nil {
				t.Errorf("an alarm is disarmed: %v", err)
			}
			if _, err := connect(t, c, etcd.Credentials{Username: "app", Password: "secret"})[0].AddMember(ctx, "http://127.0.0.1:1", true); !etcd.LacksRole(err) {
				t.Errorf("a user without the role root adds a member: %v", err)
			}

			// Any change of the users ends all tokens.
			logged, err := clientv3.New(clientv3.Config{Endpoints: []string{c.Members[0].URL}, Username: "root", Password: root.Password})
			must(t, err)
			defer logged.Close()
			must(t, second(logged.UserAdd(ctx, "another", "x")))
			for i := range before {
				if err := uses(ctx, before[i]); err != nil {
					t.Errorf("member %d, after a change of the users: %v", i, err)
				}
			}
			// A member that starts again knows no token.
			c.Members[2].Kill(t)
			c.Members[2].Start(t)
			members.Await(t, "the member serves its user", func(ctx context.Context) error { return uses(ctx, before[2]) })

			must(t, second(logged.AuthDisable(ctx)))
			for i := range before {
				if err := uses(ctx, before[i]); err != nil {
					t.Errorf("member %d, after the end of authentication: %v", i, err)
				}
			}
		})
	}
}

// A learner issues no tokens, and answers those who have one from another member.
func TestAUserOfALearnerLogsInElsewhere(t *testing.T) {
	c := members.ReleaseOf(t, "3.6").Start(t, members.Options{Size: 1})
	admin := c.Client(t)
	enableAuth(t, admin, "first")
	logged, err := clientv3.New(clientv3.Config{Endpoints: []string{c.Members[0].URL}, Username: "root", Password: "first"})
	must(t, err)
	defer logged.Close()
	learner := c.JoinLearner(t, logged)
	client := etcd.NewClient(nil)
	defer client.Close()
	client.SetCredentials(etcd.Credentials{Username: "root", Password: "first"})
	first, err := client.Conn(etcd.Endpoint{URL: c.Members[0].URL})
	must(t, err)
	second, err := client.Conn(etcd.Endpoint{URL: learner.URL})
	must(t, err)
	members.Await(t, "the learner answers", func(ctx context.Context) error {
		if _, err := first.Status(ctx); err != nil {
			return err
		}
		status, err := second.Status(ctx)
		if err == nil && !status.Learner {
			return fmt.Errorf("it is no learner: %+v", status)
		}
		return err
	})
}

// Each attempt with a wrong password costs etcd computing time.
func TestARefusedUserIsNotTriedAgainAtOnce(t *testing.T) {
	if text := fmt.Sprintf("%v %+v %#v %s", etcd.Credentials{Username: "root", Password: "first"}, etcd.Credentials{Password: "first"}, etcd.Credentials{Password: "first"}, &etcd.Credentials{Password: "first"}); strings.Contains(text, "first") {
		t.Errorf("the password is in %q", text)
	}
	c := members.ReleaseOf(t, "3.7").Start(t, members.Options{Size: 1})
	enableAuth(t, c.Client(t), "first")
	conn := connect(t, c, etcd.Credentials{Username: "root", Password: "wrong"})[0]
	start := time.Now()
	for range 100 {
		if _, err := conn.Status(t.Context()); !etcd.RefusesUser(err) {
			t.Fatal(err)
		}
	}
	took := time.Since(start)
	if n, most := logins(t, c.Members[0]), 1+int(took/(15*time.Second)); n < 1 || n > most {
		t.Errorf("100 requests in %s make %d logins, want 1 to %d", took, n, most)
	}
}

// logins is how often somebody has tried to log in to a member.
func logins(t *testing.T, m *members.Member) int {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+m.Metrics+"/metrics", http.NoBody)
	must(t, err)
	resp, err := http.DefaultClient.Do(req)
	must(t, err)
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	must(t, err)
	sum := 0
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(line, "grpc_server_handled_total{") && strings.Contains(line, `grpc_method="Authenticate"`) {
			n, err := strconv.Atoi(strings.TrimSpace(line[strings.LastIndex(line, " ")+1:]))
			must(t, err)
			sum += n
		}
	}
	return sum
}

// The requests are those of the operator, and it may repeat each of them.
func TestAuthenticationIsEnabledChangedAndDisabled(t *testing.T) {
	for _, r := range members.Releases(t) {
		if r.Minor() == "3.4" {
			continue
		}
		t.Run(r.Version, func(t *testing.T) {
			t.Parallel()
			c := r.Start(t, members.Options{Size: 3})
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			first := etcd.Credentials{Username: etcd.Root, Password: "first"}
			conns := connect(t, c, first)
			is := func(conn *etcd.Conn, want bool) {
				t.Helper()
				if enabled, err := conn.AuthEnabled(ctx); err != nil || enabled != want {
					t.Fatalf("authentication is enabled: %t, %v; want %t", enabled, err, want)
				}
			}
			is(conns[0], false)
			for i := range 2 {
				must(t, conns[i].EnableAuth(ctx, first.Password))
				is(conns[i], true)
			}
			second := etcd.Credentials{Username: etcd.Root, Password: "second"}
			must(t, conns[1].ChangePassword(ctx, second))
			// A member ends a token only when it has applied the change, and Status asks no other one.
			members.Await(t, "the former password is refused", func(ctx context.Context) error {
				_, err := conns[0].Status(ctx)
				if etcd.RefusesUser(err) {
					return nil
				}
				return errors.Join(errors.New("etcd answers a user with the former password"), err)
			})
			conns = connect(t, c, second)
			is(conns[2], true)
			for i := range conns {
				must(t, uses(ctx, conns[i]))
				must(t, conns[i].DisableAuth(ctx))
			}
			is(conns[0], false)
			// A password that somebody else has set before is no obstacle.
			must(t, conns[0].EnableAuth(ctx, "third"))
			must(t, uses(ctx, connect(t, c, etcd.Credentials{Username: etcd.Root, Password: "third"})[1]))
		})
	}
}

// With TLS, etcd takes the name in the certificate as the user. It shows everybody its status, so the first
// request that needs the role root may be any.
func TestACertificateThatNamesNobodyLeavesTheUserToLogIn(t *testing.T) {
	for _, r := range members.Releases(t) {
		if r.Minor() == "3.4" {
			continue
		}
		t.Run(r.Version, func(t *testing.T) {
			t.Parallel()
			authority := members.NewTLS(t)
			c := r.Start(t, members.Options{TLS: authority})
			enableAuth(t, c.Client(t), "first")
			connect := func(user etcd.Credentials) *etcd.Conn {
				client := etcd.NewClient(authority.ClientConfig(t, "operator"))
				t.Cleanup(client.Close)
				client.SetCredentials(user)
				conn, err := client.Conn(etcd.Endpoint{URL: c.Members[0].URL})
				must(t, err)
				return conn
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			for name, first := range map[string]func(*etcd.Conn) error{
				"hash":   func(conn *etcd.Conn) error { return second(conn.HashKV(ctx, 0)) },
				"remove": func(conn *etcd.Conn) error { return conn.RemoveMember(ctx, 77) },
				"disarm": func(conn *etcd.Conn) error { return conn.Disarm(ctx, etcd.Alarm{MemberID: 1, Type: etcd.AlarmNoSpace}) },
			} {
				must(t, second(connect(etcd.Credentials{}).Status(ctx)))
				if err := first(connect(etcd.Credentials{})); !etcd.AsksForUser(err) || !etcd.IsDenied(err) {
					t.Errorf("%s without a user: %v", name, err)
				}
				if err := first(connect(etcd.Credentials{Username: "root", Password: "first"})); err != nil {
					t.Errorf("%s: %v", name, err)
				}
				if err := first(connect(etcd.Credentials{Username: "root", Password: "wrong"})); !etcd.RefusesUser(err) {
					t.Errorf("%s with a wrong password: %v", name, err)
				}
			}
		})
	}
}
