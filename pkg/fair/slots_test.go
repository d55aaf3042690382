// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package fair

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
)

func TestNoMoreWorkThanThereAreSlots(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, b := NewSlots(3), &begun{}
		for range 10 {
			go func() {
				if s.Take(t.Context()) == nil {
					b.add("")
				}
			}()
		}
		for _, want := range []int{3, 4, 5} {
			synctest.Wait()
			if n := b.count(); n != want {
				t.Errorf("%d have a slot, want %d", n, want)
			}
			s.Free()
		}
		for range 10 {
			s.Free()
		}
		synctest.Wait()
		if n := b.count(); n != 10 {
			t.Errorf("%d have had a slot, want all", n)
		}
	})
}

func TestNamespacesTakeTurnsForSlots(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, b := NewSlots(1), &begun{}
		for _, namespace := range []string{"many", "many", "many", "many", "few"} {
			go func() {
				if s.Take(In(t.Context(), namespace)) == nil {
					b.add(namespace)
				}
			}()
			synctest.Wait()
		}
		for range 4 {
			s.Free()
			synctest.Wait()
		}
		if want := []string{"many", "many", "few", "many", "many"}; !slices.Equal(b.who, want) {
			t.Errorf("slots went to %v, want %v", b.who, want)
		}
	})
}

func TestASlotForACallerWhoHasLeftGoesToTheNext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, b := NewSlots(1), &begun{}
		if err := s.Take(t.Context()); err != nil {
			t.Fatal(err)
		}
		ctx, leave := context.WithCancel(t.Context())
		turn := s.enter("")
		left := make(chan error)
		go func() { left <- s.Take(ctx) }()
		synctest.Wait()
		go func() {
			if s.Take(t.Context()) == nil {
				b.add("")
			}
		}()
		synctest.Wait()
		leave()
		if err := <-left; !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
		s.Free()
		<-turn
		s.leave("", turn) // its turn came at the moment it left
		synctest.Wait()
		if n := b.count(); n != 1 {
			t.Error("the last caller has no slot")
		}
		if err := s.Take(ctx); !errors.Is(err, context.Canceled) {
			t.Errorf("a slot after the end: %v", err)
		}
	})
}
