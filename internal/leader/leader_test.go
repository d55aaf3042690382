// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package leader

import (
	"context"
	"errors"
	"io"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sirupsen/logrus"
	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
)

func newElector(t *testing.T, kube *fake.Clientset, identity string) *Elector {
	t.Helper()
	logger := logrus.New()
	logger.SetOutput(io.Discard)
	e, err := New(Config{
		Leases:    kube.CoordinationV1(),
		Namespace: "ns", Name: "etcd-operator", Identity: identity,
		Logger: logrus.NewEntry(logger),
	})
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func holder(t *testing.T, kube *fake.Clientset) string {
	t.Helper()
	lease, err := kube.CoordinationV1().Leases("ns").Get(t.Context(), "etcd-operator", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if lease.Spec.HolderIdentity == nil {
		return ""
	}
	return *lease.Spec.HolderIdentity
}

// untilDone is work that does nothing.
func untilDone(ctx context.Context) error {
	<-ctx.Done()
	return nil
}

// start runs an elector and returns what ends it and gives Run's result.
func start(t *testing.T, e *Elector, work func(context.Context) error) (cancel context.CancelFunc, result <-chan error) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	done := make(chan error, 1)
	go func() { done <- e.Run(ctx, work) }()
	synctest.Wait()
	return cancel, done
}

func TestTheLeaseIsGivenUpOnlyAfterTheWorkEnded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kube := fake.NewClientset()
		e := newElector(t, kube, "a")
		var heldAtTheEnd string
		cancel, result := start(t, e, func(ctx context.Context) error {
			<-ctx.Done()
			time.Sleep(time.Minute) // longer than any time of the election: it must continue meanwhile
			heldAtTheEnd = holder(t, kube)
			return nil
		})
		if !e.Leading() {
			t.Fatal("not leading, though nobody else is there")
		}
		cancel()
		if err := <-result; err != nil {
			t.Error(err)
		}
		if heldAtTheEnd != "a" {
			t.Errorf("while the work wound down, the Lease was held by %q", heldAtTheEnd)
		}
		if h := holder(t, kube); h != "" {
			t.Errorf("after Run, the Lease is held by %q", h)
		}
		if e.Leading() {
			t.Error("says that it leads after Run")
		}
	})
}

func TestTheNextInstanceNeedNotWaitForTheLeaseToExpire(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kube := fake.NewClientset()
		a, b := newElector(t, kube, "a"), newElector(t, kube, "b")
		endA, resultA := start(t, a, untilDone)
		_, resultB := start(t, b, untilDone)
		if b.Leading() {
			t.Fatal("two instances lead")
		}
		if got := b.Watched(); !strings.Contains(got, "Lease ") || !strings.HasSuffix(got, ", which a holds") {
			t.Errorf("it waits for %q", got)
		}
		if err := b.StandingBy(); err != nil {
			t.Errorf("b is not standing by: %v", err)
		}
		endA()
		<-resultA
		given := time.Now()
		for !b.Leading() {
			time.Sleep(100 * time.Millisecond)
		}
		if took := time.Since(given); took > 3*RetryPeriod { // client-go adds up to 1.2 retry periods of jitter
			t.Errorf("took over after %s", took)
		}
		select {
		case err := <-resultB:
			t.Errorf("b ended: %v", err)
		default:
		}
	})
}

func TestALostLeaseStopsTheWork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kube := fake.NewClientset()
		var down atomic.Bool
		kube.PrependReactor("*", "leases", func(clienttesting.Action) (bool, runtime.Object, error) {
			return down.Load(), nil, errors.New("connection refused")
		})
		var stopped atomic.Bool
		_, result := start(t, newElector(t, kube, "a"), func(ctx context.Context) error {
			<-ctx.Done()
			stopped.Store(true)
			return ctx.Err()
		})
		down.Store(true)
		since := time.Now()
		if err := <-result; !errors.Is(err, ErrLost) {
			t.Errorf("got %v, want ErrLost", err)
		}
		if !stopped.Load() {
			t.Error("Run returned before the work did")
		}
		if took := time.Since(since); took >= LeaseDuration {
			t.Errorf("stopped %s after the last renewal: another instance may lead by then", took)
		}
	})
}

