// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package backup

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"

	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/etcd"
	"github.com/etcd-operator/etcd-operator/pkg/etcd/etcdtest"
	"github.com/etcd-operator/etcd-operator/pkg/snapshot"
)

// member is the pod of a cluster's member, which runs.
func member(owner *api.EtcdCluster, name, ip string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: name, Namespace: "ns", Labels: map[string]string{"app": "etcd", "etcd_cluster": "c"},
			OwnerReferences: []metav1.OwnerReference{{Kind: "EtcdCluster", Name: "c", UID: owner.UID, Controller: ptr.To(true)}},
		},
		Status: corev1.PodStatus{PodIP: ip, ContainerStatuses: []corev1.ContainerStatus{
			{Name: "etcd", State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}},
		}},
	}
}

// sourceOf is the source of an attempt, with the objects that there are.
func sourceOf(t *testing.T, spec func(*api.BackupSpec), clusters []*api.EtcdCluster, objects ...runtime.Object) (src snapshot.Source, err error) {
	t.Helper()
	return sourceFor(t, func(obj *api.EtcdBackup) { spec(&obj.Spec) }, clusters, objects...)
}

func sourceFor(t *testing.T, edit func(*api.EtcdBackup), clusters []*api.EtcdCluster, objects ...runtime.Object) (src snapshot.Source, err error) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		obj := testBackup(nil)
		edit(obj)
		w := newWorld(t, obj)
		for _, c := range clusters {
			if err := w.etcd.Tracker().Add(c); err != nil {
				t.Fatal(err)
			}
		}
		for _, o := range objects {
			if err := w.kube.Tracker().Add(o); err != nil {
				t.Fatal(err)
			}
		}
		a := &attempt{cfg: &w.cfg, log: w.cfg.Logger, obj: obj}
		src, err = a.source(t.Context())
	})
	return src, err
}

func TestEndpointsAreTakenAsGiven(t *testing.T) {
	src, err := sourceOf(t, func(s *api.BackupSpec) { s.EtcdEndpoints = []string{"http://a:2379", "b:2379"} }, nil)
	if err != nil {
		t.Fatal(err)
	}
	if want := []etcd.Endpoint{{URL: "http://a:2379"}, {URL: "http://b:2379"}}; !slices.Equal(src.Endpoints, want) || src.TLS != nil {
		t.Errorf("source %+v", src)
	}
}

func byName(s *api.BackupSpec) { s.EtcdEndpoints, s.EtcdCluster = nil, &api.EtcdClusterRef{Name: "c"} }

func TestTheMembersOfAClusterAreFound(t *testing.T) {
	c := &api.EtcdCluster{ObjectMeta: metav1.ObjectMeta{Name: "c", Namespace: "ns", UID: "u"}}
	c.Spec.Pod = &api.PodPolicy{ClusterDomain: "cluster.local"}
	// v0.9.4 served clients without TLS if there was no operatorSecret.
	c.Spec.TLS = &api.TLSPolicy{Static: &api.StaticTLS{Member: &api.MemberSecret{ServerSecret: "server"}}}
	former := &api.EtcdCluster{ObjectMeta: metav1.ObjectMeta{UID: "former"}}
	pending, ends := member(c, "c-3", ""), member(c, "c-4", "10.0.0.4")
	pending.Status.ContainerStatuses = nil
	now := metav1.Now()
	ends.DeletionTimestamp, ends.Finalizers = &now, []string{"x"}
	other := member(c, "d-1", "10.0.0.9")
	other.Labels["etcd_cluster"] = "d"
	src, err := sourceOf(t, byName, []*api.EtcdCluster{c},
		member(c, "c-2", "10.0.0.2"), member(c, "c-1", "10.0.0.1"), pending, ends, other, member(former, "c-0", "10.0.0.5"))
	if err != nil {
		t.Fatal(err)
	}
	want := []etcd.Endpoint{
		{URL: "http://c-1.c.ns.svc.cluster.local:2379", IP: "10.0.0.1"}, {URL: "http://c-2.c.ns.svc.cluster.local:2379", IP: "10.0.0.2"},
	}
	if !slices.Equal(src.Endpoints, want) || src.TLS != nil {
		t.Errorf("source %+v, want %+v", src, want)
	}
}

// Of several survivors, the one that somebody chose gives its data, whatever others have.
func TestTheDataOfASurvivorComesFromItAlone(t *testing.T) {
	c := &api.EtcdCluster{ObjectMeta: metav1.ObjectMeta{Name: "c", Namespace: "ns", UID: "u"}}
	served := member(c, "c-1", "10.0.0.1")
	served.Spec.EphemeralContainers = []corev1.EphemeralContainer{{EphemeralContainerCommon: corev1.EphemeralContainerCommon{Name: "serve-data-1"}}}
	served.Status.EphemeralContainerStatuses = []corev1.ContainerStatus{{Name: "serve-data-1", State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}}
	for survivor, want := range map[string][]etcd.Endpoint{
		"c-1": {{URL: "http://c-1.c.ns.svc:2379", IP: "10.0.0.1"}, {URL: "http://c-1.c.ns.svc:2382", IP: "10.0.0.1"}},
		"c-2": {{URL: "http://c-2.c.ns.svc:2379", IP: "10.0.0.2"}},
		"c-3": nil,
	} {
		src, err := sourceFor(t, func(obj *api.EtcdBackup) {
			byName(&obj.Spec)
			obj.Annotations = map[string]string{api.SurvivorAnnotation: survivor}
		}, []*api.EtcdCluster{c}, served.DeepCopy(), member(c, "c-2", "10.0.0.2"))
		if !slices.Equal(src.Endpoints, want) {
			t.Errorf("of %s: %+v, want %+v", survivor, src.Endpoints, want)
		}
		if told := err != nil && strings.Contains(err.Error(), "the member c-3 of the EtcdCluster c does not run"); told != (want == nil) {
			t.Errorf("of %s: %v", survivor, err)
		}
	}
}

