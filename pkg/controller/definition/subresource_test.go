// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package definition

import (
	"context"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset/fake"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// servesSince serves resources by the time since it was asked first.
type servesSince struct {
	start time.Time
	later time.Duration
}

func (s *servesSince) ServerResourcesForGroupVersionWithContext(context.Context, string) (*metav1.APIResourceList, error) {
	list := &metav1.APIResourceList{APIResources: []metav1.APIResource{{Name: "etcdclusters"}, {Name: "etcdbackups/status"}}}
	if time.Since(s.start) >= s.later {
		list.APIResources = append(list.APIResources, metav1.APIResource{Name: "etcdclusters/status"})
	}
	return list, nil
}

// said is what a Keeper says that it waits for.
type said struct {
	mu   sync.Mutex
	what string
	over bool
}

func (s *said) For(what string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.what, s.over = what, false
}

// said is what it waits for; "" if nothing.
func (s *said) said() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.over {
		return ""
	}
	return s.what
}

func (s *said) Over() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.over = true
}

// Of a CustomResourceDefinition without the status subresource the operator was ready,
// and could write no status: it did nothing.
func TestACRDWithoutTheStatusSubresourceIsWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		says := &said{}
		keeper := newKeeper(t, fake.NewSimpleClientset())
		keeper.Create, keeper.Waiting = false, says
		start := time.Now()
		if err := keeper.awaitServed(t.Context(), &servesSince{start, time.Minute}); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(start); took < time.Minute {
			t.Errorf("it waited %s for what takes a minute", took)
		}
		for _, want := range []string{"status subresource", "apply", "-create-crd=false", "etcdclusters.etcd.database.coreos.com"} {
			if !strings.Contains(says.what, want) {
				t.Errorf("it says %q and not %q", says.what, want)
			}
		}
	})
}
