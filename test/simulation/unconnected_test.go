// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"regexp"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/etcd"
)

const (
	// misjudgment is how the status begins its advice where etcd holds connected members for
	// unconnected, and noCommand is in it where a person has to edit the spec.
	misjudgment = "etcd holds connected members for unconnected"
	noCommand   = "no command restarts one with its data"
	// adviceLasts is the least time between two acts of the person who follows the advice.
	adviceLasts = 3 * time.Minute
	// calmBeforeAdvice is for how long nothing has happened before that person acts: whether the
	// advice is right can then be known.
	calmBeforeAdvice = 2 * time.Minute
)

var (
	deletesPod  = regexp.MustCompile(`: kubectl delete pod (\S+) -n ` + namespace + `(;|$)`)
	stopsEtcd   = regexp.MustCompile(`: kubectl exec (\S+) -n ` + namespace + ` -c etcd -- (\S+) stop(;|$)`)
	setsSize    = regexp.MustCompile(`set spec\.size to (\d+) for now`)
	setsVersion = regexp.MustCompile(`set spec\.version to another patch release`)
)

// adviser is the person who follows the status where etcd holds connected members for unconnected.
type adviser struct {
	acted time.Time
	size  int // to which to return; 0: the size is as it was
}

// reconnect does what the status advises.
func (w *world) reconnect(obj *api.EtcdCluster) {
	a := &w.adviser
	if a.size > 0 && obj.Spec.Size != a.size && w.asSpecified(obj) {
		w.narrate("person", "sets the size back to %d", a.size)
		w.api.edit("etcdclusters", clusterName, func(o metav1.Object) { o.(*api.EtcdCluster).Spec.Size = a.size })
		a.size = 0
		return
	}
	_, advice, is := strings.Cut(obj.Status.Reason, misjudgment)
	if !is || time.Since(a.acted) < adviceLasts || w.quietFor() < calmBeforeAdvice {
		return
	}
	if name := w.taker(strings.Contains(obj.Status.Reason, "to succeed: add ")); name != "" {
		w.fail("the status advises a restart, and %s takes changes: %s", name, obj.Status.Reason)
		return
	}
	a.acted = time.Now()
	if found := deletesPod.FindStringSubmatch(advice); found != nil {
		w.narrate("person", "deletes pod %s, as the status advises", found[1])
		pod := w.api.pod(found[1])
		switch {
		case pod == nil:
		case claimOf(pod) == "":
			w.fail("the status advises to delete pod %s, and the data would be lost", pod.Name)
		default:
			w.api.remove(w.api.shelves["pods"], storedKey(namespace, pod.Name), nil)
		}
	} else if found := stopsEtcd.FindStringSubmatch(advice); found != nil {
		w.stopEtcd(found[1], found[2])
	} else if setsVersion.MatchString(advice) && !strings.Contains(advice, "undo") {
		w.upgradeInPlace(obj, setsSize.FindStringSubmatch(advice))
	}
}

// stopEtcd is `etcd-launcher stop` in the etcd container of a pod.
func (w *world) stopEtcd(name, launcherPath string) {
	w.narrate("person", "stops etcd in pod %s, as the status advises", name)
	pod := w.api.pod(name)
	if pod == nil {
		return
	}
	if c := pod.Spec.Containers[0]; launcher(c) == nil || c.Command[0] != launcherPath {
		w.fail("the status advises to run %s in pod %s, which does not have it", launcherPath, name)
		return
	}
	for _, n := range w.nodes {
		if r := n.runOf(name); r != nil && r.uid == pod.UID && r.proc != nil {
			r.proc.stop("a person stops it")
		}
	}
}

// upgradeInPlace sets another version, and the number of members as the size.
func (w *world) upgradeInPlace(obj *api.EtcdCluster, size []string) {
	if w.adviser.size > 0 {
		return // the operator follows
	}
	w.adviser.size = obj.Spec.Size
	w.api.edit("etcdclusters", clusterName, func(o metav1.Object) {
		spec := &o.(*api.EtcdCluster).Spec
		if size != nil {
			n, err := strconv.Atoi(size[1])
			must(err)
			spec.Size = n
		}
		if spec.Version = oldVersion; obj.Spec.Version == oldVersion {
			spec.Version = newVersion
		}
		w.narrate("person", "sets the size to %d and the version to %s, as the status advises", spec.Size, spec.Version)
	})
}

// taker returns the name of a voter that sees the others as connected, or enough of them to add a
// member; "" if there is none.
func (w *world) taker(add bool) string {
	h := w.current()
	if h == nil {
		return "nobody"
	}
	voters := h.machine.voters()
	least := len(voters)
	if add {
		least = etcd.Quorum(len(voters) + 1)
	}
	for _, id := range voters {
		if m := w.memberAt(h.machine.members[id].url); m != nil && m.id == id && !m.stopped && m.connected() >= least {
			return w.nameOf(m, id)
		}
	}
	return ""
}
