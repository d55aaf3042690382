// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"fmt"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/etcd-operator/etcd-operator/pkg/etcd"
)

// DeleteMargin is how much longer than its grace period a pod's deletion may take before its
// node counts as lost.
const DeleteMargin = 10 * time.Second

// isLegacy reports whether v0.9.4 made a pod.
func isLegacy(pod *corev1.Pod) bool { return pod.Spec.RestartPolicy == corev1.RestartPolicyNever }

// PodStateOf reads what a plan needs from a pod.
func PodStateOf(pod *corev1.Pod) PodState {
	p := PodState{
		Name:      pod.Name,
		UID:       pod.UID,
		Seen:      pod.ResourceVersion,
		IP:        pod.Status.PodIP,
		Node:      pod.Spec.NodeName,
		Created:   pod.CreationTimestamp.Time,
		Scheduled: pod.Spec.NodeName != "",
		Deleting:  pod.DeletionTimestamp != nil,
		Previous:  pod.Annotations[PreviousVersionAnnotation],
		Legacy:    isLegacy(pod),
		Template:  Template{Pod: pod.Annotations[PodTemplateAnnotation], Volume: pod.Annotations[VolumeTemplateAnnotation]},
		Finished:  pod.Status.Phase == corev1.PodFailed || pod.Status.Phase == corev1.PodSucceeded,
		Ready:     hasCondition(pod, corev1.PodReady, corev1.ConditionTrue),
	}
	for _, ip := range pod.Status.PodIPs {
		p.IPs = append(p.IPs, ip.IP)
	}
	if p.Deleting {
		p.DeleteBy = pod.DeletionTimestamp.Add(DeleteMargin)
		if p.Finished {
			p.KeptBy = strings.Join(pod.Finalizers, ", ")
		}
	}
	if i := slices.IndexFunc(pod.Spec.Containers, isEtcd); i >= 0 {
		c := pod.Spec.Containers[i]
		p.Image, p.Version = imageAskedFor(pod, c.Image)
		p.ImageOnRecord = recordsImage(pod)
		p.Admitted = c.Image
		tagged, _, _ := strings.Cut(p.Image, "@")
		p.LiteralTag = p.Version != "" && strings.HasSuffix(tagged, ":"+p.Version)
		p.Seed, p.InitialCluster = bootstrapFlags(c.Command)
		p.Source = pod.Annotations[sourceAnnotation]
		p.RunsAs = runsAs(pod, &c)
		probes := []*corev1.Probe{c.StartupProbe, c.ReadinessProbe, c.LivenessProbe}
		p.ShellProbes, p.LivezProbes = slices.ContainsFunc(probes, needsShell), slices.ContainsFunc(probes, needsLivez)
		p.SnapshotCount = snapshotCount(c)
		p.ManyLearners = slices.ContainsFunc(c.Env, func(e corev1.EnvVar) bool { return e.Name == maxLearnersEnv })
	}
	p.Claimed = slices.ContainsFunc(pod.Spec.Volumes, func(v corev1.Volume) bool {
		return v.PersistentVolumeClaim != nil && v.PersistentVolumeClaim.ClaimName == pod.Name
	})
	if !ptr.Deref(pod.Spec.ShareProcessNamespace, false) {
		p.Launcher = launcherIn(pod)
	}
	p.Preparing = preparing(pod)
	p.Guarded, p.Noted = heedsNote(pod), pod.Annotations[StartedAnnotation] != ""
	for _, s := range pod.Status.InitContainerStatuses {
		if s.Name == CheckDNSContainer {
			passed := s.State.Terminated != nil && s.State.Terminated.ExitCode == 0
			p.Reaching = !passed && reaches(pod)
			p.AtGate = passed || s.State.Running != nil && !p.Reaching
			p.Dataless, p.DataOwner = missesData(lastEnd(s)), reportedOwner(lastEnd(s))
		}
	}
	for _, s := range pod.Status.ContainerStatuses {
		if s.Name == EtcdContainer {
			p.PeerCAs = heldCAs(pod, s)
			p.readEtcd(s, launcherWaits(pod, s))
			p.Unproven = p.Started && mayBeLauncher(pod, s)
			id, image, noted := strings.Cut(pod.Annotations[ReplacedAnnotation], " ")
			p.Restarting = noted && id == s.ContainerID && image != p.Admitted
		}
	}
	p.Problem, p.ProblemKind = problemOf(pod)
	if !p.Scheduled {
		p.Crowded = crowdedNodes(p.Problem)
	}
	p.OffVolume = !p.Scheduled && slices.ContainsFunc(volumeTroubles, func(s string) bool { return strings.Contains(p.Problem, s) })
	p.DataServer = dataServerOf(pod)
	return p
}

