// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"context"
	"errors"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	corev1 "k8s.io/api/core/v1"

	"github.com/etcd-operator/etcd-operator/test/workload"
)

// StartWriter writes through the client Service until the writer is stopped.
func (c *Cluster) StartWriter() *workload.Writer {
	w := workload.Start(c.n.t.Context(), workload.Config{
		Prefix: "writer/",
		// Many tests share two cores. On slow ones, a member of three took 7 % of a core with 12 writes a
		// second, and 1.4 % at rest.
		Clients: 2,
		Pace:    500 * time.Millisecond,
		Dial:    func(context.Context) (workload.Conn, error) { return c.Client() },
	})
	c.n.t.Cleanup(func() { w.Stop() })
	Wait(c.n.t, "first acknowledged write", Settle, func(context.Context) error {
		if w.Acked() == 0 {
			return errors.New("no write was acknowledged")
		}
		return nil
	})
	return w
}

// VerifyWrites stops a writer and fails the test if the cluster has lost an acknowledged
// write: it reads through the Service, and from each member alone.
func (c *Cluster) VerifyWrites(w *workload.Writer) *workload.History {
	c.n.t.Helper()
	history := w.Stop()
	c.n.t.Logf(note+"writer: %v", history)
	ctx, cancel := context.WithTimeout(c.n.t.Context(), Settle)
	defer cancel()
	var client *clientv3.Client
	// To log in costs etcd much CPU time, of which a busy machine has little.
	Wait(c.n.t, "a client that verifies the writes", Settle, func(context.Context) (err error) {
		client, err = c.Client()
		return err
	})
	defer client.Close()
	readers := []workload.Reader{workload.Linearizable("client service", client)}
	for _, pod := range c.livePods() {
		member, err := c.etcd.to(pod)
		if err != nil {
			c.n.t.Fatalf("verify writes: %v", err)
		}
		readers = append(readers, workload.Serializable(pod.Name, member))
	}
	if err := history.Verify(ctx, readers...); err != nil {
		c.n.t.Errorf("verify writes: %v", err)
	}
	return history
}

// Reader reads from one member only.
func (c *Cluster) Reader(pod *corev1.Pod) workload.Reader {
	c.n.t.Helper()
	member, err := c.etcd.to(pod)
	if err != nil {
		c.n.t.Fatalf("read from a member: %v", err)
	}
	return workload.Serializable(pod.Name, member)
}
