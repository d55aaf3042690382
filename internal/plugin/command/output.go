// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"
)

// The formats of the flag -o, besides text.
const (
	asJSON = "json"
	asYAML = "yaml"
	asWide = "wide"
	asName = "name"
)

// output is the flag -o. Each command names the formats that it has.
type output struct {
	format  string
	formats []string
	written bool
}

// String returns the flag's value.
func (o *output) String() string { return o.format }

// Type names the flag's values in help texts.
func (o *output) Type() string { return "format" }

// Set takes the flag's value.
func (o *output) Set(value string) error {
	if !slices.Contains(o.formats, value) {
		return fmt.Errorf("the format must be %s", o.list())
	}
	o.format = value
	return nil
}

// list returns the formats as a person lists them.
func (o *output) list() string {
	last := len(o.formats) - 1
	return strings.Join(o.formats[:last], ", ") + " or " + o.formats[last]
}

// bind adds the flag. Every command has JSON and YAML; some have more.
func (o *output) bind(cmd *cobra.Command, more ...string) {
	o.formats = append([]string{asJSON, asYAML}, more...)
	cmd.Flags().VarP(o, "output", "o", "output format: "+o.list())
	_ = cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions(o.formats, cobra.ShellCompDirectiveNoFileComp))
}

// wide reports whether text has all columns.
func (o *output) wide() bool { return o.format == asWide }

// machine reports whether a program reads the output. Sentences for people then belong
// on standard error.
func (o *output) machine() bool { return o.format != "" && o.format != asWide }

// write prints a value in the format, or its names, or as text does. Programs read the
// documents of several calls one by one.
func (o *output) write(out io.Writer, value any, names []string, text func(io.Writer) error) error {
	again := o.written
	o.written = true
	switch o.format {
	case asJSON:
		encoder := json.NewEncoder(out)
		encoder.SetIndent("", "    ")
		return encoder.Encode(value)
	case asYAML:
		content, err := yaml.Marshal(value)
		if err != nil {
			return err
		}
		if again {
			content = append([]byte("---\n"), content...)
		}
		_, err = out.Write(content)
		return err
	case asName:
		for _, name := range names {
			if _, err := fmt.Fprintln(out, name); err != nil {
				return err
			}
		}
		return nil
	default:
		return text(out)
	}
}
