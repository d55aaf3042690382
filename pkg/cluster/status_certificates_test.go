// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/certcheck"
	"github.com/etcd-operator/etcd-operator/pkg/certsecret"
	"github.com/etcd-operator/etcd-operator/pkg/etcd/etcdtest"
	"github.com/etcd-operator/etcd-operator/pkg/manifest"
)

// tlsCluster is an EtcdCluster with TLS between members and for clients.
func tlsCluster() *api.EtcdCluster {
	obj := testCluster()
	obj.Spec.TLS = &api.TLSPolicy{Static: &api.StaticTLS{
		Member:         &api.MemberSecret{PeerSecret: "peers", ServerSecret: "servers"},
		OperatorSecret: "operators",
	}}
	return obj
}

// certificateSecret has the keys of v0.9.4 for a use. Its CAs are those in trusts.
func certificateSecret(use certcheck.CertUse, form certsecret.Form, name string, by *etcdtest.CA, leaf etcdtest.Leaf, trusts ...*etcdtest.CA) *corev1.Secret {
	cert, key := by.Issue(leaf)
	var bundle []byte
	for _, ca := range trusts {
		bundle = append(bundle, ca.PEM...)
	}
	certKey, keyKey, caKey := use.Files.Keys(form)
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "ns"},
		Data:       map[string][]byte{certKey: cert, keyKey: key, caKey: bundle},
	}
}

var (
	memberNames = []string{"*.c.ns.svc", "*.c.ns.svc.cluster.local"}
	peerUse     = certcheck.CertUses[0]
	serverUse   = certcheck.CertUses[1]
	operatorUse = certcheck.CertUses[2]
)

// goodSecrets are those of tlsCluster, by use, of one CA.
func goodSecrets(ca *etcdtest.CA) map[string]*corev1.Secret {
	return map[string]*corev1.Secret{
		"peer":     certificateSecret(peerUse, certsecret.Static, "peers", ca, etcdtest.Leaf{DNS: memberNames}, ca),
		"server":   certificateSecret(serverUse, certsecret.Static, "servers", ca, etcdtest.Leaf{DNS: memberNames}, ca),
		"operator": certificateSecret(operatorUse, certsecret.Static, "operators", ca, etcdtest.Leaf{Name: "operator"}, ca),
	}
}

// holding reads Secrets as the operator does.
func holding(secrets map[string]*corev1.Secret) map[string]certcheck.Held {
	held := map[string]certcheck.Held{}
	for _, u := range certcheck.CertUses {
		if secret := secrets[u.Name]; secret != nil {
			held[u.Name] = new(certReader).hold(u, secret.Name, secret, nil)
		}
	}
	return held
}

