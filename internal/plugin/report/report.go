// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package report

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/etcd-operator/etcd-operator/internal/plugin/access"
	"github.com/etcd-operator/etcd-operator/internal/plugin/doctor"
	"github.com/etcd-operator/etcd-operator/internal/plugin/observe"
	"github.com/etcd-operator/etcd-operator/internal/plugin/operators"
	"github.com/etcd-operator/etcd-operator/internal/plugin/summary"
	"github.com/etcd-operator/etcd-operator/internal/version"
)

const (
	// logLines and logBytes bound the log of one container.
	logLines, logBytes = 5000, 4 << 20
)

// Reporter collects reports of a namespace.
type Reporter struct {
	Access   *access.Access
	Observer *observe.Observer
	Now      func() time.Time
}

// Collect makes the report of a cluster. What can't be read is named in it.
func (r *Reporter) Collect(ctx context.Context, name string) (*Archive, error) {
	c, err := r.Observer.Observe(ctx, name)
	if err != nil {
		return nil, err
	}
	now := r.Now()
	a := &Archive{dir: fmt.Sprintf("etcd-report-%s-%s", name, now.UTC().Format("20060102-150405")), now: now}
	if err := r.status(a, c); err != nil {
		return nil, err
	}
	r.findings(ctx, a, c)
	if err := r.objects(ctx, a, c); err != nil {
		return nil, err
	}
	for i := range c.Pods {
		r.logs(ctx, a, "members", &c.Pods[i])
	}
	r.operatorLogs(ctx, a)
	return a, nil
}

func (r *Reporter) status(a *Archive, c *observe.Cluster) error {
	s := summary.Of(c, nil)
	var text bytes.Buffer
	fmt.Fprintf(&text, "%s, kubectl-etcd %s\n\n", c.Time.UTC().Format(time.RFC3339), version.Version)
	if err := s.Print(&text, c.Time, summary.Style{Wide: true}); err != nil {
		return err
	}
	a.text("status.txt", text.String())
	content, err := json.MarshalIndent(s, "", "    ")
	if err != nil {
		return err
	}
	a.text("status.json", string(content)+"\n")
	return nil
}

func (r *Reporter) findings(ctx context.Context, a *Archive, c *observe.Cluster) {
	d := &doctor.Doctor{Access: r.Access, Now: r.Now}
	d.Environment(ctx)
	d.Cluster(ctx, c)
	var text strings.Builder
	for _, f := range d.Findings() {
		fmt.Fprintf(&text, "%s  %s: %s\n", f.Level, f.Check, f.Message)
	}
	a.text("doctor.txt", text.String())
}

// objects adds what belongs to the cluster.
func (r *Reporter) objects(ctx context.Context, a *Archive, c *observe.Cluster) error {
	kube, etcd, namespace := r.Access.Kube, r.Access.Etcd.EtcdV1beta2(), r.Access.Namespace
	if err := a.object("etcdcluster", "EtcdCluster", c.Object); err != nil {
		return err
	}
	own := metav1.ListOptions{LabelSelector: "app=etcd,etcd_cluster=" + c.Object.Name}
	for _, o := range []struct {
		name, kind string
		read       func() (any, error)
	}{
		{"etcdbackups", "EtcdBackupList", func() (any, error) { return etcd.EtcdBackups(namespace).List(ctx, metav1.ListOptions{}) }},
		{"etcdrestores", "EtcdRestoreList", func() (any, error) { return etcd.EtcdRestores(namespace).List(ctx, metav1.ListOptions{}) }},
		{"pods", "PodList", func() (any, error) { return kube.CoreV1().Pods(namespace).List(ctx, own) }},
		{"services", "ServiceList", func() (any, error) { return kube.CoreV1().Services(namespace).List(ctx, own) }},
		{"volumes", "PersistentVolumeClaimList", func() (any, error) { return kube.CoreV1().PersistentVolumeClaims(namespace).List(ctx, own) }},
		{"budgets", "PodDisruptionBudgetList", func() (any, error) {
			return kube.PolicyV1().PodDisruptionBudgets(namespace).List(ctx, own)
		}},
		{"leases", "LeaseList", func() (any, error) {
			return kube.CoordinationV1().Leases(namespace).List(ctx, metav1.ListOptions{})
		}},
		{"events", "EventList", func() (any, error) { return r.events(ctx, c) }},
		{"nodes", "NodeList", func() (any, error) { return r.nodes(ctx, c) }},
	} {
		object, err := o.read()
		if apierrors.IsNotFound(err) {
			continue // a kind that nobody has registered
		}
		if err == nil {
			err = a.object(o.name, o.kind, object)
		}
		if err != nil {
			a.failed(o.name, err)
		}
	}
	return nil
}