// readEtcd reads the state of the etcd container. With waits, its launcher has not started etcd.
func (p *PodState) readEtcd(s corev1.ContainerStatus, waits bool) {
	p.Restarts = s.RestartCount
	p.Container, p.StartingUp = s.ContainerID, s.Started != nil && !*s.Started
	p.Waiting = waits && s.State.Running != nil
	p.Running = s.State.Running != nil && !waits
	p.Started = !waits && (p.Running || s.State.Terminated != nil || s.LastTerminationState.Terminated != nil || s.RestartCount > 0)
	p.Dataless = p.Dataless || s.State.Running == nil && missesData(lastEnd(s))
	if last := lastEnd(s); last != nil {
		p.Ended = last.FinishedAt.Time
	}
	if w := s.State.Waiting; w != nil {
		p.Crashing = w.Reason == "CrashLoopBackOff"
		p.BadImage = slices.Contains(imageTroubles, w.Reason)
	}
}

// Answered notes that etcd has answered from the pod. The kubelet reports that later.
func (p *PodState) Answered() {
	if p.Waiting {
		p.Waiting, p.Running, p.Started = false, true, true
	}
	p.Unproven = false
}

// needsShell reports whether a probe runs a shell. Images of etcd have none since 3.5.
func needsShell(p *corev1.Probe) bool {
	return p != nil && p.Exec != nil && len(p.Exec.Command) > 0 && slices.Contains([]string{"sh", "ash", "bash"}, path.Base(p.Exec.Command[0]))
}

// needsLivez reports whether a probe asks for what etcd serves since Version.HasLivez.
func needsLivez(p *corev1.Probe) bool {
	return p != nil && p.HTTPGet != nil && (strings.HasPrefix(p.HTTPGet.Path, "/livez") || strings.HasPrefix(p.HTTPGet.Path, "/readyz"))
}

// missesData reports whether check-dns or the launcher has ended because required data is gone
// (internal/datadir, internal/checkdns and the script for busyboxImage all say so).
func missesData(ended *corev1.ContainerStateTerminated) bool {
	return ended != nil && ended.ExitCode != 0 && strings.Contains(ended.Message, "holds no data")
}

// lastEnd returns how a container has last ended; nil if it has not. An earlier end says nothing: since
// then, somebody may have mounted the disk, or given the data to another user.
func lastEnd(s corev1.ContainerStatus) *corev1.ContainerStateTerminated {
	if s.State.Terminated != nil {
		return s.State.Terminated
	}
	return s.LastTerminationState.Terminated
}

func isEtcd(c corev1.Container) bool { return c.Name == EtcdContainer }

// imageTroubles are the kubelet's reasons for a container whose image is unavailable.
var imageTroubles = []string{"ErrImagePull", "ImagePullBackOff", "ErrImageNeverPull", "InvalidImageName", "ImageInspectError", "RegistryUnavailable"}

// volumeTroubles are the scheduler's texts for nodes without access to a pod's volume: its node
// is gone, or the pod must not run there. They are in nodeaffinity and volumebinding in
// pkg/scheduler/framework/plugins; the first is from newer releases.
var volumeTroubles = []string{"didn't match PersistentVolume's node affinity", "had volume node affinity conflict"}

// VersionOf reads the version from an image's tag. The annotation is for images whose tag is no
// version.
func VersionOf(image, annotation string) string {
	image, _, _ = strings.Cut(image, "@")
	if _, tag, ok := strings.Cut(image[strings.LastIndexByte(image, '/')+1:], ":"); ok {
		if v, err := etcd.ParseVersion(tag); err == nil {
			return v.String()
		}
	}
	return strings.TrimPrefix(annotation, "v")
}

func bootstrapFlags(command []string) (seed bool, ic etcd.InitialCluster) {
	for _, arg := range command {
		switch name, value, _ := strings.Cut(arg, "="); name {
		case "--initial-cluster-state":
			seed = value == "new"
		case "--initial-cluster":
			ic = etcd.ParseInitialCluster(value)
		}
	}
	return seed, ic
}

// preparing returns the first init container that has not succeeded. A sidecar that admission has
// added (restartPolicy Always) never ends: the next one runs once it has started.
func preparing(pod *corev1.Pod) string {
	for _, c := range pod.Spec.InitContainers {
		if !slices.ContainsFunc(pod.Status.InitContainerStatuses, func(s corev1.ContainerStatus) bool {
			if s.Name != c.Name {
				return false
			}
			if c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways {
				return s.Started != nil && *s.Started
			}
			return s.State.Terminated != nil && s.State.Terminated.ExitCode == 0
		}) {
			return c.Name
		}
	}
	return ""
}