func tlsCluster() *api.EtcdCluster {
	return &api.EtcdCluster{
		ObjectMeta: metav1.ObjectMeta{Name: "c", Namespace: "ns", UID: "u"},
		Spec: api.ClusterSpec{TLS: &api.TLSPolicy{Static: &api.StaticTLS{
			Member: &api.MemberSecret{ServerSecret: "server"}, OperatorSecret: "operator",
		}}},
	}
}

func TestCertificatesComeFromEitherFormOfASecret(t *testing.T) {
	ca := etcdtest.NewCA(t, "ca")
	cert, key := ca.Issue(etcdtest.Leaf{})
	forms := map[string]map[string][]byte{
		"as in v0.9.4":    {"etcd-client.crt": cert, "etcd-client.key": key, "etcd-client-ca.crt": ca.PEM},
		"of cert-manager": {"tls.crt": cert, "tls.key": key, "ca.crt": ca.PEM},
	}
	for form, data := range forms {
		for name, named := range map[string]func(*api.BackupSpec){
			"operator": byName, // the cluster's own
			"mine":     func(s *api.BackupSpec) { byName(s); s.ClientTLSSecret = "mine" },
		} {
			t.Run(form+", "+name, func(t *testing.T) {
				c := tlsCluster()
				secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "ns"}, Data: data}
				src, err := sourceOf(t, named, []*api.EtcdCluster{c}, secret, member(c, "c-1", "10.0.0.1"))
				if err != nil {
					t.Fatal(err)
				}
				if src.TLS == nil || src.TLS.InsecureSkipVerify || src.TLS.GetClientCertificate == nil || src.Endpoints[0].URL != "https://c-1.c.ns.svc:2379" {
					t.Errorf("source %+v", src)
				}
			})
		}
	}
}

func TestTheUserComesFromTheClusterOrTheBackup(t *testing.T) {
	secret := func(name string) runtime.Object {
		return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "ns"}, Data: map[string][]byte{"username": []byte(name), "password": []byte("p")}}
	}
	c := &api.EtcdCluster{ObjectMeta: metav1.ObjectMeta{Name: "c", Namespace: "ns", UID: "u"}}
	c.Spec.Auth = &api.AuthPolicy{CredentialsSecret: "clusters"}
	for want, spec := range map[string]func(*api.BackupSpec){
		"clusters": byName,
		"own":      func(s *api.BackupSpec) { byName(s); s.CredentialsSecret = "own" },
		"alone":    func(s *api.BackupSpec) { s.EtcdEndpoints, s.CredentialsSecret = []string{"http://a:2379"}, "alone" },
	} {
		src, err := sourceOf(t, spec, []*api.EtcdCluster{c}, secret(want), member(c, "c-1", "10.0.0.1"))
		if err != nil || src.User != (etcd.Credentials{Username: want, Password: "p"}) {
			t.Errorf("%s: user %s, error %v", want, src.User, err)
		}
	}
	if _, err := sourceOf(t, byName, []*api.EtcdCluster{c}, member(c, "c-1", "10.0.0.1")); err == nil || !strings.Contains(err.Error(), "the Secret clusters with the user of etcd does not exist") {
		t.Errorf("without the Secret: %v", err)
	}
}

func TestVerificationIsSkippedWhereTheUserAsksForIt(t *testing.T) {
	src, err := sourceOf(t, func(s *api.BackupSpec) {
		s.EtcdEndpoints, s.AllowSelfSignedCertificates = []string{"https://a:2379"}, true
	}, nil)
	if err != nil || src.TLS == nil || !src.TLS.InsecureSkipVerify {
		t.Errorf("source %+v, error %v", src, err)
	}
}

func TestWhatIsMissingIsTold(t *testing.T) {
	c := tlsCluster()
	for name, tc := range map[string]struct {
		spec     func(*api.BackupSpec)
		clusters []*api.EtcdCluster
		objects  []runtime.Object
		says     string
	}{
		"no cluster":       {byName, nil, nil, "there is no EtcdCluster c in the namespace ns: create it, or fix spec.etcdCluster.name"},
		"no member":        {byName, []*api.EtcdCluster{c}, nil, "no member of the EtcdCluster c runs"},
		"no Secret":        {byName, []*api.EtcdCluster{c}, []runtime.Object{member(c, "c-1", "10.0.0.1")}, "the Secret operator with the certificate for etcd does not exist in the namespace ns: create it"},
		"an empty Secret":  {func(s *api.BackupSpec) { s.ClientTLSSecret = "s" }, nil, []runtime.Object{&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "s", Namespace: "ns"}}}, "Secret s lacks etcd-client.crt"},
		"a wrong endpoint": {func(s *api.BackupSpec) { s.EtcdEndpoints = []string{"http://a:2379", "http://b"} }, nil, nil, "spec.etcdEndpoints[1]: "},
	} {
		if _, err := sourceOf(t, tc.spec, tc.clusters, tc.objects...); err == nil || !strings.Contains(err.Error(), tc.says) {
			t.Errorf("%s: error %v, want it to say %q", name, err, tc.says)
		}
	}
}