func TestWorkThatHangsDoesNotOutliveTheLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kube := fake.NewClientset()
		var down atomic.Bool
		kube.PrependReactor("*", "leases", func(clienttesting.Action) (bool, runtime.Object, error) {
			return down.Load(), nil, errors.New("connection refused")
		})
		hang := make(chan struct{})
		_, result := start(t, newElector(t, kube, "a"), func(context.Context) error {
			<-hang
			return nil
		})
		down.Store(true)
		since := time.Now()
		err := <-result
		if !errors.Is(err, ErrLost) || !strings.Contains(err.Error(), "did not stop") {
			t.Errorf("got %v", err)
		}
		if took := time.Since(since); took >= LeaseDuration {
			t.Errorf("Run returned %s after the last renewal", took)
		}
		close(hang)
	})
}

// Others count from the moment in which the API server had the renewal, however late its answer is.
func TestALateAnswerDoesNotLengthenTheLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kube := fake.NewClientset()
		var late atomic.Bool
		var renewed atomic.Pointer[time.Time]
		kube.PrependReactor("*", "leases", func(a clienttesting.Action) (bool, runtime.Object, error) {
			switch {
			case !late.Load():
			case renewed.Load() != nil:
				return true, nil, errors.New("connection refused")
			case a.GetVerb() == "update":
				renewed.Store(new(time.Now()))
				time.Sleep(RenewDeadline/2 - time.Millisecond) // a client waits no longer
			}
			return false, nil, nil
		})
		hang := make(chan struct{})
		stopped := make(chan time.Time, 1)
		_, result := start(t, newElector(t, kube, "a"), func(ctx context.Context) error {
			<-ctx.Done()
			stopped <- time.Now()
			<-hang
			return nil
		})
		late.Store(true)
		if err := <-result; !errors.Is(err, ErrLost) {
			t.Errorf("got %v, want ErrLost", err)
		}
		worked := (<-stopped).Sub(*renewed.Load())
		if took := time.Since(*renewed.Load()); took >= LeaseDuration || worked > LeaseDuration-stopGrace {
			t.Errorf("the work stopped %s after the last renewal, and Run returned %s after it", worked, took)
		}
		close(hang)
	})
}

// A process that was frozen with its clock, such as a virtual machine, counts its Lease as fresh.
// client-go keeps asking for RenewDeadline, although it sees the other holder at once.
func TestTheSightOfAnotherHolderStopsTheWork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kube := fake.NewClientset()
		var taken atomic.Pointer[coordinationv1.Lease]
		kube.PrependReactor("*", "leases", func(a clienttesting.Action) (bool, runtime.Object, error) {
			lease := taken.Load()
			switch {
			case lease == nil:
				return false, nil, nil
			case a.GetVerb() == "get":
				return true, lease, nil
			default:
				return true, nil, apierrors.NewConflict(schema.GroupResource{Resource: "leases"}, lease.Name, errors.New("the object has been modified"))
			}
		})
		_, result := start(t, newElector(t, kube, "a"), untilDone)
		lease, err := kube.CoordinationV1().Leases("ns").Get(t.Context(), "etcd-operator", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		lease = lease.DeepCopy()
		lease.Spec.HolderIdentity = new("b")
		taken.Store(lease)
		since := time.Now()
		if err := <-result; !errors.Is(err, ErrLost) {
			t.Errorf("got %v, want ErrLost", err)
		}
		if took := time.Since(since); took > RetryPeriod {
			t.Errorf("two instances worked for %s", took)
		}
	})
}

