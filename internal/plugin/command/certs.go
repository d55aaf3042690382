// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/etcd-operator/etcd-operator/internal/plugin/observe"
	"github.com/etcd-operator/etcd-operator/internal/plugin/summary"
	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

func (app *App) certs() *cobra.Command {
	var format output
	cmd := &cobra.Command{
		Use:     "certs NAME",
		GroupID: look,
		Short:   "List the certificates of a cluster and when they expire",
		Long: `List the certificates of a cluster, and when each certificate or its first CA expires. Add
what the operator reports about them. The plugin never prints a private key.`,
		Example:           "  kubectl etcd certs orders",
		Args:              usage(cobra.ExactArgs(1)),
		ValidArgsFunction: app.clusterNames,
		RunE: func(cmd *cobra.Command, args []string) error {
			a, obj, err := app.openCluster(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			c := &observe.Cluster{Time: app.Clock.Now(), Object: obj, Certificates: observe.Certificates(cmd.Context(), a, obj)}
			list := summary.Certificates(c)
			return format.write(app.Out, list, secretNames(list), func(out io.Writer) error { return printCertificates(out, c, list) })
		},
	}
	format.bind(cmd, asName)
	return cmd
}

func secretNames(list []summary.Certificate) []string {
	var names []string
	for _, c := range list {
		names = append(names, "secret/"+c.Secret)
	}
	return names
}

func printCertificates(out io.Writer, c *observe.Cluster, list []summary.Certificate) error {
	if len(list) == 0 {
		_, err := fmt.Fprintf(out, "EtcdCluster %s uses no TLS.\n", c.Object.Name)
		return err
	}
	table := tabwriter.NewWriter(out, 0, 8, 3, ' ', 0)
	fmt.Fprintln(table, "USE\tSECRET\tEXPIRES\tIN\tFIRST TO EXPIRE\tNAMES")
	for _, cert := range list {
		if cert.Problem != "" {
			fmt.Fprintf(table, "%s\t%s\t-\t-\t-\t%s\n", cert.Use, cert.Secret, cert.Problem)
			continue
		}
		left := summary.Age(cert.Expires.Sub(c.Time))
		switch {
		case cert.Expired:
			left = "EXPIRED !"
		case cert.Expiring:
			left += " !"
		}
		first := "the certificate"
		if cert.CA != "" {
			first = "CA " + cert.CA
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\n", cert.Use, cert.Secret, cert.Expires.UTC().Format(time.RFC3339), left, first, dash(strings.Join(cert.Names, ",")))
	}
	if err := table.Flush(); err != nil {
		return err
	}
	if valid := c.Condition(api.ClusterConditionCertificatesValid); valid != nil && valid.Message != "" {
		fmt.Fprintf(out, "The operator reports: %s\n", valid.Message)
	}
	return nil
}
