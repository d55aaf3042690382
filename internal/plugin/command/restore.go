// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/etcd-operator/etcd-operator/internal/plugin/access"
	"github.com/etcd-operator/etcd-operator/internal/plugin/backups"
	"github.com/etcd-operator/etcd-operator/internal/plugin/observe"
	"github.com/etcd-operator/etcd-operator/internal/plugin/summary"
	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

type restoreOptions struct {
	waitOptions
	pick    backups.Pick
	before  string
	from    string
	bump    int64
	keep    bool
	dryRun  bool
	confirm string
}

func (app *App) restore() *cobra.Command {
	opts := &restoreOptions{}
	cmd := &cobra.Command{
		Use:     "restore NAME (--newest | --before TIME | --key KEY)",
		GroupID: keep,
		Short:   "Restore a cluster in place from a backup",
		Long: `Restore a cluster in place from a backup in the store of one of its EtcdBackups. What
will be lost is printed first, and the cluster's name has to be typed. The restore
operator reads the whole backup before it touches the cluster.

A cluster whose EtcdCluster is gone, or a restore beside the old cluster, needs an
EtcdRestore with a clusterTemplate: see doc/restore.md.`,
		Example: `  kubectl etcd restore orders --newest --dry-run
  kubectl etcd restore orders --before 2026-11-21T03:30:00Z
  kubectl etcd restore orders --before 2h
  kubectl etcd restore orders --key mybucket/orders_v80912_2026-11-21-03:00:00`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: app.clusterNames,
		RunE:              func(cmd *cobra.Command, args []string) error { return app.runRestore(cmd.Context(), args[0], opts) },
	}
	opts.bind(cmd, 30*time.Minute)
	flags := cmd.Flags()
	flags.BoolVar(&opts.pick.Newest, "newest", false, "the newest good backup")
	flags.StringVar(&opts.before, "before", "", "the newest backup begun at this time or before: such as 2026-11-21T03:30:00Z, or 2h ago")
	flags.StringVar(&opts.pick.Key, "key", "", "this backup, by bucket and key")
	flags.StringVar(&opts.from, "from", "", "EtcdBackup whose store is read")
	flags.Int64Var(&opts.bump, "bump-revision", 0, "raise the revision by so much, for clients with watches (doc/restore.md)")
	flags.BoolVar(&opts.keep, "keep-volumes", false, "keep the old members' volumes")
	flags.BoolVar(&opts.dryRun, "dry-run", false, "print what would be lost and the EtcdRestore, and change nothing")
	flags.StringVar(&opts.confirm, "confirm", "", "the cluster's name, for scripts that can't type it")
	_ = cmd.RegisterFlagCompletionFunc("from", app.completeBackup)
	return cmd
}

func (app *App) runRestore(ctx context.Context, name string, opts *restoreOptions) error {
	now := app.Clock.Now()
	if opts.before != "" {
		before, err := backups.ParseBefore(opts.before, now)
		if err != nil {
			return err
		}
		opts.pick.Before = before
	}
	if err := opts.pick.Validate(); err != nil {
		return err
	}
	a, o, end, err := app.observer()
	if err != nil {
		return err
	}
	defer end()
	c, err := o.Observe(ctx, name)
	if apierrors.IsNotFound(err) {
		return fmt.Errorf("%w: a restore without an EtcdCluster needs its manifest, see \"If the EtcdCluster is gone too\" in doc/disaster.md", err)
	}
	if err != nil {
		return err
	}
	from, err := chooseBackup(ctx, a, name, opts.from)
	if err != nil {
		return err
	}
	restore, err := backups.Restore(name, from, opts.pick)
	if err != nil {
		return err
	}
	restore.Spec.BumpRevision = opts.bump
	if opts.keep {
		restore.Spec.OldVolumes = api.OldVolumesKeep
	}
	app.printLoss(c, from, opts.pick)
	if opts.dryRun {
		return app.printRestore(restore)
	}
	if err := app.confirmed(name, opts.confirm); err != nil {
		return err
	}
	if err := app.makeWay(ctx, a, name, opts.timeout); err != nil {
		return err
	}
	if _, err := a.Etcd.EtcdV1beta2().EtcdRestores(a.Namespace).Create(ctx, restore, metav1.CreateOptions{}); err != nil {
		return err
	}
	fmt.Fprintf(app.Out, "etcdrestore/%s created\n", name)
	if !opts.wait {
		return nil
	}
	return app.until(ctx, opts.waitOptions, func(ctx context.Context) (string, bool, error) { return restored(ctx, a, name) })
}

