// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"errors"

	"github.com/spf13/cobra"
)

// dryRun is the flag --dry-run. It takes the values of kubectl that the commands have.
type dryRun bool

// String returns the flag's value.
func (d *dryRun) String() string {
	if *d {
		return "client"
	}
	return "none"
}

// Type names the flag's values in help texts.
func (d *dryRun) Type() string { return "string" }

// Set takes the flag's value.
func (d *dryRun) Set(value string) error {
	switch value {
	case "none":
		*d = false
	case "client":
		*d = true
	default:
		return errors.New("it must be none or client")
	}
	return nil
}

// bind adds the flag. Without a value, the flag means client.
func (d *dryRun) bind(cmd *cobra.Command, usage string) {
	cmd.Flags().Var(d, "dry-run", usage+`: "none" or "client"`)
	cmd.Flags().Lookup("dry-run").NoOptDefVal = "client"
	_ = cmd.RegisterFlagCompletionFunc("dry-run", cobra.FixedCompletions([]string{"client", "none"}, cobra.ShellCompDirectiveNoFileComp))
}
