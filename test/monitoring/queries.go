// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package monitoring reads the queries in example/monitoring, so that tests can compare them
// with the existing metrics.
package monitoring

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"
)

// Folder is where the examples are, below the top of the source tree.
const Folder = "example/monitoring"

// Query is one expression and its place.
type Query struct {
	Name string
	Expr string
}

// Rule is an alert rule of a rules file.
type Rule struct {
	Alert       string            `json:"alert"`
	Expr        string            `json:"expr"`
	For         string            `json:"for"`
	Labels      map[string]string `json:"labels"`
	Annotations map[string]string `json:"annotations"`
}

// Group is a group of rules.
type Group struct {
	Name  string `json:"name"`
	Rules []Rule `json:"rules"`
}

// Groups reads rules.yaml.
func Groups(root string) ([]Group, error) {
	var file struct {
		Groups []Group `json:"groups"`
	}
	text, err := os.ReadFile(filepath.Join(root, Folder, "rules.yaml"))
	if err != nil {
		return nil, err
	}
	if err := yaml.UnmarshalStrict(text, &file); err != nil {
		return nil, fmt.Errorf("rules.yaml: %w", err)
	}
	return file.Groups, nil
}

// Rules are the rules of all groups.
func Rules(root string) ([]Rule, error) {
	groups, err := Groups(root)
	var rules []Rule
	for _, g := range groups {
		rules = append(rules, g.Rules...)
	}
	return rules, err
}

// Panel is the parts of a dashboard's panel that tests check.
type Panel struct {
	ID          int    `json:"id"`
	Type        string `json:"type"`
	Title       string `json:"title"`
	Description string `json:"description"`
	GridPos     struct{ X, Y, W, H int }
	Datasource  struct{ Type, UID string }
	Targets     []struct {
		RefID string `json:"refId"`
		Expr  string `json:"expr"`
	} `json:"targets"`
}

// Dashboard is the parts of the dashboard that tests check.
type Dashboard struct {
	Title         string  `json:"title"`
	UID           string  `json:"uid"`
	SchemaVersion int     `json:"schemaVersion"`
	Panels        []Panel `json:"panels"`
	Templating    struct {
		List []struct {
			Name       string `json:"name"`
			Definition string `json:"definition"`
		} `json:"list"`
	} `json:"templating"`
}

// ReadDashboard reads dashboard.json.
func ReadDashboard(root string) (Dashboard, error) {
	var d Dashboard
	text, err := os.ReadFile(filepath.Join(root, Folder, "dashboard.json"))
	if err != nil {
		return d, err
	}
	if err := json.Unmarshal(text, &d); err != nil {
		return d, fmt.Errorf("dashboard.json: %w", err)
	}
	return d, nil
}

// variables are the placeholders that Grafana fills in.
var variables = strings.NewReplacer("$__rate_interval", "1m", "$namespace", ".+", "$cluster", ".+")

// Queries returns all expressions of the rules and the dashboard, as Prometheus receives them.
func Queries(root string) ([]Query, error) {
	rules, err := Rules(root)
	if err != nil {
		return nil, err
	}
	dashboard, err := ReadDashboard(root)
	if err != nil {
		return nil, err
	}
	var queries []Query
	for _, r := range rules {
		queries = append(queries, Query{"alert " + r.Alert, r.Expr})
	}
	for _, p := range dashboard.Panels {
		for _, target := range p.Targets {
			queries = append(queries, Query{"panel " + p.Title + " " + target.RefID, variables.Replace(target.Expr)})
		}
	}
	return queries, nil
}

var name = regexp.MustCompile(`\b(?:etcd|grpc|process)_\w+`)

// labels look like names of metrics.
var labels = []string{"grpc_method", "grpc_service", "grpc_code", "grpc_type"}

// Metrics returns the names of the metrics in an expression.
func (q Query) Metrics() []string {
	names := slices.DeleteFunc(name.FindAllString(q.Expr, -1), func(n string) bool { return slices.Contains(labels, n) })
	slices.Sort(names)
	return slices.Compact(names)
}
