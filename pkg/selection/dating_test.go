// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package selection

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/utils/clock"

	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/backupobject"
	"github.com/etcd-operator/etcd-operator/pkg/changelog"
	"github.com/etcd-operator/etcd-operator/pkg/recorder"
	"github.com/etcd-operator/etcd-operator/pkg/recorder/recordertest"
)

// recorded records some hours of a cluster that writes rarely. It returns when each revision came.
func recorded(t *testing.T, s *shelf, lag, latency time.Duration, dice *rand.Rand) (written []time.Time) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	member := recordertest.New(first)
	member.Write(12, 5, 0)
	r := recorder.Recorder{
		Member: member, Cluster: first, Lag: lag, Clock: clock.RealClock{},
		Store: func(_ context.Context, segment *changelog.Segment) error {
			time.Sleep(latency)
			text, err := segment.Encode()
			if err == nil {
				s.put(changelog.KeyOf("a/etcd", segment), text)
			}
			return err
		},
		Stored: func(*changelog.Segment) {},
	}
	ended := make(chan error, 1)
	go func() { ended <- r.Run(ctx, 12, nil) }()
	time.Sleep(time.Minute)
	for end := time.Now().Add(8 * time.Hour); time.Now().Before(end); {
		time.Sleep(time.Duration(2+dice.IntN(20*60_000)>>dice.IntN(12)) * time.Millisecond) // the log has milliseconds
		member.Write(1, 5, 0)
		written = append(written, time.Now())
	}
	time.Sleep(5 * time.Minute)
	cancel()
	<-ended
	return written
}

// A log of a cluster that writes rarely has few segments. It still knows all of its moments.
func TestAllMomentsOfAQuietClusterHaveTheirRevision(t *testing.T) {
	for _, tc := range []struct{ lag, latency time.Duration }{
		{time.Second, 0}, {api.DefaultMaxLag, 20 * time.Second}, {time.Minute, 20 * time.Second},
	} {
		t.Run(fmt.Sprintf("lag %s, store %s", tc.lag, tc.latency), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				dice := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // a test
				s := newShelf()
				s.put(monday, holding(t, 4, 12), backupobject.MetaCluster, fmt.Sprintf("%016x", first))
				written := recorded(t, s, tc.lag, tc.latency, dice)
				l, err := finder{place: s.location("a/etcd")}.readLogs(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				for i, at := range written[:len(written)-1] {
					after := written[i+1]
					for _, since := range []time.Duration{0, time.Duration(dice.Int64N(int64(after.Sub(at)))), after.Sub(at) - time.Millisecond} {
						moment := at.Add(since)
						if _, _, revision, err := l.at(t.Context(), moment); err != nil || revision != int64(13+i) {
							t.Errorf("%s after revision %d, %s before the next one: revision %d, %v", since, 13+i, after.Sub(moment), revision, err)
						}
					}
				}
			})
		})
	}
}
