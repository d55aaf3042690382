// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"

	"github.com/etcd-operator/etcd-operator/internal/plugin/hint"
	"github.com/etcd-operator/etcd-operator/internal/plugin/observe"
	"github.com/etcd-operator/etcd-operator/internal/plugin/summary"
)

// electionTime is how long a member that can lead is waited for, and then how long until it leads.
const electionTime = 30 * time.Second

func (app *App) moveLeader() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "move-leader NAME [MEMBER]",
		GroupID: operate,
		Short:   "Hand leadership to another member",
		Long:    "Hand leadership to a member, or else to the healthy follower that lags least. Writes wait for a moment.",
		Example: "  kubectl etcd move-leader orders\n  kubectl etcd move-leader orders orders-x7d2m",
		Args:    usage(cobra.RangeArgs(1, 2)),
		ValidArgsFunction: func(cmd *cobra.Command, args []string, toComplete string) ([]string, cobra.ShellCompDirective) {
			if len(args) == 1 {
				return app.memberNames(cmd, args[0])
			}
			return app.clusterNames(cmd, args, toComplete)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			_, o, end, err := app.observer()
			if err != nil {
				return err
			}
			defer end()
			to := ""
			if len(args) == 2 {
				to = args[1]
			}
			return app.runMoveLeader(cmd.Context(), o, args[0], to)
		},
	}
	return cmd
}

func (app *App) runMoveLeader(ctx context.Context, o *observe.Observer, name, to string) error {
	var (
		s      *summary.Summary
		target summary.Member
	)
	// A busy member may miss one look, and etcd may elect a leader between a look and the
	// request.
	err := app.until(ctx, waitOptions{timeout: electionTime, rest: "nothing was changed"}, func(ctx context.Context) (state string, done bool, err error) {
		c, err := o.Observe(ctx, name)
		if err != nil {
			return "", false, err
		}
		if c.NotAsked != nil {
			return "", false, notAsked(c)
		}
		s = summary.Of(c, nil)
		if target, state, err = successor(s, to); err != nil || state != "" {
			return state, false, err
		}
		if target.Name == s.Leader {
			return "", true, nil
		}
		err = o.MoveLeader(ctx, c, s.Leader, target.Name)
		if errors.Is(err, rpctypes.ErrNotLeader) {
			return s.Leader + " does not lead any more", false, nil
		}
		return "", err == nil, err
	})
	if err != nil {
		return err
	}
	if target.Name == s.Leader {
		fmt.Fprintf(app.Out, "%s leads already\n", target.Name)
		return nil
	}
	err = app.until(ctx, waitOptions{timeout: electionTime, rest: target.Name + " may lead later"}, func(ctx context.Context) (string, bool, error) {
		c, err := o.Observe(ctx, name)
		if err != nil {
			return "", false, err
		}
		return "", summary.Of(c, nil).Leader == target.Name, nil
	})
	if err != nil {
		return err
	}
	fmt.Fprintf(app.Out, "%s leads, in place of %s\n", target.Name, s.Leader)
	return nil
}

// notAsked is the error of a command that needs answers of members.
func notAsked(c *observe.Cluster) error {
	return fmt.Errorf("the plugin cannot ask the members: %w", c.NotAsked)
}

// successor chooses who leads next. wait says why it cannot yet; err, why it never can.
func successor(s *summary.Summary, to string) (next summary.Member, wait string, err error) {
	if s.Leader == "" {
		return next, fmt.Sprintf("EtcdCluster %s has no leader that commits: %s", s.Name, hint.Etcd(s.Place(), "status", s.Name)), nil
	}
	var best *summary.Member
	for i := range s.Members {
		m := &s.Members[i]
		switch {
		case to == m.Name && !m.Votes():
			return next, "", fmt.Errorf("%s cannot lead: it has no vote (%s)", to, m.Role)
		case to == m.Name && !m.Healthy:
			return next, fmt.Sprintf("%s cannot lead: it is not healthy (%s)", to, m.Problem), nil
		case to == m.Name:
			return *m, "", nil
		case to == "" && m.Role == summary.Follower && m.Healthy && (best == nil || m.Lag < best.Lag):
			best = m
		}
	}
	switch {
	case to != "":
		return next, "", fmt.Errorf("EtcdCluster %s has no member %s: %s", s.Name, to, hint.Etcd(s.Place(), "members", s.Name))
	case best == nil:
		return next, "there is no healthy follower that could lead", nil
	default:
		return *best, "", nil
	}
}
