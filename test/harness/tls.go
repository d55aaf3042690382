// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/etcd-operator/etcd-operator/pkg/etcd"
)

// SetSecret creates a Secret, or replaces its data.
func (n *Namespace) SetSecret(name string, data map[string][]byte) {
	n.t.Helper()
	secrets := n.Kube.CoreV1().Secrets(n.Name)
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name}, Data: data}
	_, err := secrets.Create(n.t.Context(), secret, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		_, err = secrets.Update(n.t.Context(), secret, metav1.UpdateOptions{})
	}
	if err != nil {
		n.t.Fatalf("write Secret %s: %v", name, err)
	}
}

// DeleteSecret deletes a Secret.
func (n *Namespace) DeleteSecret(name string) {
	n.t.Helper()
	if err := n.Kube.CoreV1().Secrets(n.Name).Delete(n.t.Context(), name, metav1.DeleteOptions{}); err != nil {
		n.t.Fatalf("delete Secret %s: %v", name, err)
	}
}

// CheckNoSecretIsTold fails the test if the operator has revealed a Secret's data of the
// namespace: in its log, in an event, or in a status.
func (n *Namespace) CheckNoSecretIsTold() {
	n.t.Helper()
	ctx := n.t.Context()
	told := map[string]string{}
	for _, pod := range slices.Concat(n.Operators(), n.BackupOperators(), n.RestoreOperators()) {
		Wait(n.t, "log of "+pod.Name, Settle, func(ctx context.Context) error {
			log, err := n.Kube.CoreV1().Pods(n.Name).GetLogs(pod.Name, &corev1.PodLogOptions{}).DoRaw(ctx)
			if err != nil && !apierrors.IsNotFound(err) { // it is started again
				return err
			}
			told["the log of "+pod.Name] = string(log)
			return nil
		})
	}
	events, err := n.Kube.CoreV1().Events(n.Name).List(ctx, metav1.ListOptions{})
	if err != nil {
		n.t.Fatalf("list events: %v", err)
	}
	for _, e := range events.Items {
		told["events"] += e.Message + "\n"
	}
	tell := func(status any) {
		n.t.Helper()
		text, err := json.Marshal(status) // including what is behind pointers
		if err != nil {
			n.t.Fatal(err)
		}
		told["status"] += fmt.Sprintf("%+v\n%s\n", status, text) // JSON escapes some characters
	}
	clusters, err := n.EtcdClusters.EtcdV1beta2().EtcdClusters(n.Name).List(ctx, metav1.ListOptions{})
	if err != nil {
		n.t.Fatalf("list EtcdClusters: %v", err)
	}
	for _, c := range clusters.Items {
		tell(c.Status)
	}
	backups, err := n.EtcdClusters.EtcdV1beta2().EtcdBackups(n.Name).List(ctx, metav1.ListOptions{})
	if err != nil && !apierrors.IsNotFound(err) { // as long as there is no CRD
		n.t.Fatalf("list EtcdBackups: %v", err)
	}
	for _, b := range backups.Items {
		tell(b.Status)
	}
	restores, err := n.EtcdClusters.EtcdV1beta2().EtcdRestores(n.Name).List(ctx, metav1.ListOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		n.t.Fatalf("list EtcdRestores: %v", err)
	}
	for _, r := range restores.Items {
		tell(r.Status) // with the manifest that it contains
	}
	secrets, err := n.Kube.CoreV1().Secrets(n.Name).List(ctx, metav1.ListOptions{})
	if err != nil {
		n.t.Fatalf("list Secrets: %v", err)
	}
	lines := 0
	for _, s := range secrets.Items {
		for key, value := range s.Data {
			if key == "config" || key == "cloud" {
				continue // it contains no secrets, and endpoints that errors name
			}
			for line := range strings.Lines(string(value)) {
				if _, value, setting := strings.Cut(line, " = "); setting {
					line = value
				}
				if line = strings.TrimSpace(line); len(line) < 16 {
					continue
				}
				lines++
				for where, text := range told {
					if strings.Contains(text, line) {
						n.t.Errorf("a line of %s in Secret %s is in %s", key, s.Name, where)
					}
				}
			}
		}
	}
	if lines == 0 || len(told) < 3 {
		n.t.Errorf("nothing was compared: %d lines of Secrets, %d places", lines, len(told))
	}
}

