// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/etcd-operator/etcd-operator/internal/plugin/tunnel"
	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/etcd"
)

// Ports of a member.
const (
	clientPort  = "2379"
	metricsPort = "2381"
)

// Endpoint is where a member serves clients, as the tunnel reaches it.
func Endpoint(obj *api.EtcdCluster, pod string) etcd.Endpoint {
	scheme := "http"
	if obj.Spec.ClientTLS() {
		scheme = "https"
	}
	host := fmt.Sprintf("%s.%s.%s.svc%s", pod, obj.Name, obj.Namespace, obj.Spec.ClusterDomain())
	return etcd.Endpoint{URL: scheme + "://" + net.JoinHostPort(host, clientPort), IP: pod}
}

// Running reports whether the etcd container of a pod runs.
func Running(pod *corev1.Pod) bool {
	for _, s := range pod.Status.ContainerStatuses {
		if s.Name == "etcd" {
			return s.State.Running != nil
		}
	}
	return false
}

// ask asks all members that run at once, and then for the membership.
func (o *Observer) ask(ctx context.Context, c *Cluster) {
	var asking sync.WaitGroup
	used := map[etcd.Endpoint]bool{}
	conns := map[string]*etcd.Conn{}
	for i := range c.Pods {
		pod := &c.Pods[i]
		if !Running(pod) {
			continue
		}
		endpoint := Endpoint(c.Object, pod.Name)
		used[endpoint] = true
		conn, err := o.client.Conn(endpoint)
		c.Answers = append(c.Answers, Answer{Pod: pod.Name, Err: err, Commits: err})
		conns[pod.Name] = conn
	}
	o.client.Retain(used)
	for i := range c.Answers {
		if answer := &c.Answers[i]; answer.Err == nil {
			asking.Go(func() { o.askMember(ctx, answer, conns[answer.Pod]) })
		}
	}
	asking.Wait()
	c.NotAsked = unconnected(c.Answers)
	// A member that hangs has used up all the time for the questions.
	listed, cancelList := context.WithTimeout(ctx, answerTime)
	defer cancelList()
	o.membership(listed, c, conns)
}

// askMember asks one member all questions at once.
func (o *Observer) askMember(ctx context.Context, answer *Answer, conn *etcd.Conn) {
	patient, cancelPatient := context.WithTimeout(ctx, o.statusTime)
	defer cancelPatient()
	ctx, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	// gRPC keeps no more of an error than its text, and tries again for long. So the
	// API server is asked for a connection first.
	try, err := o.dial(patient, net.JoinHostPort(answer.Pod, clientPort))
	if err != nil {
		answer.Err, answer.Commits = err, err
		return
	}
	try.Close()
	var asking sync.WaitGroup
	asking.Go(func() { answer.Metrics, _ = o.metrics(ctx, answer.Pod) })
	asking.Go(func() { answer.Status, answer.Err = conn.Status(patient) })
	asking.Go(func() { _, answer.Commits = conn.Commits(ctx) })
	asking.Wait()
}

// Unreached reports whether the API server has not connected the plugin to the member. This says nothing about
// the member.
func (a *Answer) Unreached() bool {
	return apierrors.IsForbidden(a.Err) || errors.Is(a.Err, tunnel.ErrNoConnection)
}

// unconnected returns why the API server has connected the user to no member, or why no member
// has let the user in. This says nothing about the members.
func unconnected(answers []Answer) error {
	var reason error
	for _, a := range answers {
		switch {
		case etcd.AsksForUser(a.Err):
			reason = errors.New("etcd has authentication enabled, and spec.auth names no user: see doc/user/auth.md")
		case etcd.RefusesUser(a.Err):
			reason = errors.New("etcd refuses the user in the Secret of spec.auth: see doc/user/auth.md")
		case a.Unreached():
			reason = a.Err
		default:
			return nil
		}
	}
	return reason
}

// membership asks those that confirm reads, then the others for what they remember.
func (o *Observer) membership(ctx context.Context, c *Cluster, conns map[string]*etcd.Conn) {
	for _, a := range c.Answers {
		if a.Err != nil || a.Commits != nil {
			continue
		}
		if members, err := conns[a.Pod].Members(ctx); err == nil {
			c.Members, c.Agreed = members, true
			return
		}
	}
	var best *Answer
	for i := range c.Answers {
		if a := &c.Answers[i]; a.Err == nil && (best == nil || a.Status.RaftIndex > best.Status.RaftIndex) {
			best = a
		}
	}
	if best == nil {
		return
	}
	if members, err := conns[best.Pod].LocalMembers(ctx); err == nil {
		c.Members = members
	}
}

// metrics reads the metrics listener, which is plain HTTP.
func (o *Observer) metrics(ctx context.Context, pod string) (*Metrics, error) {
	transport := &http.Transport{
		DialContext:       func(ctx context.Context, _, address string) (net.Conn, error) { return o.dial(ctx, address) },
		DisableKeepAlives: true,
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+net.JoinHostPort(pod, metricsPort)+"/metrics", nil)
	if err != nil {
		return nil, err
	}
	resp, err := transport.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("metrics of %s: %s", pod, resp.Status)
	}
	return ParseMetrics(io.LimitReader(resp.Body, 16<<20))
}