func TestWhatIsWrongWithCertificatesIsToldWithSecretNameAndWhatToDo(t *testing.T) {
	now := time.Now()
	ca, other := etcdtest.NewCA(t, "ca"), etcdtest.NewCA(t, "other")
	oldCA := etcdtest.NewCAUntil(t, "old", now.Add(5*24*time.Hour))
	serverOnly, clientOnly := []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}, []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
	soon, past := now.Add(29*24*time.Hour), now.Add(-time.Hour)
	for name, c := range map[string]struct {
		change                func(map[string]*corev1.Secret)
		spec                  func(*api.ClusterSpec)
		reason                string // of the worst; "" if all is well
		says                  []string
		holdsStart, holdsPods bool
	}{
		"all is well": {},
		"all is well, in cert-manager's form": {change: func(s map[string]*corev1.Secret) {
			for _, u := range certcheck.CertUses {
				s[u.Name] = certificateSecret(u, certsecret.CertManager, s[u.Name].Name, ca, etcdtest.Leaf{DNS: memberNames}, ca)
			}
		}},
		"all is well with a CA for peers and one for clients": {change: func(s map[string]*corev1.Secret) {
			s["peer"] = certificateSecret(peerUse, certsecret.Static, "peers", other, etcdtest.Leaf{DNS: memberNames}, other)
		}},
		"all is well with a server CA and a client CA": {change: func(s map[string]*corev1.Secret) {
			s["server"] = certificateSecret(serverUse, certsecret.Static, "servers", other, etcdtest.Leaf{DNS: memberNames, Usages: serverOnly}, ca)
			s["operator"] = certificateSecret(operatorUse, certsecret.Static, "operators", ca, etcdtest.Leaf{Usages: clientOnly}, other)
		}},
		"a key is missing": {change: func(s map[string]*corev1.Secret) { delete(s["server"].Data, "server.key") },
			reason: certcheck.KeyMissing, says: []string{"servers", "server.key", "spec.TLS.static.member.serverSecret", "server-ca.crt, server.crt"}, holdsPods: true, holdsStart: true},
		"cert-manager gave no CA": {change: func(s map[string]*corev1.Secret) {
			s["peer"] = certificateSecret(peerUse, certsecret.CertManager, "peers", ca, etcdtest.Leaf{DNS: memberNames})
			delete(s["peer"].Data, "ca.crt")
		}, reason: certcheck.KeyMissing, says: []string{"peers", "lacks ca.crt"}, holdsPods: true, holdsStart: true},
		"another's key": {change: func(s map[string]*corev1.Secret) { s["server"].Data["server.key"] = s["peer"].Data["peer.key"] },
			reason: certcheck.CertificateInvalid, says: []string{"servers", "server.key is not the private key of server.crt"}, holdsPods: true, holdsStart: true},
		"a certificate that expires soon": {change: func(s map[string]*corev1.Secret) {
			s["server"] = certificateSecret(serverUse, certsecret.Static, "servers", ca, etcdtest.Leaf{DNS: memberNames, To: soon}, ca)
		}, reason: certcheck.CertificateExpiring, says: []string{"servers", "server.crt", certcheck.Date(soon), "renew"}},
		"a CA that expires soon": {change: func(s map[string]*corev1.Secret) {
			s["peer"] = certificateSecret(peerUse, certsecret.Static, "peers", ca, etcdtest.Leaf{DNS: memberNames}, ca, oldCA)
		}, reason: certcheck.CertificateExpiring, says: []string{"peers", "CN=old", "peer-ca.crt"}},
		"a certificate that has expired": {change: func(s map[string]*corev1.Secret) {
			s["operator"] = certificateSecret(operatorUse, certsecret.Static, "operators", ca, etcdtest.Leaf{To: past}, ca)
		}, reason: certcheck.CertificateExpired, says: []string{"operators", "etcd-client.crt", certcheck.Date(past), "the members refuse the operator"}, holdsStart: true},
		"a certificate of tomorrow": {change: func(s map[string]*corev1.Secret) {
			s["server"] = certificateSecret(serverUse, certsecret.Static, "servers", ca, etcdtest.Leaf{DNS: memberNames, From: now.Add(time.Hour)}, ca)
		}, reason: certcheck.CertificateInvalid, says: []string{"servers", "not valid before"}, holdsStart: true},
		"peers without the members' names": {change: func(s map[string]*corev1.Secret) {
			s["peer"] = certificateSecret(peerUse, certsecret.Static, "peers", ca, etcdtest.Leaf{DNS: []string{"*.d.ns.svc"}}, ca)
		}, reason: certcheck.NameNotCovered, says: []string{"peers", "*.d.ns.svc", "renew it for *.c.ns.svc"}, holdsStart: true},
		"a single member without its name": {change: func(s map[string]*corev1.Secret) {
			s["peer"] = certificateSecret(peerUse, certsecret.Static, "peers", ca, etcdtest.Leaf{}, ca)
		}, spec: func(s *api.ClusterSpec) { s.Size = 1 }, reason: certcheck.NameNotCovered, says: []string{"is for nothing"}},
		"peers without Kubernetes' domain": {change: func(s map[string]*corev1.Secret) {
			s["peer"] = certificateSecret(peerUse, certsecret.Static, "peers", ca, etcdtest.Leaf{DNS: []string{"*.c.ns.svc"}}, ca)
		}, reason: certcheck.NameNotCovered, says: []string{"peers", "*.c.ns.svc.cluster.local"}},
		"servers without the members' names": {change: func(s map[string]*corev1.Secret) {
			s["server"] = certificateSecret(serverUse, certsecret.Static, "servers", ca, etcdtest.Leaf{DNS: []string{"c-client.ns.svc"}}, ca)
		}, reason: certcheck.NameNotCovered, says: []string{"servers", "c-client.ns.svc", "*.c.ns.svc"}, holdsStart: true},
		"servers without names, unverified": {change: func(s map[string]*corev1.Secret) {
			s["server"] = certificateSecret(serverUse, certsecret.Static, "servers", other, etcdtest.Leaf{}, ca)
		}, spec: func(s *api.ClusterSpec) { s.TLS.Static.AllowSelfSignedCertificates = true }},
		"servers of another CA": {change: func(s map[string]*corev1.Secret) {
			s["server"] = certificateSecret(serverUse, certsecret.Static, "servers", other, etcdtest.Leaf{DNS: memberNames}, ca)
		}, reason: certcheck.CertificateInvalid, says: []string{"server.crt of Secret servers", "etcd-client-ca.crt of Secret operators", "the operator refuses the members"}, holdsStart: true},
		"an operator of another CA": {change: func(s map[string]*corev1.Secret) {
			s["operator"] = certificateSecret(operatorUse, certsecret.Static, "operators", other, etcdtest.Leaf{}, ca)
		}, reason: certcheck.CertificateInvalid, says: []string{"etcd-client.crt of Secret operators", "server-ca.crt of Secret servers", "the members refuse the operator"}, holdsStart: true},
		"an operator with a server's certificate": {change: func(s map[string]*corev1.Secret) {
			s["operator"] = certificateSecret(operatorUse, certsecret.Static, "operators", ca, etcdtest.Leaf{Usages: serverOnly}, ca)
		}, reason: certcheck.CertificateInvalid, says: []string{"not for use as a client"}, holdsStart: true},
		"peers whose certificate has expired": {change: func(s map[string]*corev1.Secret) {
			s["peer"] = certificateSecret(peerUse, certsecret.Static, "peers", ca, etcdtest.Leaf{DNS: memberNames, To: past}, ca)
		}, reason: certcheck.CertificateExpired, says: []string{"peers", "members refuse each other"}, holdsStart: true},
		"peers that can't be clients": {change: func(s map[string]*corev1.Secret) {
			s["peer"] = certificateSecret(peerUse, certsecret.Static, "peers", ca, etcdtest.Leaf{DNS: memberNames, Usages: serverOnly}, ca)
		}, reason: certcheck.CertificateInvalid, says: []string{"peers", "not for use as a client", "members refuse each other"}, holdsStart: true},
		"with Kubernetes' domain in the members' names": {change: func(s map[string]*corev1.Secret) {
			s["peer"] = certificateSecret(peerUse, certsecret.Static, "peers", ca, etcdtest.Leaf{DNS: []string{"*.c.ns.svc.k8s.example"}}, ca)
			s["server"] = certificateSecret(serverUse, certsecret.Static, "servers", ca, etcdtest.Leaf{DNS: []string{"*.c.ns.svc.k8s.example"}}, ca)
		}, spec: func(s *api.ClusterSpec) { s.Pod = &api.PodPolicy{ClusterDomain: ".k8s.example"} }},
	} {
		t.Run(name, func(t *testing.T) {
			secrets, obj := goodSecrets(ca), tlsCluster()
			if c.change != nil {
				c.change(secrets)
			}
			if c.spec != nil {
				c.spec(&obj.Spec)
			}
			got := certcheck.Judge(holding(secrets), manifest.NamesOf(obj), &obj.Spec, now)
			var reason, text string
			for _, p := range got.Problems {
				reason = reasonOf(reason, p.Reason)
				text += p.Why + "\n"
			}
			if reason != c.reason {
				t.Errorf("reason %q, want %q: %s", reason, c.reason, text)
			}
			for _, words := range c.says {
				if !strings.Contains(text, words) {
					t.Errorf("it does not say %q: %s", words, text)
				}
			}
			if starts, runs := got.Hold(true) != "", got.Hold(false) != ""; starts != c.holdsStart || runs != c.holdsPods {
				t.Errorf("holds a start %t, pods %t: %s", starts, runs, text)
			}
			if refuse := strings.Contains(text, "members refuse each other"); (got.MembersHeld != "") != refuse {
				t.Errorf("it holds members because of %q", got.MembersHeld)
			}
			for use, secret := range secrets {
				for key, value := range secret.Data {
					if body := strings.Split(string(value), "\n"); len(body) > 2 && strings.Contains(text, body[1]) {
						t.Errorf("%s of %s is quoted", key, use)
					}
				}
			}
			later := certcheck.Judge(holding(secrets), manifest.NamesOf(obj), &obj.Spec, now.Add(time.Minute))
			if !slices.Equal(got.Problems, later.Problems) {
				t.Errorf("a minute later the words are others:\n%v\n%v", got.Problems, later.Problems)
			}
		})
	}
}

