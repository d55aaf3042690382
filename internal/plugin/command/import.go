// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"strings"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/etcd-operator/etcd-operator/internal/plugin/access"
	"github.com/etcd-operator/etcd-operator/internal/plugin/doctor"
	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/certsecret"
	"github.com/etcd-operator/etcd-operator/pkg/etcd"
	"github.com/etcd-operator/etcd-operator/pkg/importsource"
	"github.com/etcd-operator/etcd-operator/pkg/usersecret"
)

type importOptions struct {
	check                        bool
	file                         string
	endpoints                    []string
	tlsSecret, credentialsSecret string
	format                       output
}

func (app *App) importCommand() *cobra.Command {
	opts := &importOptions{}
	cmd := &cobra.Command{
		Use: "import --check -f FILE [--endpoint URL...]", GroupID: operate,
		Short: "Check whether an EtcdCluster could take over a running etcd",
		Long: `Look at an etcd that the operator does not care for, and report what would keep members of
an EtcdCluster from joining it. If spec.importFrom.method is Copy, report what would keep the
EtcdCluster from starting on its data, and how long nobody could write. The command changes
nothing. The import itself begins with the creation of an EtcdCluster with spec.importFrom.

Name one endpoint of each member. Default: those of spec.importFrom in the manifest. The command connects through the API server to an
endpoint whose host is a pod of the namespace, such as etcd-0.etcd. It connects to other
endpoints from this machine.

The exit code is 1 if there is an obstacle, and 0 if there are only warnings.`,
		Example: `  kubectl etcd import --check -f orders.yaml --endpoint http://etcd-0.etcd:2379 \
    --endpoint http://etcd-1.etcd:2379 --endpoint http://etcd-2.etcd:2379`,
		Args: usage(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if !opts.check {
				return usageError(cmd, errors.New("add --check to look for obstacles; to import, create an EtcdCluster with spec.importFrom"))
			}
			return app.runImportCheck(cmd.Context(), opts)
		},
	}
	flags := cmd.Flags()
	flags.BoolVar(&opts.check, "check", false, "look for obstacles, and change nothing; required")
	flags.StringVarP(&opts.file, "file", "f", "", "manifest of the EtcdCluster that would take over, or - for standard input; required")
	flags.StringSliceVar(&opts.endpoints, "endpoint", nil, "client URL of a member; repeat it for each member; default: spec.importFrom.endpoints")
	flags.StringVar(&opts.tlsSecret, "tls-secret", "", "Secret with a client certificate of the etcd; default: spec.importFrom.clientTLSSecret")
	flags.StringVar(&opts.credentialsSecret, "credentials-secret", "", "Secret with the username and password of a user of the etcd with the role root")
	_ = cmd.MarkFlagRequired("file")
	opts.format.bind(cmd)
	return cmd
}

func (app *App) runImportCheck(ctx context.Context, opts *importOptions) error {
	a, err := app.Open()
	if err != nil {
		return err
	}
	target, from, err := app.target(opts.file, a.Namespace)
	if err != nil {
		return err
	}
	if from != nil && len(opts.endpoints) == 0 {
		opts.endpoints = from.Endpoints
	}
	if from != nil && opts.tlsSecret == "" {
		opts.tlsSecret = from.ClientTLSSecret
	}
	if len(opts.endpoints) == 0 {
		return fmt.Errorf("the manifest %s has no spec.importFrom: name the client URL of each member with --endpoint", opts.file)
	}
	tunnel, end := app.Dial(a)
	defer end()
	s, err := opts.source(ctx, a, tunnel)
	if err != nil {
		return err
	}
	s.Copies = target.Copies
	findings := importsource.Judge(s.Look(ctx), target)
	if err := opts.format.write(app.Out, findings, nil, func(out io.Writer) error { return printFindings(out, findings) }); err != nil {
		return err
	}
	if doctor.Worst(findings) == doctor.Failure {
		return exit(1)
	}
	return nil
}

