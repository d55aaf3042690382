// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/etcd-operator/etcd-operator/internal/plugin/access"
	"github.com/etcd-operator/etcd-operator/internal/plugin/observe"
	"github.com/etcd-operator/etcd-operator/internal/plugin/summary"
	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/backups"
)

type backupOptions struct {
	waitOptions
	creation
	from string
}

func (app *App) backup() *cobra.Command {
	opts := &backupOptions{}
	cmd := &cobra.Command{
		Use:     "backup NAME",
		GroupID: keep,
		Short:   "Back up a cluster now",
		Long: `Back up a cluster now, into the store of one of its EtcdBackups. The command creates an
EtcdBackup without a schedule. Its path is that of the other one, with "-manual-" and the
time appended. No schedule deletes this backup.`,
		Example: `  kubectl etcd backup orders
  kubectl etcd backup orders --from nightly
  kubectl etcd backup orders --dry-run -o yaml`,
		Args:              usage(cobra.ExactArgs(1)),
		ValidArgsFunction: app.clusterNames,
		RunE:              func(cmd *cobra.Command, args []string) error { return app.runBackup(cmd.Context(), args[0], opts) },
	}
	opts.waitOptions.bind(cmd, 10*time.Minute)
	opts.creation.bind(cmd, "print the EtcdBackup, and create nothing")
	cmd.Flags().StringVar(&opts.from, "from", "", "use the store of this EtcdBackup")
	_ = cmd.RegisterFlagCompletionFunc("from", app.completeBackup)
	return cmd
}

// completeBackup completes a flag with the EtcdBackups of the cluster.
func (app *App) completeBackup(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	return app.namesOf(cmd, func(ctx context.Context) ([]string, error) {
		a, err := app.Open()
		if err != nil || len(args) == 0 {
			return nil, err
		}
		list, err := observe.Backups(ctx, a, args[0])
		var names []string
		for i := range list {
			names = append(names, list[i].Name)
		}
		return names, err
	})
}

func (app *App) runBackup(ctx context.Context, name string, opts *backupOptions) error {
	a, _, err := app.openCluster(ctx, name)
	if err != nil {
		return err
	}
	list, err := observe.Backups(ctx, a, name)
	if err != nil {
		return err
	}
	if opts.from == "" {
		list = backups.Templates(list)
	}
	like, err := backups.Choose(list, name, opts.from)
	if err != nil {
		return err
	}
	once, err := backups.Once(like, app.Clock.Now())
	if err != nil {
		return err
	}
	client := a.Etcd.EtcdV1beta2().EtcdBackups(a.Namespace)
	manifest := manifestOf("EtcdBackup", once.Namespace, once.Name, once.Spec)
	if opts.dryRun {
		return opts.print(app.Out, manifest)
	}
	if once, err = client.Create(ctx, once, metav1.CreateOptions{}); err != nil {
		return err
	}
	if err := opts.print(app.Out, manifest); err != nil || !opts.wait {
		return err
	}
	opts.progress = opts.sentences(app)
	waiting := app.waitingFor("backup operator", a.Place())
	return app.until(ctx, opts.waitOptions, func(ctx context.Context) (string, bool, error) {
		_, state, done, err := backedUp(ctx, a, once.Name, waiting)
		return state, done, err
	})
}

// backedUp reads an EtcdBackup, and reports how far it is.
func backedUp(ctx context.Context, a *access.Access, name string, waiting func() string) (b *api.EtcdBackup, state string, done bool, err error) {
	if b, err = a.Etcd.EtcdV1beta2().EtcdBackups(a.Namespace).Get(ctx, name, metav1.GetOptions{}); err != nil {
		return nil, "", false, err
	}
	st := b.Status
	switch {
	case st.Phase == api.BackupPhaseInvalid || st.Phase == api.BackupPhaseFailed:
		return b, "", false, fmt.Errorf("EtcdBackup %s is %s: %s", b.Name, st.Phase, st.Reason)
	case st.Succeeded:
		state = fmt.Sprintf("stored %s: revision %d of etcd %s, %s", st.Key, st.EtcdRevision, st.EtcdVersion, summary.Bytes(st.Size))
		if st.Uncertain {
			state += "; no quorum confirmed it, so confirmed writes may be missing"
		}
		return b, state, true, nil
	case st.Phase == api.BackupPhaseNone:
		return b, waiting(), false, nil
	default:
		return b, fmt.Sprint(st.Phase, withReason(st.Reason)), false, nil
	}
}

