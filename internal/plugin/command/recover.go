// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/etcd-operator/etcd-operator/internal/plugin/access"
	"github.com/etcd-operator/etcd-operator/internal/plugin/observe"
	"github.com/etcd-operator/etcd-operator/internal/plugin/recovery"
	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/backups"
	ways "github.com/etcd-operator/etcd-operator/pkg/recovery"
)

// recoveryBump is by how much a recovery raises the revision. Clients may have watched
// revisions that the survivor lacks. It covers a week of 1,600 writes a second.
const recoveryBump = 1_000_000_000

type recoverOptions struct {
	waitOptions
	creation
	survivor bool
	store    string
	bump     int64
	confirm  string
}

func (app *App) recoverCommand() *cobra.Command {
	opts := &recoverOptions{}
	cmd := &cobra.Command{
		Use:     "recover NAME [--from-survivor]",
		GroupID: keep,
		Short:   "Show the ways out of a lost quorum, or continue from a survivor",
		Long: `Show what is left of a cluster that has lost its quorum, and what each way out loses.
Without --from-survivor, the command changes nothing.

With --from-survivor, the command backs up the survivor with the highest revision into the
store of an EtcdBackup, and restores the cluster from that backup. The restored cluster has
a new cluster ID, so the missing members cannot join it when they return. Their volumes
remain until you delete them. The command stops before the restore if a quorum returns.`,
		Example: `  kubectl etcd recover orders
  kubectl etcd recover orders --from-survivor --dry-run
  kubectl etcd recover orders --from-survivor --store nightly`,
		Args:              usage(cobra.ExactArgs(1)),
		ValidArgsFunction: app.clusterNames,
		RunE:              func(cmd *cobra.Command, args []string) error { return app.runRecover(cmd.Context(), args[0], opts) },
	}
	opts.waitOptions.bind(cmd, 30*time.Minute)
	opts.creation.bind(cmd, "print the ways out and the EtcdBackup, and change nothing")
	flags := cmd.Flags()
	flags.BoolVar(&opts.survivor, "from-survivor", false, "back up the survivor with the highest revision, and restore that backup")
	flags.StringVar(&opts.store, "store", "", "use the store of this EtcdBackup")
	flags.Int64Var(&opts.bump, "bump-revision", recoveryBump, "raise the revision by this number, for clients with watches; 0 for etcd older than 3.4.27 or 3.5.10 (doc/restore.md)")
	flags.StringVar(&opts.confirm, "confirm", "", "name of the cluster; a script gives it here instead of typing it")
	_ = cmd.RegisterFlagCompletionFunc("store", app.completeBackup)
	return cmd
}

func (app *App) runRecover(ctx context.Context, name string, opts *recoverOptions) error {
	a, o, end, err := app.observer()
	if err != nil {
		return err
	}
	defer end()
	o.BePatient()
	c, report, err := lookForSurvivors(ctx, a, o, name)
	if err != nil {
		return err
	}
	if !opts.survivor {
		return opts.output.write(app.Out, report, []string{"etcdcluster." + api.GroupName + "/" + name}, func(out io.Writer) error {
			return report.Print(out, app.Clock.Now())
		})
	}
	opts.progress = opts.sentences(app)
	if err := report.Print(opts.progress, app.Clock.Now()); err != nil {
		return err
	}
	fmt.Fprintln(opts.progress)
	if way := report.Taken(); way != "" {
		return fmt.Errorf("the operator takes the way out %s, and two must not replace the cluster: wait for it, or choose with the annotation %s; the command has changed nothing", way, api.RecoverAnnotation)
	}
	best := report.Best()
	if best == nil {
		return errors.New("no survivor can be used, and the command has changed nothing")
	}
	if c.NoBackups != nil {
		return c.NoBackups
	}
	like, err := backups.Template(c.Backups, name, opts.store)
	if err != nil {
		return fmt.Errorf("the backup of the survivor needs a store: %w; --store names the EtcdBackup", err)
	}
	once, err := backups.Once(like, app.Clock.Now())
	if err != nil {
		return err
	}
	manifest := manifestOf("EtcdBackup", once.Namespace, once.Name, once.Spec)
	if opts.dryRun {
		if best.NotServing {
			fmt.Fprintf(opts.progress, "%s serves no clients, so the operator would have its data served, and create the EtcdBackup. This command would set the annotation %s.\n", best.Name, api.RecoverAnnotation)
			return nil
		}
		return opts.print(app.Out, manifest)
	}
	fmt.Fprintf(opts.progress, "The cluster continues from %s, revision %d. The data of all other members is given up.\n", best.Name, best.Revision)
	if err := app.confirmed(ctx, opts.progress, name, opts.confirm); err != nil {
		return err
	}
	if !opts.wait {
		return errors.New("--wait=false: a recovery needs the command until the restore begins; it has changed nothing")
	}
	if best.NotServing {
		if opts.bump != recoveryBump {
			return errors.New("--bump-revision: the operator recovers from a survivor that serves no clients, and chooses the number; the command has changed nothing")
		}
		return app.chooseSurvivor(ctx, a, name, api.ChosenWay{Member: best.Name, Store: like.Name}, opts)
	}
	if err := app.makeWay(ctx, a, name, opts.waitOptions); err != nil {
		return err
	}
	if once, err = a.Etcd.EtcdV1beta2().EtcdBackups(a.Namespace).Create(ctx, once, metav1.CreateOptions{}); err != nil {
		return err
	}
	if err := opts.print(app.Out, manifest); err != nil {
		return err
	}
	stored, err := app.storeSurvivor(ctx, a, once, opts)
	if err != nil {
		return err
	}
	if err := app.stillLost(ctx, a, o, name, best, stored); err != nil {
		return err
	}
	return app.restoreSurvivor(ctx, a, name, stored, opts)
}

