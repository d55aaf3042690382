// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"

	"github.com/etcd-operator/etcd-operator/pkg/cluster/plan"
)

// errUnconnected is a refusal of all voters, as the operator sees it.
var errUnconnected = fmt.Errorf("add the member: %w", rpctypes.ErrUnhealthy)

const (
	heldForUnconnected = "etcd holds connected members for unconnected until one of them restarts"
	pausesWrites       = "; restart one, and writes wait some seconds: "
	waitsToJoin        = "\npod n pending gate launcher ic=a,b,n"
)

// Seen in a cluster of two voters that had started together: each held the other for unconnected,
// and no third member could join, until somebody restarted one of them.
func TestTheStatusNamesTheRestartThatConnectsMembers(t *testing.T) {
	for name, c := range map[string]struct{ world, want string }{
		"a follower on a volume": {
			"cluster storage=1Gi\nmember a leader claimed launcher\nmember b claimed launcher\nvolume a\nvolume b" + waitsToJoin,
			pausesWrites + "kubectl delete pod b -n ns",
		},
		"a follower in an emptyDir": {
			"cluster\nmember a leader launcher\nmember b launcher" + waitsToJoin,
			pausesWrites + "kubectl exec b -n ns -c etcd -- /launcher stop",
		},
		"the first of two followers": {
			"cluster size=4\nmember c launcher\nmember b launcher\nmember a leader launcher\npod n pending gate ic=a,b,c,n",
			"; restart one: kubectl exec b -n ns -c etcd -- /launcher stop",
		},
		"a follower on a volume before one in an emptyDir": {
			"cluster size=4\nmember a leader launcher\nmember b launcher\nmember c claimed\nvolume c\npod n pending gate ic=a,b,c,n",
			"; restart one: kubectl delete pod c -n ns",
		},
		"a follower before a leader on a volume": {
			"cluster\nmember a leader claimed\nmember b launcher\nvolume a" + waitsToJoin,
			pausesWrites + "kubectl exec b -n ns -c etcd -- /launcher stop",
		},
		"the leader, if the follower has no launcher": {
			"cluster\nmember a leader launcher\nmember b" + waitsToJoin,
			pausesWrites + "kubectl exec a -n ns -c etcd -- /launcher stop",
		},
		"the leader on a volume, if the follower has no launcher": {
			"cluster\nmember a leader claimed\nmember b\nvolume a" + waitsToJoin,
			pausesWrites + "kubectl delete pod a -n ns",
		},
		"a volume whose pod does not mount it": {
			"cluster\nmember a leader\nmember b launcher\nvolume b" + waitsToJoin,
			pausesWrites + "kubectl exec b -n ns -c etcd -- /launcher stop",
		},
		"a volume that is gone": {
			"cluster\nmember a leader launcher\nmember b claimed\nvolume b lost" + waitsToJoin,
			pausesWrites + "kubectl exec a -n ns -c etcd -- /launcher stop",
		},
		"a new pod would follow an edit": {
			"cluster storage=1Gi template=new\nmember a leader claimed launcher template=old\nmember b claimed template=old\nvolume a\nvolume b" + waitsToJoin,
			pausesWrites + "kubectl exec a -n ns -c etcd -- /launcher stop",
		},
		"Kubernetes refuses new pods": {
			"cluster storage=1Gi update-refused\nmember a leader claimed launcher\nmember b claimed\nvolume a\nvolume b" + waitsToJoin,
			pausesWrites + "kubectl exec a -n ns -c etcd -- /launcher stop",
		},
		"a pod that is being deleted": {
			"cluster\nmember a leader launcher\nmember b launcher deleting" + waitsToJoin,
			pausesWrites + "kubectl exec a -n ns -c etcd -- /launcher stop",
		},
		"a removal": {
			"cluster size=2\nmember a leader launcher\nmember b launcher\nmember c launcher",
			"; restart one: kubectl exec b -n ns -c etcd -- /launcher stop",
		},
		"the removal of a member whose disk hangs": {
			"cluster size=2\nmember a leader launcher\nmember b launcher\nmember c stalled=1m launcher",
			pausesWrites + "kubectl exec b -n ns -c etcd -- /launcher stop",
		},
		"seeds and busybox": {
			"cluster\nmember a leader\nmember b" + waitsToJoin,
			", and no command restarts one with its data: set spec.size to 2 for now, and set spec.version to another patch release, which the operator installs in place",
		},
		"a replacement is to join": {
			"cluster template=new size=2\nmember a leader template=old\nmember b template=old\npod n pending gate ic=a,b,n",
			", and no command restarts one with its data: undo the last edit of spec.pod, and set spec.version to another patch release, which the operator installs in place",
		},
		"pods of v0.9.4": {
			"cluster\nmember a leader legacy\nmember b legacy" + waitsToJoin,
			"",
		},
	} {
		t.Run(name, func(t *testing.T) {
			reason, changes := lookFor(t, 4*standstillAfter, always(c.world), errUnconnected)
			if want := heldForUnconnected + c.want; !strings.Contains(reason+"\n", want) {
				t.Errorf("the reason\n%q does not contain\n%q", reason, want)
			}
			if changes != 1 {
				t.Errorf("it was written %d times", changes)
			}
		})
	}
}

