// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package podexec runs commands in containers through the API server, as `kubectl
// exec` does.
package podexec

import (
	"context"
	"fmt"
	"net/http"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/remotecommand"

	"github.com/etcd-operator/etcd-operator/internal/plugin/wire"
)

// Command is what runs, and where.
type Command struct {
	Namespace, Pod, Container string
	Args                      []string
	// Stdin is whether the command reads the caller's standard input.
	Stdin bool
}

// Run runs a command until it ends. Where it ends with an exit code that is not 0,
// the error is an exec.CodeExitError of k8s.io/client-go/util/exec.
func Run(ctx context.Context, config *rest.Config, core rest.Interface, c Command, streams genericiooptions.IOStreams) error {
	to := core.Post().Resource("pods").Namespace(c.Namespace).Name(c.Pod).SubResource("exec").
		VersionedParams(&corev1.PodExecOptions{
			Container: c.Container, Command: c.Args, Stdin: c.Stdin, Stdout: true, Stderr: true,
		}, scheme.ParameterCodec).URL()
	old, err := remotecommand.NewSPDYExecutor(config, http.MethodPost, to)
	if err != nil {
		return fmt.Errorf("exec in the pod %s: %w", c.Pod, err)
	}
	websocket, err := remotecommand.NewWebSocketExecutor(config, http.MethodGet, to.String())
	if err != nil {
		return fmt.Errorf("exec in the pod %s: %w", c.Pod, err)
	}
	executor, err := remotecommand.NewFallbackExecutor(websocket, old, wire.RefusesWebSockets)
	if err != nil {
		return fmt.Errorf("exec in the pod %s: %w", c.Pod, err)
	}
	options := remotecommand.StreamOptions{Stdout: streams.Out, Stderr: streams.ErrOut}
	if c.Stdin {
		options.Stdin = streams.In
	}
	return executor.StreamWithContext(ctx, options)
}
