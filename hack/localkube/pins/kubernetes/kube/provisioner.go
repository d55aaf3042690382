// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/sig-storage-lib-external-provisioner/v13/controller"
)

// A provisioner makes each volume as a directory of the node that the pod was
// scheduled to. It sees the disks of all nodes, and so needs no pod there, which
// would cost more than the volume.
type provisioner struct {
	// disk is where a node's volumes are on this machine; it holds one %s, the node.
	disk string
	// root is where a node sees the same directory.
	root string
}

func provisionerCommand() *cobra.Command {
	var name, kubeconfig string
	p := &provisioner{}
	c := &cobra.Command{
		Use:           "local-path-provisioner",
		Short:         "Makes volumes as directories of the local Kubernetes' nodes",
		SilenceUsage:  true,
		SilenceErrors: true,
		RunE: func(c *cobra.Command, _ []string) error {
			if strings.Count(p.disk, "%s") != 1 || p.root == "" {
				return errors.New("--disk must hold one %s, the name of a node, and --root must be set")
			}
			config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
			if err != nil {
				return fmt.Errorf("read --kubeconfig: %w", err)
			}
			config.QPS, config.Burst = 100, 200
			client, err := kubernetes.NewForConfig(config)
			if err != nil {
				return err
			}
			ctx := c.Context()
			controller.NewProvisionController(ctx, client, name, p, controller.LeaderElection(false)).Run(ctx)
			return nil
		},
	}
	c.Flags().StringVar(&name, "name", "", "provisioner that StorageClasses name")
	c.Flags().StringVar(&kubeconfig, "kubeconfig", "", "file that says where the API server is")
	c.Flags().StringVar(&p.disk, "disk", "", "directory of a node's volumes on this machine, with %s for the node")
	c.Flags().StringVar(&p.root, "root", "", "the same directory as the node sees it")
	return c
}

// Provision makes the directory, open to the pod's user, whoever it is.
func (p *provisioner) Provision(_ context.Context, o controller.ProvisionOptions) (*corev1.PersistentVolume, controller.ProvisioningState, error) {
	if o.SelectedNodeName == "" {
		return nil, controller.ProvisioningFinished, errors.New("no node was selected: the StorageClass must wait for the first consumer")
	}
	name := strings.Join([]string{o.PVName, o.PVC.Namespace, o.PVC.Name}, "_")
	dir := filepath.Join(fmt.Sprintf(p.disk, o.SelectedNodeName), name)
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return nil, controller.ProvisioningFinished, fmt.Errorf("make the volume: %w", err)
	}
	if err := os.Chmod(dir, 0o777); err != nil { // whatever the umask is
		return nil, controller.ProvisioningFinished, fmt.Errorf("open the volume to all users: %w", err)
	}
	kind := corev1.HostPathDirectoryOrCreate
	return &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: o.PVName},
		Spec: corev1.PersistentVolumeSpec{
			PersistentVolumeReclaimPolicy: *o.StorageClass.ReclaimPolicy,
			AccessModes:                   o.PVC.Spec.AccessModes,
			VolumeMode:                    o.PVC.Spec.VolumeMode,
			Capacity:                      corev1.ResourceList{corev1.ResourceStorage: o.PVC.Spec.Resources.Requests[corev1.ResourceStorage]},
			PersistentVolumeSource: corev1.PersistentVolumeSource{
				HostPath: &corev1.HostPathVolumeSource{Path: filepath.Join(p.root, name), Type: &kind},
			},
			NodeAffinity: &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
				MatchExpressions: []corev1.NodeSelectorRequirement{{
					Key: corev1.LabelHostname, Operator: corev1.NodeSelectorOpIn, Values: []string{o.SelectedNodeName},
				}},
			}}}},
		},
	}, controller.ProvisioningFinished, nil
}

// Delete removes the directory from all nodes: only one has it.
func (p *provisioner) Delete(_ context.Context, volume *corev1.PersistentVolume) error {
	if volume.Spec.HostPath == nil {
		return fmt.Errorf("volume %s is not one of this provisioner's: it has no hostPath", volume.Name)
	}
	name := filepath.Base(volume.Spec.HostPath.Path)
	if filepath.Join(p.root, name) != filepath.Clean(volume.Spec.HostPath.Path) {
		return fmt.Errorf("volume %s is not one of this provisioner's: %s is not in %s", volume.Name, volume.Spec.HostPath.Path, p.root)
	}
	dirs, err := filepath.Glob(filepath.Join(fmt.Sprintf(p.disk, "*"), name))
	if err != nil {
		return err
	}
	for _, dir := range dirs {
		if err := os.RemoveAll(dir); err != nil {
			return fmt.Errorf("remove the volume: %w", err)
		}
	}
	return nil
}
