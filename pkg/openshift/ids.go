// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package openshift finds out what OpenShift demands of pods. On OpenShift, each namespace
// reserves users and groups for its pods, and the security context constraint restricted-v2
// refuses all others.
package openshift

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/clock"

	"github.com/etcd-operator/etcd-operator/pkg/manifest"
)

const (
	// usersAnnotation and groupsAnnotation on a namespace hold what it reserves.
	usersAnnotation  = "openshift.io/sa.scc.uid-range"
	groupsAnnotation = "openshift.io/sa.scc.supplemental-groups"

	// apiGroup exists on every OpenShift, and nowhere else.
	apiGroup = "/apis/security.openshift.io"

	// refusalHolds is how long an API server that refuses to say whether it is an OpenShift is not
	// asked again.
	refusalHolds = time.Minute
)

// Namespaces looks up the IDs that namespaces reserve.
type Namespaces struct {
	kube  kubernetes.Interface
	clock clock.PassiveClock

	mu        sync.Mutex
	answered  bool // the API server has said whether it is an OpenShift
	openshift bool
	refused   time.Time // when it last refused to say; zero: never
}

// New returns the Namespaces of an API server, which need not be an OpenShift.
func New(kube kubernetes.Interface, clk clock.PassiveClock) *Namespaces {
	return &Namespaces{kube: kube, clock: clk}
}

// ReservedIDs returns the IDs that a namespace reserves for its pods. They are zero on another
// platform than OpenShift. Other platforms get one request for all namespaces, and one a minute at
// most if they refuse it.
func (n *Namespaces) ReservedIDs(ctx context.Context, namespace string) (manifest.ReservedIDs, error) {
	openshift, err := n.onOpenShift(ctx)
	if err != nil || !openshift {
		return manifest.ReservedIDs{}, err
	}
	ns, err := n.kube.CoreV1().Namespaces().Get(ctx, namespace, metav1.GetOptions{})
	if err != nil {
		return manifest.ReservedIDs{}, fmt.Errorf("read the users that OpenShift reserves for the pods of namespace %s: %w", namespace, err)
	}
	return reservedIDs(ns), nil
}

func (n *Namespaces) onOpenShift(ctx context.Context) (bool, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.answered || !n.refused.IsZero() && n.clock.Since(n.refused) < refusalHolds {
		return n.openshift, nil
	}
	err := n.kube.Discovery().RESTClient().Get().AbsPath(apiGroup).Do(ctx).Error()
	switch {
	case err == nil:
		n.answered, n.openshift = true, true
	case apierrors.IsNotFound(err):
		n.answered = true
	case apierrors.IsForbidden(err):
		// Every user of an OpenShift may look, so it is probably none. But an API server that has
		// just started refuses everything until it has read the roles.
		n.refused = n.clock.Now()
	default:
		return false, fmt.Errorf("ask whether Kubernetes is an OpenShift (GET %s): %w", apiGroup, err)
	}
	return n.openshift, nil
}

// reservedIDs returns the first ID of each range: OpenShift gives it to pods that name none.
// Without an own range, groups are those of users.
func reservedIDs(ns *corev1.Namespace) manifest.ReservedIDs {
	users := ns.Annotations[usersAnnotation]
	groups := ns.Annotations[groupsAnnotation]
	if groups == "" {
		groups = users
	}
	return manifest.ReservedIDs{User: firstOf(users), FSGroup: firstOf(groups)}
}

// firstOf reads ranges such as 1000650000/10000 or 1000-1999, with commas between them. It
// returns nil for anything else.
func firstOf(ranges string) *int64 {
	first, _, _ := strings.Cut(ranges, ",")
	first, _, _ = strings.Cut(first, "/")
	first, _, _ = strings.Cut(first, "-")
	id, err := strconv.ParseUint(first, 10, 31)
	if err != nil {
		return nil
	}
	return new(int64(id)) // at most 31 bits
}