// The remaining voters are no quorum for one more member, and etcd is right to refuse it.
func TestNoRestartIsAdvisedWhereItDoesNotHelp(t *testing.T) {
	for name, c := range map[string]struct {
		world string
		err   error
	}{
		"a voter is down":      {"cluster size=4\nmember a leader launcher\nmember b launcher\nmember c down\npod n pending gate ic=a,b,c,n", errUnconnected},
		"one of two is silent": {"cluster\nmember a leader launcher\nmember b down ready" + waitsToJoin, errUnconnected},
		"another refusal":      {"cluster\nmember a leader launcher\nmember b launcher" + waitsToJoin, rpctypes.ErrMemberNotEnoughStarted},
		"the same words":       {"cluster\nmember a leader launcher\nmember b launcher" + waitsToJoin, errors.New("etcdserver: unhealthy cluster")},
		"an import":            {"cluster size=1 import=begun\nmember old-0 leader former\nmember a launcher\nmember b learner unstarted pending gate launcher", errUnconnected},
	} {
		t.Run(name, func(t *testing.T) {
			if reason, _ := lookFor(t, 4*standstillAfter, always(c.world), c.err); reason == "" || strings.Contains(reason, heldForUnconnected) {
				t.Errorf("the reason is %q", reason)
			}
		})
	}
}

// The last refusal may be from a time at which a member was down.
func TestARestartIsAdvisedOnlyWhileMembersAreHealthy(t *testing.T) {
	world := func(second int) string {
		c := ""
		if second < 150 || second > 300 {
			c = "down"
		}
		return "cluster size=4\nmember a leader launcher\nmember b launcher\nmember c " + c + "\npod n pending gate ic=a,b,c,n"
	}
	for d, want := range map[time.Duration]bool{140 * time.Second: false, 170 * time.Second: false, 220 * time.Second: true, 340 * time.Second: false} {
		if reason, _ := lookFor(t, d, world, errUnconnected); reason == "" || strings.Contains(reason, heldForUnconnected) != want {
			t.Errorf("after %s, the reason is %q", d, reason)
		}
	}
}

// What the status says of an upgrade is so: nothing else precedes it then.
func TestAnUpgradeRestartsMembersWhoseNumberIsTheSize(t *testing.T) {
	for _, world := range []string{
		"cluster size=2 running=3.6.15\nmember a leader\nmember b",
		"cluster size=3 running=3.6.15\nmember a leader\nmember b\nmember c",
		"cluster size=2 running=3.6.17 busybox\nmember a leader\nmember b",
	} {
		if s, is := plan.Plan(look(t, world)).(plan.SetVersion); !is || s.Pod != "b" || s.To != "3.6.16" {
			t.Errorf("%s: %s", world, plan.Plan(look(t, world)))
		}
	}
	if s, is := plan.Plan(look(t, "cluster size=3 running=3.6.15\nmember a leader\nmember b"+waitsToJoin)).(plan.SetVersion); is {
		t.Errorf("the size is larger: %s", s)
	}
}
