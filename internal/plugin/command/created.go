// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"

	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

// creation is the flags of commands that create an object, or have an operator create one.
type creation struct {
	output output
	dryRun dryRun
}

func (c *creation) bind(cmd *cobra.Command, usage string) {
	c.output.bind(cmd, asName)
	c.dryRun.bind(cmd, usage)
}

// sentences returns where text for people belongs.
func (c *creation) sentences(app *App) io.Writer {
	if c.output.machine() {
		return app.ErrOut
	}
	return app.Out
}

// manifest is an object as a person writes it: without a status and what the API server
// adds.
type manifest struct {
	APIVersion string            `json:"apiVersion"`
	Kind       string            `json:"kind"`
	Metadata   map[string]string `json:"metadata"`
	Spec       any               `json:"spec"`
}

func manifestOf(kind, namespace, name string, spec any) manifest {
	return manifest{api.SchemeGroupVersion.String(), kind, map[string]string{"name": name, "namespace": namespace}, spec}
}

// print prints an object that the command has created. In a dry run it prints the object
// that the command would create.
func (c *creation) print(out io.Writer, m manifest) error {
	kind := strings.ToLower(m.Kind)
	names := []string{kind + "." + api.GroupName + "/" + m.Metadata["name"]}
	return c.output.write(out, m, names, func(out io.Writer) error {
		if !c.dryRun {
			_, err := fmt.Fprintf(out, "%s/%s created\n", kind, m.Metadata["name"])
			return err
		}
		content, err := yaml.Marshal(m)
		if err != nil {
			return err
		}
		_, err = fmt.Fprintf(out, "---\n%s", content)
		return err
	})
}
