// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/etcd-operator/etcd-operator/internal/plugin/access"
	"github.com/etcd-operator/etcd-operator/internal/plugin/hint"
	"github.com/etcd-operator/etcd-operator/internal/plugin/observe"
	"github.com/etcd-operator/etcd-operator/internal/plugin/summary"
	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/backups"
)

type restoreOptions struct {
	waitOptions
	creation
	pick    backups.Pick
	before  string
	moment  string
	from    string
	rev     int64
	cluster string
	bump    int64
	keep    bool
	confirm string
}

func (app *App) restore() *cobra.Command {
	opts := &restoreOptions{}
	cmd := &cobra.Command{
		Use:     "restore NAME (--newest | --before TIME | --time TIME | --key KEY)",
		GroupID: keep,
		Short:   "Restore a cluster in place from a backup",
		Long: `Restore a cluster in place from a backup in the store of one of its EtcdBackups. The
command prints what the restore loses, and asks for the name of the cluster. The restore
operator reads the whole backup before it touches the cluster.

If the EtcdCluster is gone, or the restored cluster must run beside the old one, write an
EtcdRestore with a clusterTemplate: see doc/restore.md.`,
		Example: `  kubectl etcd restore orders --newest --dry-run
  kubectl etcd restore orders --before 2026-11-21T03:30:00Z
  kubectl etcd restore orders --before 2h
  kubectl etcd restore orders --time 2026-11-21T03:29:00Z
  kubectl etcd restore orders --newest --revision 80911
  kubectl etcd restore orders --key mybucket/orders_v80912_2026-11-21-03:00:00`,
		Args:              usage(cobra.ExactArgs(1)),
		ValidArgsFunction: app.clusterNames,
		RunE:              func(cmd *cobra.Command, args []string) error { return app.runRestore(cmd.Context(), args[0], opts) },
	}
	opts.waitOptions.bind(cmd, 30*time.Minute)
	opts.creation.bind(cmd, "print what the restore loses and the EtcdRestore, and change nothing")
	flags := cmd.Flags()
	flags.BoolVar(&opts.pick.Newest, "newest", false, "restore the newest good backup")
	flags.StringVar(&opts.before, "before", "", "restore the newest backup that began at this time or earlier, such as 2026-11-21T03:30:00Z, or 2h for two hours ago")
	flags.StringVar(&opts.moment, "time", "", "restore this moment, such as 2026-11-21T03:29:00Z, or 5m for five minutes ago; the EtcdBackup needs spec.continuous")
	flags.StringVar(&opts.pick.Key, "key", "", "restore this backup, such as mybucket/orders_v80912_2026-11-21-03:00:00")
	flags.StringVar(&opts.from, "from", "", "use the store of this EtcdBackup")
	flags.Int64Var(&opts.rev, "revision", 0, "restore this revision, which the backup must hold, or its log")
	flags.StringVar(&opts.cluster, "cluster-id", "", "with --newest, --before or --time, use only backups of the etcd cluster with this ID (status.clusterID of the EtcdBackup)")
	flags.Int64Var(&opts.bump, "bump-revision", 0, "raise the revision by this number, for clients with watches (doc/restore.md)")
	flags.BoolVar(&opts.keep, "keep-volumes", false, "keep the old members' volumes")
	flags.StringVar(&opts.confirm, "confirm", "", "name of the cluster; a script gives it here instead of typing it")
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
	if opts.moment != "" {
		moment, err := backups.ParseBefore(opts.moment, now)
		if err != nil {
			return err
		}
		opts.pick.Moment = moment
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
	if c.NoBackups != nil {
		return c.NoBackups
	}
	from, err := backups.Choose(c.Backups, name, opts.from)
	if err != nil {
		return err
	}
	restore, err := backups.Restore(name, from, opts.pick)
	if err != nil {
		return err
	}
	restore.Spec.Revision, restore.Spec.BumpRevision, restore.Spec.ClusterID = opts.rev, opts.bump, opts.cluster
	if errs := api.ValidateEtcdRestore(restore); len(errs) > 0 {
		return errs.ToAggregate()
	}
	if opts.keep {
		restore.Spec.OldVolumes = api.OldVolumesKeep
	}
	opts.progress = opts.sentences(app)
	app.printLoss(opts.progress, c, from, opts.pick, opts.rev)
	manifest := manifestOf("EtcdRestore", restore.Namespace, restore.Name, restore.Spec)
	if opts.dryRun {
		return opts.print(app.Out, manifest)
	}
	if err := app.confirmed(ctx, opts.progress, a, name, opts.confirm); err != nil {
		return err
	}
	if err := app.makeWay(ctx, a, name, opts.waitOptions); err != nil {
		return err
	}
	_, err = a.Etcd.EtcdV1beta2().EtcdRestores(a.Namespace).Create(ctx, restore, metav1.CreateOptions{})
	if apierrors.IsNotFound(err) {
		return fmt.Errorf("%w: deploy the restore operator first, see \"Restore\" in doc/disaster.md", err)
	}
	if err != nil {
		return err
	}
	if err := opts.print(app.Out, manifest); err != nil || !opts.wait {
		return err
	}
	waiting := app.waitingFor("restore operator", a.Place())
	return app.until(ctx, opts.waitOptions, func(ctx context.Context) (string, bool, error) { return restored(ctx, a, name, waiting) })
}

func (app *App) printLoss(out io.Writer, c *observe.Cluster, from *api.EtcdBackup, pick backups.Pick, revision int64) {
	s := summary.Of(c, nil)
	known := backups.Known(from, pick)
	if revision > 0 { // of the time of the backup, nothing follows
		known, pick = backups.Contents{Revision: revision}, backups.Pick{Key: pick.Key}
	}
	if s.Voters > 0 {
		fmt.Fprintf(out, "EtcdCluster %s is %s: %d of %d voters healthy.\n", s.Name, s.State, s.Healthy, s.Voters)
	} else {
		fmt.Fprintf(out, "EtcdCluster %s is %s: no member answers.\n", s.Name, s.State)
	}
	switch {
	case revision > 0:
		fmt.Fprintf(out, "Revision %d, from a backup of the EtcdBackup %s.\n", revision, from.Name)
	case !pick.Moment.IsZero():
		fmt.Fprintf(out, "The moment %s, from the backups of the EtcdBackup %s and their log.\n", pick.Moment.UTC().Format(time.RFC3339), from.Name)
	case known.Key != "":
		fmt.Fprintf(out, "Backup: %s of the EtcdBackup %s.\n", known.Key, from.Name)
	default:
		fmt.Fprintf(out, "Backup: one of the EtcdBackup %s.\n", from.Name)
	}
	for _, sentence := range backups.Loss(known, pick, backups.Current{Revision: s.Revision, Confirmed: s.Confirmed, Recorded: s.RevisionRecorded}, app.Clock.Now()) {
		fmt.Fprintln(out, "  "+sentence)
	}
	if newer := backups.Newer(c.Backups, from, pick); newer != nil {
		fmt.Fprintf(out, "  The EtcdBackup %s has a newer backup, of %s: --from %s restores it.\n",
			newer.Name, newer.Status.LastSuccessDate.UTC().Format(time.RFC3339), newer.Name)
	}
	if s.State != summary.Down {
		fmt.Fprintf(out, "  The cluster serves now. Back it up first: %s\n", hint.Etcd(s.Place(), "backup", s.Name))
	}
}

// where names the place that a command is about to change. Clusters of the same name are in others.
func where(a *access.Access) string {
	text := "the namespace " + a.Namespace
	if a.Target != "" {
		text += " of the Kubernetes " + a.Target
	}
	return text
}

// confirmed asks for the cluster's name. Ctrl-C ends the question too.
func (app *App) confirmed(ctx context.Context, out io.Writer, a *access.Access, name, given string) error {
	if given == "" {
		fmt.Fprintf(out, "The cluster is in %s.\n", where(a))
		fmt.Fprint(out, "Type the name of the cluster to restore it: ")
		typed, err := readLine(ctx, app.In)
		switch given = strings.TrimSpace(typed); {
		case ctx.Err() != nil:
			fmt.Fprintln(out)
			return fmt.Errorf("the command has changed nothing: %w", ctx.Err())
		case err != nil && given == "":
			fmt.Fprintln(out)
			return errors.New("nobody typed the name, and the command has changed nothing: in scripts, use --confirm")
		}
	}
	if given != name {
		return fmt.Errorf("%q is not %q: the command has changed nothing", given, name)
	}
	return nil
}

// readLine reads a line until the context ends. The goroutine of a line that never comes
// ends with the process.
func readLine(ctx context.Context, in io.Reader) (string, error) {
	type line struct {
		text string
		err  error
	}
	lines := make(chan line, 1)
	go func() {
		text, err := bufio.NewReader(in).ReadString('\n')
		lines <- line{text, err}
	}()
	select {
	case l := <-lines:
		return l.text, l.err
	case <-ctx.Done():
		return "", ctx.Err()
	}
}

// makeWay deletes the EtcdRestore of an earlier restore that is over.
func (app *App) makeWay(ctx context.Context, a *access.Access, name string, opts waitOptions) error {
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
	return app.until(ctx, opts, func(ctx context.Context) (string, bool, error) {
		_, err := client.Get(ctx, name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return "", true, nil
		}
		return "waiting for the end of the EtcdRestore of an earlier restore", false, err
	})
}

func restored(ctx context.Context, a *access.Access, name string, waiting func() string) (string, bool, error) {
	r, err := a.Etcd.EtcdV1beta2().EtcdRestores(a.Namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return "", false, err
	}
	switch r.Status.Phase {
	case api.RestorePhaseInvalid, api.RestorePhaseFailed:
		return "", false, fmt.Errorf("the restore is %s and has changed nothing: %s", r.Status.Phase, r.Status.Reason)
	case "":
		return waiting(), false, nil
	}
	return fmt.Sprint(r.Status.Phase, withReason(r.Status.Reason)), r.Status.Succeeded, nil
}
