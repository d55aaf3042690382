// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"fmt"
	"maps"
	"slices"
	"time"
)

// plan chooses the faults of stores, and of the operators of backups and restores.
func (b *backups) plan() {
	w, l := b.w, b.w.life
	recovers := w.api.cluster() != nil && w.api.cluster().Spec.RecoversAutomatically()
	if l.chance(map[bool]float64{false: 0.7, true: 0.1}[recovers], "restore") {
		at := l.between(90*time.Second, stormBegins+stormLasts, "restore at")
		w.expect(&fault{id: "somebody restores the cluster", at: at, begin: func() { b.restore("in the storm") }})
	}
	if recovers {
		w.expect(w.disaster())
	}
	if w.taken() {
		w.expect(w.takeover())
	}
	for i := range int(l.number("store skies") % 3) {
		from := l.between(stormBegins, stormLasts, "store sky", i)
		all := []string{"lost", "done", "late", "down", "left", "crash before", "crash after", "lie flip", "lie truncate", "lie lose"}
		sky := weather{from: from, to: from + l.between(20*time.Second, 3*time.Minute, "store sky lasts", i), p: []float64{0.1, 0.3, 0.8}[l.number("store sky p", i)%3], kinds: all}
		if l.chance(0.7, "store sky one", i) {
			sky.kinds = []string{all[l.number("store sky kind", i)%uint64(len(all))]}
		}
		b.bucket.skies = append(b.bucket.skies, sky)
	}
	for i := range 1 + int(l.number("helper faults")%6) {
		w.expect(b.makeFault(i))
	}
	w.after(stormBegins+stormLasts+15*time.Second, func() {
		b.stormEnd = time.Now()
		w.every(10*time.Second, 10*time.Second, b.onCall)
	})
}

// onCall is a person who restores a cluster that has lost its data, and that does not recover by itself.
func (b *backups) onCall() {
	obj := b.w.api.cluster()
	if obj == nil || named(obj) == "" {
		return
	}
	patience := 3 * time.Minute
	if obj.Spec.RecoversAutomatically() {
		patience = 8 * time.Minute
	}
	if time.Since(b.stormEnd) < patience {
		return
	}
	if what, _, _ := b.w.obstacle(obj); slices.Contains(lostData, what) {
		b.restore(what)
	}
}

func (b *backups) makeFault(i int) *fault {
	w, l := b.w, b.w.life
	pick := func(what string, n int) int { return int(l.number("helper fault", i, what) % uint64(n)) }
	f := &fault{at: stormBegins + l.between(0, stormLasts, "helper fault", i, "at"), lasts: l.between(2*time.Second, 3*time.Minute, "helper fault", i, "lasts")}
	name := func(format string, args ...any) {
		f.id = fmt.Sprintf("b%d: ", i) + fmt.Sprintf(format, args...) + fmt.Sprintf(" at %s", f.at.Round(time.Millisecond))
		if f.end != nil {
			f.id += fmt.Sprintf(" for %s", f.lasts.Round(time.Millisecond))
		}
	}
	which, processes := "backup-operator", &b.savers
	if pick("which", 2) == 1 {
		which, processes = "restore-operator", &b.restorers
	}
	switch pick("kind", 10) {
	case 0, 1:
		f.begin = func() {
			if o := leading(*processes); o != nil {
				o.crash()
			}
		}
		name("the %s crashes", which)
	case 2, 3:
		var o *operator
		f.begin = func() {
			if o = leading(*processes); o != nil {
				o.frozen = true
			}
		}
		f.end = func() {
			if o != nil {
				o.frozen = false
			}
		}
		name("the %s freezes", which)
	case 4:
		f.begin = func() { w.cut(which, apiPlace) }
		f.end = func() { w.heal(which, apiPlace) }
		name("the %s is cut off from the API server", which)
	case 5:
		f.begin = func() { w.cut(which, storePlace) }
		f.end = func() { w.heal(which, storePlace) }
		name("the %s is cut off from the store", which)
	case 6:
		deaf := pick("deaf", 2) == 1
		f.begin = func() { b.bucket.hangs, b.bucket.deaf = true, deaf }
		f.end = func() { b.bucket.hangs, b.bucket.deaf = false, false }
		name("the store hangs (deaf: %t)", deaf)
	case 7:
		by := l.between(10*time.Second, 2*time.Minute, "helper fault", i, "lag")
		f.begin = func() { b.bucket.lag, b.lagged = b.bucket.lag+by, true }
		f.end = func() { b.bucket.lag -= by }
		name("lists of the store lag by %s", by.Round(time.Second))
	case 8:
		f.begin = func() { b.touch(func(o *object) { b.vanishes(o) }, pick("object", 1000)) }
		name("an object vanishes")
	case 9:
		f.begin = func() {
			b.touch(func(o *object) {
				changed := *o
				changed.content, changed.lie = flipped(o.content, l.number("rot", i)), true
				b.bucket.objects[o.Key] = &changed
			}, pick("object", 1000))
		}
		name("an object rots")
	}
	return f
}

// touch does something to one of the objects.
func (b *backups) touch(do func(*object), n int) {
	keys := slices.Sorted(maps.Keys(b.bucket.objects))
	if len(keys) == 0 {
		return
	}
	o := b.bucket.objects[keys[n%len(keys)]]
	b.w.narrate("fault", "it is %s", o.Key)
	do(o)
}

func (b *backups) vanishes(o *object) {
	b.vanished[o.Key] = true
	delete(b.bucket.objects, o.Key)
	b.bucket.changed()
}
