// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/generated/informers/externalversions"
	etcdlisters "github.com/etcd-operator/etcd-operator/pkg/generated/listers/etcd/v1beta2"
)

// logAgain is the pause before a broken log stream resumes.
const logAgain = time.Second

// A record follows what happens in a namespace from its first moment: pods, events and logs,
// including those of pods that are gone when the test fails.
type record struct {
	clusters etcdlisters.EtcdClusterLister
	pods     corelisters.PodLister
	services corelisters.ServiceLister

	start time.Time
	quit  context.CancelFunc
	wait  func()
	// watchClusters starts to watch EtcdClusters. It may be called again.
	watchClusters func()
	// watchRestores is watchClusters for EtcdRestores.
	watchRestores func()

	mu       sync.Mutex
	timeline []string
	told     []time.Time // of each line of the timeline
	events   []*corev1.Event
	statuses map[string][]v1beta2.ClusterStatus // by cluster, in order
	seen     map[string]string                  // last state of each object in the timeline
	logs     map[string]*tail                   // by container ID
	order    []string                           // container IDs in the order of their start

	podHooks     hooks[*corev1.Pod]
	restoreHooks hooks[*v1beta2.EtcdRestore]
}

func startRecord(n *Namespace, followLogs bool) *record {
	n.t.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(n.t.Context()))
	r := &record{
		start: time.Now(), quit: cancel,
		statuses: map[string][]v1beta2.ClusterStatus{}, seen: map[string]string{}, logs: map[string]*tail{},
	}
	core := informers.NewSharedInformerFactoryWithOptions(n.Kube, 0, informers.WithNamespace(n.Name))
	etcd := externalversions.NewSharedInformerFactoryWithOptions(n.EtcdClusters, 0, externalversions.WithNamespace(n.Name))
	var logs sync.WaitGroup

	pods := core.Core().V1().Pods()
	services := core.Core().V1().Services()
	events := core.Core().V1().Events()
	clusters := etcd.Etcd().V1beta2().EtcdClusters()
	r.pods, r.services, r.clusters = pods.Lister(), services.Lister(), clusters.Lister()

	handle := func(informer cache.SharedIndexInformer, see func(obj any, gone bool)) {
		_, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
			AddFunc:    func(obj any) { see(obj, false) },
			UpdateFunc: func(_, obj any) { see(obj, false) },
			DeleteFunc: func(obj any) {
				if unknown, ok := obj.(cache.DeletedFinalStateUnknown); ok {
					obj = unknown.Obj
				}
				see(obj, true)
			},
		})
		if err != nil {
			n.t.Fatalf("watch namespace %s: %v", n.Name, err)
		}
	}
	handle(pods.Informer(), func(obj any, gone bool) {
		if pod, ok := obj.(*corev1.Pod); ok {
			r.seePod(pod, gone)
			if followLogs {
				r.follow(ctx, &logs, n, pod)
			}
		}
	})
	handle(services.Informer(), func(obj any, gone bool) {
		if service, ok := obj.(*corev1.Service); ok {
			r.addState("service "+service.Name, presence(gone))
		}
	})
	handle(events.Informer(), func(obj any, gone bool) {
		if event, ok := obj.(*corev1.Event); ok && !gone {
			r.seeEvent(event)
		}
	})
	handle(clusters.Informer(), func(obj any, gone bool) {
		if cluster, ok := obj.(*v1beta2.EtcdCluster); ok {
			r.seeCluster(cluster, gone)
		}
	})
	restored := externalversions.NewSharedInformerFactoryWithOptions(n.EtcdClusters, 0, externalversions.WithNamespace(n.Name))
	handle(restored.Etcd().V1beta2().EtcdRestores().Informer(), func(obj any, gone bool) {
		if restore, ok := obj.(*v1beta2.EtcdRestore); ok {
			r.addState("etcdrestore "+restore.Name, restoreLine(restore, gone))
			if !gone {
				r.restoreHooks.call(restore)
			}
		}
	})
	core.Start(ctx.Done())
	core.WaitForCacheSync(ctx.Done())
	// Before the first operator has created the CRD, the informer of clusters would only back
	// off.
	r.watchClusters = func() {
		etcd.Start(ctx.Done())
		etcd.WaitForCacheSync(ctx.Done())
	}
	r.watchRestores = func() {
		restored.Start(ctx.Done())
		restored.WaitForCacheSync(ctx.Done())
	}
	r.wait = func() {
		core.Shutdown()
		etcd.Shutdown()
		restored.Shutdown()
		logs.Wait()
	}
	return r
}