// security is the TLS configuration for connections to a cluster's pods and Services; host is
// the name in the certificate. It reads the operator's Secret for each handshake, because
// clients of a cluster follow changes of its certificates too.
func (c *Cluster) security(host string) *tls.Config {
	if !c.clientTLS {
		return nil
	}
	return &tls.Config{
		MinVersion: tls.VersionTLS12,
		GetClientCertificate: func(r *tls.CertificateRequestInfo) (*tls.Certificate, error) {
			id, err := c.identity(r.Context())
			if err != nil {
				return nil, err
			}
			return id.ClientConfig(false).GetClientCertificate(r)
		},
		InsecureSkipVerify: true, // it is verified below, with the CAs of now
		VerifyConnection: func(state tls.ConnectionState) error {
			if c.unverified {
				return nil
			}
			id, err := c.identity(c.n.t.Context())
			if err != nil {
				return err
			}
			opts := x509.VerifyOptions{Roots: id.ClientConfig(false).RootCAs, Intermediates: x509.NewCertPool(), DNSName: host}
			for _, intermediate := range state.PeerCertificates[1:] {
				opts.Intermediates.AddCert(intermediate)
			}
			_, err = state.PeerCertificates[0].Verify(opts)
			return err
		},
	}
}

func (c *Cluster) identity(ctx context.Context) (*etcd.Identity, error) {
	ctx, cancel := later(ctx, callTimeout)
	defer cancel()
	secret, err := c.n.Kube.CoreV1().Secrets(c.n.Name).Get(ctx, c.operatorSecret, metav1.GetOptions{})
	if err != nil {
		return nil, fmt.Errorf("certificate of a client: %w", err)
	}
	for _, keys := range [][]string{{"etcd-client.crt", "etcd-client.key", "etcd-client-ca.crt"}, {"tls.crt", "tls.key", "ca.crt"}} {
		if !slices.ContainsFunc(keys, func(key string) bool { return len(secret.Data[key]) == 0 }) {
			file := func(key string) etcd.PEMFile { return etcd.PEMFile{Name: key, Content: secret.Data[key]} }
			return etcd.ParseIdentity(file(keys[0]), file(keys[1]), file(keys[2]))
		}
	}
	return nil, errors.New("certificate of a client: Secret " + c.operatorSecret + " has not the keys")
}

// host is the name of a pod in the cluster.
func (c *Cluster) host(pod *corev1.Pod) string {
	return pod.Name + "." + c.Name + "." + c.n.Name + ".svc" + c.clusterDomain
}

// ServedCertificate returns the certificate that a member presents to its clients.
func (c *Cluster) ServedCertificate(ctx context.Context, pod *corev1.Pod) (*x509.Certificate, error) {
	security := c.security(c.host(pod))
	security.VerifyConnection = nil
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	conn, err := (&tls.Dialer{Config: security}).DialContext(ctx, "tcp", net.JoinHostPort(pod.Status.PodIP, strconv.Itoa(clientPort)))
	if err != nil {
		return nil, fmt.Errorf("handshake with %s: %w", pod.Name, err)
	}
	defer conn.Close()
	secured, ok := conn.(*tls.Conn)
	if !ok {
		return nil, fmt.Errorf("handshake with %s gave a %T", pod.Name, conn)
	}
	return secured.ConnectionState().PeerCertificates[0], nil
}

// DialWithoutUser connects to a member as the cluster's clients do, and names no user. It returns
// what the member answers, however long a quorum takes to confirm the read: etcd judges the user
// after that.
func (c *Cluster) DialWithoutUser(ctx context.Context, pod *corev1.Pod) error {
	return c.dialAs(ctx, pod, c.security(c.host(pod)), Settle)
}

// DialAs connects to a member with another TLS configuration. A member that refuses the
// configuration does not answer, and so an error may be the end of the time for a call.
func (c *Cluster) DialAs(ctx context.Context, pod *corev1.Pod, security *tls.Config) error {
	return c.dialAs(ctx, pod, security, callTimeout)
}

func (c *Cluster) dialAs(ctx context.Context, pod *corev1.Pod, security *tls.Config, patience time.Duration) error {
	client, err := dial(pod.Status.PodIP, security)
	if err != nil {
		return err
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	_, err = client.Get(ctx, "any")
	return err
}