// target reads the manifest of an EtcdCluster, with the etcd that it names.
func (app *App) target(file, namespace string) (importsource.Target, *api.ImportSource, error) {
	var content []byte
	var err error
	if file == "-" {
		content, err = io.ReadAll(app.In)
	} else {
		content, err = os.ReadFile(file)
	}
	if err != nil {
		return importsource.Target{}, nil, fmt.Errorf("read the manifest: %w", err)
	}
	obj := &api.EtcdCluster{}
	if err := yaml.UnmarshalStrict(content, obj); err != nil {
		return importsource.Target{}, nil, fmt.Errorf("read the manifest %s: it is not one EtcdCluster: %w", file, err)
	}
	if obj.Kind != api.EtcdClusterResourceKind || obj.Name == "" {
		return importsource.Target{}, nil, fmt.Errorf("read the manifest %s: it has the kind %q and the name %q; want a named EtcdCluster", file, obj.Kind, obj.Name)
	}
	if obj.Namespace != "" && obj.Namespace != namespace {
		return importsource.Target{}, nil, fmt.Errorf("the manifest %s is for the namespace %s, and the command for %s: add -n %s", file, obj.Namespace, namespace, obj.Namespace)
	}
	target, err := importsource.TargetOf(obj, namespace)
	if err != nil {
		return target, nil, fmt.Errorf("read the manifest %s: %w", file, err)
	}
	target.UserFrom, target.CertificateFrom = "--credentials-secret", "--tls-secret"
	return target, obj.Spec.ImportFrom, nil
}

// source is how to reach the etcd of the flags.
func (opts *importOptions) source(ctx context.Context, a *access.Access, tunnel etcd.Dial) (*importsource.Source, error) {
	s := &importsource.Source{}
	if opts.tlsSecret != "" {
		secret, err := a.Kube.CoreV1().Secrets(a.Namespace).Get(ctx, opts.tlsSecret, metav1.GetOptions{})
		if err != nil {
			return nil, fmt.Errorf("read the client certificate: %w", err)
		}
		id, err := certsecret.ClientIdentity(secret)
		if err != nil {
			return nil, err
		}
		s.TLS = id.ClientConfig(false)
	}
	if opts.credentialsSecret != "" {
		secret, err := a.Kube.CoreV1().Secrets(a.Namespace).Get(ctx, opts.credentialsSecret, metav1.GetOptions{})
		if err == nil {
			s.User, err = usersecret.Of(secret)
		}
		if err != nil {
			return nil, fmt.Errorf("read the user of etcd: %w", err)
		}
	}
	pods := map[string]bool{}
	for _, text := range opts.endpoints {
		ep, err := etcd.ParseEndpoint(text, s.TLS != nil)
		if err != nil {
			return nil, err
		}
		if s.TLS == nil && strings.HasPrefix(ep.URL, "https:") {
			return nil, fmt.Errorf("the endpoint %s uses TLS: name the Secret of a client certificate with --tls-secret", ep.URL)
		}
		name, err := podOf(ctx, a, ep)
		if err != nil {
			return nil, err
		}
		if name != "" {
			ep.IP, pods[name] = name, true
		}
		s.Endpoints = append(s.Endpoints, ep)
	}
	s.Dial = func(ctx context.Context, address string) (net.Conn, error) {
		if host, _, err := net.SplitHostPort(address); err == nil && pods[host] {
			return tunnel(ctx, address)
		}
		return (&net.Dialer{}).DialContext(ctx, "tcp", address)
	}
	if ns, err := a.Kube.CoreV1().Namespaces().Get(ctx, metav1.NamespaceSystem, metav1.GetOptions{}); err == nil {
		s.Own = importsource.MarkOfNamespace(string(ns.UID)) // without the right, the finding is a warning
	}
	return s, nil
}

// podOf returns the pod of the namespace whose host name an endpoint has, or "".
func podOf(ctx context.Context, a *access.Access, ep etcd.Endpoint) (string, error) {
	u, err := url.Parse(ep.URL)
	if err != nil {
		return "", err
	}
	name, domain, _ := strings.Cut(u.Hostname(), ".")
	if net.ParseIP(u.Hostname()) != nil {
		return "", nil
	}
	pod, err := a.Kube.CoreV1().Pods(a.Namespace).Get(ctx, name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return "", nil
	case err != nil:
		return "", fmt.Errorf("look for the pod of the endpoint %s: %w", ep.URL, err)
	case !isHostOf(pod, domain):
		return "", nil
	}
	return name, nil
}

// isHostOf reports whether a domain is that of a pod: its Service, and more or less of the
// namespace and the cluster domain.
func isHostOf(pod *corev1.Pod, domain string) bool {
	if domain == "" {
		return true
	}
	service, rest, _ := strings.Cut(domain, ".")
	namespace, _, _ := strings.Cut(rest, ".")
	return service == pod.Spec.Subdomain && (rest == "" || namespace == pod.Namespace)
}
