// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/etcd-operator/etcd-operator/internal/plugin/report"
)

func (app *App) report() *cobra.Command {
	var file string
	cmd := &cobra.Command{
		Use:     "report NAME",
		GroupID: look,
		Short:   "Write one archive for a bug report",
		Long: `Write an archive for a bug report: the objects of a cluster, its pods and events, the
status of the members, the findings of doctor, and the last logs of members and operators.

The archive contains no Secret, and no data of etcd. The plugin removes values of foreign
variables and annotations. From logs, it removes what looks like a credential or a key of
etcd. Read the archive before you send it to others.`,
		Example:           "  kubectl etcd report orders\n  kubectl etcd report orders -f orders.tar.gz",
		Args:              usage(cobra.ExactArgs(1)),
		ValidArgsFunction: app.clusterNames,
		RunE:              func(cmd *cobra.Command, args []string) error { return app.runReport(cmd.Context(), args[0], file) },
	}
	cmd.Flags().StringVarP(&file, "file", "f", "", "file to write, or - for standard output (default etcd-report-NAME-TIME.tar.gz)")
	return cmd
}

func (app *App) runReport(ctx context.Context, name, file string) (err error) {
	a, o, end, err := app.observer()
	if err != nil {
		return err
	}
	defer end()
	r := report.Reporter{Access: a, Observer: o, Now: app.Clock.Now}
	archive, err := r.Collect(ctx, name)
	if err != nil {
		return err
	}
	if file == "-" {
		return archive.Write(app.Out)
	}
	if file == "" {
		file = fmt.Sprintf("etcd-report-%s-%s.tar.gz", name, app.Clock.Now().UTC().Format("20060102-150405"))
	}
	if err := writeFile(file, archive.Write); err != nil {
		return err
	}
	fmt.Fprintf(app.Out, "%s: %d files. Read the archive before you send it to others.\n", file, archive.Len())
	return nil
}

// writeFile makes a file that its owner alone can read.
func writeFile(name string, write func(io.Writer) error) error {
	f, err := os.OpenFile(name, os.O_CREATE|os.O_WRONLY|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	if err := write(f); err != nil {
		f.Close()
		return err
	}
	return f.Close()
}
