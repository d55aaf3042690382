//go:build e2e

// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"maps"
	"net"
	"net/http"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/test/harness"
)

func TestServices(t *testing.T) {
	t.Parallel()
	n := harness.New(t)
	cluster := n.Create(1, "")
	cluster.WaitSettled()
	haveTheFamiliesOfThePods(t, n, cluster)
	returnAfterTheyAreDeleted(t, n, cluster)
	comeBackAfterEdits(t, n, cluster)
}

// On a network with two families of addresses, clients reach the members by both.
func haveTheFamiliesOfThePods(t *testing.T, n *harness.Namespace, cluster *harness.Cluster) {
	t.Helper()
	service, pod := n.Service(cluster.Name+"-client"), cluster.Pods()[0]
	if len(service.Spec.ClusterIPs) != len(pod.Status.PodIPs) {
		t.Fatalf("the Service has the addresses %v, and the pod %v", service.Spec.ClusterIPs, pod.Status.PodIPs)
	}
	for _, ip := range service.Spec.ClusterIPs {
		harness.Wait(t, "an answer from "+ip, harness.Settle, func(ctx context.Context) error {
			request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+net.JoinHostPort(ip, "2379")+"/version", nil)
			if err != nil {
				return err
			}
			response, err := http.DefaultClient.Do(request)
			if err != nil {
				return err
			}
			return response.Body.Close()
		})
	}
}

func returnAfterTheyAreDeleted(t *testing.T, n *harness.Namespace, cluster *harness.Cluster) {
	t.Helper()
	writer := cluster.StartWriter()
	for _, name := range []string{cluster.Name + "-client", cluster.Name} {
		deleteService(t, n, name)
	}
	cluster.WaitSettled()
	checkServices(t, n, cluster)
	cluster.Put("again", "yes")
	cluster.VerifyWrites(writer)
}

// deleteService deletes a Service and waits for its replacement.
func deleteService(t *testing.T, n *harness.Namespace, name string) {
	t.Helper()
	old := n.Service(name).UID
	if err := n.Kube.CoreV1().Services(n.Name).Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	harness.Wait(t, "service "+name+" back", harness.Settle, func(context.Context) error {
		service := n.Service(name)
		if service == nil || service.UID == old {
			return fmt.Errorf("service is %v", service)
		}
		return nil
	})
}

// The operator reverts manual edits, and keeps others' additions.
func comeBackAfterEdits(t *testing.T, n *harness.Namespace, cluster *harness.Cluster) {
	t.Helper()
	client, peer := cluster.Name+"-client", cluster.Name
	n.Shell(`
kubectl annotate service ` + client + ` team=storage
kubectl patch service ` + client + ` -p '{"spec":{"type":"NodePort"}}'`)
	nodePort := func() int32 {
		service, err := n.Kube.CoreV1().Services(n.Name).Get(t.Context(), client, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return service.Spec.Ports[0].NodePort
	}
	if nodePort() == 0 {
		t.Error("the NodePort Service has no node port")
	}
	for _, edit := range []string{
		`kubectl patch service ` + client + ` --type=merge -p '{"spec":{"selector":{"app":"elsewhere"}}}'`,
		`kubectl patch service ` + client + ` --type=json -p '[{"op":"replace","path":"/spec/ports/0/port","value":80}]'`,
		`kubectl patch service ` + client + ` --type=merge -p '{"metadata":{"ownerReferences":null}}'`,
		`kubectl label service ` + client + ` app-`,
		`kubectl patch service ` + peer + ` --type=merge -p '{"spec":{"publishNotReadyAddresses":false}}'`,
		`kubectl label service ` + peer + ` etcd_cluster=another --overwrite`,
	} {
		before := nodePort()
		n.Shell(edit)
		harness.Wait(t, "as before: "+edit, harness.Settle, func(ctx context.Context) error {
			for _, name := range []string{client, peer} {
				service, err := n.Kube.CoreV1().Services(n.Name).Get(ctx, name, metav1.GetOptions{})
				if err != nil {
					return err
				}
				own := map[string]string{"app": "etcd", "etcd_cluster": cluster.Name}
				switch {
				case !maps.Equal(service.Spec.Selector, own) || !maps.Equal(service.Labels, own):
					return fmt.Errorf("%s: selector %v, labels %v", name, service.Spec.Selector, service.Labels)
				case service.Spec.Ports[0].Port != 2379:
					return fmt.Errorf("%s: ports %v", name, service.Spec.Ports)
				case service.Spec.PublishNotReadyAddresses != (name == peer):
					return fmt.Errorf("%s: publishNotReadyAddresses %t", name, service.Spec.PublishNotReadyAddresses)
				case !ownedBy(service.OwnerReferences, cluster.Object()):
					return fmt.Errorf("%s: owners %v", name, service.OwnerReferences)
				}
			}
			return nil
		})
		// A node port belongs to its port: another port gets another one.
		if now := nodePort(); now != before && !strings.Contains(edit, "/spec/ports/") {
			t.Errorf("node port %d became %d after: %s", before, now, edit)
		}
	}
	service := n.Service(client)
	if service.Annotations["team"] != "storage" || service.Spec.Type != corev1.ServiceTypeNodePort {
		t.Errorf("what others wrote is gone: annotations %v, type %s", service.Annotations, service.Spec.Type)
	}
	cluster.Put("again", "yes")
}

// The fork's policy: name, annotations and selector of the client Service.
func TestServicePolicy(t *testing.T) {
	t.Parallel()
	n := harness.New(t)
	object := object("etcd", 1, "")
	object.Spec.Pod = &v1beta2.PodPolicy{Labels: map[string]string{"tier": "gold"}}
	object.Spec.Service = &v1beta2.ServicePolicy{
		Name: "db", Annotations: map[string]string{"a.io/one": "1", "a.io/two": "2"}, Selector: map[string]string{"tier": "gold"},
	}
	cluster := n.CreateObject(object)
	is := func(what, name string, annotations map[string]string) {
		t.Helper()
		harness.Wait(t, what, harness.Settle, func(context.Context) error {
			service := n.Service(name)
			if service == nil {
				return fmt.Errorf("service %s is not there", name)
			}
			for _, former := range []string{"db", "etcd-client", "store"} {
				if former != name && n.Service(former) != nil {
					return fmt.Errorf("service %s is there", former)
				}
			}
			for key, want := range map[string]string{"a.io/one": annotations["a.io/one"], "a.io/two": annotations["a.io/two"]} {
				if service.Annotations[key] != want {
					return fmt.Errorf("annotations %v", service.Annotations)
				}
			}
			if got := cluster.Status().ServiceName; got != name {
				return fmt.Errorf("status.serviceName is %q", got)
			}
			return nil
		})
	}
	is("the Service of the policy", "db", map[string]string{"a.io/one": "1", "a.io/two": "2"})
	if got := n.Service("db").Spec.Selector; got["tier"] != "gold" || got["etcd_cluster"] != "etcd" {
		t.Errorf("selector %v", got)
	}
	cluster.Update(func(spec *v1beta2.ClusterSpec) { spec.Service.Annotations = map[string]string{"a.io/two": "3"} })
	is("an annotation that was removed", "db", map[string]string{"a.io/two": "3"})
	cluster.Update(func(spec *v1beta2.ClusterSpec) { spec.Service = &v1beta2.ServicePolicy{Name: "store"} })
	is("another name", "store", nil)
	cluster.Update(func(spec *v1beta2.ClusterSpec) { spec.Service = nil })
	is("the default name", "etcd-client", nil)
	cluster.WaitSettled()
}
