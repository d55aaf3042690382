// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Command recorder runs a program that shows one screen after the other, such as `kubectl etcd
// status --watch`. It runs a second command meanwhile, and writes what both did as an animated
// picture. hack/recording is its only user.
package main

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"
)

func main() {
	if err := run(context.Background(), os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "recorder:", err)
		os.Exit(1)
	}
}

type options struct {
	first  string        // how the first line of a screen begins
	title  string        // what a user would type
	length time.Duration // of the recording
	fault  string        // the second command, for bash
	after  time.Duration // when it runs
	out    string
}

func run(ctx context.Context, args []string) error {
	var o options
	flags := flag.NewFlagSet("recorder", flag.ContinueOnError)
	flags.StringVar(&o.first, "first", "", "how the first line of each screen begins")
	flags.StringVar(&o.title, "title", "", "the command line to show above the screens")
	flags.DurationVar(&o.length, "length", 30*time.Second, "how long to record")
	flags.StringVar(&o.fault, "fault", "", "a command for bash to run and to show meanwhile")
	flags.DurationVar(&o.after, "after", 4*time.Second, "when to run it")
	flags.StringVar(&o.out, "out", "", "where to write the picture (SVG)")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() == 0 || o.out == "" || o.first == "" {
		return errors.New("-out, -first and a program are needed")
	}
	screens, faultAt, err := record(ctx, o, flags.Args())
	if err != nil {
		return err
	}
	if len(screens) < 2 {
		return fmt.Errorf("%s has shown %d screens, of which each begins with %q", flags.Arg(0), len(screens), o.first)
	}
	picture := movie{title: o.title, screens: screens, length: o.length, note: "$ " + o.fault, noteAt: faultAt}
	return os.WriteFile(o.out, []byte(picture.svg()), 0o644)
}

// record runs both commands until the recording is long enough.
func record(ctx context.Context, o options, program []string) ([]screen, time.Duration, error) {
	ctx, cancel := context.WithTimeout(ctx, o.length)
	defer cancel()
	cmd := exec.CommandContext(ctx, program[0], program[1:]...)
	cmd.Stderr = os.Stderr
	output, err := cmd.StdoutPipe()
	if err != nil {
		return nil, 0, err
	}
	began := time.Now()
	if err := cmd.Start(); err != nil {
		return nil, 0, err
	}
	var fault sync.WaitGroup
	var faultErr error
	fault.Go(func() {
		timer := time.NewTimer(o.after)
		defer timer.Stop()
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}
		if text, err := exec.CommandContext(ctx, "bash", "-c", o.fault).CombinedOutput(); err != nil {
			faultErr = fmt.Errorf("%s: %w\n%s", o.fault, err, text)
		}
	})
	screens := read(output, o.first, func() time.Duration { return time.Since(began) })
	fault.Wait()
	if err := cmd.Wait(); err != nil && ctx.Err() == nil {
		return nil, 0, fmt.Errorf("%s: %w", strings.Join(program, " "), err)
	}
	return screens, o.after, faultErr
}

// read splits the output into screens. One begins with the line that begins with first, and
// ends before the next.
func read(output io.Reader, first string, now func() time.Duration) []screen {
	var screens []screen
	lines := bufio.NewScanner(output)
	for lines.Scan() {
		line := strings.TrimRight(lines.Text(), " ")
		if strings.HasPrefix(line, first) {
			screens = append(screens, screen{at: now()})
		}
		if len(screens) > 0 {
			last := &screens[len(screens)-1]
			last.lines = append(last.lines, line)
		}
	}
	for i := range screens {
		for n := len(screens[i].lines); n > 0 && screens[i].lines[n-1] == ""; n-- {
			screens[i].lines = screens[i].lines[:n-1]
		}
	}
	return screens
}
