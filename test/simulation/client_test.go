// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// client writes and reads through the client Service, and keeps its own record.
type client struct {
	w     *world
	name  string
	tried int // the last value that it has tried to write
	acked int // the last value whose write was acknowledged
	busy  bool
	no    int
	last  time.Time // of its last success
	since time.Time // of its first failure after that; zero: none
	done  int
}

const clientTimeout = 3 * time.Second

// act makes one request.
func (c *client) act() {
	if c.busy {
		return
	}
	w := c.w
	if !w.opened {
		_, w.opened = w.api.shelves["services"].objects[storedKey(namespace, clusterName+"-client")]
	}
	if !w.opened && w.imports == nil { // clients have no address before
		c.failed()
		return
	}
	var ready []*podRun
	for _, pod := range w.api.pods() {
		if pod.DeletionTimestamp == nil && slices.ContainsFunc(pod.Status.Conditions, func(k corev1.PodCondition) bool {
			return k.Type == corev1.PodReady && k.Status == corev1.ConditionTrue
		}) {
			if !w.leadsTo(pod) {
				continue
			}
			if r := w.addresses[pod.Status.PodIP]; r != nil {
				ready = append(ready, r)
			} else {
				ready = append(ready, nil)
			}
		}
	}
	ready = append(ready, w.imports.serving()...) // the client knows both sides
	c.no++
	no := c.no
	if len(ready) == 0 {
		c.failed()
		return
	}
	r := ready[w.life.number(c.name, no)%uint64(len(ready))]
	if r == nil || !r.node.up || r.proc == nil || r.proc.stopped || !r.proc.serving {
		c.failed()
		return
	}
	m := r.proc
	c.busy = true
	over := false
	end := func(ok bool) {
		if over {
			return
		}
		over, c.busy = true, false
		if ok {
			c.last, c.since = time.Now(), time.Time{}
			c.done++
		} else {
			c.failed()
		}
	}
	w.after(clientTimeout, func() { end(false) })
	before := c.acked
	if no%3 == 0 {
		m.confirm(func(err error) {
			if err != nil || over {
				end(false)
				return
			}
			if v := m.machine.data[c.name]; (v < before || v > c.tried) && !w.rolledBack {
				w.fail("an acknowledged write is lost: %s had written %s=%d, and reads %d from %s of cluster %x", c.name, c.name, before, v, m.disk.name, m.clusterID)
			}
			end(true)
		})
		return
	}
	c.tried++
	value := c.tried
	m.guard(func() {
		m.propose(payload{write: &write{c.name, value}, then: func(err error) {
			if h := w.histories[m.clusterID]; err == nil && !h.replaced {
				c.acked = max(c.acked, value)
				h.served = true
			}
			end(err == nil)
		}})
	})
}

func (c *client) failed() {
	if c.since.IsZero() {
		c.since = time.Now()
	}
}

func (w *world) startClients() {
	for i := range 2 {
		c := &client{w: w, name: fmt.Sprintf("client-%d", i+1), last: time.Now()}
		w.clients = append(w.clients, c)
		w.every(time.Duration(i*333)*time.Millisecond, time.Second, c.act)
	}
}
