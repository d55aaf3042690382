// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"time"

	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// CreateFlowSchema creates a flow schema that is deleted when the test ends.
func (n *Namespace) CreateFlowSchema(schema *flowcontrolv1.FlowSchema) {
	n.t.Helper()
	schemas := n.Kube.FlowcontrolV1().FlowSchemas()
	if _, err := schemas.Create(n.t.Context(), schema, metav1.CreateOptions{}); err != nil {
		n.t.Fatalf("create flow schema %s: %v", schema.Name, err)
	}
	n.t.Cleanup(func() {
		ctx, cancel := later(n.t.Context(), 30*time.Second)
		defer cancel()
		if err := schemas.Delete(ctx, schema.Name, metav1.DeleteOptions{}); err != nil {
			n.t.Errorf("delete flow schema %s: %v", schema.Name, err)
		}
	})
}
