// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	utilexec "k8s.io/client-go/util/exec"

	"github.com/etcd-operator/etcd-operator/internal/plugin/hint"
	"github.com/etcd-operator/etcd-operator/internal/plugin/observe"
	"github.com/etcd-operator/etcd-operator/internal/plugin/podexec"
	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

// certificateDir is where the operator mounts its client certificate into members, for
// those who run etcdctl there.
const certificateDir = "/etc/etcdtls/operator/etcd-tls/"

func (app *App) ctl() *cobra.Command {
	var member string
	var stdin bool
	cmd := &cobra.Command{
		Use:     "ctl NAME -- COMMAND...",
		GroupID: look,
		Short:   "Run etcdctl in a member's pod",
		Long: `Run etcdctl in the pod of a member. The plugin adds the certificates, and all running
members as endpoints. Your own flags, such as --endpoints, replace those of the plugin.
The exit code is that of etcdctl. If etcd has authentication, add --user.`,
		Example: `  kubectl etcd ctl orders -- get --prefix --keys-only /
  kubectl etcd ctl orders -- endpoint status -w table
  kubectl etcd ctl orders --member orders-9k2w7 -- endpoint health
  kubectl etcd ctl orders -i -- put greeting < greeting.txt`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) < 2 || cmd.ArgsLenAtDash() != 1 {
				return errors.New("usage: kubectl etcd ctl NAME -- COMMAND..., such as: kubectl etcd ctl orders -- get key")
			}
			return nil
		},
		ValidArgsFunction: app.clusterNames,
		RunE: func(cmd *cobra.Command, args []string) error {
			return app.runCtl(cmd.Context(), args[0], member, stdin, args[1:])
		},
	}
	cmd.Flags().StringVar(&member, "member", "", "run etcdctl in the pod of this member, with this endpoint alone")
	cmd.Flags().BoolVarP(&stdin, "stdin", "i", false, "pass standard input to etcdctl")
	_ = cmd.RegisterFlagCompletionFunc("member", app.completeMember)
	return cmd
}

// completeMember completes a flag with the members of the cluster that the command names.
func (app *App) completeMember(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	cluster := ""
	if len(args) > 0 {
		cluster = args[0]
	}
	return app.memberNames(cmd, cluster)
}

func (app *App) runCtl(ctx context.Context, name, member string, stdin bool, args []string) error {
	a, obj, err := app.openCluster(ctx, name)
	if err != nil {
		return err
	}
	pods, err := observe.Pods(ctx, a, obj)
	if err != nil {
		return err
	}
	pods = slices.DeleteFunc(pods, func(p corev1.Pod) bool {
		return !observe.Running(&p) || p.DeletionTimestamp != nil || member != "" && p.Name != member
	})
	switch {
	case len(pods) == 0 && member != "":
		return fmt.Errorf("no member %s of the EtcdCluster %s runs: %s", member, name, hint.Etcd(a.Place(), "members", name))
	case len(pods) == 0:
		return fmt.Errorf("no member of the EtcdCluster %s runs: %s", name, hint.Etcd(a.Place(), "status", name))
	}
	// One that serves comes first: etcdctl asks the first endpoint where one will do.
	slices.SortStableFunc(pods, func(a, b corev1.Pod) int { return boolOrder(ready(&b)) - boolOrder(ready(&a)) })
	err = podexec.Run(ctx, a.Config, a.Kube.CoreV1().RESTClient(), podexec.Command{
		Namespace: a.Namespace, Pod: pods[0].Name, Container: "etcd", Args: etcdctl(obj, pods, args), Stdin: stdin,
	}, app.IOStreams)
	var code utilexec.CodeExitError
	if errors.As(err, &code) {
		return exit(code.Code) // etcdctl has said why
	}
	return err
}

func boolOrder(b bool) int {
	if b {
		return 1
	}
	return 0
}

// ready reports whether Kubernetes has found the pod ready: it has a vote and a quorum.
func ready(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}

// etcdctl is the command line of etcdctl, with the user's arguments behind those that are
// filled in.
func etcdctl(obj *api.EtcdCluster, pods []corev1.Pod, args []string) []string {
	command := []string{"etcdctl"}
	given := func(flags ...string) bool {
		return slices.ContainsFunc(args, func(arg string) bool {
			name, _, _ := strings.Cut(arg, "=")
			return slices.Contains(flags, name)
		})
	}
	if !given("--endpoints") {
		var urls []string
		for i := range pods {
			urls = append(urls, observe.Endpoint(obj, pods[i].Name).URL)
		}
		if args[0] == "snapshot" {
			urls = urls[:1] // etcdctl refuses more than one
		}
		command = append(command, "--endpoints="+strings.Join(urls, ","))
	}
	if obj.Spec.ClientTLS() && !given("--cert", "--key", "--cacert") {
		command = append(command, "--cacert="+certificateDir+"etcd-client-ca.crt",
			"--cert="+certificateDir+"etcd-client.crt", "--key="+certificateDir+"etcd-client.key")
		if obj.Spec.SkipsVerification() {
			command = append(command, "--insecure-skip-tls-verify")
		}
	}
	return append(command, args...)
}
