// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/sirupsen/logrus"
	corev1 "k8s.io/api/core/v1"
	apiextensions "k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/record"
	"k8s.io/utils/clock"

	"github.com/etcd-operator/etcd-operator/internal/leader"
	"github.com/etcd-operator/etcd-operator/pkg/cluster"
	"github.com/etcd-operator/etcd-operator/pkg/controller"
	"github.com/etcd-operator/etcd-operator/pkg/generated/clientset/versioned"
	"github.com/etcd-operator/etcd-operator/pkg/generated/clientset/versioned/scheme"
)

// operator is one process of an operator.
type operator struct {
	w      *world
	name   string
	place  string
	kin    *[]*operator // all processes of its program so far
	no     int          // of it among them
	again  func()       // starts its successor
	ended  bool         // later effects of it do not count
	frozen bool
	leads  func() bool
	cancel context.CancelFunc
	dead   chan struct{} // closed when it ends
	done   chan struct{}
	err    error
	seen   map[types.UID]bool   // the pods that it has got from the API server
	asked  map[string]time.Time // when it last asked for an object by its name
}

// clockOf is the clock of an operator, which may differ from the API server's.
type clockOf struct {
	clock.RealClock
	ahead time.Duration
}

func (c clockOf) Now() time.Time                  { return c.RealClock.Now().Add(c.ahead) }
func (c clockOf) Since(t time.Time) time.Duration { return c.Now().Sub(t) }

// ahead returns how far an operator's clock is ahead of the API server's.
func (w *world) ahead(name string) time.Duration {
	if !w.life.chance(0.25, "clock", name) {
		return 0
	}
	return w.life.between(-10*time.Minute, 10*time.Minute, "ahead", name)
}

// tools are what a program works with.
type tools struct {
	kube     kubernetes.Interface
	crds     apiextensions.Interface
	etcds    versioned.Interface
	dynamic  dynamic.Interface
	recorder record.EventRecorder
	logger   *logrus.Entry
	clock    clockOf
}

// program is what a process runs.
type program struct {
	component string // of its events; also the name of its Lease
	elects    bool
	make      func(o *operator, t tools) (interface{ Run(context.Context) error }, error)
}

// startOperator starts the operator's real controller, alone or as the leader of a pair.
func (w *world) startOperator(name string) {
	o := &operator{w: w, name: name, place: name, kin: &w.operators}
	o.again = func() { w.startOperator(name) }
	w.launch(o, program{component: "etcd-operator", elects: w.pair, make: func(o *operator, t tools) (interface{ Run(context.Context) error }, error) {
		return controller.New(controller.Config{
			Namespace: namespace, CreateCRD: w.createsCRD, Version: "1.0.0", OperatorImage: "operator:1.0.0", GCInterval: 10 * time.Minute,
			Kube: t.kube, EtcdClusters: t.etcds, Dynamic: t.dynamic, CRDs: t.crds,
			Recorder: t.recorder, Registry: prometheus.NewRegistry(), Logger: t.logger, Clock: t.clock,
			Rand:    rand.New(rand.NewPCG(w.life.seed, 1)), // not for secrets
			Members: func() cluster.Members { return reach{o} },
			Survey:  reach{o}.survey,
		})
	}})
}

// launch starts a process of a program.
func (w *world) launch(o *operator, p program) {
	ctx, cancel := context.WithCancel(context.Background())
	o.cancel, o.done, o.dead, o.leads = cancel, make(chan struct{}), make(chan struct{}), func() bool { return true }
	*o.kin = append(*o.kin, o)
	o.no = len(*o.kin)
	clear(w.checks.acts.same) // a process knows nothing of the one before
	w.narrate(o.name, "starts, its clock is ahead by %s", w.ahead(o.name).Round(time.Second))
	config := &rest.Config{Host: "http://api.invalid", Transport: o, QPS: 100, Burst: 200, ContentConfig: rest.ContentConfig{ContentType: runtime.ContentTypeJSON, AcceptContentTypes: runtime.ContentTypeJSON}}
	core := rest.CopyConfig(config) // as the operator's program does
	core.ContentType, core.AcceptContentTypes = runtime.ContentTypeProtobuf, runtime.ContentTypeProtobuf+","+runtime.ContentTypeJSON
	kube, err1 := kubernetes.NewForConfig(core)
	crds, err2 := apiextensions.NewForConfig(core)
	etcds, err3 := versioned.NewForConfig(config)
	dyn, err4 := dynamic.NewForConfig(config)
	if err := errors.Join(err1, err2, err3, err4); err != nil {
		panic(err)
	}
	broadcaster := record.NewBroadcasterWithCorrelatorOptions(record.CorrelatorOptions{BurstSize: 200, QPS: 1. / 30, MaxEvents: 100})
	broadcaster.StartRecordingToSink(&corev1client.EventSinkImpl{Interface: kube.CoreV1().Events(metav1.NamespaceAll)})
	logger := logrus.New()
	logger.SetOutput(io.Discard)
	if traceAll {
		logger.SetOutput(logs{w})
		logger.SetFormatter(&logrus.TextFormatter{DisableTimestamp: true})
	}
	t := tools{
		kube: kube, crds: crds, etcds: etcds, dynamic: dyn, logger: logrus.NewEntry(logger), clock: clockOf{ahead: w.ahead(o.name)},
		recorder: broadcaster.NewRecorder(scheme.Scheme, corev1.EventSource{Component: p.component}),
	}
	work := func(ctx context.Context) error {
		c, err := p.make(o, t)
		if err != nil {
			return err
		}
		return c.Run(ctx)
	}
	run := work
	if p.elects {
		elector, err := leader.New(leader.Config{
			Leases: kube.CoordinationV1(), Namespace: namespace, Name: p.component,
			Identity: fmt.Sprintf("%s-%d", o.name, o.no), Logger: logrus.NewEntry(logger),
		})
		if err != nil {
			panic(err)
		}
		o.leads = elector.Leading
		run = func(ctx context.Context) error { return elector.Run(ctx, work) }
	}
	go func() {
		defer close(o.done)
		o.err = run(ctx)
	}()
	// The end of run would race with the last events.
	go func() {
		<-o.dead
		broadcaster.Shutdown()
	}()
	w.stirred = true
}

