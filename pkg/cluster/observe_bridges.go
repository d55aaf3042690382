// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/cluster/plan"
	"github.com/etcd-operator/etcd-operator/pkg/manifest"
)

const (
	// bridgePeriod is the time between two reads of a bridged Service and the operator's slices.
	// Few clusters have any, and nothing else of them is watched.
	bridgePeriod = 15 * time.Second
	// bridgeRetry is the time after a failed read.
	bridgeRetry = 5 * time.Second
)

// bridges are the Services of others that lead to the members, by name.
type bridges map[string]*bridge

type bridge struct {
	// readNext is when to read both again.
	readNext time.Time
	known    bool
	service  *corev1.Service // nil: there is none
	slices   map[corev1.IPFamily]*discoveryv1.EndpointSlice
	// problem is the last reported one of the Service.
	problem string
	// unread is the API server's refusal of the last read; "" if it was none.
	unread string
	// unfinished is true from the begin of a write of the slices until all of them are written.
	unfinished bool
}

// due reports whether a Service or its slices must be read again.
func (b bridges) due(now time.Time) bool {
	for _, bridge := range b {
		if !now.Before(bridge.readNext) {
			return true
		}
	}
	return false
}

func writeOfBridge(service string) string { return "write the EndpointSlices of service " + service }

func readOfBridge(service string) string { return "read the EndpointSlices of service " + service }

// observeBridges fills in what is known of bridged Services. A failed read delays nothing else.
func (c *Cluster) observeBridges(ctx context.Context, o *plan.Observation) {
	names := plan.BridgeNames(&o.Spec, &o.Status)
	maps.DeleteFunc(c.bridges, func(name string, _ *bridge) bool { return !slices.Contains(names, name) })
	for _, name := range names {
		b := c.bridges[name]
		if b == nil {
			b = &bridge{slices: map[corev1.IPFamily]*discoveryv1.EndpointSlice{}}
			c.bridges[name] = b
		}
		if !o.Now.Before(b.readNext) {
			c.readBridge(ctx, name, b, o.Now)
		}
		o.Bridges = append(o.Bridges, c.bridgeState(name, b, o))
	}
}

// readBridge reads a Service, and the operator's slices of it.
func (c *Cluster) readBridge(ctx context.Context, name string, b *bridge, now time.Time) {
	b.readNext = now.Add(bridgePeriod)
	err := c.tryReadBridge(ctx, name, b)
	if err == nil {
		b.known, b.unread = true, ""
		delete(c.notices.refused, readOfBridge(name))
		return
	}
	b.readNext = now.Add(bridgeRetry)
	c.log.WithError(err).Warnf("could not %s", readOfBridge(name))
	if refused(err) {
		b.unread = err.Error()
		c.notices.writeRefused(readOfBridge(name), err, bridgeRetry)
	}
}

func (c *Cluster) tryReadBridge(ctx context.Context, name string, b *bridge) error {
	service, err := c.cfg.Kube.CoreV1().Services(c.obj.Namespace).Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		service, err = nil, nil
	}
	if err != nil {
		return fmt.Errorf("read service %s: %w", name, err)
	}
	b.service = service
	for _, family := range manifest.BridgeFamilies {
		wanted := service != nil && slices.Contains(service.Spec.IPFamilies, family)
		if b.known && !wanted && b.slices[family] == nil {
			continue
		}
		live, err := c.endpointSlices().Get(ctx, manifest.BridgeName(name, family), metav1.GetOptions{})
		switch {
		case apierrors.IsNotFound(err) || err == nil && manifest.BelongsToOthers(live, c.obj):
			delete(b.slices, family)
		case err != nil:
			return fmt.Errorf("read the EndpointSlice of service %s: %w", name, err)
		default:
			b.slices[family] = live
		}
	}
	return nil
}

// bridgeState returns what a plan needs to know of a Service.
func (c *Cluster) bridgeState(name string, b *bridge, o *plan.Observation) plan.Bridge {
	state := plan.Bridge{Service: name, Known: b.known, PutOff: c.postponed.holds(writeOfBridge(name), o.Now)}
	state.Refused = cmp.Or(b.unread, c.postponed.lastRefusal(writeOfBridge(name), o.Now))
	live := b.live()
	state.Leads = manifest.BridgeEndsOf(live)
	spec := bridgeSpec(&o.Spec, name)
	if spec == nil || !b.known {
		return state
	}
	problem := bridgeProblem(name, b.service, c.obj)
	if b.problem != problem {
		if b.problem = problem; problem != "" {
			c.notices.bridgeHeld(problem)
		}
	}
	if problem != "" {
		state.Refused = cmp.Or(state.Refused, problem)
		return state
	}
	state.Wanted, state.Families, state.NotReady = true, b.service.Spec.IPFamilies, b.service.Spec.PublishNotReadyAddresses
	if manifest.Headless(b.service) {
		state.Hostnames = spec.Hostnames
	}
	state.Edited = bridgeEdits(live, manifest.BuildBridge(c.obj, b.service, state.Leads))
	return state
}

// live are the operator's slices of the Service.
func (b *bridge) live() (all []*discoveryv1.EndpointSlice) {
	for _, family := range manifest.BridgeFamilies {
		if s := b.slices[family]; s != nil {
			all = append(all, s)
		}
	}
	return all
}

func bridgeSpec(spec *api.ClusterSpec, name string) *api.ServiceBridge {
	if spec.Service == nil {
		return nil
	}
	i := slices.IndexFunc(spec.Service.Bridges, func(b api.ServiceBridge) bool { return b.Name == name })
	if i < 0 {
		return nil
	}
	return &spec.Service.Bridges[i]
}

// bridgeProblem says why a Service can't lead to the members; "" if it can.
func bridgeProblem(name string, svc *corev1.Service, owner *api.EtcdCluster) string {
	const field = " (spec.service.bridges) "
	switch {
	case svc == nil:
		return "Service " + name + field + "does not exist: create it, or remove it from the spec"
	case metav1.IsControlledBy(svc, owner):
		return "Service " + name + field + "is the EtcdCluster's own: remove it from the list"
	case svc.Spec.Type == corev1.ServiceTypeExternalName:
		return "Service " + name + field + "leads to the name " + svc.Spec.ExternalName + ": make it a Service of another type, or remove it from the list"
	case !manifest.Bridgeable(svc):
		return "Service " + name + field + "has no port for clients of etcd: add one with the target port 2379, or remove it from the list"
	}
	return ""
}

// bridgeEdits says how slices differ from those that the operator would write for the same
// endpoints.
func bridgeEdits(live, want []*discoveryv1.EndpointSlice) string {
	var edits []string
	for _, l := range live {
		i := slices.IndexFunc(want, func(w *discoveryv1.EndpointSlice) bool { return w.Name == l.Name })
		if i < 0 {
			edits = append(edits, "endpoints")
			continue
		}
		if _, edited := manifest.UpdatedBridge(l, want[i]); edited != "" {
			edits = append(edits, edited)
		}
	}
	return strings.Join(slices.Compact(edits), ", ")
}
