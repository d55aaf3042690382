// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"encoding/json"
	"fmt"
	"io"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"
)

// output is the flag -o.
type output string

const (
	asText output = ""
	asJSON output = "json"
	asYAML output = "yaml"
)

// String is the flag's value.
func (o *output) String() string { return string(*o) }

// Type names the flag's values in help texts.
func (o *output) Type() string { return "format" }

// Set takes the flag's value.
func (o *output) Set(value string) error {
	switch output(value) {
	case asJSON, asYAML:
		*o = output(value)
		return nil
	default:
		return fmt.Errorf("it is json or yaml")
	}
}

func (o *output) bind(cmd *cobra.Command) {
	cmd.Flags().VarP(o, "output", "o", "json or yaml, instead of text")
	_ = cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions([]string{string(asJSON), string(asYAML)}, cobra.ShellCompDirectiveNoFileComp))
}

// write prints a value in the format, or as text does.
func (o *output) write(out io.Writer, value any, text func(io.Writer) error) error {
	switch *o {
	case asJSON:
		encoder := json.NewEncoder(out)
		encoder.SetIndent("", "    ")
		return encoder.Encode(value)
	case asYAML:
		content, err := yaml.Marshal(value)
		if err != nil {
			return err
		}
		_, err = fmt.Fprintf(out, "---\n%s", content)
		return err
	default:
		return text(out)
	}
}
