// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/etcd-operator/etcd-operator/pkg/etcd"
	"github.com/etcd-operator/etcd-operator/pkg/usersecret"
)

const (
	clientPort  = 2379
	dialTimeout = 2 * time.Second
	callTimeout = 2 * time.Second
)

// A Member is an etcd member, according to the membership and its own status.
type Member struct {
	Name    string
	ID      uint64
	Learner bool
	PeerURL string
	// The member's own report.
	Version   string
	Leader    uint64
	ClusterID uint64
	Revision  int64
}

// Members asks a quorum for the membership and then each pod for its status. It fails if there
// is no quorum, a pod does not answer, or pods and members differ.
func (c *Cluster) Members(ctx context.Context) ([]Member, error) {
	pods := slices.DeleteFunc(c.Pods(), func(pod *corev1.Pod) bool { return pod.DeletionTimestamp != nil })
	if len(pods) == 0 {
		return nil, errors.New("there are no pods")
	}
	client, err := c.etcd.to(pods[0])
	if err != nil {
		return nil, err
	}
	listCtx, cancel := context.WithTimeout(ctx, callTimeout) // each member has as long for its status
	defer cancel()
	list, err := client.MemberList(listCtx)
	if err != nil {
		return nil, fmt.Errorf("member list through %s: %w", pods[0].Name, err)
	}
	var members []Member
	for _, m := range list.Members {
		member := Member{Name: m.Name, ID: m.ID, Learner: m.IsLearner}
		if len(m.PeerURLs) > 0 {
			member.PeerURL = m.PeerURLs[0]
		}
		members = append(members, member)
	}
	slices.SortFunc(members, func(a, b Member) int { return cmp.Compare(a.Name, b.Name) })
	names := podNames(pods)
	if !slices.EqualFunc(members, names, func(m Member, name string) bool { return m.Name == name }) {
		return members, fmt.Errorf("members are %s, pods are %v", memberNames(members), names)
	}
	for i, pod := range pods {
		status, err := c.memberStatus(ctx, pod)
		if err != nil {
			return members, err
		}
		m := &members[i]
		if status.Header.MemberId != m.ID {
			return members, fmt.Errorf("%s says that its ID is %x, the membership says %x", m.Name, status.Header.MemberId, m.ID)
		}
		m.Version, m.Leader, m.ClusterID, m.Revision = status.Version, status.Leader, status.Header.ClusterId, status.Header.Revision
	}
	return members, nil
}

func (c *Cluster) memberStatus(ctx context.Context, pod *corev1.Pod) (*etcdserverpb.StatusResponse, error) {
	client, err := c.etcd.to(pod)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	// The client's own Status would dial a connection for each call: a busy machine takes long for a
	// TLS handshake.
	status, err := etcdserverpb.NewMaintenanceClient(client.ActiveConnection()).Status(ctx, &etcdserverpb.StatusRequest{})
	if err != nil {
		return nil, fmt.Errorf("status of %s: %w", pod.Name, err)
	}
	return status, nil
}

// VotingMembers asks a quorum how many members have a vote.
func (c *Cluster) VotingMembers() int {
	c.n.t.Helper()
	voters := 0
	Wait(c.n.t, "the membership", Settle, func(ctx context.Context) error {
		client, err := c.Client()
		if err != nil {
			return err
		}
		defer client.Close()
		ctx, cancel := context.WithTimeout(ctx, callTimeout)
		defer cancel()
		list, err := client.MemberList(ctx)
		if err != nil {
			return err
		}
		voters = 0
		for _, m := range list.Members {
			if !m.IsLearner {
				voters++
			}
		}
		return nil
	})
	return voters
}

// Leader returns the leader's pod.
func (c *Cluster) Leader() *corev1.Pod {
	c.n.t.Helper()
	var found *corev1.Pod
	c.waitRoles("a leader", func(leader *corev1.Pod, _ []*corev1.Pod) bool {
		found = leader
		return leader != nil
	})
	return found
}

