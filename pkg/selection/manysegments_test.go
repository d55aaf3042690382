// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package selection

import (
	"context"
	"fmt"
	"iter"
	"runtime"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/changelog"
	"github.com/etcd-operator/etcd-operator/pkg/location"
	"github.com/etcd-operator/etcd-operator/pkg/store"
)

// endless lists many segments, of which it keeps none.
type endless struct {
	store.Store
	segments, clusters int
}

func (e endless) List(context.Context, string) iter.Seq2[store.Object, error] {
	return func(yield func(store.Object, error) bool) {
		for cluster := range e.clusters {
			for i := range e.segments / e.clusters {
				s := &changelog.Segment{Cluster: uint64(cluster + 1), First: int64(10*i + 1), Last: int64(10*i + 10), Until: moment(i)} // small
				if !yield(store.Object{Key: changelog.KeyOf("some-bucket/of-a-team/with-a-long-path/etcd", s), Size: 1000}, nil) {
					return
				}
			}
		}
	}
}

// heapInUse is how many bytes are in use.
func heapInUse() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// perSegment is how many bytes the logs of so many segments take for each.
func perSegment(tb testing.TB, segments int) float64 {
	tb.Helper()
	f := finder{place: &location.Location{Store: endless{segments: segments, clusters: 3}, Bucket: "bucket", Key: "some-bucket/of-a-team/with-a-long-path/etcd"}}
	before := heapInUse()
	l, err := f.readLogs(tb.Context())
	if err != nil {
		tb.Fatal(err)
	}
	after := heapInUse()
	runtime.KeepAlive(l)
	return float64(after-before) / float64(segments)
}

// At a lag of a second, a week has more than a million segments. The restore operator has 512 MiB, and reads
// several logs at a time.
func TestASegmentTakesFewBytes(t *testing.T) {
	const most = 48
	if got := perSegment(t, 300_000); got > most {
		t.Errorf("a segment takes %.0f bytes, want at most %d", got, most)
	}
}

func BenchmarkAMillionSegments(b *testing.B) {
	for b.Loop() {
		b.ReportMetric(perSegment(b, 1_000_000), "bytes/segment")
	}
}

// A store lists in any order.
func TestALogIsTheSameInAnyOrder(t *testing.T) {
	all := logged(t)
	want, _, err := Find(t.Context(), all.location("a/etcd"), momentSpec(285), nil)
	if err != nil {
		t.Fatal(err)
	}
	place := *all.location("a/etcd")
	place.Store = backwards{all}
	got, _, err := Find(t.Context(), &place, momentSpec(285), nil)
	if err != nil || fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("it finds %+v, and %+v in the order of the alphabet: %v", got, want, err)
	}
}

// backwards lists a shelf from its end.
type backwards struct{ *shelf }

func (b backwards) List(ctx context.Context, prefix string) iter.Seq2[store.Object, error] {
	return func(yield func(store.Object, error) bool) {
		var all []store.Object
		for object, err := range b.shelf.List(ctx, prefix) {
			if err != nil {
				yield(store.Object{}, err)
				return
			}
			all = append([]store.Object{object}, all...)
		}
		for _, object := range all {
			if !yield(object, nil) {
				return
			}
		}
	}
}

func momentSpec(second int) *api.RestoreSpec {
	return &api.RestoreSpec{Pick: api.RestorePickNewest, Time: &metav1.Time{Time: moment(second)}}
}
