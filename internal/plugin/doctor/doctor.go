// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package doctor looks for what keeps EtcdClusters from working: in Kubernetes, in the
// rights of user and operator, and in one cluster. Each finding says how to fix it.
package doctor

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/etcd-operator/etcd-operator/internal/plugin/access"
	"github.com/etcd-operator/etcd-operator/pkg/finding"
)

// Level is how bad a finding is.
type Level = finding.Level

// The levels, the best first.
const (
	OK      = finding.OK
	Unknown = finding.Unknown
	Warning = finding.Warning
	Failure = finding.Failure
)

// Finding is what one check has found.
type Finding = finding.Finding

// Doctor looks at the Kubernetes cluster and the namespace of an access.
type Doctor struct {
	Access *access.Access
	Now    func() time.Time

	findings []Finding
}

// Findings are those of all examinations so far.
func (d *Doctor) Findings() []Finding { return d.findings }

func (d *Doctor) add(check string, level Level, fix, format string, args ...any) {
	d.findings = append(d.findings, Finding{Check: check, Level: level, Message: fmt.Sprintf(format, args...), Fix: fix})
}

// unknown adds what could not be looked at.
func (d *Doctor) unknown(check string, err error) {
	message := err.Error()
	if apierrors.IsForbidden(err) {
		message = "you may not look: " + message
	}
	d.add(check, Unknown, "", "%s", message)
}

// Unread adds why a cluster could not be examined.
func (d *Doctor) Unread(name string, err error) {
	d.add("cluster", Failure, "", "the EtcdCluster %s cannot be examined: %v", name, err)
}

// Environment examines what all EtcdClusters of the namespace need. It reports whether the API server
// answers: without one, each further question would wait for half a minute.
func (d *Doctor) Environment(ctx context.Context) bool {
	if !d.apiServer() {
		return false
	}
	d.kinds()
	d.yourRights(ctx)
	d.operators(ctx)
	d.dns(ctx)
	d.defaultStorage(ctx)
	return true
}

// Worst is the worst level among findings.
func Worst(findings []Finding) Level { return finding.Worst(findings) }
