// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"

	discoveryv1 "k8s.io/api/discovery/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

// oldestMinor is the oldest Kubernetes 1.x that the tests know (hack/grid). Older API servers may
// refuse the CRD: they estimate the cost of its rules in other ways.
const oldestMinor = 33

// apiServer reports whether the API server answers.
func (d *Doctor) apiServer() bool {
	const check = "Kubernetes"
	version, err := d.Access.Kube.Discovery().ServerVersion()
	switch {
	case err == nil:
	case errors.As(err, new(apierrors.APIStatus)):
		d.unknown(check, err)
		return true
	default:
		d.add(check, Failure, "check the kubeconfig and the network: kubectl version", "the API server does not answer: %v", err)
		return false
	}
	minor, err := strconv.Atoi(strings.TrimRight(version.Minor, "+"))
	switch {
	case err != nil:
		d.add(check, Unknown, "", "version %s", version.GitVersion)
	case version.Major == "1" && minor < oldestMinor:
		d.add(check, Warning, "upgrade Kubernetes", "version %s: the operators are tested with 1.%d and later", version.GitVersion, oldestMinor)
	default:
		d.add(check, OK, "", "version %s", version.GitVersion)
	}
	return true
}

// kinds looks for the custom resources. Backups and restores are of other operators, which
// not everybody needs.
func (d *Doctor) kinds() {
	const check = "API"
	list, err := d.Access.Kube.Discovery().ServerResourcesForGroupVersion(api.SchemeGroupVersion.String())
	if err != nil && !apierrors.IsNotFound(err) {
		d.unknown(check, err)
		return
	}
	for _, kind := range []struct {
		name     string
		level    Level
		operator string
	}{
		{"EtcdCluster", Failure, "etcd operator"},
		{"EtcdBackup", Warning, "backup operator"},
		{"EtcdRestore", Warning, "restore operator"},
	} {
		if list != nil && slices.ContainsFunc(list.APIResources, func(r metav1.APIResource) bool { return r.Kind == kind.name }) {
			d.add(check, OK, "", "%s is registered", kind.name)
			continue
		}
		d.add(check, kind.level, "deploy the "+kind.operator+", which registers it (README.md)", "%s is not registered", kind.name)
	}
}

func (d *Doctor) dns(ctx context.Context) {
	const check = "DNS"
	list, err := d.Access.Kube.DiscoveryV1().EndpointSlices(metav1.NamespaceSystem).List(ctx, metav1.ListOptions{LabelSelector: discoveryv1.LabelServiceName + "=kube-dns"})
	if err != nil {
		d.unknown(check, err)
		return
	}
	ready := 0
	for _, slice := range list.Items {
		for _, endpoint := range slice.Endpoints {
			if endpoint.Conditions.Ready == nil || *endpoint.Conditions.Ready {
				ready++
			}
		}
	}
	switch {
	case len(list.Items) == 0:
		d.add(check, Unknown, "", "the Service kube-dns has no EndpointSlices in kube-system: this Kubernetes has another DNS")
	case ready == 0:
		d.add(check, Failure, "look at the pods of the cluster's DNS in kube-system: members find each other by name", "no DNS server is ready")
	default:
		d.add(check, OK, "", "%d DNS servers are ready", ready)
	}
}

const defaultClass = "storageclass.kubernetes.io/is-default-class"

func (d *Doctor) defaultStorage(ctx context.Context) {
	const check = "StorageClass"
	list, err := d.Access.Kube.StorageV1().StorageClasses().List(ctx, metav1.ListOptions{})
	if err != nil {
		d.unknown(check, err)
		return
	}
	var names []string
	var class *storagev1.StorageClass
	for i := range list.Items {
		if list.Items[i].Annotations[defaultClass] == "true" {
			class = &list.Items[i]
		}
		names = append(names, list.Items[i].Name)
	}
	switch {
	case len(names) == 0:
		d.add(check, Warning, "install a provisioner of volumes, or keep data in the pods (doc/persistence.md)", "there is no StorageClass: members can't have volumes")
	case class == nil:
		d.add(check, Warning, "set storageClassName in persistentVolumeClaimSpec", "no StorageClass is the default; there are %s", strings.Join(names, ", "))
	default:
		d.judgeClass(check, class)
	}
}

// judgeClass says what a StorageClass means for members.
func (d *Doctor) judgeClass(check string, class *storagev1.StorageClass) {
	level, fix, notes := OK, "", []string{}
	if class.VolumeBindingMode == nil || *class.VolumeBindingMode == storagev1.VolumeBindingImmediate {
		level, fix = Warning, "prefer a StorageClass with volumeBindingMode WaitForFirstConsumer"
		notes = append(notes, "binds volumes before pods are scheduled, so members may be kept from spreading over zones")
	}
	if class.AllowVolumeExpansion == nil || !*class.AllowVolumeExpansion {
		notes = append(notes, "volumes can't grow")
	}
	text := class.Name
	if len(notes) > 0 {
		text += ": " + strings.Join(notes, "; ")
	}
	d.add(check, level, fix, "%s", text)
}