// An API server that needs seconds for each answer costs nobody the Lease.
func TestSlowAnswersKeepTheLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kube := fake.NewClientset()
		kube.PrependReactor("update", "leases", func(clienttesting.Action) (bool, runtime.Object, error) {
			time.Sleep(RenewDeadline/2 - time.Millisecond)
			return false, nil, nil
		})
		e := newElector(t, kube, "a")
		cancel, result := start(t, e, untilDone)
		time.Sleep(10 * time.Minute)
		if !e.Leading() {
			t.Error("the Lease is lost")
		}
		cancel()
		if err := <-result; err != nil {
			t.Error(err)
		}
	})
}

func TestWorkThatFailsGivesTheLeaseUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kube := fake.NewClientset()
		broken := errors.New("broken")
		_, result := start(t, newElector(t, kube, "a"), func(context.Context) error { return broken })
		if err := <-result; !errors.Is(err, broken) {
			t.Errorf("got %v", err)
		}
		if h := holder(t, kube); h != "" {
			t.Errorf("the Lease is held by %q", h)
		}
	})
}

func TestAnInstanceThatNeverLedEndsCleanly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kube := fake.NewClientset()
		start(t, newElector(t, kube, "a"), untilDone)
		cancel, result := start(t, newElector(t, kube, "b"), untilDone)
		cancel()
		if err := <-result; err != nil {
			t.Error(err)
		}
		if h := holder(t, kube); h != "a" {
			t.Errorf("the Lease is held by %q", h)
		}
	})
}

func TestStandingByNeedsAFreshLookAtTheLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kube := fake.NewClientset()
		b := newElector(t, kube, "b")
		if b.StandingBy() == nil {
			t.Error("standing by before the Lease was read")
		}
		start(t, newElector(t, kube, "a"), untilDone)
		var down atomic.Bool
		kube.PrependReactor("get", "leases", func(clienttesting.Action) (bool, runtime.Object, error) {
			return down.Load(), nil, errors.New("connection refused")
		})
		start(t, b, untilDone)
		if err := b.StandingBy(); err != nil {
			t.Error(err)
		}
		down.Store(true)
		time.Sleep(2 * LeaseDuration)
		if b.StandingBy() == nil {
			t.Error("standing by without a connection to the API server")
		}
	})
}

// Roles of v0.9.4 grant no Leases.
func TestTheReasonWhyNobodyLeadsIsStated(t *testing.T) {
	for _, verb := range []string{"get", "create"} {
		synctest.Test(t, func(t *testing.T) {
			kube := fake.NewClientset()
			refused := apierrors.NewForbidden(schema.GroupResource{Group: "coordination.k8s.io", Resource: "leases"}, "etcd-operator", errors.New("no role grants it"))
			var granted atomic.Bool
			kube.PrependReactor(verb, "leases", func(clienttesting.Action) (bool, runtime.Object, error) {
				return !granted.Load(), nil, refused
			})
			e := newElector(t, kube, "a")
			cancel, result := start(t, e, untilDone)
			if err := e.StandingBy(); !errors.Is(err, refused) {
				t.Errorf("without the right to %s Leases: %v", verb, err)
			}
			granted.Store(true)
			time.Sleep(3 * RetryPeriod)
			if err := e.StandingBy(); !e.Leading() || errors.Is(err, refused) {
				t.Errorf("with the right, leading: %t, error %v", e.Leading(), err)
			}
			cancel()
			if err := <-result; err != nil {
				t.Error(err)
			}
		})
	}
}

func TestNewRefusesAnIncompleteConfig(t *testing.T) {
	whole := Config{Namespace: "ns", Name: "etcd-operator", Identity: "pod-1"}
	if _, err := New(whole); err != nil {
		t.Fatal(err)
	}
	for missing, cfg := range map[string]Config{
		"namespace": {Name: whole.Name, Identity: whole.Identity},
		"name":      {Namespace: whole.Namespace, Identity: whole.Identity},
		"identity":  {Namespace: whole.Namespace, Name: whole.Name},
	} {
		if _, err := New(cfg); err == nil {
			t.Errorf("no error without the %s", missing)
		}
	}
}
