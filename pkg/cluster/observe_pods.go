// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"github.com/etcd-operator/etcd-operator/pkg/cluster/plan"
	"github.com/etcd-operator/etcd-operator/pkg/manifest"
	"github.com/etcd-operator/etcd-operator/pkg/notice"
)

func (c *Cluster) observePods(ctx context.Context, o *plan.Observation) error {
	lister := c.cfg.Pods.Pods(c.obj.Namespace)
	if err := c.findStrays(ctx, lister, o); err != nil {
		return err
	}
	own := labels.SelectorFromSet(o.Names.Labels())
	cached, err := lister.List(own)
	if err != nil {
		return fmt.Errorf("pods of the cluster: %w", err)
	}
	pods, doubtful := c.podWrites.merge(cached, o.Now)
	for _, name := range doubtful {
		pod, err := c.cfg.Kube.CoreV1().Pods(c.obj.Namespace).Get(ctx, name, metav1.GetOptions{})
		switch {
		case apierrors.IsNotFound(err):
			c.podWrites.forget(name)
			delete(c.shown, name)
			pods = slices.DeleteFunc(pods, func(p *corev1.Pod) bool { return p.Name == name })
		case err != nil:
			return fmt.Errorf("pod %s: %w", name, err)
		default:
			if err := c.showPod(ctx, pod, o.Now); err != nil {
				return err
			}
		}
	}
	maps.DeleteFunc(c.deleted, func(uid types.UID, _ time.Time) bool {
		return !slices.ContainsFunc(pods, func(pod *corev1.Pod) bool { return pod.UID == uid })
	})
	pods = slices.DeleteFunc(pods, func(pod *corev1.Pod) bool { return c.goneUnseen(ctx, pod, o.Now) })
	for _, pod := range pods {
		if !metav1.IsControlledBy(pod, c.obj) {
			if pod.DeletionTimestamp == nil {
				o.PodsOfOthers++
				if manifest.PodStateOf(pod).Ready {
					o.ReadyPodsOfOthers = append(o.ReadyPodsOfOthers, pod.Name)
				}
			}
			continue
		}
		p := manifest.PodStateOf(pod)
		c.sightings.see(&p, pod, o.Now)
		p.MetadataOutdated = manifest.MetadataOutdated(c.obj, pod, c.templateFor(p, o.Template)) && !c.postponed.holds(metadataOf(pod.Name), o.Now) &&
			!c.postponed.holds(c.forThisSpec(metadataOf(pod.Name)), o.Now)
		p.Unlabelled = !own.Matches(labels.Set(pod.Labels))
		p.RelabelRefused = c.postponed.refusal(labelsOf(pod.Name), o.Now)
		p.NotePutOff = c.postponed.holds(noteOn(pod.Name), o.Now)
		o.WriteUndone = cmp.Or(o.WriteUndone, c.postponed.lastRefusal(noteOn(pod.Name), o.Now))
		p.DeletePutOff = c.postponed.holds(deletionOfPod(pod.Name), o.Now)
		refused := c.refusedTo(deletionOfPod(pod.Name), o.Now)
		p.DeleteRefused = refused != ""
		o.WriteUndone = cmp.Or(o.WriteUndone, refused)
		p.ImagePutOff = c.postponed.holds(changeOfImage(pod.Name), o.Now)
		o.ImageRefused = cmp.Or(o.ImageRefused, c.refusedTo(changeOfImage(pod.Name), o.Now))
		if p.DataOwner.Known {
			what := asOwner(p.Name, p.DataOwner)
			p.OwnerPutOff = c.postponed.holds(what, o.Now)
			if why := c.postponed.lastRefusal(what, o.Now); why != "" {
				p.Problem += "; " + notice.Shorten(why, 500)
			}
		}
		if at, ok := c.deleted[p.UID]; ok && !p.Deleting {
			p.Deleting, p.DeleteBy = true, at.Add(manifest.DeleteMargin+manifest.PodGrace(pod))
		}
		if before, ok := c.restarting[p.UID]; ok {
			// Until the kubelet has seen the restart, it reports the former etcd.
			if p.Restarts > before {
				delete(c.restarting, p.UID)
			} else {
				p.Restarting = true
			}
		}
		p.Ready = p.Ready && !p.Restarting
		c.sightings.seeReady(&p, o.Now)
		c.sightings.seeStartup(&p)
		c.sightings.seeServing(p, o.Now)
		o.Pods = append(o.Pods, p)
	}
	gone := func(uid types.UID) bool {
		return !slices.ContainsFunc(o.Pods, func(p manifest.PodState) bool { return p.UID == uid })
	}
	maps.DeleteFunc(c.restarting, func(uid types.UID, _ int32) bool { return gone(uid) })
	c.sightings.forget(gone)
	return nil
}
