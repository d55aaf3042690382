// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package objectmetrics

import (
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

type status struct{ size int }

func TestSeriesComeAndGoWithWhatTheyAreOf(t *testing.T) {
	set := New[status]("test")
	made := set.Counter("made_total", "How many were made.", "result")
	set.StatusGauge("size_bytes", "How large it is.", func(st *status) (float64, bool) { return float64(st.size), st.size > 0 })
	reg := prometheus.NewRegistry()
	if err := reg.Register(set); err != nil {
		t.Fatal(err)
	}
	a, b := &metav1.ObjectMeta{Namespace: "ns", Name: "a"}, &metav1.ObjectMeta{Namespace: "ns", Name: "b"}
	expect := func(when, want string) {
		t.Helper()
		if err := testutil.GatherAndCompare(reg, strings.NewReader(want)); err != nil {
			t.Errorf("%s: %v", when, err)
		}
	}

	made.WithLabelValues("good", "ns", "a").Inc()
	set.Saw(a, &status{5})
	set.Saw(b, &status{7})
	expect("both have a size", `
# HELP test_made_total How many were made.
# TYPE test_made_total counter
test_made_total{name="a",namespace="ns",result="good"} 1
# HELP test_size_bytes How large it is.
# TYPE test_size_bytes gauge
test_size_bytes{name="a",namespace="ns"} 5
test_size_bytes{name="b",namespace="ns"} 7
`)
	set.Saw(b, &status{})
	expect("the status of b has no size", `
# HELP test_made_total How many were made.
# TYPE test_made_total counter
test_made_total{name="a",namespace="ns",result="good"} 1
# HELP test_size_bytes How large it is.
# TYPE test_size_bytes gauge
test_size_bytes{name="a",namespace="ns"} 5
`)
	set.Forget(a)
	expect("nobody manages a", "")
}
