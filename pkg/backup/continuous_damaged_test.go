// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package backup

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/etcd-operator/etcd-operator/pkg/changelog"
)

// The last object of a log is damaged, and etcd has no later revision.
func TestALogBeginsOnceAfterADamagedEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newLogWorld(t, nil)
		stop := w.run()
		w.write(time.Minute)
		pass(3 * time.Second) // the end is stored, and nothing after it
		stop()
		w.damageLog()
		for range 3 {
			stop = w.run()
			pass(2 * time.Minute)
			stop()
		}
		stop = w.run()
		w.write(time.Minute)
		stop()
		if st := w.continuous(); st.Gaps != 1 || !st.Recording {
			t.Errorf("the log is %+v", st)
		}
		backups := w.backups()
		var keys []changelog.Key
		for _, key := range w.store.keys() {
			if k, ours := changelog.ParseKey("etcd", key); ours {
				keys = append(keys, k)
			}
		}
		last := int64(0)
		for _, k := range changelog.Chain(keys, backups[len(backups)-1]) {
			if _, err := changelog.Decode(w.store.objects[k.Text].content); err != nil {
				t.Errorf("a restore after the newest backup reads %s, which holds nothing later: %v", k.Text, err)
			}
			last = k.Last
		}
		if at, _ := w.member.Position(t.Context()); at.Revision-last > 20 {
			t.Errorf("the log ends at %d, and etcd is at %d", last, at.Revision)
		}
	})
}
