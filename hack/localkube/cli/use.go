// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/etcd-operator/etcd-operator/hack/localkube/cluster"
	"github.com/etcd-operator/etcd-operator/hack/localkube/environ"
	"github.com/etcd-operator/etcd-operator/hack/localkube/images"
	"github.com/etcd-operator/etcd-operator/hack/localkube/instance"
	"github.com/etcd-operator/etcd-operator/hack/localkube/process"
)

// errDown is returned by commands that need a running instance.
var errDown = errors.New("no local Kubernetes is up: start it with `hack/kube up`")

// running returns the Config and Record of the running instance.
func (a *App) running() (instance.Config, instance.Record, error) {
	r, err := a.Instance.ReadRecord()
	if errors.Is(err, os.ErrPermission) {
		return instance.Config{}, r, fmt.Errorf("%w: run this as root", err)
	}
	if err != nil || !process.Alive(r.Init) {
		return instance.Config{}, r, errDown
	}
	c, err := instance.ReadConfig(a.Instance.State)
	return c, r, err
}

// ask sends a request to the supervisor.
func (a *App) ask(ctx context.Context, method, path string, into any) error {
	client := &http.Client{Transport: &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "unix", a.Instance.Socket())
		},
	}}
	defer client.CloseIdleConnections()
	req, err := http.NewRequestWithContext(ctx, method, "http://supervisor"+path, nil)
	if err != nil {
		return err
	}
	resp, err := client.Do(req)
	if err != nil {
		return fmt.Errorf("ask the supervisor: %w", err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		var failed struct {
			Error string `json:"error"`
		}
		if err := json.NewDecoder(resp.Body).Decode(&failed); err != nil {
			return fmt.Errorf("ask the supervisor: %s", resp.Status)
		}
		return errors.New(failed.Error)
	}
	return json.NewDecoder(resp.Body).Decode(into)
}

func status(ctx context.Context, a *App, args []string) error {
	if err := parse(a.flags("status", "hack/kube status"), args, 0); err != nil {
		return err
	}
	c, r, err := a.running()
	if err != nil {
		return err
	}
	var st cluster.Status
	if err := a.ask(ctx, http.MethodGet, "/status", &st); err != nil {
		return err
	}
	a.say("%s: up for %s, API server %s, state in %s", c.Name, time.Since(r.Started).Round(time.Second), c.APIServer(), c.State)
	if r.ForPID != 0 {
		a.say("It ends with process %d.", r.ForPID)
	}
	a.say("DNS: %s", c.DNS)
	a.say("\nNodes:")
	var socket string
	for _, n := range st.Nodes {
		number, _ := instance.NodeNumber(n.Name)
		a.say("  %-8s %-8s %-14s pods %s, %s", n.Name, n.State, c.NodeIP(number), c.PodCIDR(number), instance.Zone(number))
		if n.State != "killed" && socket == "" {
			socket = c.ContainerdSocket(n.Name)
		}
	}
	a.say("\nControl plane:")
	for _, d := range st.Components {
		state := "running"
		if !d.Running {
			state = "ended: " + d.LastExit
		}
		a.say("  %-24s %s for %s, %d restarts", d.Name, state, time.Since(d.Since).Round(time.Second), d.Restarts)
	}
	if socket == "" {
		return nil
	}
	names, err := images.List(ctx, socket)
	if err != nil {
		return err
	}
	a.say("\nImages:")
	for _, n := range names {
		a.say("  %s", n)
	}
	return nil
}

func env(_ context.Context, a *App, args []string) error {
	if err := parse(a.flags("env", `eval "$(hack/kube env)"`), args, 0); err != nil {
		return err
	}
	c, _, err := a.running()
	if err != nil {
		// The evaluated output must fail too: the next command would work on another cluster.
		a.say("false")
		return err
	}
	fmt.Fprint(a.Stdout, environ.Local(c.Instance, a.Cache, os.Environ()).Shell())
	a.say(`export PATH=%s:"$PATH"`, c.Path("bin"))
	return nil
}

func kubectl(_ context.Context, a *App, args []string) error {
	c, _, err := a.running()
	if err != nil {
		return err
	}
	program := c.Path("bin", "kubectl")
	variables := environ.Local(c.Instance, a.Cache, os.Environ()).Apply(os.Environ())
	return fmt.Errorf("run %s: %w", program, unix.Exec(program, append([]string{"kubectl"}, args...), variables))
}

