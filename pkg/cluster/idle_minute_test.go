// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"runtime"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"

	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/certsecret"
	"github.com/etcd-operator/etcd-operator/pkg/cluster/plan"
	"github.com/etcd-operator/etcd-operator/pkg/etcd"
	"github.com/etcd-operator/etcd-operator/pkg/etcd/etcdtest"
	"github.com/etcd-operator/etcd-operator/pkg/manifest"
)

// idleFleet are clusters of one member each that are as specified. The members are stand-ins
// that the operator reaches by gRPC.
type idleFleet struct {
	w         *world
	clock     *clocktesting.FakeClock
	clusters  []*Cluster
	addresses map[string]string // where a member listens, by the address of its pod
}

// newIdleFleet makes n clusters and runs passes until nothing is to be done.
func newIdleFleet(tb testing.TB, n int, secure bool) *idleFleet {
	tb.Helper()
	f := &idleFleet{clock: clocktesting.NewFakeClock(time.Now()), addresses: map[string]string{}}
	f.w = newWorld(tb, f.clock)
	var serves *tls.Config
	if secure {
		serves = f.secrets(tb, n)
	}
	f.w.cfg.Members = func() Members {
		return overNetwork{etcd.NewClientThrough(nil, func(ctx context.Context, address string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "tcp", f.addresses[address])
		}).Small()}
	}
	for i := range n {
		obj := testCluster()
		obj.Name, obj.UID, obj.Spec.Size = fmt.Sprint("c", i), types.UID(fmt.Sprintf("11111111-1111-1111-1111-%012d", i)), 1
		if secure {
			obj.Spec.TLS = tlsCluster().Spec.TLS
		}
		if err := f.w.clusters.Tracker().Add(obj.DeepCopy()); err != nil {
			tb.Fatal(err)
		}
		f.join(tb, obj, i, serves)
		c := f.w.cluster(obj)
		// Clients that outlive their stand-ins would dial them every second.
		tb.Cleanup(c.etcd.Close)
		f.clusters = append(f.clusters, c)
	}
	f.w.watch()
	for round := 0; ; round++ {
		busy := 0
		for _, c := range f.clusters {
			s, err := c.pass(tb.Context())
			if err != nil || round == 30 {
				tb.Fatalf("after %d passes: %s, %v", round, s, err)
			}
			if idle, ok := s.(plan.Idle); !ok || idle.Why.Kind != plan.AsSpecified {
				busy++
			}
		}
		f.w.watch()
		if busy == 0 {
			return f
		}
	}
}

// secrets makes the Secrets that all clusters use, and returns the members' configuration.
func (f *idleFleet) secrets(tb testing.TB, n int) *tls.Config {
	tb.Helper()
	ca, leaf := etcdtest.NewCA(tb, "ca"), etcdtest.Leaf{}
	for i := range n {
		leaf.DNS = append(leaf.DNS, fmt.Sprintf("*.c%d.ns.svc", i), fmt.Sprintf("*.c%d.ns.svc.cluster.local", i))
	}
	f.w.put(
		certificateSecret(peerUse, certsecret.Static, "peers", ca, leaf, ca),
		certificateSecret(serverUse, certsecret.Static, "servers", ca, leaf, ca),
		certificateSecret(operatorUse, certsecret.Static, "operators", ca, etcdtest.Leaf{Name: "operator"}, ca),
	)
	pair, err := tls.X509KeyPair(ca.Issue(leaf))
	if err != nil {
		tb.Fatal(err)
	}
	return &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12}
}

// join makes the only member of a cluster, and its pod.
func (f *idleFleet) join(tb testing.TB, obj *api.EtcdCluster, i int, serves *tls.Config) {
	tb.Helper()
	name, names := obj.Name+"-0", manifest.NamesOf(obj)
	peer := names.PeerURL(name)
	m := (&etcdtest.Member{
		TLS:    serves,
		Agreed: []*etcdserverpb.Member{{ID: 1, Name: name, PeerURLs: []string{peer}}},
		Status: &etcdserverpb.StatusResponse{
			Header:  &etcdserverpb.ResponseHeader{MemberId: 1, ClusterId: 8, RaftTerm: 2, Revision: 33},
			Version: "3.6.16", Leader: 1, RaftIndex: 5000, RaftAppliedIndex: 5000, DbSize: 20480, DbSizeInUse: 20480,
		},
	}).Start(tb)
	pod := memberPod(tb, obj, name)
	var never corev1.ContainerState
	kubelet(pod, ended(0, ""), never, runs(), never, 0)
	pod.Status.PodIP = fmt.Sprintf("10.0.%d.%d", i/250, i%250+1)
	pod.Status.Conditions = []corev1.PodCondition{condition(corev1.PodReady, corev1.ConditionTrue, "")}
	f.addresses[net.JoinHostPort(pod.Status.PodIP, "2379")] = net.JoinHostPort(m.IP, m.Port)
	f.w.makePod(pod)
}

// minute runs all passes of a cluster in a minute of its clock.
func (f *idleFleet) minute(ctx context.Context, c *Cluster) {
	for end := f.clock.Now().Add(time.Minute); f.clock.Now().Before(end); {
		f.clock.Step(c.reconcile(ctx))
	}
}

