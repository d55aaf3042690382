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
)

type recoverOptions struct {
	waitOptions
	creation
	survivor bool
	store    string
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

With --from-survivor, the command has the operator continue from the survivor with the highest
revision: it sets the annotation etcd.database.coreos.com/recover. The operators back up the
survivor into the store of an EtcdBackup, and restore the cluster from that backup. The restored
cluster has a new cluster ID, so the missing members cannot join it when they return. Their volumes
remain until you delete them. The operators stop before the restore if a quorum returns.`,
		Example: `  kubectl etcd recover orders
  kubectl etcd recover orders --from-survivor --dry-run
  kubectl etcd recover orders --from-survivor --store nightly`,
		Args:              usage(cobra.ExactArgs(1)),
		ValidArgsFunction: app.clusterNames,
		RunE:              func(cmd *cobra.Command, args []string) error { return app.runRecover(cmd.Context(), args[0], opts) },
	}
	opts.waitOptions.bind(cmd, 30*time.Minute)
	opts.creation.bind(cmd, "print the ways out and the annotation, and change nothing")
	flags := cmd.Flags()
	flags.BoolVar(&opts.survivor, "from-survivor", false, "continue from the survivor with the highest revision")
	flags.StringVar(&opts.store, "store", "", "use the store of this EtcdBackup")
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
	names := []string{"etcdcluster." + api.GroupName + "/" + name}
	if !opts.survivor {
		return opts.output.write(app.Out, report, names, func(out io.Writer) error {
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
	way := api.ChosenWay{Member: best.Name, Store: like.Name}
	if opts.output.machine() {
		if err := opts.output.write(app.Out, report, names, nil); err != nil {
			return err
		}
	}
	if opts.dryRun {
		fmt.Fprintf(opts.progress, "This command would set the annotation %s to %s.\n", api.RecoverAnnotation, way.String())
		return nil
	}
	fmt.Fprintf(opts.progress, "The cluster continues from %s, revision %d. The data of all other members is given up.\n", best.Name, best.Revision)
	if err := app.confirmed(ctx, opts.progress, a, name, opts.confirm); err != nil {
		return err
	}
	return app.chooseSurvivor(ctx, a, name, way, opts)
}

// lookForSurvivors observes a cluster, and returns the ways out. It fails if there is a quorum.
func lookForSurvivors(ctx context.Context, a *access.Access, o *observe.Observer, name string) (*observe.Cluster, *recovery.Report, error) {
	c, err := o.Observe(ctx, name)
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil, fmt.Errorf("%w: see \"If the EtcdCluster is gone too\" in doc/disaster.md", err)
	case err != nil:
		return nil, nil, err
	case c.NotAsked != nil && !recovery.Reported(c):
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