// Follower returns the first ready pod that does not lead.
func (c *Cluster) Follower() *corev1.Pod {
	c.n.t.Helper()
	var found *corev1.Pod
	c.waitRoles("a leader and a follower", func(leader *corev1.Pod, followers []*corev1.Pod) bool {
		if leader == nil || len(followers) == 0 {
			return false
		}
		found = followers[0]
		return true
	})
	return found
}

// waitRoles waits until the ready pods have the wanted leader and followers.
func (c *Cluster) waitRoles(what string, wanted func(leader *corev1.Pod, followers []*corev1.Pod) bool) {
	c.n.t.Helper()
	Wait(c.n.t, what, Settle, func(ctx context.Context) error {
		var leader *corev1.Pod
		var followers []*corev1.Pod
		for _, pod := range c.livePods() {
			if !Ready(pod) {
				continue
			}
			status, err := c.memberStatus(ctx, pod)
			if err != nil {
				return err
			}
			if status.Leader == status.Header.MemberId {
				leader = pod
			} else if !status.IsLearner {
				followers = append(followers, pod)
			}
		}
		if !wanted(leader, followers) {
			return fmt.Errorf("of the ready pods, one leads: %t; %v follow", leader != nil, podNames(followers))
		}
		return nil
	})
}

// Client connects to the client Service. The caller closes the client.
func (c *Cluster) Client() (*clientv3.Client, error) { return c.client() }

// ClientOf is Client for an etcd cluster with this ID: a call fails if another one answers. After the loss
// of a node, its pods get other addresses. For a moment, a Service may lead to the pod of another cluster,
// from which only TLS keeps a client.
func (c *Cluster) ClientOf(id uint64) (*clientv3.Client, error) {
	return c.client(grpc.WithChainUnaryInterceptor(func(ctx context.Context, method string, req, reply any, conn *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
		err := invoke(ctx, method, req, reply, conn, opts...)
		if of, has := reply.(interface {
			GetHeader() *etcdserverpb.ResponseHeader
		}); err == nil && has && of.GetHeader().GetClusterId() != id {
			return fmt.Errorf("%s: the etcd cluster %x answers in place of %x", method, of.GetHeader().GetClusterId(), id)
		}
		return err
	}))
}

func (c *Cluster) client(options ...grpc.DialOption) (*clientv3.Client, error) {
	service := c.n.Service(c.Name + "-client")
	if service == nil {
		return nil, fmt.Errorf("there is no service %s-client", c.Name)
	}
	user, err := c.user()
	if err != nil {
		return nil, err
	}
	return dialAs(user, service.Spec.ClusterIP, c.security(c.Name+"-client."+c.n.Name+".svc"), options...)
}

// user is the user in the Secret of spec.auth, at the creation. Without that, it is zero.
func (c *Cluster) user() (etcd.Credentials, error) {
	if c.userSecret == "" {
		return etcd.Credentials{}, nil
	}
	ctx, cancel := context.WithTimeout(c.n.t.Context(), callTimeout)
	defer cancel()
	secret, err := c.n.Kube.CoreV1().Secrets(c.n.Name).Get(ctx, c.userSecret, metav1.GetOptions{})
	if err != nil {
		return etcd.Credentials{}, fmt.Errorf("user of etcd: %w", err)
	}
	return usersecret.Of(secret)
}

// MakeRoom defragments each member's database, and disarms the alarm, so that a cluster at its
// quota accepts writes again.
func (c *Cluster) MakeRoom(ctx context.Context) error {
	var client *clientv3.Client
	for _, pod := range c.livePods() {
		var err error
		if client, err = c.etcd.to(pod); err != nil {
			return err
		}
		if _, err := client.Defragment(ctx, client.Endpoints()[0]); err != nil {
			return fmt.Errorf("defragment %s: %w", pod.Name, err)
		}
	}
	if client == nil {
		return errors.New("there are no pods")
	}
	if _, err := client.AlarmDisarm(ctx, &clientv3.AlarmMember{}); err != nil {
		return fmt.Errorf("disarm the alarms: %w", err)
	}
	return nil
}

