// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// commands returns the tables of a program's commands, and of their flags.
func commands(program *cobra.Command) (list, flags string, err error) {
	list = row("Command", "Meaning") + row("---", "---")
	flags = row("Command", "Flag", "Default", "Meaning") + row("---", "---", "---", "---")
	for _, c := range program.Commands() {
		if c.Short == "" {
			return "", "", fmt.Errorf("the command %s has no description", c.Name())
		}
		list += row("`"+c.Use+"`", c.Short)
		c.LocalNonPersistentFlags().VisitAll(func(f *pflag.Flag) {
			if f.Usage == "" {
				err = fmt.Errorf("the flag --%s of %s has no description", f.Name, c.Name())
			}
			name, value := "`--"+f.Name+"`", ""
			if f.Shorthand != "" {
				name = "`-" + f.Shorthand + "`, " + name
			}
			if f.DefValue != "" {
				value = "`" + f.DefValue + "`"
			}
			flags += row("`"+c.Name()+"`", name, value, strings.ReplaceAll(f.Usage, `"`, "`"))
		})
	}
	return list, flags, err
}