func withReason(reason string) string {
	if reason == "" {
		return ""
	}
	return ": " + reason
}

func (app *App) backupList() *cobra.Command {
	var format output
	cmd := &cobra.Command{
		Use:     "backups NAME",
		GroupID: keep,
		Short:   "List the EtcdBackups of a cluster, each with its newest backup",
		Long: `List the EtcdBackups of a cluster, each with its newest backup. VERIFIED is "yes" if the
operator has verified the checksum of the backup, and a quorum has confirmed its data.
KEPT is the number of backups of the schedule in the store.`,
		Example:           "  kubectl etcd backups orders",
		Args:              usage(cobra.ExactArgs(1)),
		ValidArgsFunction: app.clusterNames,
		RunE: func(cmd *cobra.Command, args []string) error {
			a, err := app.Open()
			if err != nil {
				return err
			}
			found, err := observe.Backups(cmd.Context(), a, args[0])
			if err != nil {
				return err
			}
			list := []summary.Backup{}
			for i := range found {
				list = append(list, summary.BackupOf(&found[i], app.Clock.Now()))
			}
			return format.write(app.Out, list, backupNames(list), func(out io.Writer) error {
				return app.printBackups(out, args[0], list, format.wide())
			})
		},
	}
	format.bind(cmd, asWide, asName)
	return cmd
}

func backupNames(list []summary.Backup) []string {
	var names []string
	for _, b := range list {
		names = append(names, "etcdbackup."+api.GroupName+"/"+b.Name)
	}
	return names
}

func (app *App) printBackups(out io.Writer, cluster string, list []summary.Backup, wide bool) error {
	if len(list) == 0 {
		_, err := fmt.Fprintf(app.ErrOut, "No EtcdBackup names the EtcdCluster %s.\n", cluster)
		return err
	}
	now := app.Clock.Now()
	table := tabwriter.NewWriter(out, 0, 8, 3, ' ', 0)
	header := "NAME\tPHASE\tSCHEDULE\tNEWEST\tREVISION\tVERIFIED\tKEY"
	if wide {
		header += "\tSTORE\tSIZE\tKEPT\tNEXT"
	}
	fmt.Fprintln(table, header)
	for _, b := range list {
		newest, next, revision, size, verified := "-", "-", "-", "-", "-"
		if b.Taken != nil {
			newest, revision, size = summary.Age(now.Sub(*b.Taken))+" ago", fmt.Sprint(b.Revision), summary.Bytes(b.Size)
			if verified = "yes"; !b.Verified {
				verified = "no !"
			}
		}
		if b.Next != nil {
			next = "in " + summary.Age(b.Next.Sub(now))
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\t%s", b.Name, dash(string(b.Phase)), cmp.Or(b.Schedule, "once"), newest, revision, verified, dash(b.Key))
		if wide {
			fmt.Fprintf(table, "\t%s\t%s\t%d\t%s", b.Storage, size, b.Kept, next)
		}
		fmt.Fprintln(table)
	}
	if err := table.Flush(); err != nil {
		return err
	}
	for _, b := range list {
		if b.Failing != "" {
			fmt.Fprintf(out, "%s fails: %s\n", b.Name, b.Failing)
		}
		if b.Unlogged != "" {
			fmt.Fprintf(out, "The log of changes of %s does not continue: %s\n", b.Name, b.Unlogged)
		}
		if b.Unproved != "" {
			fmt.Fprintf(out, "The last restore test of %s did not pass: %s\n", b.Name, b.Unproved)
		}
	}
	return nil
}