func (r *record) stop() {
	r.quit()
	r.wait()
}

// addState adds a line to the timeline if an object's state has changed.
func (r *record) addState(object, state string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.seen[object] == state {
		return
	}
	r.seen[object] = state
	r.line("%s: %s", object, state)
}

// line adds a line to the timeline. The caller holds the lock.
func (r *record) line(format string, args ...any) {
	now := time.Now()
	r.timeline = append(r.timeline, fmt.Sprintf("%7.2fs "+format, append([]any{now.Sub(r.start).Seconds()}, args...)...))
	r.told = append(r.told, now)
}

func (r *record) seePod(pod *corev1.Pod, gone bool) {
	r.addState("pod "+pod.Name, podLine(pod, gone))
	if !gone {
		r.podHooks.call(pod)
	}
}

func (r *record) seeCluster(cluster *v1beta2.EtcdCluster, gone bool) {
	r.addState("etcdcluster "+cluster.Name, clusterLine(cluster, gone))
	r.mu.Lock()
	defer r.mu.Unlock()
	r.statuses[cluster.Name] = append(r.statuses[cluster.Name], cluster.Status)
}

// statusesOf returns all statuses that an EtcdCluster ever had, in order.
func (r *record) statusesOf(cluster string) []v1beta2.ClusterStatus {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.statuses[cluster])
}

func (r *record) seeEvent(event *corev1.Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	// A repeated event is counted, and a restarted watch delivers all events again.
	i := slices.IndexFunc(r.events, func(e *corev1.Event) bool { return e.UID == event.UID })
	switch {
	case i < 0:
		r.events = append(r.events, event)
	case r.events[i].ResourceVersion == event.ResourceVersion:
		return
	default:
		r.events[i] = event
	}
	r.line("event %s %s/%s %s: %s%s", event.Type, strings.ToLower(event.InvolvedObject.Kind), event.InvolvedObject.Name, event.Reason, event.Message, times(event))
}

func times(event *corev1.Event) string {
	if event.Count > 1 {
		return fmt.Sprintf(" (%d times)", event.Count)
	}
	return ""
}

// eventsOf returns the events of an EtcdCluster in the order of their first occurrence.
func (r *record) eventsOf(cluster string) []*corev1.Event {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(r.events), func(e *corev1.Event) bool {
		return e.InvolvedObject.Kind != v1beta2.EtcdClusterResourceKind || e.InvolvedObject.Name != cluster
	})
}

// follow collects the log of each container that has started, and reads that of a container that
// has restarted again: a broken stream can lose its end, or resume with the next container.
func (r *record) follow(ctx context.Context, running *sync.WaitGroup, n *Namespace, pod *corev1.Pod) {
	statuses := slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses)
	for _, status := range statuses {
		if ended := status.LastTerminationState.Terminated; ended != nil {
			if log := r.endOnce(ended.ContainerID); log != nil {
				running.Go(func() { r.readPrevious(ctx, n, pod.Name, status.Name, ended.ContainerID, log) })
			}
		}
		if status.ContainerID == "" || status.State.Waiting != nil {
			continue
		}
		r.mu.Lock()
		log, known := r.logs[status.ContainerID]
		if !known {
			log = &tail{name: fmt.Sprintf("%s/%s (start %d)", pod.Name, status.Name, status.RestartCount+1), most: 400}
			r.logs[status.ContainerID] = log
			r.order = append(r.order, status.ContainerID)
		}
		r.mu.Unlock()
		if known {
			continue
		}
		running.Go(func() { r.read(ctx, n, pod.Name, status.Name, status.ContainerID, log) })
	}
}

// noKubelet is in the API server's answer to a request for the log of a pod on a simulated node. A thousand
// such pods, each asked again and again, leave no request for the node's Lease.
const noKubelet = "no preferred addresses found"