func reasonOf(worst, next string) string {
	if worst != "" {
		return worst
	}
	return next
}

func TestTheCADigestFollowsTheCAsThatMembersReadOnce(t *testing.T) {
	ca, other := etcdtest.NewCA(t, "ca"), etcdtest.NewCA(t, "other")
	obj := tlsCluster()
	digest := func(change func(map[string]*corev1.Secret)) string {
		secrets := goodSecrets(ca)
		change(secrets)
		return certcheck.Judge(holding(secrets), manifest.NamesOf(obj), &obj.Spec, time.Now()).CaDigest
	}
	first := digest(func(map[string]*corev1.Secret) {})
	if again := digest(func(map[string]*corev1.Secret) {}); first == "" || again != first {
		t.Errorf("digest %q, with new leaf certificates %q", first, again)
	}
	if got := digest(func(s map[string]*corev1.Secret) {
		s["operator"] = certificateSecret(operatorUse, certsecret.Static, "operators", ca, etcdtest.Leaf{}, ca, other)
	}); got != first {
		t.Error("the operator's CAs change it: members don't read them")
	}
	for name, change := range map[string]func(map[string]*corev1.Secret){
		"peer":   func(s map[string]*corev1.Secret) { s["peer"].Data["peer-ca.crt"] = other.PEM },
		"server": func(s map[string]*corev1.Secret) { s["server"].Data["server-ca.crt"] = append(other.PEM, ca.PEM...) },
	} {
		if got := digest(change); got == first || got == "" {
			t.Errorf("the CAs of %s don't change it", name)
		}
	}
	if got := digest(func(s map[string]*corev1.Secret) { s["peer"].Data = nil }); got != "" {
		t.Errorf("a Secret that was never read gives %q: members would be restarted for it", got)
	}
	if got := certcheck.Judge(nil, manifest.NamesOf(testCluster()), &testCluster().Spec, time.Now()); got.CaDigest != "" || got.Used || got.UnknownCAs() {
		t.Errorf("without TLS: %+v", got)
	}
}

