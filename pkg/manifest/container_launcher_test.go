// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

// What waits for others waits in the etcd container, and only there.
func TestJoiningMembersWaitInTheEtcdContainer(t *testing.T) {
	launched := 0
	for name, s := range shapes() {
		spec := s.build(t).Spec
		init, etcd := spec.InitContainers[len(spec.InitContainers)-1], spec.Containers[0]
		waits := func(c corev1.Container) bool {
			return slices.ContainsFunc(c.Command, func(arg string) bool { return strings.HasPrefix(arg, "-peer=") })
		}
		leaves := slices.Contains(init.Command, "-leave="+launcherProgram)
		if launches := etcd.Command[0] == launcherProgram; launches != leaves || launches != waits(etcd) || launches && waits(init) {
			t.Errorf("%s: commands %s, %s", name, init.Command, etcd.Command)
		}
		if state := PodStateOf(s.build(t)); (state.Launcher == launcherProgram) != leaves || !leaves && state.Launcher != "" {
			t.Errorf("%s: the state of the pod names the launcher %q", name, state.Launcher)
		}
		if !leaves {
			continue
		}
		launched++
		for _, c := range []corev1.Container{init, etcd} {
			if !slices.ContainsFunc(c.VolumeMounts, func(m corev1.VolumeMount) bool { return m.MountPath == "/var/check-dns" && !m.ReadOnly }) {
				t.Errorf("%s: mounts of %s: %v", name, c.Name, c.VolumeMounts)
			}
			if !slices.ContainsFunc(c.Env, func(e corev1.EnvVar) bool { return e.Name == startedEnv && e.ValueFrom != nil }) {
				t.Errorf("%s: %s can't read the note: %v", name, c.Name, c.Env)
			}
		}
	}
	if launched == 0 {
		t.Error("no member is launched")
	}
}

func TestUsersDontSetTheNote(t *testing.T) {
	env := joiner(clusterWith("3.6.16", &api.PodPolicy{EtcdEnv: variables("MEMBER_STARTED=x")})).build(t).Spec.Containers[0].Env
	if i := slices.IndexFunc(env, func(e corev1.EnvVar) bool { return e.Name == startedEnv }); i < 0 || env[i].ValueFrom == nil ||
		slices.ContainsFunc(env[i+1:], func(e corev1.EnvVar) bool { return e.Name == startedEnv }) {
		t.Errorf("environment %v", env)
	}
}

// etcd has never run in a pod as long as its launcher waits. A pod without data may be deleted.
func TestALauncherThatWaitsIsNotEtcd(t *testing.T) {
	running := corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}
	backsOff := corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}}
	ended := func(code int32, message string) corev1.ContainerState {
		return corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: code, Message: message}}
	}
	type state struct{ waiting, started, unproven, running, dataless bool }
	for name, c := range map[string]struct {
		status corev1.ContainerStatus
		noted  bool
		old    bool // without a launcher
		want   state
	}{
		"its container has not begun":       {want: state{}},
		"it waits":                          {status: corev1.ContainerStatus{State: running, Started: new(false)}, want: state{waiting: true}},
		"it gave up":                        {status: corev1.ContainerStatus{State: ended(75, "gave up")}, want: state{}},
		"it gave up, and has to wait":       {status: corev1.ContainerStatus{State: backsOff, LastTerminationState: ended(75, "gave up"), RestartCount: 1}, want: state{}},
		"it waits once more":                {status: corev1.ContainerStatus{State: running, LastTerminationState: ended(75, "gave up"), RestartCount: 1}, want: state{waiting: true}},
		"the startup probe has passed":      {status: corev1.ContainerStatus{State: running, Started: new(true)}, want: state{started: true, running: true}},
		"the member has served":             {status: corev1.ContainerStatus{State: running, Started: new(false)}, noted: true, want: state{started: true, running: true}},
		"etcd crashed":                      {status: corev1.ContainerStatus{State: backsOff, LastTerminationState: ended(1, "panic"), RestartCount: 1}, want: state{started: true, unproven: true}},
		"etcd crashed after a note":         {status: corev1.ContainerStatus{State: backsOff, LastTerminationState: ended(1, "panic"), RestartCount: 1}, noted: true, want: state{started: true}},
		"its node lost power":               {status: corev1.ContainerStatus{State: running, LastTerminationState: ended(255, ""), RestartCount: 1}, want: state{started: true, unproven: true, running: true}},
		"etcd crashed, and runs":            {status: corev1.ContainerStatus{State: running, LastTerminationState: ended(1, "panic"), RestartCount: 1}, want: state{started: true, unproven: true, running: true}},
		"nobody knows how it ended":         {status: corev1.ContainerStatus{State: running, RestartCount: 1}, want: state{started: true, unproven: true, running: true}},
		"its data is gone":                  {status: corev1.ContainerStatus{State: ended(1, "/var/etcd/data holds no data")}, want: state{started: true, unproven: true, dataless: true}},
		"its data is gone, and it waits":    {status: corev1.ContainerStatus{State: backsOff, LastTerminationState: ended(1, "holds no data"), RestartCount: 1}, want: state{started: true, unproven: true, dataless: true}},
		"its data was gone, and it runs":    {status: corev1.ContainerStatus{State: running, LastTerminationState: ended(1, "holds no data"), RestartCount: 1}, want: state{started: true, unproven: true, running: true}},
		"a pod of an earlier operator runs": {status: corev1.ContainerStatus{State: running}, old: true, want: state{started: true, running: true}},
	} {
		pod := joiner(clusterWith("3.6.16", nil)).build(t)
		if c.old {
			pod.Spec.Containers[0].Command = ofEtcd(pod.Spec.Containers[0])
		}
		if c.noted {
			pod.Annotations[StartedAnnotation] = "8e9e05c52164694d"
		}
		c.status.Name = EtcdContainer
		pod.Status.ContainerStatuses = []corev1.ContainerStatus{c.status}
		p := PodStateOf(pod)
		if got := (state{p.Waiting, p.Started, p.Unproven, p.Running, p.Dataless}); got != c.want {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
	}
	p := PodState{Waiting: true, Unproven: true}
	if p.Answered(); p.Waiting || p.Unproven || !p.Started || !p.Running {
		t.Errorf("a pod whose etcd has answered: %+v", p)
	}
	p = PodState{}
	if p.Answered(); p.Started {
		t.Error("a pod that nobody started has started")
	}
}