// reap restarts operators whose process has ended, as it does without its Lease. A frozen one
// ends when it thaws.
func (w *world) reap() {
	for _, o := range w.processes() {
		if o.ended || o.frozen {
			continue
		}
		select {
		case <-o.done:
			w.narrate(o.name, "ends: %v", o.err)
			o.end()
		default:
		}
	}
}

type logs struct{ w *world }

func (l logs) Write(p []byte) (int, error) {
	l.w.mu.Lock()
	defer l.w.mu.Unlock()
	fmt.Printf("  %.3f log %s", l.w.elapsed().Seconds(), p)
	return len(p), nil
}

// operator returns the working operator, if any.
func (w *world) operator() *operator { return leading(w.operators) }

// leading returns the newest process that works, if any.
func leading(processes []*operator) *operator {
	for _, o := range slices.Backward(processes) {
		if !o.ended && o.leads() {
			return o
		}
	}
	return nil
}

// processes returns the processes of all programs.
func (w *world) processes() []*operator {
	if w.backups == nil {
		return w.operators
	}
	return slices.Concat(w.operators, w.backups.savers, w.backups.restorers)
}

// crash ends an operator between two calls.
func (o *operator) crash() {
	if o.ended {
		return
	}
	o.w.narrate(o.name, "crashes")
	o.end()
}

// end ends a process, and starts another one some time later.
func (o *operator) end() {
	o.w.impaired()
	for _, wa := range o.w.api.watchers {
		if wa.who == o {
			wa.closed = true
		}
	}
	o.stop()
	words := []any{"restart", len(*o.kin)}
	if o.kin != &o.w.operators {
		words = append(words, o.name)
	}
	o.w.after(o.w.life.between(time.Second, 20*time.Second, words...), o.again)
}

// stop ends a process and waits for nothing.
func (o *operator) stop() {
	o.ended = true
	close(o.dead)
	o.cancel()
	o.w.stirred = true
}

// take carries a call through the network, and applies its fault.
func (w *world) take(c *call) {
	if c.route != nil {
		c.route()
		return
	}
	n := w.nth(c.key)
	latency := time.Millisecond + w.life.between(0, 2*time.Millisecond, "latency", c.key, n)
	w.after(latency, func() { w.carry(c, w.callFault(c, n), time.Now()) })
}

func (w *world) carry(c *call, fault string, since time.Time) {
	o := c.actor
	isAPI := !etcdCall(c)
	if o.ended {
		return // it did not reach the network
	}
	if o.frozen || isAPI && (!w.reachable(o.place, apiPlace) || !w.reachable(apiPlace, o.place)) {
		if !o.frozen && time.Since(since) > 30*time.Second {
			w.answer(c, errors.New("http2: client connection lost"))
			return
		}
		w.after(500*time.Millisecond, func() { w.carry(c, fault, since) })
		return
	}
	reply := func(r any) {
		if !o.ended {
			w.answer(c, r)
		}
	}
	nothing := func(any) {}
	switch fault {
	case "":
		c.do(reply)
	case "lost":
		w.after(10*time.Second, func() { reply(errors.New("net/http: timeout awaiting response headers")) })
	case "done":
		c.do(nothing)
		w.after(10*time.Second, func() { reply(errors.New("net/http: timeout awaiting response headers")) })
	case "500":
		reply(failure(apierrors.NewInternalError(errors.New("etcdserver: request timed out"))))
	case "done 500":
		c.do(nothing)
		reply(failure(apierrors.NewInternalError(errors.New("etcdserver: request timed out"))))
	case "429":
		reply(failure(apierrors.NewTooManyRequests("too many requests", 1)))
	case "409":
		reply(answer{code: http.StatusConflict, raw: mustJSON(apierrors.NewConflict(schema.GroupResource{}, "", errors.New("the object has been modified")).Status())})
	case "touched":
		w.api.edit("etcdclusters", clusterName, func(obj metav1.Object) {
			obj.SetGeneration(obj.GetGeneration() - 1)
			obj.SetLabels(map[string]string{"touched": fmt.Sprint(w.api.version)})
		})
		c.do(reply)
	case "crash before":
		o.crash()
	case "crash after":
		c.do(nothing)
		o.crash()
	}
}