// BenchmarkIdleMinute is all work for an idle cluster of one member in a minute, with its
// requests to the member by gRPC and the stand-in's answers. The process's time is cpu-ms.
func BenchmarkIdleMinute(b *testing.B) {
	for name, secure := range map[string]bool{"plain": false, "tls": true} {
		b.Run(name, func(b *testing.B) {
			f := newIdleFleet(b, 1, secure)
			f.minute(b.Context(), f.clusters[0])
			b.ReportAllocs()
			measure(b, func() { f.minute(b.Context(), f.clusters[0]) })
		})
	}
}

// BenchmarkIdleReference is the reference of BenchmarkIdleMinute: one status request to the
// same stand-in.
func BenchmarkIdleReference(b *testing.B) {
	f := newIdleFleet(b, 1, false)
	conn, err := f.clusters[0].etcd.Conn(etcd.Endpoint{URL: manifest.NamesOf(f.clusters[0].obj).ClientURL("c0-0"), IP: "10.0.0.1"})
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	measure(b, func() {
		if _, err := conn.Status(b.Context()); err != nil {
			b.Fatal(err)
		}
	})
}

// measure runs f and reports the processor time of the process for each run.
func measure(b *testing.B, f func()) {
	b.Helper()
	before := processorTime(b)
	for b.Loop() {
		f()
	}
	b.ReportMetric(float64((processorTime(b)-before).Microseconds())/1000/float64(b.N), "cpu-ms/op")
}

func processorTime(tb testing.TB) time.Duration {
	tb.Helper()
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		tb.Fatal(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

// BenchmarkIdleMemory reports the memory that the minutes of a hundred idle clusters keep:
// live heap and stacks, mostly of connections. Both ends of a connection are in this process;
// standin-KiB is the end of the stand-in.
func BenchmarkIdleMemory(b *testing.B) {
	for name, secure := range map[string]bool{"plain": false, "tls": true} {
		b.Run(name, func(b *testing.B) {
			const n = 100
			for b.Loop() {
				f := newIdleFleet(b, n, secure)
				for _, c := range f.clusters {
					c.etcd.Close()
				}
				if !secure {
					b.ReportMetric(accept(b, f), "standin-KiB/cluster")
				}
				before := memory()
				for _, c := range f.clusters {
					f.minute(b.Context(), c)
				}
				b.ReportMetric(float64(memory()-before)/n/1024, "KiB/cluster")
				runtime.KeepAlive(f)
			}
		})
	}
}

// accept connects to each stand-in with nothing but HTTP/2's first bytes, and returns the
// memory for a connection in KiB, which is the stand-in's.
func accept(b *testing.B, f *idleFleet) float64 {
	b.Helper()
	before := memory()
	var conns []io.Closer
	for _, address := range f.addresses {
		conn, err := (&net.Dialer{}).DialContext(b.Context(), "tcp", address)
		if err != nil {
			b.Fatal(err)
		}
		conns = append(conns, conn)
		if _, err := io.WriteString(conn, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00"); err != nil {
			b.Fatal(err)
		}
		if _, err := conn.Read(make([]byte, 1024)); err != nil {
			b.Fatal(err)
		}
	}
	each := float64(memory()-before) / float64(len(conns)) / 1024
	for _, conn := range conns {
		conn.Close()
	}
	return each
}

// memory is the live heap and the stacks.
func memory() int64 {
	var m runtime.MemStats
	for range 3 { // the first collections also shrink stacks and empty pools
		runtime.GC()
	}
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc + m.StackInuse) // far from 2^63 bytes
}

// pause waits on the wall clock.
func pause(d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	<-timer.C
}

// BenchmarkIdleFleet runs a hundred idle clusters for half a minute of the wall clock, and
// reports the processor time of a minute for all of them. It is more than a hundred times
// BenchmarkIdleMinute: most looks begin with an idle process and cold caches. The stand-ins'
// half is in it.
func BenchmarkIdleFleet(b *testing.B) {
	const n, settling, measured = 100, 20 * time.Second, 30 * time.Second
	for name, secure := range map[string]bool{"plain": false, "tls": true} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				f := newIdleFleet(b, n, secure)
				ctx, cancel := context.WithCancel(b.Context())
				var running sync.WaitGroup
				for _, c := range f.clusters {
					c.cfg.Clock = clock.RealClock{}
					running.Go(func() { c.Run(ctx) })
				}
				pause(settling)
				before, began := processorTime(b), time.Now()
				pause(measured)
				b.ReportMetric((processorTime(b)-before).Seconds()*time.Minute.Seconds()/time.Since(began).Seconds(), "cpu-s/minute")
				var m runtime.MemStats
				runtime.GC()
				runtime.ReadMemStats(&m)
				b.ReportMetric(float64(m.HeapAlloc)/n/1024, "heap-KiB/cluster")
				b.ReportMetric(float64(m.StackInuse)/n/1024, "stack-KiB/cluster")
				b.ReportMetric(float64(runtime.NumGoroutine())/n, "goroutines/cluster")
				cancel()
				running.Wait()
			}
		})
	}
}
