// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package monitoring_test

import (
	"io"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/sirupsen/logrus"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/tools/record"
	"k8s.io/utils/clock"
	"sigs.k8s.io/yaml"

	"github.com/etcd-operator/etcd-operator/pkg/controller"
	"github.com/etcd-operator/etcd-operator/pkg/controller/backup"
	"github.com/etcd-operator/etcd-operator/pkg/controller/restore"
	"github.com/etcd-operator/etcd-operator/pkg/leaderservice"
	"github.com/etcd-operator/etcd-operator/test/monitoring"
)

const root = "../.."

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, path))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// operatorMetrics returns the names of the operators' own metrics, as they register them.
func operatorMetrics(t *testing.T) []string {
	t.Helper()
	registry := prometheus.NewRegistry()
	logger := logrus.New()
	logger.SetOutput(io.Discard)
	log, recorder := logrus.NewEntry(logger), record.NewFakeRecorder(1)
	_, err := controller.New(controller.Config{Namespace: "ns", Registry: registry, Clock: clock.RealClock{}, Logger: log, Recorder: recorder})
	if err != nil {
		t.Fatal(err)
	}
	_, err = backup.New(backup.Config{Namespace: "ns", Registry: registry, Clock: clock.RealClock{}, Logger: log, Recorder: recorder})
	if err != nil {
		t.Fatal(err)
	}
	_, err = restore.New(restore.Config{Namespace: "ns", Service: leaderservice.New(leaderservice.Config{Logger: log}), Registry: registry, Clock: clock.RealClock{}, Logger: log, Recorder: recorder})
	if err != nil {
		t.Fatal(err)
	}
	descriptions := make(chan *prometheus.Desc)
	go func() {
		registry.Describe(descriptions)
		close(descriptions)
	}()
	fqName := regexp.MustCompile(`fqName: "([^"]+)"`)
	var names []string
	for d := range descriptions {
		if match := fqName.FindStringSubmatch(d.String()); match != nil {
			names = append(names, match[1])
		}
	}
	slices.Sort(names)
	return names
}

func TestThePageTellsOfAllMetricsAndOfNoOthers(t *testing.T) {
	var told []string
	for _, match := range regexp.MustCompile("(?m)^\\| `(etcd_(?:backup_|restore_)?operator_\\w+)`").FindAllStringSubmatch(read(t, "doc/metrics.md"), -1) {
		told = append(told, match[1])
	}
	slices.Sort(told)
	if names := operatorMetrics(t); !slices.Equal(told, names) {
		t.Errorf("doc/metrics.md has\n%q, the operators have\n%q", told, names)
	}
}

func queries(t *testing.T) []monitoring.Query {
	t.Helper()
	list, err := monitoring.Queries(root)
	if err != nil || len(list) < 40 {
		t.Fatalf("%d queries, error %v", len(list), err)
	}
	return list
}

func TestQueriesUseMetricsThatTheOperatorsHave(t *testing.T) {
	names := operatorMetrics(t)
	ours, part := regexp.MustCompile(`^etcd_(backup_|restore_)?operator_`), regexp.MustCompile(`_(bucket|count|sum)$`)
	for _, q := range queries(t) {
		used := q.Metrics()
		if len(used) == 0 {
			t.Errorf("%s uses no metric", q.Name)
		}
		for _, m := range used {
			if ours.MatchString(m) && !slices.Contains(names, m) && !slices.Contains(names, part.ReplaceAllString(m, "")) {
				t.Errorf("%s uses %s, which no operator has", q.Name, m)
			}
		}
	}
}

// An operator that does not reach a cluster counts no healthy member and no voter, and reports it as
// not available. Each query of these has to leave such a cluster out, or to show it as it is.
func TestNoQueryTakesAClusterOutOfSightForOneThatIsDown(t *testing.T) {
	const unknown = "etcd_operator_cluster_availability_unknown"
	harmless := []string{
		"panel Clusters A",            // counts all
		"alert EtcdMembersNotScraped", // needs a healthy member
	}
	for _, q := range queries(t) {
		if slices.Contains(harmless, q.Name) {
			continue
		}
		used := q.Metrics()
		for _, m := range []string{"etcd_operator_cluster_available", "etcd_operator_cluster_healthy_members", "etcd_operator_cluster_voters"} {
			if slices.Contains(used, m) && !slices.Contains(used, unknown) {
				t.Errorf("%s uses %s without %s: %s", q.Name, m, unknown, q.Expr)
			}
		}
	}
}

