// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"path/filepath"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// OutsideKubeconfig grants the namespace's service account the operator's rights, and returns
// the file by which an operator outside of Kubernetes acts as that account. The credentials
// expire after three hours.
func (n *Namespace) OutsideKubeconfig() string {
	n.t.Helper()
	n.grant()
	lifetime := int64((3 * time.Hour).Seconds())
	token, err := n.Kube.CoreV1().ServiceAccounts(n.Name).CreateToken(n.t.Context(), "default", &authenticationv1.TokenRequest{
		Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: &lifetime},
	}, metav1.CreateOptions{})
	if err != nil {
		n.t.Fatalf("create a token of the service account default: %v", err)
	}
	const name = "local"
	config := clientcmdapi.NewConfig()
	config.Clusters[name] = &clientcmdapi.Cluster{
		Server: n.REST.Host, CertificateAuthority: n.REST.CAFile, CertificateAuthorityData: n.REST.CAData,
	}
	config.AuthInfos[name] = &clientcmdapi.AuthInfo{Token: token.Status.Token}
	config.Contexts[name] = &clientcmdapi.Context{Cluster: name, AuthInfo: name, Namespace: n.Name}
	config.CurrentContext = name
	path := filepath.Join(n.t.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(*config, path); err != nil {
		n.t.Fatalf("write the operator's kubeconfig: %v", err)
	}
	return path
}
