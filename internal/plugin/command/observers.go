// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"sync"

	"k8s.io/apimachinery/pkg/types"

	"github.com/etcd-operator/etcd-operator/internal/plugin/access"
	"github.com/etcd-operator/etcd-operator/internal/plugin/observe"
	"github.com/etcd-operator/etcd-operator/internal/plugin/summary"
)

// sameTime is how many clusters are observed at the same time.
const sameTime = 8

// observers observe several EtcdClusters, each over connections of its own.
type observers struct {
	app    *App
	access *access.Access
	// keep is whether there are further looks. Otherwise, the connections of one cluster end before those of
	// the next one begin: a thousand clusters have thousands.
	keep bool
	all  map[types.NamespacedName]*watched
}

// watched is an EtcdCluster with its last observation.
type watched struct {
	mu       sync.Mutex // a user may name a cluster twice
	observer *observe.Observer
	end      func()
	last     *observe.Cluster
}

func (app *App) observers(a *access.Access, keep bool) *observers {
	return &observers{app: app, access: a, keep: keep, all: map[types.NamespacedName]*watched{}}
}

func (o *observers) open(name types.NamespacedName) *watched {
	in := o.access.In(name.Namespace)
	dial, end := o.app.Dial(in)
	return &watched{observer: observe.New(in, dial, o.app.Clock.Now), end: end}
}

func (w *watched) close() {
	w.observer.Close()
	w.end()
}

func (o *observers) close() {
	for _, w := range o.all {
		w.close()
	}
}

// seen is the summary of one EtcdCluster, or the reason why there is none.
type seen struct {
	summary *summary.Summary
	err     error
}

// look observes clusters, several at the same time.
func (o *observers) look(ctx context.Context, names []types.NamespacedName) []seen {
	list := make([]seen, len(names))
	slots := make(chan struct{}, sameTime)
	var looking sync.WaitGroup
	for i, name := range names {
		if o.keep && o.all[name] == nil {
			o.all[name] = o.open(name)
		}
		w := o.all[name]
		looking.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			if !o.keep {
				w = o.open(name)
				defer w.close()
			}
			w.mu.Lock()
			defer w.mu.Unlock()
			c, err := w.observer.Observe(ctx, name.Name)
			if err != nil {
				list[i].err = err
				return
			}
			list[i].summary = summary.Of(c, w.last)
			w.last = c
		})
	}
	looking.Wait()
	return list
}