func rules(t *testing.T) []monitoring.Rule {
	t.Helper()
	list, err := monitoring.Rules(root)
	if err != nil || len(list) == 0 {
		t.Fatalf("%d rules, error %v", len(list), err)
	}
	return list
}

func TestEachAlertTellsWhatToDo(t *testing.T) {
	var headings, alerts []string
	for _, match := range regexp.MustCompile(`(?m)^### (\w+)$`).FindAllStringSubmatch(read(t, "doc/alerts.md"), -1) {
		headings = append(headings, match[1])
	}
	for _, r := range rules(t) {
		alerts = append(alerts, r.Alert)
		if !slices.Contains([]string{"critical", "warning", "info"}, r.Labels["severity"]) || r.For == "" {
			t.Errorf("%s: severity %q, for %q", r.Alert, r.Labels["severity"], r.For)
		}
		if r.Annotations["summary"] == "" || r.Annotations["description"] == "" || !strings.HasSuffix(r.Annotations["runbook_url"], "/doc/alerts.md#"+strings.ToLower(r.Alert)) {
			t.Errorf("%s: annotations %q", r.Alert, r.Annotations)
		}
	}
	if !slices.Equal(headings, alerts) {
		t.Errorf("doc/alerts.md is about\n%q, the rules are\n%q", headings, alerts)
	}
}

// ruleTests are the files whose cases promtool runs.
var ruleTests = []string{"rules_test.yaml", "long_rules_test.yaml"}

// Each alert has a case in which it fires, and one in which it does not; promtool runs them.
func TestEachAlertIsTested(t *testing.T) {
	fires, rests := map[string]bool{}, map[string]bool{}
	for _, name := range ruleTests {
		var file struct {
			Tests []struct {
				AlertRuleTest []struct {
					Alertname string `json:"alertname"`
					ExpAlerts []any  `json:"exp_alerts"`
				} `json:"alert_rule_test"`
			} `json:"tests"`
		}
		if err := yaml.Unmarshal([]byte(read(t, "test/monitoring/"+name)), &file); err != nil {
			t.Fatal(err)
		}
		for _, test := range file.Tests {
			for _, c := range test.AlertRuleTest {
				if len(c.ExpAlerts) > 0 {
					fires[c.Alertname] = true
				} else {
					rests[c.Alertname] = true
				}
			}
		}
	}
	for _, r := range rules(t) {
		if !fires[r.Alert] || !rests[r.Alert] {
			t.Errorf("%s: a test in which it fires %t, in which it does not %t", r.Alert, fires[r.Alert], rests[r.Alert])
		}
	}
}

func TestThePrometheusOperatorGetsTheSameRules(t *testing.T) {
	var plain, wrapped struct {
		APIVersion string            `json:"apiVersion"`
		Kind       string            `json:"kind"`
		Metadata   metav1.ObjectMeta `json:"metadata"`
		Groups     any               `json:"groups"`
		Spec       struct {
			Groups any `json:"groups"`
		} `json:"spec"`
	}
	if err := yaml.UnmarshalStrict([]byte(read(t, monitoring.Folder+"/rules.yaml")), &plain); err != nil {
		t.Fatal(err)
	}
	if err := yaml.UnmarshalStrict([]byte(read(t, monitoring.Folder+"/prometheusrule.yaml")), &wrapped); err != nil {
		t.Fatal(err)
	}
	if wrapped.APIVersion != "monitoring.coreos.com/v1" || wrapped.Kind != "PrometheusRule" || !reflect.DeepEqual(plain.Groups, wrapped.Spec.Groups) {
		t.Error("prometheusrule.yaml is not rules.yaml below spec")
	}
}