// lookForSurvivors observes a cluster, and returns the ways out. It fails if there is a quorum.
func lookForSurvivors(ctx context.Context, a *access.Access, o *observe.Observer, name string) (*observe.Cluster, *recovery.Report, error) {
	c, err := o.Observe(ctx, name)
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil, fmt.Errorf("%w: see \"If the EtcdCluster is gone too\" in doc/disaster.md", err)
	case err != nil:
		return nil, nil, err
	case c.NotAsked != nil && len(c.Answers) > 0:
		return nil, nil, notAsked(c)
	}
	volumes, err := volumesOf(ctx, a, name)
	if err != nil {
		return nil, nil, err
	}
	report, err := recovery.Of(c, volumes)
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", name, err)
	}
	return c, report, nil
}

// volumesOf returns the phases of the members' claims. A user without the right sees none.
func volumesOf(ctx context.Context, a *access.Access, name string) (map[string]corev1.PersistentVolumeClaimPhase, error) {
	selector := labels.SelectorFromSet(labels.Set{api.AppLabel: api.AppEtcd, api.ClusterLabel: name}).String()
	list, err := a.Kube.CoreV1().PersistentVolumeClaims(a.Namespace).List(ctx, metav1.ListOptions{LabelSelector: selector})
	if apierrors.IsForbidden(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	phases := map[string]corev1.PersistentVolumeClaimPhase{}
	for i := range list.Items {
		phases[list.Items[i].Name] = list.Items[i].Status.Phase
	}
	return phases, nil
}

// storeSurvivor waits until the backup is stored, and returns it.
func (app *App) storeSurvivor(ctx context.Context, a *access.Access, once *api.EtcdBackup, opts *recoverOptions) (*api.EtcdBackup, error) {
	var stored *api.EtcdBackup
	waiting := app.waitingFor("backup operator", a.Namespace)
	err := app.until(ctx, opts.waitOptions, func(ctx context.Context) (string, bool, error) {
		b, state, done, err := backedUp(ctx, a, once.Name, waiting)
		stored = b
		return state, done, err
	})
	if err != nil {
		return nil, fmt.Errorf("%w; the cluster is unchanged", err)
	}
	return stored, nil
}

// stillLost looks again before the point of no return: a quorum that has come back may have
// taken writes, and a backup may be of another survivor.
func (app *App) stillLost(ctx context.Context, a *access.Access, o *observe.Observer, name string, best *ways.Survivor, stored *api.EtcdBackup) error {
	const unchanged = "the cluster is unchanged, and the backup remains"
	if !stored.Status.Uncertain {
		return fmt.Errorf("a quorum has confirmed the backup, so there is one again: %s", unchanged)
	}
	if stored.Status.EtcdRevision < best.Revision {
		return fmt.Errorf("the backup has revision %d, and %s had %d: it is of another survivor; %s: find out why %s gave none",
			stored.Status.EtcdRevision, best.Name, best.Revision, unchanged, best.Name)
	}
	if _, _, err := lookForSurvivors(ctx, a, o, name); err != nil {
		return fmt.Errorf("%w; %s", err, unchanged)
	}
	return nil
}

// restoreSurvivor restores the cluster from the backup of the survivor.
func (app *App) restoreSurvivor(ctx context.Context, a *access.Access, name string, stored *api.EtcdBackup, opts *recoverOptions) error {
	restore, err := backups.Restore(name, stored, backups.Pick{Newest: true})
	if err != nil {
		return err
	}
	restore.Spec.BumpRevision = opts.bump
	restore.Spec.OldVolumes = api.OldVolumesKeep
	if _, err := a.Etcd.EtcdV1beta2().EtcdRestores(a.Namespace).Create(ctx, restore, metav1.CreateOptions{}); err != nil {
		if apierrors.IsNotFound(err) {
			err = fmt.Errorf("%w: deploy the restore operator, see \"Restore\" in doc/disaster.md", err)
		}
		return fmt.Errorf("%w; the cluster is unchanged, and the backup %s remains", err, stored.Status.Key)
	}
	if err := opts.print(app.Out, manifestOf("EtcdRestore", restore.Namespace, restore.Name, restore.Spec)); err != nil {
		return err
	}
	waiting := app.waitingFor("restore operator", a.Namespace)
	return app.until(ctx, opts.waitOptions, func(ctx context.Context) (string, bool, error) { return restored(ctx, a, name, waiting) })
}
