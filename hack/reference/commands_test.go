// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

func program(short, usage string) *cobra.Command {
	root := &cobra.Command{Use: "program"}
	show := &cobra.Command{Use: "show NAME", Short: short, Run: func(*cobra.Command, []string) {}}
	show.Flags().StringP("output", "o", "text", usage)
	show.Flags().Bool("all", false, "all of them")
	root.AddCommand(show)
	root.PersistentFlags().String("namespace", "", "of all commands")
	return root
}

func TestCommandsAndTheirFlags(t *testing.T) {
	list, flags, err := commands(program("Show a | b", `one of "text"`))
	if err != nil {
		t.Fatal(err)
	}
	if want := "| `show NAME` | Show a \\| b |\n"; !strings.HasSuffix(list, want) {
		t.Errorf("the commands are\n%swant\n%s", list, want)
	}
	want := "| `show` | `--all` | `false` | all of them |\n| `show` | `-o`, `--output` | `text` | one of `text` |\n"
	if !strings.HasSuffix(flags, want) || strings.Contains(flags, "namespace") {
		t.Errorf("the flags are\n%swant\n%s", flags, want)
	}
}

func TestACommandWithoutADescriptionIsAnError(t *testing.T) {
	for _, p := range []*cobra.Command{program("", "a flag"), program("Show", "")} {
		if _, _, err := commands(p); err == nil {
			t.Error("there is no error")
		}
	}
}
