// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"fmt"
	"runtime/debug"
	"sync"
	"time"

	"github.com/sirupsen/logrus"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/record"
	"k8s.io/utils/clock"

	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

// restartDelay is how long a cluster whose goroutine panicked is left alone.
const restartDelay = 10 * time.Second

// Cluster is what the controller needs of a cluster.Cluster.
type Cluster interface {
	// Run takes care of the cluster until ctx ends.
	Run(ctx context.Context)
	// Update hands over a newer object and never blocks.
	Update(obj *api.EtcdCluster)
	// Wake tells that something of the cluster changed and never blocks.
	Wake()
}

// fleet is the clusters that the operator takes care of, each with its goroutine.
// Its methods never block and may be called concurrently, but for set and remove,
// which the one informer of EtcdClusters calls.
type fleet struct {
	newCluster func(*api.EtcdCluster) (Cluster, error)
	recorder   record.EventRecorder
	metrics    *metrics
	log        *logrus.Entry
	clock      clock.Clock
	goroutines sync.WaitGroup

	mu    sync.Mutex
	byKey map[types.NamespacedName]*keeper
	byUID map[types.UID]*keeper
	// ended holds for each key the end of the goroutine that was started last.
	ended map[types.NamespacedName]chan struct{}
}

// keeper is one cluster of the fleet.
type keeper struct {
	cluster Cluster // replaced when its goroutine panicked
	obj     *api.EtcdCluster
	stop    context.CancelFunc
}

func newFleet(log *logrus.Entry, c clock.Clock) *fleet {
	return &fleet{
		log: log, clock: c,
		byKey: map[types.NamespacedName]*keeper{},
		byUID: map[types.UID]*keeper{},
		ended: map[types.NamespacedName]chan struct{}{},
	}
}

// set takes care of an object from now on, or hands a newer state of it to its
// cluster. An object with another UID under the same name is another cluster: the
// old one's goroutine ends before the new one's begins.
func (f *fleet) set(ctx context.Context, obj *api.EtcdCluster) {
	key := keyOf(obj)
	f.mu.Lock()
	k := f.byKey[key]
	f.mu.Unlock()
	if k != nil && k.obj.UID != obj.UID {
		f.remove(key)
		k = nil
	}
	if k == nil {
		f.start(ctx, key, obj)
		return
	}
	f.mu.Lock()
	before, cluster := k.obj, k.cluster
	k.obj = obj
	f.mu.Unlock()
	if before.Generation != obj.Generation {
		f.metrics.modified.Inc()
	}
	if before.Status.Phase != api.ClusterPhaseFailed && obj.Status.Phase == api.ClusterPhaseFailed {
		f.metrics.failed.Inc()
	}
	cluster.Update(obj)
}

func (f *fleet) start(ctx context.Context, key types.NamespacedName, obj *api.EtcdCluster) {
	cluster, err := f.make(obj)
	if err != nil {
		f.recorder.Eventf(obj, corev1.EventTypeWarning, "Cluster Not Managed", "The operator can't take care of this cluster: %v", err)
		f.log.WithField("cluster", key).WithError(err).Error("can't take care of this cluster")
		return
	}
	ctx, stop := context.WithCancel(ctx)
	k := &keeper{cluster: cluster, obj: obj, stop: stop}
	ended := make(chan struct{})

	f.mu.Lock()
	before := f.ended[key]
	f.ended[key] = ended
	f.byKey[key], f.byUID[obj.UID] = k, k
	f.mu.Unlock()
	f.metrics.created.Inc()

	f.goroutines.Go(func() {
		defer f.forget(key, ended)
		defer stop()
		if before != nil {
			<-before
		}
		f.keep(ctx, key, k)
	})
}

// forget notes that the goroutine of key ended.
func (f *fleet) forget(key types.NamespacedName, ended chan struct{}) {
	close(ended)
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.ended[key] == ended {
		delete(f.ended, key)
	}
}

// remove stops taking care of a cluster, if it did.
func (f *fleet) remove(key types.NamespacedName) {
	f.mu.Lock()
	k := f.byKey[key]
	if k != nil {
		delete(f.byKey, key)
		delete(f.byUID, k.obj.UID)
	}
	f.mu.Unlock()
	if k != nil {
		k.stop()
		f.metrics.deleted.Inc()
	}
}

// keep runs a cluster until ctx ends. A bug that makes one cluster's goroutine
// panic must not take the operator away from all others; that cluster begins
// anew, from nothing but its object.
func (f *fleet) keep(ctx context.Context, key types.NamespacedName, k *keeper) {
	cluster := k.cluster // nobody else writes it
	for {
		err := runRecovered(ctx, cluster)
		if err == nil {
			return
		}
		for err != nil {
			f.log.WithField("cluster", key).WithError(err).Errorf("this is a bug of the operator, please report it; the cluster is left alone for %s", restartDelay)
			f.recorder.Eventf(f.objectOf(k), corev1.EventTypeWarning, "Cluster Not Managed", "A bug ended the operator's work on this cluster: it begins anew in %s, and until then the status stands still; please report what the operator's log says", restartDelay)
			timer := f.clock.NewTimer(restartDelay)
			select {
			case <-ctx.Done():
				timer.Stop()
				return
			case <-timer.C():
			}
			cluster, err = f.renew(k)
		}
	}
}

func runRecovered(ctx context.Context, c Cluster) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("panic: %v\n%s", r, debug.Stack())
		}
	}()
	c.Run(ctx)
	return nil
}

func (f *fleet) objectOf(k *keeper) *api.EtcdCluster {
	f.mu.Lock()
	defer f.mu.Unlock()
	return k.obj
}

// renew gives a keeper a cluster without memory. Under the lock, so that an object
// that set hands over meanwhile reaches it.
func (f *fleet) renew(k *keeper) (Cluster, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	cluster, err := f.make(k.obj)
	if err != nil {
		return nil, err
	}
	k.cluster = cluster
	return cluster, nil
}

func (f *fleet) make(obj *api.EtcdCluster) (c Cluster, err error) {
	defer func() {
		if r := recover(); r != nil {
			c, err = nil, fmt.Errorf("panic: %v", r)
		}
	}()
	return f.newCluster(obj)
}

// wakeUID starts a pass of a cluster, and tells whether it is one of the fleet.
func (f *fleet) wakeUID(uid types.UID) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.byUID[uid].wake()
}

func (f *fleet) wakeKey(key types.NamespacedName) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.byKey[key].wake()
}

func (k *keeper) wake() bool {
	if k == nil {
		return false
	}
	k.cluster.Wake()
	return true
}

func (f *fleet) has(uid types.UID) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.byUID[uid] != nil
}

func (f *fleet) size() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.byKey)
}

// wait returns when all goroutines have ended; the context that set was given
// must have.
func (f *fleet) wait() { f.goroutines.Wait() }
