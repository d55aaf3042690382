// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/etcd-operator/etcd-operator/internal/plugin/observe"
	"github.com/etcd-operator/etcd-operator/internal/plugin/summary"
	"github.com/etcd-operator/etcd-operator/pkg/etcd"
)

// memberEntry is a member as `kubectl etcd members` prints it.
type memberEntry struct {
	summary.Member
	PeerURLs  []string `json:"peerURLs,omitempty"`
	ClientURL string   `json:"clientURL,omitempty"`
	PodPhase  string   `json:"podPhase,omitempty"`
}

func (app *App) members() *cobra.Command {
	var format output
	cmd := &cobra.Command{
		Use:               "members NAME",
		GroupID:           look,
		Short:             "List the members with their IDs and URLs",
		Long:              "List the members of etcd's membership with their IDs and URLs, and the pods that are no members.",
		Example:           "  kubectl etcd members orders",
		Args:              usage(cobra.ExactArgs(1)),
		ValidArgsFunction: app.clusterNames,
		RunE: func(cmd *cobra.Command, args []string) error {
			_, o, end, err := app.observer()
			if err != nil {
				return err
			}
			defer end()
			c, err := o.Observe(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			entries := memberEntries(c)
			return format.write(app.Out, entries, podNames(entries), func(out io.Writer) error { return printMembers(out, c, entries, format.wide()) })
		},
	}
	format.bind(cmd, asWide, asName)
	return cmd
}

func memberEntries(c *observe.Cluster) []memberEntry {
	entries := []memberEntry{}
	for _, m := range summary.Of(c, nil).Members {
		entry := memberEntry{Member: m}
		if pod := c.Pod(m.Name); pod != nil {
			entry.ClientURL = observe.Endpoint(c.Object, m.Name).URL
			entry.PodPhase = string(pod.Status.Phase)
		}
		for _, listed := range c.Members {
			if etcd.FormatID(listed.ID) == m.ID {
				entry.PeerURLs = listed.PeerURLs
			}
		}
		entries = append(entries, entry)
	}
	return entries
}

// podNames names the pods that exist.
func podNames(entries []memberEntry) []string {
	var names []string
	for _, e := range entries {
		if e.PodPhase != "" {
			names = append(names, "pod/"+e.Name)
		}
	}
	return names
}

func printMembers(out io.Writer, c *observe.Cluster, entries []memberEntry, wide bool) error {
	table := tabwriter.NewWriter(out, 0, 8, 3, ' ', 0)
	header := "NAME\tID\tROLE\tHEALTHY\tPOD\tNODE\tPROBLEM"
	if wide {
		header += "\tPEER URL\tCLIENT URL"
	}
	fmt.Fprintln(table, header)
	for _, e := range entries {
		fmt.Fprintf(table, "%s\t%s\t%s\t%t\t%s\t%s\t%s", dash(e.Name), dash(e.ID), e.Role, e.Healthy,
			dash(e.PodPhase), dash(e.Node), dash(e.Problem))
		if wide {
			fmt.Fprintf(table, "\t%s\t%s", dash(strings.Join(e.PeerURLs, ",")), dash(e.ClientURL))
		}
		fmt.Fprintln(table)
	}
	if err := table.Flush(); err != nil {
		return err
	}
	switch {
	case c.NotAsked != nil:
		fmt.Fprintf(out, "As the operator last saw them: the members were not asked (%v)\n", c.NotAsked)
	case !c.Agreed && len(c.Members) > 0:
		fmt.Fprintln(out, "No quorum confirms this list: one member remembers it.")
	}
	return nil
}

func dash(text string) string {
	if text == "" {
		return "-"
	}
	return text
}
