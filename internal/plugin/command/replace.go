// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/etcd-operator/etcd-operator/internal/plugin/access"
	"github.com/etcd-operator/etcd-operator/internal/plugin/hint"
	"github.com/etcd-operator/etcd-operator/internal/plugin/observe"
	"github.com/etcd-operator/etcd-operator/internal/plugin/summary"
)

type replaceOptions struct {
	waitOptions
	volume bool
	dryRun dryRun
}

func (app *App) replace() *cobra.Command {
	opts := &replaceOptions{}
	cmd := &cobra.Command{
		Use:     "replace MEMBER",
		GroupID: operate,
		Short:   "Replace a member, if the others keep a quorum",
		Long: `Delete the pod of a member, if the other members are a quorum without it. A leader first
hands over to another member. The operator then creates a new member. A member on a volume
starts again with its data, unless --with-volume deletes the volume too: the member then
returns with a new copy of the data.`,
		Example: "  kubectl etcd replace orders-x7d2m\n  kubectl etcd replace orders-x7d2m --with-volume",
		Args:    usage(cobra.ExactArgs(1)),
		ValidArgsFunction: func(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			if len(args) > 0 {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			return app.memberNames(cmd, "")
		},
		RunE: func(cmd *cobra.Command, args []string) error { return app.runReplace(cmd.Context(), args[0], opts) },
	}
	opts.bind(cmd, 15*time.Minute)
	cmd.Flags().BoolVar(&opts.volume, "with-volume", false, "delete the member's volume with its data")
	opts.dryRun.bind(cmd, "report what the command would delete, and change nothing")
	return cmd
}

func (app *App) runReplace(ctx context.Context, member string, opts *replaceOptions) error {
	a, o, end, err := app.observer()
	if err != nil {
		return err
	}
	defer end()
	pod, err := a.Kube.CoreV1().Pods(a.Namespace).Get(ctx, member, metav1.GetOptions{})
	if err != nil {
		return err
	}
	owner := metav1.GetControllerOf(pod)
	if owner == nil || owner.Kind != "EtcdCluster" {
		return fmt.Errorf("the pod %s belongs to no EtcdCluster", member)
	}
	s, err := lookBeforeReplace(ctx, o, owner.Name, pod, opts.volume)
	if err != nil {
		return err
	}
	if opts.dryRun {
		fmt.Fprintf(app.Out, "would delete pod/%s%s: %d of %d voters stay healthy\n", member, alsoVolume(opts.volume), healthyWithout(s, member), s.Voters)
		return nil
	}
	if s.Leader == member {
		if err := app.runMoveLeader(ctx, o, s.Name, ""); err != nil {
			return err
		}
		// That may have taken a minute, in which another member may have failed.
		if _, err := lookBeforeReplace(ctx, o, s.Name, pod, opts.volume); err != nil {
			return err
		}
	}
	if err := app.deleteMember(ctx, a, pod, opts.volume); err != nil {
		return err
	}
	if !opts.wait {
		return nil
	}
	return app.until(ctx, opts.waitOptions, func(ctx context.Context) (string, bool, error) {
		return replaced(ctx, o, s.Name, pod, opts.volume)
	})
}

// lookBeforeReplace observes the cluster. The error is why the pod must not be deleted now.
func lookBeforeReplace(ctx context.Context, o *observe.Observer, cluster string, pod *corev1.Pod, volume bool) (*summary.Summary, error) {
	c, err := o.Observe(ctx, cluster)
	if err != nil {
		return nil, err
	}
	s := summary.Of(c, nil)
	err = replaceable(s, c, pod.Name, volume)
	if current := c.Pod(pod.Name); err == nil && (current == nil || current.UID != pod.UID) {
		err = fmt.Errorf("its pod is gone or replaced since the command began: %s", hint.Etcd(s.Place(), "status", s.Name))
	}
	if err != nil {
		return nil, fmt.Errorf("%s is not replaced: %w", pod.Name, err)
	}
	return s, nil
}

func alsoVolume(volume bool) string {
	if volume {
		return " and its volume"
	}
	return ""
}

func healthyWithout(s *summary.Summary, member string) int {
	healthy := 0
	for _, m := range s.Members {
		// The operator may have seen a former member of an import long ago.
		if m.Votes() && m.Healthy && m.Asked() && m.Name != member {
			healthy++
		}
	}
	return healthy
}

// replaceable is why a member must not be replaced.
func replaceable(s *summary.Summary, c *observe.Cluster, member string, volume bool) error {
	if c.NotAsked != nil {
		return notAsked(c)
	}
	if !c.Agreed {
		return errors.New("no quorum confirms who the members are")
	}
	var it *summary.Member
	for i := range s.Members {
		if s.Members[i].Name == member {
			it = &s.Members[i]
		}
	}
	switch {
	case c.Object.Spec.Paused:
		return fmt.Errorf("the operator is paused and would not replace it: %s", hint.Etcd(s.Place(), "resume", s.Name))
	case summary.Contradicted(c):
		return errors.New("the operator changes nothing in this cluster, because data may be lost: see doc/disaster.md")
	case volume && !c.Object.Spec.Persistent():
		return errors.New("--with-volume: the members of this cluster have no volumes")
	case it == nil:
		return errors.New("it is no longer in the list of members")
	case !it.Votes():
		return nil // nothing depends on it
	}
	if healthy, quorum := healthyWithout(s, member), s.Voters/2+1; healthy < quorum {
		return fmt.Errorf("without it, %d of %d voters are healthy, and a quorum is %d", healthy, s.Voters, quorum)
	}
	return nil
}

// deleteMember deletes what was looked at, and nothing that has taken its place.
func (app *App) deleteMember(ctx context.Context, a *access.Access, pod *corev1.Pod, volume bool) error {
	deletePod := func(dryRun ...string) error {
		err := a.Kube.CoreV1().Pods(a.Namespace).Delete(ctx, pod.Name, metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(pod.UID)), DryRun: dryRun})
		if err != nil {
			return fmt.Errorf("delete the pod %s: %w", pod.Name, err)
		}
		return nil
	}
	if volume {
		// A volume that is being deleted cannot be kept: it would go later, when the pod does.
		if err := deletePod(metav1.DryRunAll); err != nil {
			return fmt.Errorf("%w; the command has changed nothing", err)
		}
		// The volume goes first: it ends with the last pod that uses it, before the
		// operator can start another one on it.
		claims := a.Kube.CoreV1().PersistentVolumeClaims(a.Namespace)
		claim, err := claims.Get(ctx, pod.Name, metav1.GetOptions{})
		if err == nil {
			err = claims.Delete(ctx, claim.Name, metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(claim.UID))})
		}
		switch {
		case err == nil:
			fmt.Fprintf(app.Out, "persistentvolumeclaim/%s deleted\n", pod.Name)
		case !apierrors.IsNotFound(err):
			return fmt.Errorf("delete the volume of %s: %w", pod.Name, err)
		}
	}
	if err := deletePod(); err != nil {
		return err
	}
	fmt.Fprintf(app.Out, "pod/%s deleted\n", pod.Name)
	return nil
}

// replaced reports whether the cluster is whole again without the pod.
func replaced(ctx context.Context, o *observe.Observer, cluster string, old *corev1.Pod, volume bool) (string, bool, error) {
	c, err := o.Observe(ctx, cluster)
	if err != nil {
		return "", false, err
	}
	s := summary.Of(c, nil)
	for i := range c.Pods {
		if c.Pods[i].UID == old.UID {
			return "waiting for the end of the pod " + old.Name, false, nil
		}
	}
	if volume {
		for _, m := range s.Members {
			if m.Name == old.Name && m.ID != "" && !m.Healthy {
				return "the operator removes the member " + old.Name, false, nil
			}
		}
	}
	state := fmt.Sprintf("%d of %d voters healthy", s.Healthy, s.Size)
	for _, m := range s.Members {
		if !m.Healthy && m.Problem != "" {
			state += ", " + m.Name + ": " + m.Problem
		} else if m.Role == summary.Learner {
			state += ", " + m.Name + " learns"
		}
	}
	return state, s.Healthy == s.Size && s.Voters == s.Size, nil
}
