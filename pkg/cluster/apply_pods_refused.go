// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"errors"
	"fmt"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/etcd-operator/etcd-operator/pkg/cluster/plan"
)

// podRefusedError is the error for a pod that the API server understood and refused.
type podRefusedError struct {
	pod string
	err error
}

func (e *podRefusedError) Error() string {
	return fmt.Sprintf("Kubernetes refuses pod %s: %v", e.pod, e.err)
}

func (e *podRefusedError) Unwrap() error { return e.err }

// reason is the API server's text without the pod's name, which differs in each attempt.
func (e *podRefusedError) reason() string {
	why := e.err.Error()
	var status apierrors.APIStatus
	if errors.As(e.err, &status) {
		why = status.Status().Message
	}
	for _, prefix := range []string{"pods ", "Pod ", ""} {
		if rest, ok := strings.CutPrefix(why, prefix+`"`+e.pod+`" is `); ok {
			return rest
		}
	}
	return strings.ReplaceAll(why, e.pod, "<pod>")
}

// stillRefused reports whether a refusal still concerns the spec: its pods may no longer be
// needed.
func stillRefused(r plan.RefusedPods, generation int64, now time.Time) bool {
	return r.Why != "" && r.Generation == generation && now.Before(r.Until.Add(refusalGrace))
}

// podsEnded notes the result of the creation of pods.
func (c *Cluster) podsEnded(err error) {
	var refusal *podRefusedError
	if !errors.As(err, &refusal) {
		if err == nil {
			c.refused = plan.RefusedPods{}
		}
		return
	}
	if c.refused.Why != refusal.reason() {
		c.notices.podRefused(refusal.reason())
	}
	c.refused = plan.RefusedPods{Why: refusal.reason(), Generation: c.obj.Generation, Until: c.cfg.Clock.Now().Add(refusedPause)}
}