func (app *App) printLoss(c *observe.Cluster, from *api.EtcdBackup, pick backups.Pick) {
	s := summary.Of(c, nil)
	known := backups.Known(from, pick)
	fmt.Fprintf(app.Out, "EtcdCluster %s is %s: %d of %d voters healthy.\n", s.Name, s.State, s.Healthy, s.Voters)
	if known.Key != "" {
		fmt.Fprintf(app.Out, "Backup: %s of the EtcdBackup %s.\n", known.Key, from.Name)
	} else {
		fmt.Fprintf(app.Out, "Backup: of the EtcdBackup %s.\n", from.Name)
	}
	for _, sentence := range backups.Loss(known, pick, s.Revision, app.Clock.Now()) {
		fmt.Fprintln(app.Out, "  "+sentence)
	}
	if s.State != summary.Down {
		fmt.Fprintf(app.Out, "  The cluster serves now. Back it up before: kubectl etcd backup %s\n", s.Name)
	}
}

func (app *App) printRestore(restore *api.EtcdRestore) error {
	content, err := yaml.Marshal(map[string]any{
		"apiVersion": api.SchemeGroupVersion.String(), "kind": "EtcdRestore",
		"metadata": map[string]string{"name": restore.Name, "namespace": restore.Namespace},
		"spec":     restore.Spec,
	})
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(app.Out, "---\n%s", content)
	return err
}

// confirmed asks for the cluster's name.
func (app *App) confirmed(name, given string) error {
	if given == "" {
		fmt.Fprintf(app.Out, "Type the name of the cluster to restore it: ")
		typed, err := bufio.NewReader(app.In).ReadString('\n')
		if given = strings.TrimSpace(typed); err != nil && given == "" {
			fmt.Fprintln(app.Out)
			return errors.New("nothing was typed, and nothing is changed: --confirm takes the name in scripts")
		}
	}
	if given != name {
		return fmt.Errorf("%q is not %q: nothing is changed", given, name)
	}
	return nil
}

// makeWay deletes the EtcdRestore of an earlier restore that is over.
func (app *App) makeWay(ctx context.Context, a *access.Access, name string, timeout time.Duration) error {
	client := a.Etcd.EtcdV1beta2().EtcdRestores(a.Namespace)
	old, err := client.Get(ctx, name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return nil
	case err != nil:
		return err
	case !old.Status.Succeeded:
		return fmt.Errorf("a restore of %s is under way (%s%s): wait for it, or edit or delete the EtcdRestore %s", name, old.Status.Phase, withReason(old.Status.Reason), name)
	}
	err = client.Delete(ctx, name, metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(old.UID))})
	if err != nil && !apierrors.IsNotFound(err) {
		return err
	}
	return app.until(ctx, waitOptions{timeout: timeout}, func(ctx context.Context) (string, bool, error) {
		_, err := client.Get(ctx, name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return "", true, nil
		}
		return "the EtcdRestore of an earlier restore goes", false, err
	})
}

func restored(ctx context.Context, a *access.Access, name string) (string, bool, error) {
	r, err := a.Etcd.EtcdV1beta2().EtcdRestores(a.Namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return "", false, err
	}
	switch r.Status.Phase {
	case api.RestorePhaseInvalid, api.RestorePhaseFailed:
		return "", false, fmt.Errorf("the restore is %s and has changed nothing: %s", r.Status.Phase, r.Status.Reason)
	case "":
		return "waiting for the restore operator", false, nil
	}
	return fmt.Sprint(r.Status.Phase, withReason(r.Status.Reason)), r.Status.Succeeded, nil
}