func hasCondition(pod *corev1.Pod, t corev1.PodConditionType, status corev1.ConditionStatus) bool {
	return slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool { return c.Type == t && c.Status == status })
}

// problemOf says why a pod does not run etcd, if Kubernetes gives a reason. The kind stays the
// same while a problem lasts.
func problemOf(pod *corev1.Pod) (problem, kind string) {
	if pod.Status.Phase == corev1.PodFailed {
		return strings.TrimSpace("the pod has failed: " + pod.Status.Reason + " " + pod.Status.Message), "failed"
	}
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse {
			return "the pod can't be scheduled: " + c.Message, "not scheduled"
		}
	}
	for _, s := range append(slices.Clone(pod.Status.InitContainerStatuses), pod.Status.ContainerStatuses...) {
		last := lastEnd(s)
		w := s.State.Waiting
		badImage := w != nil && slices.Contains(imageTroubles, w.Reason)
		switch {
		case s.State.Running != nil && !(s.Name == CheckDNSContainer && reaches(pod)): // that one tries the same again
		case last != nil && last.ExitCode != 0 && !badImage:
			return fmt.Sprintf("container %s ended with exit code %d: %s", s.Name, last.ExitCode, failureLine(last.Message)), s.Name + " ends"
		case w != nil && w.Reason != "PodInitializing" && w.Reason != "ContainerCreating":
			kind = s.Name + " waits for " + w.Reason
			if badImage { // the kubelet alternates between a pull and a pause
				kind = s.Name + " has no image"
			}
			return fmt.Sprintf("container %s (%s) is waiting: %s: %s", s.Name, imageOf(pod, s), w.Reason, w.Message), kind
		}
	}
	return "", ""
}

// imageOf returns the image that a container should run. After an edit, the container's status
// has the old image until the new one runs.
func imageOf(pod *corev1.Pod, s corev1.ContainerStatus) string {
	for _, c := range slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers) {
		if c.Name == s.Name {
			return c.Image
		}
	}
	return s.Image
}

// crowdedReasons are the scheduler's texts for a node from which another pod keeps a pod
// (pkg/scheduler/framework/plugins/interpodaffinity). They concern nodes that pass all other
// checks: their labels fit, and they have enough resources.
var crowdedReasons = regexp.MustCompile(`(\d+) node\(s\) didn't (?:match pod|satisfy existing pods) anti-affinity rules`)

// crowdedNodes returns how many nodes another pod blocks, according to the scheduler's
// message.
func crowdedNodes(message string) int {
	nodes := 0
	for _, match := range crowdedReasons.FindAllStringSubmatch(message, -1) {
		n, err := strconv.Atoi(match[1])
		if err == nil {
			nodes += n
		}
	}
	return nodes
}

