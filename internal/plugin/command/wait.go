// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"time"

	"github.com/spf13/cobra"

	"github.com/etcd-operator/etcd-operator/internal/plugin/hint"
	"github.com/etcd-operator/etcd-operator/pkg/kubeerror"
)

// waitOptions are the flags of commands that wait for what they have begun.
type waitOptions struct {
	wait    bool
	timeout time.Duration
	// progress is where progress is printed; nil for standard output.
	progress io.Writer
	// rest says what becomes of the work if the command stops waiting; "": the operator
	// continues it.
	rest string
}

func (o *waitOptions) bind(cmd *cobra.Command, timeout time.Duration) {
	cmd.Flags().BoolVar(&o.wait, "wait", true, "wait until the operator has finished")
	cmd.Flags().DurationVar(&o.timeout, "timeout", timeout, "how long to wait")
}

// pollPeriod is how long after one look the next one is made.
const pollPeriod = time.Second

// until looks again and again until it is done, and prints what it looks like each time
// that this has changed. An error of look ends the wait, unless the API server may come back.
func (app *App) until(ctx context.Context, opts waitOptions, look func(context.Context) (state string, done bool, err error)) error {
	start, last := app.Clock.Now(), ""
	rest := cmp.Or(opts.rest, "the operator continues without this command")
	progress := opts.progress
	if progress == nil {
		progress = app.Out
	}
	stopped := func() error { return fmt.Errorf("stopped waiting: %s%s", rest, lastSeen(last)) }
	for {
		state, done, err := look(ctx)
		if ctx.Err() != nil && errors.Is(err, context.Canceled) {
			return stopped()
		}
		if unreachable(err) && ctx.Err() == nil {
			state, done, err = fmt.Sprintf("the API server does not answer: %v", err), false, nil
		}
		if err != nil {
			return err
		}
		if state != "" && state != last {
			fmt.Fprintf(progress, "%5.0fs  %s\n", app.Clock.Since(start).Seconds(), state)
			last = state
		}
		switch {
		case done:
			return nil
		case app.Clock.Since(start) >= opts.timeout:
			return fmt.Errorf("not done after %s: %s%s", opts.timeout, rest, lastSeen(last))
		case !app.pause(ctx, pollPeriod):
			return stopped()
		}
	}
}

// unreachable reports whether an error says nothing about what was asked for: the API server, or its
// etcd, may be about to restart.
func unreachable(err error) bool {
	return errors.As(err, new(*url.Error)) || kubeerror.IsBusy(err)
}

// waitingFor returns the state of a command that waits for an operator. After a while, the
// state names the command that reports whether the operator runs.
func (app *App) waitingFor(operator string, place hint.Place) func() string {
	const patience = 10 * time.Second
	start := app.Clock.Now()
	return func() string {
		state := "waiting for the " + operator
		if app.Clock.Since(start) >= patience {
			state += "; " + hint.Etcd(place, "doctor") + " reports whether it runs"
		}
		return state
	}
}

func lastSeen(state string) string {
	if state == "" {
		return ""
	}
	return "; last seen: " + state
}
