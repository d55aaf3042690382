// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/etcd-operator/etcd-operator/internal/plugin/hint"
	"github.com/etcd-operator/etcd-operator/internal/plugin/observe"
	"github.com/etcd-operator/etcd-operator/internal/plugin/summary"
)

// load is what a member does in the time between two looks.
type load struct {
	Member   string       `json:"member"`
	Role     summary.Role `json:"role"`
	CPU      float64      `json:"cpuCores"`
	Memory   float64      `json:"memoryBytes"`
	Requests float64      `json:"requestsPerSecond"`
	Writes   float64      `json:"writesPerSecond"`
	Pending  float64      `json:"pendingWrites"`
	Watchers float64      `json:"watchers"`
	Keys     float64      `json:"keys"`
	// Times are in seconds; absent where nothing was written.
	FsyncP99  *float64 `json:"fsyncP99Seconds,omitempty"`
	CommitP99 *float64 `json:"commitP99Seconds,omitempty"`
}

func (app *App) top() *cobra.Command {
	var format output
	interval := 2 * time.Second
	cmd := &cobra.Command{
		Use:               "top NAME",
		GroupID:           look,
		Short:             "Show the load of each member: CPU, memory, requests, writes and disk",
		Long:              "Show the load of each member from its metrics. CPU, requests, writes and disk times cover --interval; the other columns show its end.",
		Example:           "  kubectl etcd top orders\n  kubectl etcd top orders --interval 10s",
		Args:              usage(cobra.ExactArgs(1)),
		ValidArgsFunction: app.clusterNames,
		RunE: func(cmd *cobra.Command, args []string) error {
			list, err := app.loads(cmd.Context(), args[0], interval)
			if err != nil {
				return err
			}
			return format.write(app.Out, list, nil, func(out io.Writer) error { return printLoads(out, list) })
		},
	}
	format.bind(cmd)
	cmd.Flags().DurationVar(&interval, "interval", interval, "time over which the plugin counts requests and writes")
	return cmd
}

func (app *App) loads(ctx context.Context, name string, interval time.Duration) ([]load, error) {
	if interval <= 0 {
		return nil, fmt.Errorf("--interval must be positive")
	}
	a, o, end, err := app.observer()
	if err != nil {
		return nil, err
	}
	defer end()
	before, err := o.Observe(ctx, name)
	if err != nil {
		return nil, err
	}
	if before.NotAsked != nil {
		return nil, notAsked(before)
	}
	if !app.pause(ctx, interval) {
		return nil, ctx.Err()
	}
	after, err := o.Observe(ctx, name)
	if err != nil {
		return nil, err
	}
	list := loadsOf(before, after)
	if len(list) == 0 {
		return nil, fmt.Errorf("the plugin can read the metrics of no member of %s: %s", name, hint.Etcd(a.Place(), "status", name))
	}
	return list, nil
}

// loadsOf compares two looks. A member that has restarted in between is counted from 0.
func loadsOf(before, after *observe.Cluster) []load {
	seconds := after.Time.Sub(before.Time).Seconds()
	var list []load
	for _, m := range summary.Of(after, before).Members {
		now, then := metricsOf(after, m.Name), metricsOf(before, m.Name)
		if now == nil {
			continue
		}
		switch {
		case then == nil: // nothing to compare with
			then = now
		case then.Started != now.Started:
			then = &observe.Metrics{}
		}
		l := load{
			Member: m.Name, Role: m.Role, Memory: now.Memory, Pending: now.Pending, Watchers: now.Watchers, Keys: now.Keys,
			CPU: (now.CPU - then.CPU) / seconds, Requests: (now.Requests - then.Requests) / seconds, Writes: (now.Proposals - then.Proposals) / seconds,
		}
		if p99, ok := now.WALFsync.Since(then.WALFsync).Quantile(0.99); ok {
			l.FsyncP99 = &p99
		}
		if p99, ok := now.Commit.Since(then.Commit).Quantile(0.99); ok {
			l.CommitP99 = &p99
		}
		list = append(list, l)
	}
	return list
}

func metricsOf(c *observe.Cluster, pod string) *observe.Metrics {
	for _, a := range c.Answers {
		if a.Pod == pod {
			return a.Metrics
		}
	}
	return nil
}

func printLoads(out io.Writer, list []load) error {
	table := tabwriter.NewWriter(out, 0, 8, 3, ' ', 0)
	fmt.Fprintln(table, "MEMBER\tROLE\tCPU\tMEMORY\tREQ/S\tWRITES/S\tPENDING\tWATCHERS\tKEYS\tFSYNC p99\tCOMMIT p99")
	for _, l := range list {
		fmt.Fprintf(table, "%s\t%s\t%.0fm\t%s\t%.0f\t%.0f\t%.0f\t%.0f\t%.0f\t%s\t%s\n", l.Member, l.Role, l.CPU*1000, summary.Bytes(int64(l.Memory)),
			l.Requests, l.Writes, l.Pending, l.Watchers, l.Keys, secondsOrDash(l.FsyncP99), secondsOrDash(l.CommitP99))
	}
	return table.Flush()
}

func secondsOrDash(s *float64) string {
	if s == nil {
		return "-"
	}
	return summary.Seconds(*s)
}