// podMonitor is the parts of a PodMonitor that this test checks.
type podMonitor struct {
	APIVersion string            `json:"apiVersion"`
	Kind       string            `json:"kind"`
	Metadata   metav1.ObjectMeta `json:"metadata"`
	Spec       struct {
		Selector          metav1.LabelSelector `json:"selector"`
		NamespaceSelector struct {
			Any bool `json:"any"`
		} `json:"namespaceSelector"`
		PodMetricsEndpoints []struct {
			Port        string `json:"port"`
			HonorLabels bool   `json:"honorLabels"`
			Relabelings []struct {
				SourceLabels []string `json:"sourceLabels"`
				TargetLabel  string   `json:"targetLabel"`
			} `json:"relabelings"`
		} `json:"podMetricsEndpoints"`
	} `json:"spec"`
}

func TestPodMonitorsSelectTheOperatorsAndTheMembers(t *testing.T) {
	manifests := strings.Split(read(t, monitoring.Folder+"/podmonitor.yaml"), "\n---\n")
	var member corev1.Pod
	if err := yaml.Unmarshal([]byte(read(t, "pkg/manifest/testdata/pods/seed.yaml")), &member); err != nil {
		t.Fatal(err)
	}
	var pods []corev1.PodTemplateSpec
	for _, file := range []string{"example/deployment.yaml", "example/etcd-backup-operator/deployment.yaml", "example/etcd-restore-operator/deployment.yaml"} {
		var deployment appsv1.Deployment
		if err := yaml.Unmarshal([]byte(read(t, file)), &deployment); err != nil {
			t.Fatal(err)
		}
		pods = append(pods, deployment.Spec.Template)
	}
	pods = append(pods, corev1.PodTemplateSpec{ObjectMeta: member.ObjectMeta, Spec: member.Spec})
	if len(manifests) != len(pods) {
		t.Fatalf("%d PodMonitors", len(manifests))
	}
	for i, text := range manifests {
		var monitor podMonitor
		if err := yaml.UnmarshalStrict([]byte(text), &monitor); err != nil {
			t.Fatal(err)
		}
		selector, err := metav1.LabelSelectorAsSelector(&monitor.Spec.Selector)
		if err != nil {
			t.Fatal(err)
		}
		for j, pod := range pods {
			if got := selector.Matches(labels.Set(pod.Labels)); got != (i == j) {
				t.Errorf("PodMonitor %s selects a pod with labels %v: %t", monitor.Metadata.Name, pod.Labels, got)
			}
		}
		endpoint := monitor.Spec.PodMetricsEndpoints[0]
		if !slices.ContainsFunc(pods[i].Spec.Containers[0].Ports, func(p corev1.ContainerPort) bool { return p.Name == endpoint.Port }) {
			t.Errorf("PodMonitor %s scrapes port %s, which the pod does not have", monitor.Metadata.Name, endpoint.Port)
		}
	}
}

func TestTheDashboardIsOneThatGrafanaShows(t *testing.T) {
	d, err := monitoring.ReadDashboard(root)
	if err != nil {
		t.Fatal(err)
	}
	if d.Title == "" || d.UID == "" || d.SchemaVersion == 0 || len(d.Templating.List) != 3 {
		t.Errorf("dashboard %+v", d)
	}
	ids, titles := map[int]bool{}, map[string]bool{}
	for i, p := range d.Panels {
		if p.ID == 0 || ids[p.ID] || p.Title == "" || titles[p.Title] {
			t.Errorf("panel %d, %q: its ID and title are its own", p.ID, p.Title)
		}
		ids[p.ID], titles[p.Title] = true, true
		g := p.GridPos
		if g.W < 1 || g.H < 1 || g.X < 0 || g.X+g.W > 24 {
			t.Errorf("panel %q lies outside of the grid: %+v", p.Title, g)
		}
		for _, other := range d.Panels[:i] {
			if o := other.GridPos; g.X < o.X+o.W && o.X < g.X+g.W && g.Y < o.Y+o.H && o.Y < g.Y+g.H {
				t.Errorf("panels %q and %q overlap", p.Title, other.Title)
			}
		}
		if p.Type == "row" {
			continue
		}
		if p.Description == "" || len(p.Targets) == 0 || p.Datasource.UID != "${datasource}" {
			t.Errorf("panel %q: description %q, %d queries, data source %q", p.Title, p.Description, len(p.Targets), p.Datasource.UID)
		}
	}
}
