// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"errors"
	"fmt"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// refusedPods is what the API server said when it last refused to take a pod: a
// quota is used up, a policy forbids it, what the spec names does not exist.
type refusedPods struct {
	why string
	// generation is that of the spec from which the pod was made: another one is
	// tried at once.
	generation int64
	until      time.Time // no pod is tried before
}

// podsRefused begins what status and events say of it.
const podsRefused = "Kubernetes refuses the pods of members: "

// podRefusedError is an error of the making of a pod that the API server
// understood and does not take.
type podRefusedError struct {
	pod string
	err error
}

func (e *podRefusedError) Error() string {
	return fmt.Sprintf("Kubernetes refuses pod %s: %v", e.pod, e.err)
}

func (e *podRefusedError) Unwrap() error { return e.err }

// reason is what the API server said, without the pod's name, which is another
// one at each try.
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

// current tells whether a refusal still says something of a spec: the pods that
// it was about may no longer be needed.
func (r refusedPods) current(generation int64, now time.Time) bool {
	return r.why != "" && r.generation == generation && now.Before(r.until.Add(3*refusedPause))
}

// podsEnded notes how the making of pods ended.
func (c *Cluster) podsEnded(err error) {
	var refusal *podRefusedError
	if !errors.As(err, &refusal) {
		if err == nil {
			c.refused = refusedPods{}
		}
		return
	}
	if c.refused.why != refusal.reason() {
		c.notices.podRefused(refusal.reason())
	}
	c.refused = refusedPods{why: refusal.reason(), generation: c.obj.Generation, until: c.cfg.Clock.Now().Add(refusedPause)}
}

// podsHeldBack tells why pods of members can't be made; empty if they can.
func podsHeldBack(o *observation) string {
	if o.refused.why == "" {
		return ""
	}
	return podsRefused + o.refused.why
}

// awaitPermission holds back pods that the API server would refuse once more. What
// else there is to do goes on, if that needs no pod to begin with.
func awaitPermission(o *observation, s step) step {
	if _, makes := s.(createPods); !makes || !o.now.Before(o.refused.until) {
		return s
	}
	if o.quorum {
		return nil
	}
	return idle{podsRefused + o.refused.why}
}
