// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"os"
	"path/filepath"

	"github.com/etcd-operator/etcd-operator/hack/localkube/instance"
	"github.com/etcd-operator/etcd-operator/hack/localkube/kubeapi"
	"github.com/etcd-operator/etcd-operator/hack/localkube/pki"
	"github.com/etcd-operator/etcd-operator/hack/localkube/render"

	"net/netip"
)

// credentials makes all certificates, keys and kubeconfigs, and the files of
// the control plane.
func (s *Supervisor) credentials() error {
	c := s.config
	ca, err := pki.NewAuthority("localkube")
	if err != nil {
		return err
	}
	serving, err := ca.Server("kube-apiserver", []string{
		"localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc.cluster.local",
	}, netip.MustParseAddr("127.0.0.1"), c.APIService(), c.Bridge())
	if err != nil {
		return err
	}
	kubelet, err := ca.Client("kube-apiserver-kubelet-client", "system:masters")
	if err != nil {
		return err
	}
	saKey, saPub, err := pki.NewKey()
	if err != nil {
		return err
	}
	files := map[string][]byte{
		render.CACert: ca.Cert, render.CAKey: ca.Key,
		render.ServerCert: serving.Cert, render.ServerKey: serving.Key,
		render.KubeletCliCert: kubelet.Cert, render.KubeletCliKey: kubelet.Key,
		render.SAKey: saKey, render.SAPub: saPub,
		render.AuditPolicy:     []byte(render.Audit()),
		"Corefile":             []byte(render.Corefile(c)),
		"kube-proxy-host.yaml": []byte(render.KubeProxy(c, instance.NodeName(1), c.Path("kubeconfigs/proxy"))),
	}
	users := []struct{ file, user, group string }{
		{"kubeconfigs/admin", "localkube-admin", "system:masters"},
		{"kubeconfigs/controller-manager", "system:kube-controller-manager", ""},
		{"kubeconfigs/scheduler", "system:kube-scheduler", ""},
		{"kubeconfigs/proxy", "system:kube-proxy", ""},
	}
	for n := 1; n <= c.Nodes; n++ {
		name := instance.NodeName(n)
		p, err := ca.Server(name, []string{name}, c.NodeIP(n))
		if err != nil {
			return err
		}
		dir := filepath.Join("nodes", name)
		files[filepath.Join(dir, "kubelet.crt")], files[filepath.Join(dir, "kubelet.key")] = p.Cert, p.Key
		users = append(users, struct{ file, user, group string }{
			filepath.Join(dir, "kubelet.kubeconfig"), "system:node:" + name, "system:nodes",
		})
	}
	for _, u := range users {
		p, err := ca.Client(u.user, u.group)
		if err != nil {
			return err
		}
		config := []byte(render.Kubeconfig(c.Name, c.APIServer(), ca.Cert, p))
		files[u.file] = config
		if u.user != "localkube-admin" {
			continue
		}
		files["kubeconfig"] = config
		if s.api, err = kubeapi.New(c.APIServer(), ca.Cert, p.Cert, p.Key); err != nil {
			return err
		}
	}
	for file, content := range files {
		path := c.Path(file)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(path, content, 0o600); err != nil {
			return err
		}
	}
	return nil
}