func load(ctx context.Context, a *App, args []string) error {
	f := a.flags("load", "hack/kube load FILE... | hack/kube load --etcd LIST")
	etcd := f.String("etcd", "", etcdHelp+": build them if they are missing, and import their images")
	if err := parse(f, args, -1); err != nil {
		return err
	}
	if (f.NArg() == 0) == (*etcd == "") {
		f.Usage()
		return ErrUsage
	}
	files := f.Args()
	if *etcd != "" {
		names, _, err := releases(*etcd)
		if err != nil {
			return err
		}
		if files, err = a.etcdImages(ctx, names); err != nil {
			return err
		}
	}
	return a.load(ctx, files)
}

// etcdImages builds releases of etcd and their images.
func (a *App) etcdImages(ctx context.Context, names []string) ([]string, error) {
	unlock, err := a.lockCache(ctx)
	if err != nil {
		return nil, err
	}
	defer unlock()
	built, err := a.builder().Build(ctx, names...)
	if err != nil {
		return nil, err
	}
	var files []string
	for _, name := range names {
		file, err := a.etcdImage(built[name])
		if err != nil {
			return nil, err
		}
		files = append(files, file)
	}
	return files, nil
}

// load imports archives on all running nodes, and reports the others.
func (a *App) load(ctx context.Context, files []string) error {
	c, _, err := a.running()
	if err != nil {
		return err
	}
	for _, file := range files {
		if _, err := os.Stat(file); err != nil {
			return fmt.Errorf("load: %w", err)
		}
	}
	var st cluster.Status
	if err := a.ask(ctx, http.MethodGet, "/status", &st); err != nil {
		return err
	}
	var sockets, without []string
	for _, n := range st.Nodes {
		if n.State == "killed" {
			without = append(without, n.Name)
			continue
		}
		sockets = append(sockets, c.ContainerdSocket(n.Name))
	}
	if err := images.ImportAll(ctx, sockets, files); err != nil {
		return err
	}
	for _, file := range files {
		a.say("Loaded %s on %s", filepath.Base(file), count(len(sockets)))
	}
	if len(without) > 0 {
		a.say("Not on %s, which is killed: load again when it runs.", strings.Join(without, ", "))
	}
	return nil
}

func nodeCommand(ctx context.Context, a *App, args []string) error {
	f := a.flags("node", "hack/kube node kill|wipe|start|cut|heal NAME")
	if err := parse(f, args, 2); err != nil {
		return err
	}
	verb, name := f.Arg(0), f.Arg(1)
	done, ok := map[string]string{
		"kill": "killed", "wipe": "wiped", "start": "started", "cut": "cut off", "heal": "connected again",
	}[verb]
	if !ok {
		f.Usage()
		return ErrUsage
	}
	if _, _, err := a.running(); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	if err := a.ask(ctx, http.MethodPost, "/nodes/"+name+"/"+verb, &struct{}{}); err != nil {
		return err
	}
	a.say("%s is %s", name, done)
	return nil
}

func logs(_ context.Context, a *App, args []string) error {
	f := a.flags("logs", "hack/kube logs [-f] [COMPONENT]")
	follow := f.Bool("f", false, "follow the log")
	if err := parse(f, args, -1); err != nil {
		return err
	}
	files, err := filepath.Glob(a.Instance.Path("logs", "*.log"))
	if err != nil {
		return err
	}
	if len(files) == 0 {
		return errDown
	}
	var names []string
	for _, file := range files {
		names = append(names, strings.TrimSuffix(filepath.Base(file), ".log"))
	}
	if f.NArg() == 0 {
		a.say("%s", strings.Join(names, "\n"))
		return nil
	}
	if !slices.Contains(names, f.Arg(0)) {
		return fmt.Errorf("there is no log of %q; there are: %s", f.Arg(0), strings.Join(names, ", "))
	}
	show := []string{"cat", a.Instance.Log(f.Arg(0))}
	if *follow {
		show = []string{"tail", "-n", "+1", "-F", a.Instance.Log(f.Arg(0))}
	}
	program, err := lookPath(show[0])
	if err != nil {
		return err
	}
	return unix.Exec(program, show, os.Environ())
}
