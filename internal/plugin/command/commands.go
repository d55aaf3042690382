// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import "github.com/spf13/cobra"

// Commands returns the commands for those who describe them, and not for running them.
func Commands() *cobra.Command { return (&App{}).root() }

func (app *App) addCommands(root *cobra.Command) {
	root.AddCommand(
		app.status(),
		app.members(),
		app.ctl(),
		app.logs(),
		app.certs(),
		app.top(),
		app.doctor(),
		app.report(),
		app.moveLeader(),
		app.replace(),
		app.pauseCommand(),
		app.resumeCommand(),
		app.upgrade(),
		app.backup(),
		app.backupList(),
		app.restore(),
		app.recoverCommand(),
		app.adopt(),
		app.importCommand(),
	)
}
