//go:build bench

// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/test/harness"
)

// The API server counts requests by their flow schema, and by no other trait of the client. So
// each kind of request of the operator's service account has a flow schema of its own, with
// the highest precedence.
var kinds = []struct {
	name      string
	verbs     []string
	groups    []string
	resources []string
}{
	{"lease", []string{"*"}, []string{"coordination.k8s.io"}, []string{"*"}},
	{"list", []string{"list"}, []string{"*"}, []string{"*"}},
	{"watch", []string{"watch"}, []string{"*"}, []string{"*"}},
	{"get", []string{"get"}, []string{"*"}, []string{"*"}},
	{"write", []string{"*"}, []string{"*"}, []string{"*"}},
}

// idle measures the operator's cost when it has nothing to do, and returns it in Markdown.
func (b *bench) idle() string {
	b.t.Helper()
	var out strings.Builder
	for i, kind := range kinds {
		b.createFlowSchema(kind.name, int32(10+i), kind.verbs, kind.groups, kind.resources)
	}
	memory := map[int]int64{}
	out.WriteString("| clusters | API requests a minute, idle | resident memory of the operator |\n|---|---|---|\n")
	made := 0
	for _, count := range []int{1, *clusters} {
		for ; made < count; made++ {
			cluster := b.n.CreateObject(&v1beta2.EtcdCluster{
				ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("idle-%d", made)},
				Spec:       v1beta2.ClusterSpec{Size: 1},
			})
			if made%4 == 3 || made == count-1 { // starting a few at a time is fastest
				cluster.WaitSettled()
			}
		}
		b.pause(30 * time.Second)
		before := b.requests()
		b.pause(*idle)
		after := b.requests()
		var parts []string
		for _, kind := range kinds {
			perMinute := (after[kind.name] - before[kind.name]) / idle.Minutes()
			parts = append(parts, fmt.Sprintf("%s %.1f", kind.name, perMinute))
		}
		bytes, err := harness.ResidentBytes(b.operator(), "etcd-operator")
		if err != nil {
			b.t.Fatal(err)
		}
		memory[count] = bytes
		fmt.Fprintf(&out, "| %d of one member | %s | %.1f MiB |\n", count, strings.Join(parts, ", "), float64(bytes)/(1<<20))
	}
	if *clusters > 1 {
		fmt.Fprintf(&out, "\nMemory per cluster: %.0f KiB.\n", float64(memory[*clusters]-memory[1])/float64(*clusters-1)/(1<<10))
	}
	return out.String()
}

func (b *bench) operator() *corev1.Pod {
	b.t.Helper()
	pod := b.n.Operator()
	if pod == nil {
		b.t.Fatal("the operator is not ready")
	}
	return pod
}

func (b *bench) pause(d time.Duration) {
	b.t.Helper()
	select {
	case <-time.After(d):
	case <-b.t.Context().Done():
		b.t.Fatal("interrupted")
	}
}

func (b *bench) flowSchema(kind string) string { return b.n.Name + "-" + kind }

func (b *bench) createFlowSchema(kind string, precedence int32, verbs, groups, resources []string) {
	b.t.Helper()
	b.n.CreateFlowSchema(&flowcontrolv1.FlowSchema{
		ObjectMeta: metav1.ObjectMeta{Name: b.flowSchema(kind)},
		Spec: flowcontrolv1.FlowSchemaSpec{
			PriorityLevelConfiguration: flowcontrolv1.PriorityLevelConfigurationReference{Name: "workload-high"},
			MatchingPrecedence:         precedence,
			Rules: []flowcontrolv1.PolicyRulesWithSubjects{{
				Subjects: []flowcontrolv1.Subject{{
					Kind:           flowcontrolv1.SubjectKindServiceAccount,
					ServiceAccount: &flowcontrolv1.ServiceAccountSubject{Namespace: b.n.Name, Name: "default"},
				}},
				ResourceRules: []flowcontrolv1.ResourcePolicyRule{{
					Verbs: verbs, APIGroups: groups, Resources: resources, Namespaces: []string{"*"}, ClusterScope: true,
				}},
			}},
		},
	})
}

// requests are the operator's requests so far, by kind.
func (b *bench) requests() map[string]float64 {
	b.t.Helper()
	text, err := b.n.Kube.Discovery().RESTClient().Get().AbsPath("/metrics").DoRaw(b.t.Context())
	if err != nil {
		b.t.Fatalf("get the API server's metrics: %v", err)
	}
	counts := map[string]float64{}
	lines := bufio.NewScanner(bytes.NewReader(text))
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		line := lines.Text()
		if !strings.HasPrefix(line, "apiserver_flowcontrol_dispatched_requests_total{") {
			continue
		}
		for _, kind := range kinds {
			if strings.Contains(line, `flow_schema="`+b.flowSchema(kind.name)+`"`) {
				value, err := strconv.ParseFloat(line[strings.LastIndex(line, " ")+1:], 64)
				if err != nil {
					b.t.Fatalf("metric %q: %v", line, err)
				}
				counts[kind.name] += value
			}
		}
	}
	return counts
}

// cpu names the processor.
func cpu(t *testing.T) string {
	t.Helper()
	info, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		t.Fatal(err)
	}
	model := runtime.GOARCH
	for line := range strings.Lines(string(info)) {
		if key, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(key) == "model name" {
			model = strings.TrimSpace(value)
			break
		}
	}
	return fmt.Sprintf("%d cores (%s)", runtime.NumCPU(), model)
}