// events are those of the cluster, its pods, and what backs it up and restores it.
func (r *Reporter) events(ctx context.Context, c *observe.Cluster) (*corev1.EventList, error) {
	list, err := r.Access.Kube.CoreV1().Events(r.Access.Namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	list.Items = slices.DeleteFunc(list.Items, func(e corev1.Event) bool {
		return !strings.HasPrefix(e.InvolvedObject.Name, c.Object.Name) && !strings.HasPrefix(e.InvolvedObject.Kind, "Etcd")
	})
	return list, nil
}

// nodes are those of the members.
func (r *Reporter) nodes(ctx context.Context, c *observe.Cluster) (*corev1.NodeList, error) {
	list := &corev1.NodeList{}
	for _, name := range slices.Sorted(maps.Keys(c.Zones)) {
		node, err := r.Access.Kube.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return nil, err
		}
		node.Status.Images = nil // of all that run there
		list.Items = append(list.Items, *node)
	}
	return list, nil
}

// operatorLogs adds the pods and logs of the operators that lead.
func (r *Reporter) operatorLogs(ctx context.Context, a *Archive) {
	for _, program := range operators.Programs {
		found, err := operators.Find(ctx, r.Access, program)
		if err != nil {
			a.failed("operators/"+program, err)
		}
		for _, o := range found {
			if o.Pod == "" {
				continue
			}
			pod, err := r.Access.Kube.CoreV1().Pods(o.Namespace).Get(ctx, o.Pod, metav1.GetOptions{})
			if apierrors.IsNotFound(err) { // a Lease outlives its holder
				a.text("operators/"+o.Pod+".gone", fmt.Sprintf("A Lease of %s names this pod of namespace %s. The pod does not exist. It renewed the Lease last at %s.\n", program, o.Namespace, o.Renewed.UTC().Format(time.RFC3339)))
				continue
			}
			if err == nil {
				err = a.object("operators/"+o.Pod, "Pod", pod)
			}
			if err != nil {
				a.failed("operators/"+o.Pod, err)
				continue
			}
			r.logs(ctx, a, "operators", pod)
		}
	}
}

// logs adds the logs of a pod's containers, and those from before their last restart.
func (r *Reporter) logs(ctx context.Context, a *Archive, dir string, pod *corev1.Pod) {
	for _, s := range slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses) {
		name := fmt.Sprintf("%s/%s-%s", dir, pod.Name, s.Name)
		r.log(ctx, a, name+".log", pod, s.Name, false)
		if s.RestartCount > 0 {
			r.log(ctx, a, name+"-previous.log", pod, s.Name, true)
		}
	}
}

func (r *Reporter) log(ctx context.Context, a *Archive, name string, pod *corev1.Pod, container string, previous bool) {
	lines, limit := int64(logLines), int64(logBytes)
	content, err := r.Access.Kube.CoreV1().Pods(pod.Namespace).GetLogs(pod.Name, &corev1.PodLogOptions{
		Container: container, Previous: previous, Timestamps: true, TailLines: &lines, LimitBytes: &limit,
	}).DoRaw(ctx)
	if err != nil {
		a.failed(name, err)
		return
	}
	a.text(name, string(content))
}