// Put writes a key through the client Service.
func (c *Cluster) Put(key, value string) {
	c.n.t.Helper()
	Wait(c.n.t, "put "+key, Settle, func(ctx context.Context) error {
		client, err := c.Client()
		if err != nil {
			return err
		}
		defer client.Close()
		ctx, cancel := context.WithTimeout(ctx, callTimeout)
		defer cancel()
		_, err = client.Put(ctx, key, value)
		return err
	})
}

// Get reads a key through the client Service; "" if it is absent.
func (c *Cluster) Get(key string) string {
	c.n.t.Helper()
	var value string
	Wait(c.n.t, "get "+key, Settle, func(ctx context.Context) error {
		client, err := c.Client()
		if err != nil {
			return err
		}
		defer client.Close()
		ctx, cancel := context.WithTimeout(ctx, callTimeout)
		defer cancel()
		got, err := client.Get(ctx, key)
		if err == nil && len(got.Kvs) == 1 {
			value = string(got.Kvs[0].Value)
		}
		return err
	})
	return value
}

// Reconnect makes the next requests to members use new connections. etcd's client logs in
// again if etcd says that it knows no user, but not if etcd knows one by the certificate.
func (c *Cluster) Reconnect() { c.etcd.close() }

// connections keeps one connection to each pod, as each user.
type connections struct {
	security func(*corev1.Pod) *tls.Config
	user     func() (etcd.Credentials, error)
	mu       sync.Mutex
	clients  map[string]*clientv3.Client
}

func newConnections(security func(*corev1.Pod) *tls.Config, user func() (etcd.Credentials, error)) *connections {
	return &connections{security: security, user: user, clients: map[string]*clientv3.Client{}}
}

func (c *connections) to(pod *corev1.Pod) (*clientv3.Client, error) {
	if pod.Status.PodIP == "" {
		return nil, fmt.Errorf("pod %s has no address", pod.Name)
	}
	user, err := c.user()
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	key := strings.Join([]string{string(pod.UID), pod.Status.PodIP, user.Username, user.Password}, " ")
	if client := c.clients[key]; client != nil {
		return client, nil
	}
	client, err := dialAs(user, pod.Status.PodIP, c.security(pod))
	if err != nil {
		return nil, fmt.Errorf("connect to %s: %w", pod.Name, err)
	}
	c.clients[key] = client
	return client, nil
}

func (c *connections) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for key, client := range c.clients {
		_ = client.Close()
		delete(c.clients, key)
	}
}

// dial connects to an address; security is nil for plain text.
func dial(host string, security *tls.Config) (*clientv3.Client, error) {
	return dialAs(etcd.Credentials{}, host, security)
}

// dialAs is dial as a user. The zero user is for an etcd that asks for none.
func dialAs(user etcd.Credentials, host string, security *tls.Config, options ...grpc.DialOption) (*clientv3.Client, error) {
	scheme, timeout := "http://", dialTimeout
	if security != nil {
		scheme = "https://"
	}
	if user != (etcd.Credentials{}) {
		timeout += etcd.LoginTimeout // a busy machine compares a password for seconds
	}
	return clientv3.New(clientv3.Config{
		Endpoints:   []string{scheme + net.JoinHostPort(host, strconv.Itoa(clientPort))},
		TLS:         security,
		Username:    user.Username,
		Password:    user.Password,
		DialTimeout: timeout,
		DialOptions: options,
		Logger:      zap.NewNop(),
	})
}

func memberNames(members []Member) []string {
	names := make([]string, len(members))
	for i, m := range members {
		if names[i] = m.Name; m.Name == "" {
			names[i] = "(not started: " + m.PeerURL + ")"
		}
		if m.Learner {
			names[i] += " (learner)"
		}
	}
	return names
}
