// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package adopt

import (
	"cmp"
	"context"
	"fmt"

	"github.com/etcd-operator/etcd-operator/internal/plugin/hint"
)

// identities are the annotations of a service account by which clouds know its pods. Backups
// without a Secret for the store rest on them.
var identities = []string{"eks.amazonaws.com/role-arn", "iam.gke.io/gcp-service-account", "azure.workload.identity/client-id"}

// checkIdentities looks for rights in a cloud that the operators would lose with their service account.
// The manifests have the name of the program for it.
func (m *Move) checkIdentities(ctx context.Context, p *Plan) error {
	for _, program := range []string{backupProgram, restoreProgram} {
		o := ofProgram(p.olds, program)
		if o == nil {
			continue
		}
		former := cmp.Or(o.Spec.Template.Spec.ServiceAccountName, "default")
		if former == program {
			continue
		}
		p.add(Note, "", "%s uses the service account %s after the move, and not %s: what a cloud or a policy grants to the old one does not follow", program, program, former)
		before, err := m.annotationsOf(ctx, former)
		if err != nil {
			return err
		}
		after, err := m.annotationsOf(ctx, program)
		if err != nil {
			return err
		}
		for _, key := range identities {
			if value := before[key]; value != "" && after[key] == "" {
				p.add(Problem, "give it to the new one, and grant the cloud's role to that: "+
					hint.Kubectl(m.Place(), "create", "serviceaccount", program)+"; "+hint.Kubectl(m.Place(), "annotate", "serviceaccount", program, key+"="+value),
					"the service account %s has the annotation %s, and %s has not: backups and restores without a Secret for the store would fail", former, key, program)
			}
		}
	}
	return nil
}

// annotationsOf are those of a service account; none if it does not exist.
func (m *Move) annotationsOf(ctx context.Context, account string) (map[string]string, error) {
	object, err := m.get(ctx, kinds["ServiceAccount"], account)
	if err != nil {
		return nil, fmt.Errorf("read the service account %s/%s: %w", m.Namespace, account, err)
	}
	if object == nil {
		return nil, nil
	}
	return object.GetAnnotations(), nil
}
