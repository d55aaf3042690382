// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"os"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/etcd-operator/etcd-operator/pkg/cluster/plan"
)

// The table of doc/design.md names all rules in their order, and nothing else.
func TestTheDesignHasTheRulesInTheirOrder(t *testing.T) {
	var names []string
	for _, rule := range plan.Rules {
		name := runtime.FuncForPC(reflect.ValueOf(rule).Pointer()).Name()
		names = append(names, lowerFirst(name[strings.LastIndexByte(name, '.')+1:]))
	}
	documented := documentedRules(t)
	for i := range max(len(names), len(documented)) {
		at := func(list []string) string {
			if i < len(list) {
				return list[i]
			}
			return "no rule"
		}
		if at(names) != at(documented) {
			t.Fatalf("rule %d is %s, and doc/design.md has %s there; the rules are\n%s\nand the table has\n%s",
				i+1, at(names), at(documented), strings.Join(names, "\n"), strings.Join(documented, "\n"))
		}
	}
	for i, name := range names {
		if slices.Contains(names[:i], name) {
			t.Errorf("%s is there twice", name)
		}
	}
}

// documentedRules are those of the table, in its order. A row may have several.
func documentedRules(t *testing.T) []string {
	t.Helper()
	page, err := os.ReadFile("../../doc/design.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, found := strings.Cut(string(page), "\n## The rules of the plan, in order\n")
	if !found {
		t.Fatal("doc/design.md has no section of the rules")
	}
	section, _, _ = strings.Cut(section, "\n## ")
	var named []string
	for line := range strings.Lines(section) {
		cells := strings.Split(line, "|")
		if len(cells) < 3 {
			continue
		}
		for name := range strings.SplitSeq(cells[1], ",") {
			if name = strings.TrimSpace(name); name != "Rule" && strings.Trim(name, "-") != "" {
				named = append(named, name)
			}
		}
	}
	return named
}
