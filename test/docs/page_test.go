// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"
)

const root = "../.."

func TestEveryBlockIsOfAKnownKind(t *testing.T) {
	list, err := pages(root)
	if err != nil {
		t.Fatal(err)
	}
	count := 0
	for _, page := range list {
		found, err := blocks(root, page)
		if err != nil {
			t.Fatal(err)
		}
		for _, b := range found {
			count++
			if !slices.Contains(kinds, b.kind) {
				t.Errorf("%s: a block of kind %q is run by nothing; there are %q", b, b.kind, kinds)
			}
			if strings.HasPrefix(b.kind, "sh") {
				parse := exec.CommandContext(t.Context(), "bash", "-n")
				parse.Stdin = strings.NewReader(b.text)
				if output, err := parse.CombinedOutput(); err != nil {
					t.Errorf("%s: %v\n%s", b, err, output)
				}
			}
		}
	}
	if count == 0 {
		t.Fatal("no block found")
	}
}

// The files in pkg/apis/etcd/crd name no release, and an operator of an earlier one would replace them.
func TestNoPageAppliesCRDsThatNameNoRelease(t *testing.T) {
	all, err := allBlocks(root, kinds...)
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range all {
		if strings.Contains(b.text, "kubectl apply") && strings.Contains(b.text, "pkg/apis/etcd/crd") {
			t.Errorf("%s: apply deploy/crds instead", b)
		}
	}
}

// hack/test runs each command in a block of kind "sh stage", by its own words; or the command
// is a target of the Makefile that only runs stages.
func TestCommandsOfStagesAreStages(t *testing.T) {
	stages := strings.Fields(output(t, "hack/test", "--list"))
	script := output(t, "cat", "hack/test")
	found, err := allBlocks(root, "sh stage")
	if err != nil || len(found) == 0 {
		t.Fatalf("%d blocks, error %v", len(found), err)
	}
	for _, b := range found {
		for _, command := range b.commands() {
			if target, ok := strings.CutPrefix(command, "make "); ok {
				command = strings.TrimSpace(output(t, "make", "--no-print-directory", "-n", target))
			}
			words := strings.Fields(command)
			switch {
			case command == "hack/demo" && slices.Contains(stages, "demo"):
			case command == "hack/test" || command == "hack/test --quick":
			case command == "hack/affected": // test/affected runs it
			case command == "hack/verify-codegen.sh" && strings.Contains(script, "generated() { "+command+"; }"):
			case words[0] == "hack/test" && words[1] == "--affected": // runs some of them
			case words[0] == "hack/test" && isSubset(words[1:], stages):
			default:
				t.Errorf("%s: %q is no stage of hack/test", b, command)
			}
		}
	}
}

func isSubset(words, of []string) bool {
	return !slices.ContainsFunc(words, func(w string) bool { return !slices.Contains(of, w) })
}

// A page's command applies every manifest in example/, directly or by create_role.sh.
func TestEveryManifestIsApplied(t *testing.T) {
	found, err := allBlocks(root, "sh")
	if err != nil {
		t.Fatal(err)
	}
	var commands []string
	for _, b := range found {
		commands = append(commands, b.commands()...)
	}
	runs := func(words ...string) bool {
		return slices.ContainsFunc(commands, func(command string) bool {
			return !slices.ContainsFunc(words, func(w string) bool { return !strings.Contains(command+" ", w) })
		})
	}
	manifests := 0
	err = filepath.WalkDir(filepath.Join(root, "example"), func(path string, _ fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(path) != ".yaml" {
			return err
		}
		manifests++
		path, err = filepath.Rel(root, path)
		if strings.HasPrefix(path, "example/gitops/") {
			return err // for Argo CD and Flux, which are absent; its test checks them
		}
		var applied bool
		switch filepath.Base(path) {
		case "kustomization.yaml":
			return err // of deploy/
		case "podmonitor.yaml", "prometheusrule.yaml", "rules.yaml":
			return err // for a Prometheus, which is absent; test/monitoring checks them
		case "cluster-role-template.yaml", "cluster-role-binding-template.yaml":
			applied = runs("example/rbac/create_role.sh ")
		case "role-template.yaml", "role-binding-template.yaml":
			applied = runs("example/rbac/create_role.sh --namespaced")
		default:
			applied = runs("kubectl apply -f", path) || runs("kubectl create -f", path)
		}
		if !applied {
			t.Errorf("no page applies %s", path)
		}
		return err
	})
	if err != nil || manifests == 0 {
		t.Fatalf("%d manifests, error %v", manifests, err)
	}
}

var (
	// link is a link to a file of this tree, to a heading of one, or to one of its own page.
	link    = regexp.MustCompile(`\]\(([^)#:]*)(#[^)]*)?\)`)
	heading = regexp.MustCompile(`(?m)^#+ (.*)$`)
)

