// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package pod finds the operator's own pod: its name, its namespace and its image.
package pod

import (
	"context"
	"errors"
	"fmt"
	"path"
	"strings"
	"time"

	"github.com/sirupsen/logrus"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/etcd-operator/etcd-operator/pkg/kubeerror"
)

// Environment variables with the pod's name and namespace.
const (
	NameEnv      = "MY_POD_NAME"
	NamespaceEnv = "MY_POD_NAMESPACE"
)

// imageRetry is the wait between requests to an API server that does not answer.
const imageRetry = 2 * time.Second

// Pod is the operator's own pod.
type Pod struct{ Name, Namespace string }

// FromEnv reads the pod's name and namespace from the environment. The error says what the
// Deployment lacks.
func FromEnv(getenv func(string) string) (Pod, error) {
	p := Pod{Name: getenv(NameEnv), Namespace: getenv(NamespaceEnv)}
	var missing, entries []string
	for _, v := range []struct{ env, value, field string }{
		{NameEnv, p.Name, "metadata.name"},
		{NamespaceEnv, p.Namespace, "metadata.namespace"},
	} {
		if v.value == "" {
			missing = append(missing, v.env)
			entries = append(entries, fmt.Sprintf("{name: %s, valueFrom: {fieldRef: {fieldPath: %s}}}", v.env, v.field))
		}
	}
	if len(missing) > 0 {
		return Pod{}, fmt.Errorf("the environment lacks %s: in the operator's Deployment, add to its container `env: [%s]`",
			strings.Join(missing, " and "), strings.Join(entries, ", "))
	}
	return p, nil
}

// Image returns the image of the container called program, or else of one that runs a command
// of that name, or else of the first. It retries while the API server does not answer.
func (p Pod) Image(ctx context.Context, pods corev1client.PodsGetter, program string, log *logrus.Entry) (string, error) {
	for {
		self, err := pods.Pods(p.Namespace).Get(ctx, p.Name, metav1.GetOptions{})
		var answer apierrors.APIStatus
		switch {
		case err == nil:
			return imageOf(self, program)
		case errors.As(err, &answer) && !kubeerror.IsBusy(err):
			return "", fmt.Errorf("read the operator's own pod %s/%s: %w", p.Namespace, p.Name, err)
		}
		log.WithError(err).Warnf("could not read the operator's own pod %s/%s: retrying in %s", p.Namespace, p.Name, imageRetry)
		timer := time.NewTimer(imageRetry)
		select {
		case <-ctx.Done():
			timer.Stop()
			return "", ctx.Err()
		case <-timer.C:
		}
	}
}

func imageOf(p *corev1.Pod, program string) (string, error) {
	for _, c := range p.Spec.Containers {
		if c.Name == program {
			return c.Image, nil
		}
	}
	for _, c := range p.Spec.Containers {
		if len(c.Command) > 0 && path.Base(c.Command[0]) == program {
			return c.Image, nil
		}
	}
	if len(p.Spec.Containers) == 0 {
		return "", fmt.Errorf("pod %s/%s has no containers", p.Namespace, p.Name)
	}
	return p.Spec.Containers[0].Image, nil
}
