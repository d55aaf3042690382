// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Command reference writes the tables of doc/reference.md that follow from the code:
// fields and phases from the types in pkg/apis, flags from the commands, and the commands
// of the plugin. A table lies
// between two comments, <!-- generated: NAME --> and <!-- generated: end -->.
// hack/update-codegen.sh runs it.
//
//	reference [-verify] DIRECTORY
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/etcd-operator/etcd-operator/internal/plugin/command"
)

const page = "doc/reference.md"

func main() {
	verify := flag.Bool("verify", false, "change nothing; fail if the page is not up to date")
	flag.Parse()
	if flag.NArg() != 1 {
		fmt.Fprintln(os.Stderr, "usage: reference [-verify] DIRECTORY")
		os.Exit(2)
	}
	if err := update(flag.Arg(0), *verify); err != nil {
		fmt.Fprintf(os.Stderr, "reference: %v\n", err)
		os.Exit(1)
	}
}

func update(root string, verify bool) error {
	tables, err := tables(root)
	if err != nil {
		return err
	}
	path := filepath.Join(root, page)
	before, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	after, err := fill(string(before), tables)
	switch {
	case err != nil:
		return fmt.Errorf("%s: %w", page, err)
	case after == string(before):
		return nil
	case verify:
		return fmt.Errorf("%s is not what the code generates: run hack/update-codegen.sh and commit the result", page)
	}
	return os.WriteFile(path, []byte(after), 0o644)
}

// tables returns the text of each table by its name.
func tables(root string) (map[string]string, error) {
	api, err := readAPI(filepath.Join(root, "pkg/apis/etcd/v1beta2"))
	if err != nil {
		return nil, err
	}
	all := map[string]string{}
	for _, kind := range []string{"Cluster", "Backup", "Restore"} {
		if all["fields of the status of Etcd"+kind], err = api.fields(kind + "Status"); err != nil {
			return nil, err
		}
		if all["phases of Etcd"+kind], err = api.phases(kind + "Phase"); err != nil {
			return nil, err
		}
	}
	for program, files := range map[string][]string{
		"etcd-operator":         {"internal/operator/flags.go", "cmd/operator/flags.go"},
		"etcd-backup-operator":  {"internal/operator/flags.go", "cmd/backup-operator/main.go"},
		"etcd-restore-operator": {"internal/operator/flags.go", "cmd/restore-operator/main.go"},
	} {
		if all["flags of "+program], err = flags(root, kinds[program], files); err != nil {
			return nil, err
		}
	}
	all["commands of kubectl etcd"], all["flags of kubectl etcd"], err = commands(command.Commands())
	return all, err
}

// kinds of objects, by the operators that manage them.
var kinds = map[string]string{
	"etcd-operator": "EtcdCluster", "etcd-backup-operator": "EtcdBackup", "etcd-restore-operator": "EtcdRestore",
}

const begin, end = "<!-- generated: ", "<!-- generated: end -->\n"

// fill replaces the tables of a page. The page has each of them once.
func fill(text string, tables map[string]string) (string, error) {
	var out strings.Builder
	filled := map[string]bool{}
	for {
		before, rest, found := strings.Cut(text, begin)
		out.WriteString(before)
		if !found {
			break
		}
		name, rest, _ := strings.Cut(rest, " -->\n")
		_, after, ended := strings.Cut(rest, end)
		table, known := tables[name]
		switch {
		case !known:
			return "", fmt.Errorf("nothing generates %q", name)
		case !ended:
			return "", fmt.Errorf("%q has no end", name)
		case filled[name]:
			return "", fmt.Errorf("%q is there twice", name)
		}
		filled[name] = true
		fmt.Fprintf(&out, "%s%s -->\n\n%s\n%s", begin, name, table, end)
		text = after
	}
	var missing []error
	for name := range tables {
		if !filled[name] {
			missing = append(missing, fmt.Errorf("%q is missing", name))
		}
	}
	return out.String(), errors.Join(missing...)
}

// row formats a row of a table.
func row(cells ...string) string {
	for i, cell := range cells {
		cells[i] = strings.ReplaceAll(strings.Join(strings.Fields(cell), " "), "|", `\|`)
	}
	return "| " + strings.Join(cells, " | ") + " |\n"
}
