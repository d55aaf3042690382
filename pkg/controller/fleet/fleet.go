// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package fleet manages all objects of one kind in an operator's scope: each
// has a goroutine of its own, which an informer's handler starts, feeds and stops.
package fleet

import (
	"context"
	"fmt"
	"runtime/debug"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/sirupsen/logrus"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/record"
	"k8s.io/utils/clock"

	"github.com/etcd-operator/etcd-operator/pkg/fair"
)

// restartDelay is how long an object whose goroutine panicked is left alone.
const restartDelay = 10 * time.Second

// Object is a pointer to an object of the API server.
type Object interface {
	metav1.Object
	runtime.Object
}

// Runner manages one object.
type Runner[T Object] interface {
	// Run manages the object until ctx ends.
	Run(ctx context.Context)
	// Update hands over a newer state of the object and never blocks.
	Update(obj T)
	// Wake means that something of the object changed and never blocks.
	Wake()
}

// Config is what a Fleet works with.
type Config[T Object] struct {
	// Noun is what people call an object of the kind, such as cluster.
	Noun string
	// New makes the Runner of an object.
	New      func(T) (Runner[T], error)
	Recorder record.EventRecorder
	Log      *logrus.Entry
	Clock    clock.Clock
	// Counted is called when objects come, change and go.
	Counted Counted[T]
}

// Counted are the moments that the metrics of a controller count.
type Counted[T Object] struct {
	Created, Deleted func()
	Updated          func(before, after T)
}

// Fleet is the objects that an operator manages, each with its goroutine.
// Its methods never block and may be called concurrently, but for Set and Remove,
// which the one informer of the kind calls.
type Fleet[T Object] struct {
	cfg        Config[T]
	goroutines sync.WaitGroup

	mu    sync.Mutex
	byKey map[types.NamespacedName]*keeper[T]
	byUID map[types.UID]*keeper[T]
	// ended holds for each key the end of the goroutine that was started last.
	ended map[types.NamespacedName]chan struct{}
}

// keeper is one object of the fleet.
type keeper[T Object] struct {
	runner Runner[T] // replaced when its goroutine panicked
	obj    T
	stop   context.CancelFunc
}

// New returns an empty Fleet.
func New[T Object](cfg Config[T]) *Fleet[T] {
	return &Fleet[T]{
		cfg:   cfg,
		byKey: map[types.NamespacedName]*keeper[T]{},
		byUID: map[types.UID]*keeper[T]{},
		ended: map[types.NamespacedName]chan struct{}{},
	}
}

// unmanaged is the reason of events about objects that are not managed.
func (f *Fleet[T]) unmanaged() string {
	return strings.ToUpper(f.cfg.Noun[:1]) + f.cfg.Noun[1:] + " Not Managed"
}

// Set manages an object from now on, or hands a newer state of it to its
// Runner. An object with another UID under the same name is another one: the
// old one's goroutine ends before the new one's begins.
func (f *Fleet[T]) Set(ctx context.Context, obj T) {
	key := KeyOf(obj)
	f.mu.Lock()
	k := f.byKey[key]
	f.mu.Unlock()
	if k != nil && k.obj.GetUID() != obj.GetUID() {
		f.Remove(key)
		k = nil
	}
	if k == nil {
		f.start(ctx, key, obj)
		return
	}
	f.mu.Lock()
	before, runner := k.obj, k.runner
	k.obj = obj
	f.mu.Unlock()
	if f.cfg.Counted.Updated != nil {
		f.cfg.Counted.Updated(before, obj)
	}
	runner.Update(obj)
}

