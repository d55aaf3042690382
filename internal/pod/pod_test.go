// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package pod

import (
	"errors"
	"io"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/sirupsen/logrus"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
)

func quiet() *logrus.Entry {
	logger := logrus.New()
	logger.SetOutput(io.Discard)
	return logrus.NewEntry(logger)
}

func TestFromEnvSaysWhatTheDeploymentLacks(t *testing.T) {
	env := map[string]string{"MY_POD_NAME": "op-1"}
	_, err := FromEnv(func(k string) string { return env[k] })
	if err == nil {
		t.Fatal("no error")
	}
	for _, want := range []string{"the environment lacks MY_POD_NAMESPACE:", "Deployment", "fieldPath: metadata.namespace"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("the error lacks %q: %v", want, err)
		}
	}
	if strings.Contains(err.Error(), "MY_POD_NAME,") {
		t.Errorf("complains of what is set: %v", err)
	}

	env["MY_POD_NAMESPACE"] = "ns"
	if p, err := FromEnv(func(k string) string { return env[k] }); err != nil || p != (Pod{"op-1", "ns"}) {
		t.Errorf("got %v, %v", p, err)
	}
}

func TestImageIsThatOfTheOperatorsContainer(t *testing.T) {
	for name, tc := range map[string]struct {
		containers []corev1.Container
		want       string
	}{
		"by name": {
			containers: []corev1.Container{{Name: "proxy", Image: "p", Command: []string{"etcd-operator"}}, {Name: "etcd-operator", Image: "o"}},
			want:       "o",
		},
		"by command": {
			containers: []corev1.Container{{Name: "proxy", Image: "p"}, {Name: "main", Image: "o", Command: []string{"/usr/local/bin/etcd-operator", "-cluster-wide"}}},
			want:       "o",
		},
		"the first": {
			containers: []corev1.Container{{Name: "main", Image: "o"}, {Name: "proxy", Image: "p"}},
			want:       "o",
		},
	} {
		t.Run(name, func(t *testing.T) {
			kube := fake.NewClientset(&corev1.Pod{
				ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "op"},
				Spec:       corev1.PodSpec{Containers: tc.containers},
			})
			got, err := Pod{"op", "ns"}.Image(t.Context(), kube.CoreV1(), "etcd-operator", quiet())
			if err != nil || got != tc.want {
				t.Errorf("got %q, %v; want %q", got, err, tc.want)
			}
		})
	}
}

func TestImageWaitsForAnAPIServerThatIsDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kube := fake.NewClientset(&corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "op"},
			Spec:       corev1.PodSpec{Containers: []corev1.Container{{Image: "o"}}},
		})
		failures := []error{
			errors.New("connection refused"), apierrors.NewInternalError(errors.New("its etcd restarts")),
			apierrors.NewTimeoutError("the request did not complete in time", 0), errors.New("connection refused"),
		}
		kube.PrependReactor("get", "pods", func(clienttesting.Action) (bool, runtime.Object, error) {
			if len(failures) == 0 {
				return false, nil, nil
			}
			err := failures[0]
			failures = failures[1:]
			return true, nil, err
		})
		if got, err := (Pod{"op", "ns"}).Image(t.Context(), kube.CoreV1(), "etcd-operator", quiet()); err != nil || got != "o" {
			t.Errorf("got %q, %v", got, err)
		}
	})
}

func TestImageDoesNotWaitForWhatIsForbidden(t *testing.T) {
	kube := fake.NewClientset()
	kube.PrependReactor("get", "pods", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "op", errors.New("no role"))
	})
	if _, err := (Pod{"op", "ns"}).Image(t.Context(), kube.CoreV1(), "etcd-operator", quiet()); !apierrors.IsForbidden(err) {
		t.Errorf("got %v", err)
	}
}
