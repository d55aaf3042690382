// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func write(t *testing.T, root, name, text string) {
	t.Helper()
	path := filepath.Join(root, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestFieldsAndPhases(t *testing.T) {
	root := t.TempDir()
	write(t, root, "a.go", `package a

// Phase is a phase.
type Phase string

const (
	// None means that nobody has
	// seen it.
	None Phase = ""
	// Done means that `+"`a | b`"+` holds.
	Done Phase = "Done"
	// Other is of another type.
	Other = "Other"
)

// Status has fields.
type Status struct {
	// Size in
	// bytes.
	// +optional
	Size int `+"`json:\"size,omitempty\"`"+`
	// Members of it.
	Members []Member `+"`json:\"members\"`"+`
	// The best one.
	Best *Member `+"`json:\"best\"`"+`
	// Time of it.
	Time *metav1.Time `+"`json:\"time\"`"+`
}

// Member is a member.
type Member struct {
	// Its ID.
	ID string `+"`json:\"id\"`"+`
}

// Silent has a field without a comment.
type Silent struct {
	ID string `+"`json:\"id\"`"+`
}

// Odd is a type of constants.
type Odd string

// OddOne is commented in another way.
const OddOne Odd = "One"
`)
	a, err := readAPI(root)
	if err != nil {
		t.Fatal(err)
	}
	const wantFields = "| Field | Meaning |\n| --- | --- |\n| `size` | Size in bytes. |\n| `members` | Members of it. |\n| `members[].id` | Its ID. |\n" +
		"| `best` | The best one. |\n| `best.id` | Its ID. |\n| `time` | Time of it. |\n"
	if got, err := a.fields("Status"); err != nil || got != wantFields {
		t.Errorf("fields: error %v, got\n%s", err, got)
	}
	const wantPhases = "| Phase | Meaning |\n| --- | --- |\n| empty | Nobody has seen it. |\n| `Done` | `a \\| b` holds. |\n"
	if got, err := a.phases("Phase"); err != nil || got != wantPhases {
		t.Errorf("phases: error %v, got\n%s", err, got)
	}
	for about, table := range map[string]func(string) (string, error){"Silent": a.fields, "Nothing": a.fields, "Odd": a.phases, "Status": a.phases} {
		if got, err := table(about); err == nil {
			t.Errorf("%s: no error, but\n%s", about, got)
		}
	}
}

func TestFlags(t *testing.T) {
	root := t.TempDir()
	declare := func(calls string) {
		write(t, root, "a.go", "package a\n\nfunc f() {\n"+calls+"\n}\n")
	}
	declare(`fs.StringVar(&o.a, "name", "", "the ` + "`word`" + ` of it")
	fs.StringVar(&o.b, "addr", ":80", fmt.Sprintf("of %ss with %s", kind, scope))
	fs.DurationVar(&o.c, "every", 10*time.Minute, "how often")
	fs.IntVar(&o.d, "level", -1, "how high")
	fs.BoolVar(&o.e, "now", true, "at once")
	fs.Parse(args)`)
	const want = "| Flag | Default | Meaning |\n| --- | --- | --- |\n| `-name` |  | the word of it |\n" +
		"| `-addr` | `:80` | of Kinds with etcd.database.coreos.com/scope=clusterwide |\n| `-every` | `10m` | how often |\n| `-level` | `-1` | how high |\n| `-now` | `true` | at once |\n"
	if got, err := flags(root, "Kind", []string{"a.go"}); err != nil || got != strings.ReplaceAll(want, "'", "`") {
		t.Errorf("error %v, got\n%s", err, got)
	}
	for _, calls := range []string{
		``,
		`fs.IntVar(&o.a, "level", limit(), "how high")`,
		`fs.DurationVar(&o.a, "every", 10*tick, "how often")`,
		`fs.IntVar(&o.a, name, 1, "how high")`,
		`fs.IntVar(&o.a, "level", 1, fmt.Sprintf("at most %d", highest))`,
	} {
		declare(calls)
		if got, err := flags(root, "Kind", []string{"a.go"}); err == nil {
			t.Errorf("%s: no error, but\n%s", calls, got)
		}
	}
}

func TestFill(t *testing.T) {
	tables := map[string]string{"one": "| new |\n", "two": "| two |\n"}
	const block = "<!-- generated: one -->\n| old |\n<!-- generated: end -->\n"
	const other = "<!-- generated: two -->\n<!-- generated: end -->\n"
	got, err := fill("before\n"+block+"between\n"+other+"after\n", tables)
	want := "before\n<!-- generated: one -->\n\n| new |\n\n<!-- generated: end -->\nbetween\n<!-- generated: two -->\n\n| two |\n\n<!-- generated: end -->\nafter\n"
	if err != nil || got != want {
		t.Errorf("error %v, got\n%s", err, got)
	}
	if again, err := fill(got, tables); err != nil || again != got {
		t.Errorf("the second time: error %v, got\n%s", err, again)
	}
	for want, text := range map[string]string{
		`"two" is missing`:        block,
		`"one" is there twice`:    block + block + other,
		`nothing generates "six"`: block + other + "<!-- generated: six -->\n<!-- generated: end -->\n",
		`"two" has no end`:        block + "<!-- generated: two -->\n",
	} {
		if got, err := fill(text, tables); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want the error %q, got %v and\n%s", want, err, got)
		}
	}
}

// The page in the repository is up to date, and one that is not fails.
func TestUpdate(t *testing.T) {
	if err := update("../..", true); err != nil {
		t.Error(err)
	}
	root := t.TempDir()
	for _, dir := range []string{"pkg/apis/etcd/v1beta2", "internal/operator", "cmd/operator", "cmd/backup-operator", "cmd/restore-operator"} {
		if err := os.CopyFS(filepath.Join(root, dir), os.DirFS(filepath.Join("../..", dir))); err != nil {
			t.Fatal(err)
		}
	}
	text, err := os.ReadFile(filepath.Join("../..", page))
	if err != nil {
		t.Fatal(err)
	}
	stale := strings.Replace(string(text), "| `-version` |", "| `-vers` |", 1)
	write(t, root, page, stale)
	if err := update(root, true); err == nil || !strings.Contains(err.Error(), "hack/update-codegen.sh") {
		t.Errorf("a page that is not up to date: %v", err)
	}
	if err := update(root, false); err != nil {
		t.Fatal(err)
	}
	if updated, err := os.ReadFile(filepath.Join(root, page)); err != nil || string(updated) != string(text) {
		t.Errorf("the updated page differs: %v", err)
	}
}