// Members restart for another template, so another digest of the same CAs, or other names of the
// forms, would restart every member with TLS when the operator is upgraded. pkg/manifest has the rest.
func TestTheTemplateHasTheSameCAsAndFormsInEachRelease(t *testing.T) {
	digest := func(text []byte) string {
		sum := sha256.Sum256(text)
		return hex.EncodeToString(sum[:])
	}
	ca, obj := etcdtest.NewCA(t, "ca"), tlsCluster()
	block, _ := pem.Decode(ca.PEM)
	cas := digest(block.Bytes)
	cas = digest([]byte("peer " + cas + "\nserver " + cas + "\n"))
	for forms, suffix := range map[manifest.CertForms]string{
		{Peer: certsecret.Static, Server: certsecret.Static}:           "0 0",
		{Peer: certsecret.Static, Server: certsecret.CertManager}:      "0 1",
		{Peer: certsecret.CertManager, Server: certsecret.Static}:      "1 0",
		{Peer: certsecret.CertManager, Server: certsecret.CertManager}: "1 1",
	} {
		c := &Cluster{obj: obj, certForms: forms, certs: certReader{held: holding(goodSecrets(ca))}}
		want, err := manifest.TemplateOf(&obj.Spec, cas+suffix)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := c.template(); err != nil || got.Pod != want.Pod || got.Volume != want.Volume {
			t.Errorf("%+v: the templates are %+v, want %+v: %v", forms, got, want, err)
		}
	}
}

// serve is how a member with this Secret meets its clients.
func serve(c manifest.Certificate, secret *corev1.Secret) (*tls.Config, error) {
	certKey, keyKey, caKey := c.Keys(certsecret.Static)
	pair, err := tls.X509KeyPair(secret.Data[certKey], secret.Data[keyKey])
	if err != nil {
		return nil, err
	}
	clients := x509.NewCertPool()
	clients.AppendCertsFromPEM(secret.Data[caKey])
	return &tls.Config{Certificates: []tls.Certificate{pair}, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: clients}, nil
}