// PodState is the relevant state of one of the cluster's pods.
type PodState struct {
	Name    string
	UID     types.UID
	Seen    string // its resource version
	IP      string
	IPs     []string // of all families
	Node    string
	Image   string // of etcd, as last asked for
	Version string // of etcd, by the tag of that image
	// ImageOnRecord is false if nothing states which image was asked for. Image is what admission
	// has left of it then.
	ImageOnRecord bool
	// Admitted is the image after admission. Only its changes matter: the kubelet restarts
	// etcd after one.
	Admitted string
	// LiteralTag is true if the tag of its image is a version without a leading v.
	LiteralTag bool
	// Previous is the version before the last change, if known.
	Previous string
	Created  time.Time

	Template Template // that built it; empty parts are not on record
	// PeerCAs are the CAs by which its etcd knows its peers; "" if unknown.
	PeerCAs string
	// MetadataOutdated is true if its labels or annotations differ from the spec's.
	MetadataOutdated bool

	// Unlabelled is true if it lacks the labels by which Services select it. RelabelRefused is
	// the API server's last refusal to restore them.
	Unlabelled     bool
	RelabelRefused string

	// Legacy is true for a pod from v0.9.4: its etcd never restarts, and its probes run
	// commands that newer images lack. A change of its image would lose its data.
	Legacy bool

	Seed bool // starts a new cluster
	// Source identifies the backup that a seed starts on; "" for an empty seed, and for other
	// pods.
	Source string
	// Preparing is the running or next init container; "" when all have succeeded.
	Preparing      string
	InitialCluster etcd.InitialCluster
	ManyLearners   bool // runs with the operator's limit on learners
	// SnapshotCount is the number of entries after which its etcd takes a snapshot of its raft
	// state. 0 is etcd's default.
	SnapshotCount uint64

	// Guarded is true if check-dns reads the note that the member has served. Noted is true if
	// the pod has that note, NotePutOff while the operator delays it.
	Guarded, Noted, NotePutOff bool

	// DeletePutOff is true while the operator delays another attempt to delete the pod, ImagePutOff
	// while it delays another change of its image. DeleteRefused is also true during such an attempt.
	DeletePutOff, DeleteRefused, ImagePutOff bool

	// Claimed is true for a pod that mounts the PersistentVolumeClaim of its name.
	Claimed bool

	// Launcher is the path of the etcd-launcher that can restart etcd in its container; "" without
	// one. Where the containers of a pod share their processes, it can not.
	Launcher string

	Scheduled bool
	AtGate    bool // its init container runs, or has succeeded; one that looks for members of another etcd must have found them
	Reaching  bool // its init container has not found the members of another etcd yet
	Waiting   bool // its launcher runs, and etcd has not answered yet
	Started   bool // etcd has run in it at least once
	// Unproven is true for a started pod if perhaps only its launcher has run: its node lost
	// power, for example. Such a member has no vote, because the operator notes a vote before.
	Unproven bool
	Running  bool // etcd runs now
	// Restarting is true from a change of etcd's image until the kubelet reports the restart.
	// Answers of etcd may be those of the former image until then.
	Restarting bool
	Ready      bool
	// ReadySince is when the operator first saw it ready without a break since; zero if it is not.
	ReadySince time.Time
	// Container is the ID of its present etcd container. StartingUp is true while the kubelet reports
	// that the startup probe of a container has not succeeded. StartedUp is true if the operator has
	// seen the end of that for the present container.
	Container             string
	StartingUp, StartedUp bool
	Deleting              bool
	// KeptBy are the finalizers that keep a deleted pod although its containers have ended; "": none.
	KeptBy string
	// DeleteBy is when a deleted pod should be gone at the latest.
	DeleteBy time.Time
	Finished bool // Failed or Succeeded: it will not run again
	// Problem says why etcd does not run in it, in words for a person; empty if it runs or is
	// starting. Its kind stays the same while the words change.
	Problem, ProblemKind string
	// BadImage is true if etcd's image is unavailable, Crashing if etcd ends soon after each
	// start.
	BadImage, Crashing bool
	Restarts           int32
	// Ended is when etcd last ended in it; zero if it has not.
	Ended time.Time
	// Crowded is the number of nodes that are unsuitable only because of another pod there.
	Crowded int
	// Dataless is true if it ended because its member's data is gone.
	Dataless bool
	// RunsAs is the user that it names for etcd. DataOwner is known if it ended because its
	// member's data belongs to that other user. OwnerPutOff is true while the operator delays another
	// attempt to recreate it as that one.
	RunsAs, DataOwner Owner
	OwnerPutOff       bool
	// ShellProbes is true if a probe runs a shell, as in pods of earlier operators.
	ShellProbes bool
	// LivezProbes is true if a probe asks for what etcd serves only since 3.4.29 and 3.5.11. A change of the image
	// leaves the probes.
	LivezProbes bool
	// OffVolume is true if no node for the pod has access to its volume.
	OffVolume bool
	// DataServer is the container that serves its member's database.
	DataServer DataServer
}

// Trouble returns the problem of a pod that the operator replaces.
func (p PodState) Trouble() string {
	if p.Problem == "" {
		return "Kubernetes gives no reason, see the pod's events and logs"
	}
	return p.Problem
}

// PodGrace is the pod's grace period.
func PodGrace(pod *corev1.Pod) time.Duration {
	return time.Duration(ptr.Deref(pod.Spec.TerminationGracePeriodSeconds, corev1.DefaultTerminationGracePeriodSeconds)) * time.Second
}

// LostNode reports whether the pod's deletion takes longer than on a working node.
func (p PodState) LostNode(now time.Time) bool { return p.Deleting && now.After(p.DeleteBy) }

// reaches reports whether the pod's check-dns first has to reach members of another etcd. The launcher in the
// etcd container then waits for the membership.
func reaches(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Spec.InitContainers, func(c corev1.Container) bool {
		return c.Name == CheckDNSContainer && slices.ContainsFunc(c.Command, func(arg string) bool { return strings.HasPrefix(arg, reachFlag) })
	})
}

// heedsNote reports whether the pod's check-dns reads the note.
func heedsNote(pod *corev1.Pod) bool {
	for _, c := range pod.Spec.InitContainers {
		if c.Name == CheckDNSContainer {
			return slices.ContainsFunc(c.Env, func(e corev1.EnvVar) bool { return e.Name == startedEnv })
		}
	}
	return false
}