func TestLinksLeadSomewhere(t *testing.T) {
	list, err := pages(root)
	if err != nil {
		t.Fatal(err)
	}
	links := 0
	for _, page := range list {
		text, err := os.ReadFile(filepath.Join(root, page))
		if err != nil {
			t.Fatal(err)
		}
		for _, match := range link.FindAllStringSubmatch(string(text), -1) {
			links++
			to := page
			if match[1] != "" {
				to = filepath.Join(filepath.Dir(page), match[1])
			}
			if _, err := os.Stat(filepath.Join(root, to)); err != nil {
				t.Errorf("%s: the link to %s: %v", page, match[1], err)
			} else if anchor := strings.TrimPrefix(match[2], "#"); anchor != "" && !slices.Contains(anchorsOf(t, to), anchor) {
				t.Errorf("%s: the link to %s%s: there is no such heading", page, match[1], match[2])
			}
		}
	}
	if links == 0 {
		t.Error("no link found")
	}
}

// Each claim of doc/reliability.md names existing tests.
func TestTestsThatThePagesNameExist(t *testing.T) {
	page, err := os.ReadFile(filepath.Join(root, "doc/reliability.md"))
	if err != nil {
		t.Fatal(err)
	}
	tests, files := map[string]bool{}, map[string]bool{}
	declared := regexp.MustCompile(`(?m)^func (Test\w+)\(`)
	err = filepath.WalkDir(root, func(path string, _ fs.DirEntry, err error) error {
		files[filepath.Base(path)] = true
		if err != nil || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		for _, match := range declared.FindAllStringSubmatch(string(text), -1) {
			tests[match[1]] = true
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	named := regexp.MustCompile("`(Test\\w+|\\w+\\.txt)`").FindAllStringSubmatch(string(page), -1)
	for _, match := range named {
		if name := match[1]; !tests[name] && !files[name] {
			t.Errorf("doc/reliability.md names %s, which does not exist", name)
		}
	}
	if len(named) == 0 {
		t.Error("no test is named")
	}
	claims, _, _ := strings.Cut(string(page), "## Chaos")
	for row := range strings.Lines(claims) {
		if strings.HasPrefix(row, "| When (UTC) ") || strings.HasPrefix(row, "| 20") {
			continue // runs, which say what they did
		}
		if strings.HasPrefix(row, "| ") && !strings.Contains(row, "Shown by") && !strings.Contains(row, "`Test") {
			t.Errorf("no test shows %s", row)
		}
	}
}

// anchorsOf returns the anchors that GitHub makes of a page's headings. Links to a repeated
// heading lead to the first.
func anchorsOf(t *testing.T, page string) (anchors []string) {
	t.Helper()
	found, err := blocks(root, page)
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(root, page))
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(string(text), "\n")
	for _, b := range found {
		for i := range strings.Count(b.text, "\n") { // comments of a shell are no headings
			lines[b.line-1+i] = ""
		}
	}
	for _, match := range heading.FindAllStringSubmatch(strings.Join(lines, "\n"), -1) {
		anchors = append(anchors, strings.Map(func(r rune) rune {
			switch {
			case r == ' ':
				return '-'
			case r == '-' || r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r):
				return unicode.ToLower(r)
			}
			return -1
		}, match[1]))
	}
	return anchors
}

// structural are names in the types without a meaning of their own.
var structural = map[string]bool{
	"metadata": true, "spec": true, "status": true, "items": true, "pod": true, "members": true,
	"type": true, "message": true, "lastUpdateTime": true, "lastTransitionTime": true,
}

// The reference has what users look up, in its section: reasons of events, phases, fields,
// flags.
func TestTheReferenceIsComplete(t *testing.T) {
	const (
		statusFields = `\t[A-Z]\w+ .*json:"(\w+)[,"]`
		flags        = `(?m)Var\(&[fo]\.\w+, "([^"]+)"`
	)
	// These are patterns. A documented name is in the first cell of a row; a field of a list
	// has its path before it.
	code := func(name string) string { return "`" + regexp.QuoteMeta(name) + "`" }
	row := func(name string) string { return "(?m)^\\| [^|]*[`.]" + regexp.QuoteMeta(name) + "`" }
	flag := func(name string) string { return row("-" + name) }
	unmanaged := func(noun string) string { return row(strings.ToUpper(noun[:1]) + noun[1:] + " Not Managed") }
	event := regexp.MustCompile(eventReason)
	told := map[string]bool{}
	for _, c := range []struct {
		section string
		pattern string
		told    func(name string) string
		file    string
	}{
		{"EtcdCluster: status", statusFields, row, "pkg/apis/etcd/v1beta2/status.go"},
		{"Events", eventReason, row, "pkg/cluster/report_events.go"},
		{"Events", eventReason, row, "pkg/cluster/apply_alarms.go"},
		{"Events", eventReason, row, "pkg/cluster/status_recovery.go"},
		{"Events", eventReason, row, "pkg/controller/fleet/handler.go"},
		{"Events", noun, unmanaged, "pkg/controller/controller.go"},
		{"The operator's flags", flags, flag, "cmd/operator/flags.go"},
		{"The operator's flags", flags, flag, "internal/operator/flags.go"},

		{"EtcdBackup: status", statusFields, row, "pkg/apis/etcd/v1beta2/backup_status.go"},
		{"EtcdBackup: status", `BackupPhase = "(\w+)"`, code, "pkg/apis/etcd/v1beta2/backup_status.go"},
		{"EtcdBackup: metadata", `BackupPeriodicFinalizer = "([^"]+)"`, code, "pkg/apis/etcd/v1beta2/backup_status.go"},
		{"EtcdBackup: events", eventReason, row, "pkg/backup/notices.go"},
		{"EtcdBackup: events", eventReason, row, "pkg/controller/fleet/handler.go"},
		{"EtcdBackup: events", noun, unmanaged, "pkg/controller/backup/controller.go"},
		{"EtcdBackup: what is stored", `Meta[A-Z]\w+ += "([^"]+)"`, row, "pkg/backupobject/metadata.go"},
		{"The backup operator's flags", flags, flag, "cmd/backup-operator/main.go"},
		{"The backup operator's flags", flags, flag, "internal/operator/flags.go"},

		{"EtcdRestore: status", statusFields, row, "pkg/apis/etcd/v1beta2/restore_status.go"},
		{"EtcdRestore: status", `RestorePhase = "(\w+)"`, code, "pkg/apis/etcd/v1beta2/restore_status.go"},
		{"EtcdRestore: events", eventReason, code, "pkg/restore/notices.go"}, // one is an event of the EtcdCluster, below the table
		{"EtcdRestore: events", eventReason, row, "pkg/controller/fleet/handler.go"},
		{"EtcdRestore: events", noun, unmanaged, "pkg/controller/restore/controller.go"},
		{"EtcdRestore: what it makes and marks", `= api.GroupName \+ "(/[^"]+)"`, func(name string) string { return name + "`" }, "pkg/restore/names.go"},
		{"The restore operator's flags", flags, flag, "cmd/restore-operator/main.go"},
		{"The restore operator's flags", flags, flag, "internal/operator/flags.go"},
		{"EtcdRestore: metadata", `RestoreFinalizer = "([^"]+)"`, code, "pkg/apis/etcd/v1beta2/restore_status.go"},
	} {
		section := sectionOf(t, "doc/reference.md", c.section)
		text, err := os.ReadFile(filepath.Join(root, c.file))
		if err != nil {
			t.Fatal(err)
		}
		found := regexp.MustCompile(c.pattern).FindAllStringSubmatch(string(text), -1)
		if len(found) == 0 {
			t.Errorf("%s matches nothing in %s", c.pattern, c.file)
		}
		for _, match := range found {
			if !structural[match[1]] && !regexp.MustCompile(c.told(match[1])).MatchString(section) {
				t.Errorf("doc/reference.md, section %q, lacks %s, which is in %s", c.section, match[1], c.file)
			}
		}
		if c.pattern == eventReason {
			told[c.file] = true
		}
	}
	for _, dir := range []string{"cmd", "internal", "pkg"} {
		err := filepath.WalkDir(filepath.Join(root, dir), func(path string, _ fs.DirEntry, err error) error {
			if err != nil || filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go") {
				return err
			}
			text, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			file, err := filepath.Rel(root, path)
			if event.Match(text) && !told[file] {
				t.Errorf("%s has events, and its reasons are not looked for in doc/reference.md", file)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

const (
	eventReason = `(?:\.[nN]ormal|\.[wW]arning|EventType(?:Normal|Warning),)\(? ?"([A-Z][A-Za-z ]+)"`
	noun        = `Noun: +"(\w+)"`
)

// sectionOf returns the text below a heading of a page.
func sectionOf(t *testing.T, page, heading string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, page))
	if err != nil {
		t.Fatal(err)
	}
	_, section, found := strings.Cut(string(text), "\n## "+heading+"\n")
	if !found {
		t.Fatalf("%s has no section %q", page, heading)
	}
	section, _, _ = strings.Cut(section, "\n## ")
	return section
}

func output(t *testing.T, name string, args ...string) string {
	t.Helper()
	if strings.Contains(name, "/") {
		name = "./" + name
	}
	command := exec.CommandContext(t.Context(), name, args...)
	command.Dir = root
	text, err := command.Output()
	if err != nil {
		t.Fatalf("%s: %v", command, err)
	}
	return string(text)
}