// read reads a log to its end. If an API server or a kubelet ends meanwhile, read resumes
// after the last line, as long as the same container runs.
func (r *record) read(ctx context.Context, n *Namespace, pod, container, id string, log *tail) {
	opts := &corev1.PodLogOptions{Container: container, Follow: true}
	for {
		stream, err := n.Kube.CoreV1().Pods(n.Name).GetLogs(pod, opts).Stream(ctx)
		if err == nil {
			for lines := scan(stream); lines.Scan(); {
				log.add(lines.Text())
				opts.SinceTime = &metav1.Time{Time: time.Now()}
			}
			stream.Close()
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(logAgain):
		}
		if !r.runs(n.Name, pod, id) || err != nil && strings.Contains(err.Error(), noKubelet) {
			if err != nil {
				log.add("(the log cannot be read: " + err.Error() + ")")
			}
			return
		}
	}
}

func scan(stream io.Reader) *bufio.Scanner {
	lines := bufio.NewScanner(stream)
	lines.Buffer(nil, 1<<20)
	return lines
}

// endOnce returns the log of a container that has ended, the first time that it is asked for.
func (r *record) endOnce(id string) *tail {
	r.mu.Lock()
	defer r.mu.Unlock()
	log := r.logs[id]
	if log == nil || log.ended {
		return nil
	}
	log.ended = true
	return log
}

// readPrevious reads the log of a container that has restarted, in place of the followed one: a
// stream of that may have lost lines, or may still add those of the next container.
func (r *record) readPrevious(ctx context.Context, n *Namespace, pod, container, id string, followed *tail) {
	stream, err := n.Kube.CoreV1().Pods(n.Name).GetLogs(pod, &corev1.PodLogOptions{Container: container, Previous: true}).Stream(ctx)
	if err != nil {
		return
	}
	defer stream.Close()
	followed.mu.Lock()
	whole := &tail{name: followed.name, most: followed.most, ended: true, alarms: slices.Clone(followed.alarms)}
	followed.mu.Unlock()
	lines := scan(stream)
	for lines.Scan() {
		whole.add(lines.Text())
	}
	// A kubelet that no longer has the log says so in one line.
	if lines.Err() != nil || len(whole.lines) < 2 {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.logs[id] = whole
}

// runs reports whether a container of a pod runs, as far as known.
func (r *record) runs(namespace, name, id string) bool {
	pod, err := r.pods.Pods(namespace).Get(name)
	return err == nil && slices.ContainsFunc(slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses), func(s corev1.ContainerStatus) bool {
		return s.ContainerID == id && s.State.Running != nil
	})
}

// alarms returns the alarming lines in the logs of pods with a prefix.
func (r *record) alarms(prefix string) []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var alarms []string
	for _, id := range r.order {
		if log := r.logs[id]; strings.HasPrefix(log.name, prefix) {
			log.mu.Lock()
			alarms = append(alarms, log.alarms...)
			log.mu.Unlock()
		}
	}
	return alarms
}

// starts returns the number of container starts in a pod whose last lines contain a text.
func (r *record) starts(pod, text string) int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	var found int64
	for _, log := range r.logs {
		if strings.HasPrefix(log.name, pod+"/") && slices.ContainsFunc(log.last(log.most), func(line string) bool { return strings.Contains(line, text) }) {
			found++
		}
	}
	return found
}

// A tail keeps the last lines of a log.
type tail struct {
	name string
	most int
	// ended is that the container has ended and another one runs. The record's lock guards it.
	ended bool

	mu      sync.Mutex
	lines   []string
	dropped int
	alarms  []string
}

// alarming matches lines that no log of an operator may contain. A denial by a quota or a
// policy is not the operator's fault; a missing right is.
var alarming = []string{"panic: ", "is forbidden: User ", "DATA RACE", "PRIVATE KEY-"}

func (l *tail) add(line string) {
	const longest = 600
	if len(line) > longest {
		line = line[:longest] + "…"
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lines = append(l.lines, line)
	if slices.ContainsFunc(alarming, func(word string) bool { return strings.Contains(line, word) }) && len(l.alarms) < 5 && !slices.Contains(l.alarms, line) {
		l.alarms = append(l.alarms, line)
	}
	if len(l.lines) > l.most {
		l.dropped += len(l.lines) - l.most/2
		l.lines = slices.Clone(l.lines[len(l.lines)-l.most/2:])
	}
}

// last returns the last lines, at most n.
func (l *tail) last(n int) []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	from := max(0, len(l.lines)-n)
	lines := slices.Clone(l.lines[from:])
	if dropped := l.dropped + from; dropped > 0 {
		lines = slices.Insert(lines, 0, fmt.Sprintf("(%d lines before)", dropped))
	}
	return lines
}