func (f *Fleet[T]) start(ctx context.Context, key types.NamespacedName, obj T) {
	runner, err := f.make(obj)
	if err != nil {
		f.cfg.Recorder.Eventf(obj, corev1.EventTypeWarning, f.unmanaged(), "The operator can't manage this %s: %v", f.cfg.Noun, err)
		f.cfg.Log.WithField(f.cfg.Noun, key).WithError(err).Errorf("can't manage this %s", f.cfg.Noun)
		return
	}
	ctx, stop := context.WithCancel(fair.In(ctx, key.Namespace))
	k := &keeper[T]{runner: runner, obj: obj, stop: stop}
	ended := make(chan struct{})

	f.mu.Lock()
	before := f.ended[key]
	f.ended[key] = ended
	f.byKey[key], f.byUID[obj.GetUID()] = k, k
	f.mu.Unlock()
	f.count(f.cfg.Counted.Created)

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
func (f *Fleet[T]) forget(key types.NamespacedName, ended chan struct{}) {
	close(ended)
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.ended[key] == ended {
		delete(f.ended, key)
	}
}

// Remove stops managing an object, if it did.
func (f *Fleet[T]) Remove(key types.NamespacedName) {
	f.mu.Lock()
	k := f.byKey[key]
	if k != nil {
		delete(f.byKey, key)
		delete(f.byUID, k.obj.GetUID())
	}
	f.mu.Unlock()
	if k != nil {
		k.stop()
		f.count(f.cfg.Counted.Deleted)
	}
}

// keep runs a Runner until ctx ends. A bug that makes one goroutine panic must not
// take the operator away from all others; that object's Runner begins
// again, from nothing but its object.
func (f *Fleet[T]) keep(ctx context.Context, key types.NamespacedName, k *keeper[T]) {
	runner := k.runner // nobody else writes it
	for {
		err := runRecovered(ctx, runner)
		if err == nil {
			return
		}
		for err != nil {
			f.cfg.Log.WithField(f.cfg.Noun, key).WithError(err).Errorf("this is a bug of the operator, report it; the %s is left alone for %s", f.cfg.Noun, restartDelay)
			f.cfg.Recorder.Eventf(f.objectOf(k), corev1.EventTypeWarning, f.unmanaged(), "A bug ended the operator's work on this %s: it begins again in %s, and until then the status does not change; report what the operator's log says", f.cfg.Noun, restartDelay)
			timer := f.cfg.Clock.NewTimer(restartDelay)
			select {
			case <-ctx.Done():
				timer.Stop()
				return
			case <-timer.C():
			}
			runner, err = f.renew(k)
		}
	}
}

func runRecovered[T Object](ctx context.Context, runner Runner[T]) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("panic: %v\n%s", r, debug.Stack())
		}
	}()
	runner.Run(ctx)
	return nil
}

func (f *Fleet[T]) objectOf(k *keeper[T]) T {
	f.mu.Lock()
	defer f.mu.Unlock()
	return k.obj
}

// renew gives a keeper a Runner without memory. Under the lock, so that an object
// that Set hands over meanwhile reaches it.
func (f *Fleet[T]) renew(k *keeper[T]) (Runner[T], error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	runner, err := f.make(k.obj)
	if err != nil {
		return nil, err
	}
	k.runner = runner
	return runner, nil
}

func (f *Fleet[T]) make(obj T) (r Runner[T], err error) {
	defer func() {
		if p := recover(); p != nil {
			r, err = nil, fmt.Errorf("panic: %v", p)
		}
	}()
	return f.cfg.New(obj)
}

func (f *Fleet[T]) count(counted func()) {
	if counted != nil {
		counted()
	}
}

// WakeUID wakes the Runner of an object, and reports whether it is one of the fleet.
func (f *Fleet[T]) WakeUID(uid types.UID) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.byUID[uid].wake()
}

// WakeKey wakes the Runner of an object, and reports whether it is one of the fleet.
func (f *Fleet[T]) WakeKey(key types.NamespacedName) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.byKey[key].wake()
}

func (k *keeper[T]) wake() bool {
	if k == nil {
		return false
	}
	k.runner.Wake()
	return true
}

// Has reports whether the object with the UID is one of the fleet.
func (f *Fleet[T]) Has(uid types.UID) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.byUID[uid] != nil
}

// Size is the number of objects.
func (f *Fleet[T]) Size() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.byKey)
}

// RegisterSize registers a gauge of the number of objects. It is asked for when it is
// scraped: a gauge that is counted up and down drifts. The gauge is absent while ready
// returns an error: a 0 of a standby, or of an operator that waits for something, would
// look like an operator at work to the alerts of those that are gone.
func (f *Fleet[T]) RegisterSize(reg prometheus.Registerer, opts prometheus.GaugeOpts, ready func() error) error {
	err := reg.Register(whileReady{prometheus.NewGaugeFunc(opts, func() float64 { return float64(f.Size()) }), ready})
	if err != nil {
		return fmt.Errorf("register the metric of the number of %ss: %w", f.cfg.Noun, err)
	}
	return nil
}

// whileReady is a Collector that collects nothing while ready returns an error.
type whileReady struct {
	prometheus.Collector
	ready func() error
}

func (w whileReady) Collect(metrics chan<- prometheus.Metric) {
	if w.ready() == nil {
		w.Collector.Collect(metrics)
	}
}

// Wait returns when all goroutines have ended; the contexts
// that Set was given must have.
func (f *Fleet[T]) Wait() { f.goroutines.Wait() }
