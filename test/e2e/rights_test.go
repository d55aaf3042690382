//go:build e2e

// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/etcd-operator/etcd-operator/test/harness"
)

// unprovoked are rights that a run of the tests need not use.
var unprovoked = map[string]bool{
	// The admission plugin OwnerReferencesPermissionEnforcement checks it where it runs,
	// without a request.
	"update etcd.database.coreos.com/etcdclusters/finalizers": true,
	"update etcd.database.coreos.com/etcdrestores/finalizers": true,
	// Admission on OpenShift checks it, without a request.
	"create discovery.k8s.io/endpointslices/restricted": true,
	// The first one registers the CRD: an operator, or a test that needs it.
	"create apiextensions.k8s.io/customresourcedefinitions": true,
	// No older operator's CRD needs an update.
	"update apiextensions.k8s.io/customresourcedefinitions": true,
	// An EtcdBackup is read if somebody has edited it while its status was written.
	"get etcd.database.coreos.com/etcdbackups": true,
	// The Endpoints of v0.9.4's Service are mostly gone with it before the lookup.
	"delete /endpoints": true,
	// Similar events are counted up; whether some are is chance.
	"patch /events": true,
	// Today's API servers begin a watch with the existing objects. Older ones, and those short
	// of memory, need lists.
	"list /pods":                                 true,
	"list /services":                             true,
	"list /persistentvolumeclaims":               true,
	"list policy/poddisruptionbudgets":           true,
	"list etcd.database.coreos.com/etcdclusters": true,
	"list etcd.database.coreos.com/etcdbackups":  true,
	"list etcd.database.coreos.com/etcdrestores": true,
}

// everybodys are rights that Kubernetes grants to all authenticated users: to ask for one's
// own rights.
var everybodys = map[string]bool{
	"create authorization.k8s.io/selfsubjectrulesreviews":  true,
	"create authorization.k8s.io/selfsubjectaccessreviews": true,
}

// request is a request in the API server's audit log.
type request struct {
	Verb        string
	UserAgent   string
	User        struct{ Username string }
	ObjectRef   struct{ APIGroup, Resource, Subresource, Namespace, Name string }
	Annotations map[string]string
	// RequestReceivedTimestamp sorts requests. The log sorts them by their ends, and a watch
	// ends late.
	RequestReceivedTimestamp time.Time
	StageTimestamp           time.Time // of the answer
}

// right is the permission that a request needs.
func (r request) right() string {
	resource := r.ObjectRef.Resource
	if r.ObjectRef.Subresource != "" {
		resource += "/" + r.ObjectRef.Subresource
	}
	return r.Verb + " " + r.ObjectRef.APIGroup + "/" + resource
}

func (r request) allowed() bool { return r.Annotations["authorization.k8s.io/decision"] == "allow" }

// TestRightsAreThoseThatAreUsed runs after all other tests. It compares the operators'
// requests in the whole run with the shipped ClusterRole: the role grants every requested
// right, and no unused one. It compares each operator's requests with testdata/rights.txt,
// which the roles of deploy/ follow.
func TestRightsAreThoseThatAreUsed(t *testing.T) {
	n := harness.NewNamespace(t)
	granted := map[string]bool{}
	for _, rule := range harness.Shipped[*rbacv1.ClusterRole](n, "example/rbac/cluster-role-template.yaml").Rules {
		for _, group := range rule.APIGroups {
			for _, resource := range rule.Resources {
				for _, verb := range rule.Verbs {
					granted[verb+" "+group+"/"+resource] = true
				}
			}
		}
	}
	awaitAuditLog(t, n)
	requests := requestsOfOperators(t)
	used, denied := map[string]int{}, map[string]string{}
	// A test removes its grants when it ends, and its operator may run on for a moment. The
	// test ignores denials after a user's last allowed request was received.
	last := map[string]time.Time{}
	for _, r := range requests {
		if r.allowed() {
			used[r.right()]++
			if r.RequestReceivedTimestamp.After(last[r.User.Username]) {
				last[r.User.Username] = r.RequestReceivedTimestamp
			}
		}
	}
	for _, r := range requests {
		if !r.allowed() && r.StageTimestamp.Before(last[r.User.Username]) {
			denied[r.right()] = fmt.Sprintf("%s %s/%s, by %s", r.Verb, r.ObjectRef.Namespace, r.ObjectRef.Name, r.User.Username)
		}
	}
	for _, right := range slices.Sorted(maps.Keys(used)) {
		t.Logf("%7d × %s", used[right], right)
		if !granted[right] && !everybodys[right] {
			t.Errorf("the operator uses a right that the ClusterRole does not grant: %s", right)
		}
	}
	for _, right := range slices.Sorted(maps.Keys(granted)) {
		if used[right] == 0 && !unprovoked[right] {
			t.Errorf("the ClusterRole grants a right that no operator has used in this run: %s", right)
		}
	}
	compareWithTable(t, requests)
	for right, example := range denied {
		t.Errorf("the operator was denied what it asked for: %s, such as %s", right, example)
	}
}

// compareWithTable compares what each operator has used with testdata/rights.txt.
func compareWithTable(t *testing.T, requests []request) {
	t.Helper()
	table := rightsTable(t)
	used := map[string]map[string]bool{}
	for _, r := range requests {
		program, _, _ := strings.Cut(r.UserAgent, "/")
		if used[program] == nil {
			used[program] = map[string]bool{}
		}
		// The right to register a CRD has a role of its own.
		if r.allowed() && !everybodys[r.right()] && r.ObjectRef.APIGroup != "apiextensions.k8s.io" {
			used[program][r.right()] = true
		}
	}
	for program, rights := range used {
		for _, right := range slices.Sorted(maps.Keys(rights)) {
			if _, listed := table[program][right]; !listed {
				t.Errorf("%s uses a right that testdata/rights.txt does not list: %s", program, right)
			}
		}
		for _, right := range slices.Sorted(maps.Keys(table[program])) {
			if byChance := table[program][right]; !byChance && !rights[right] {
				t.Errorf("%s has not used a right of testdata/rights.txt in this run: %s", program, right)
			}
		}
	}
}

// rightsTable reads testdata/rights.txt: the rights of each operator, and whether an operator
// uses a right by chance.
func rightsTable(t *testing.T) map[string]map[string]bool {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", "rights.txt"))
	if err != nil {
		t.Fatal(err)
	}
	table, program := map[string]map[string]bool{}, ""
	for line := range strings.Lines(string(text)) {
		resource, verbs, found := strings.Cut(strings.TrimSpace(line), ": ")
		switch {
		case strings.HasPrefix(line, "#") || strings.TrimSpace(line) == "":
		case !found:
			program = strings.TrimSpace(line)
			table[program] = map[string]bool{}
		default:
			for _, verb := range strings.Fields(verbs) {
				name := strings.Trim(verb, "()")
				table[program][name+" "+resource] = name != verb
			}
		}
	}
	return table
}

// awaitAuditLog sends a request and waits until it is in the audit log. The API server writes
// the log at intervals and in order, so all earlier requests are there too.
func awaitAuditLog(t *testing.T, n *harness.Namespace) {
	t.Helper()
	const account = "default"
	var token *authenticationv1.TokenRequest
	harness.Wait(t, "a token of the service account", harness.Settle, func(ctx context.Context) (err error) {
		token, err = n.Kube.CoreV1().ServiceAccounts(n.Name).CreateToken(ctx, account, &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
		return err
	})
	config := rest.AnonymousClientConfig(n.REST)
	config.BearerToken = token.Status.Token
	kube, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	name := "system:serviceaccount:" + n.Name + ":" + account
	harness.Wait(t, "the audit log", harness.Settle, func(ctx context.Context) error {
		if _, err := kube.CoreV1().Pods(n.Name).List(ctx, metav1.ListOptions{}); err != nil && !apierrors.IsForbidden(err) {
			return err
		}
		for _, file := range auditLogs(t) {
			text, err := os.ReadFile(file)
			if err != nil {
				return err
			}
			if bytes.Contains(text, []byte(name)) {
				return nil
			}
		}
		return fmt.Errorf("no request of %s is in it", name)
	})
}

// auditLogs returns the files of the audit log.
func auditLogs(t *testing.T) []string {
	t.Helper()
	kubeconfig, err := harness.Kubeconfig()
	if err != nil {
		t.Fatal(err)
	}
	logs := filepath.Join(filepath.Dir(kubeconfig), "logs")
	files, err := filepath.Glob(filepath.Join(logs, "audit*.log"))
	if err != nil || len(files) == 0 {
		t.Fatalf("the API server keeps no audit log in %s: restart the local Kubernetes (hack/kube down, hack/kube up)", logs)
	}
	return files
}

// ofOperator matches the lines about our programs' requests.
var ofOperator = regexp.MustCompile(`"userAgent":"etcd-(backup-|restore-)?operator/`)

// ofTest reports whether a user is a service account of one of these tests. The tests of the
// documentation may run at the same time, and grant rights in their own order.
func ofTest(user string) bool {
	namespace, ok := strings.CutPrefix(user, "system:serviceaccount:e2e-")
	return ok && !strings.HasPrefix(namespace, "page-")
}

// requestsOfOperators reads the audit log, the older part first.
func requestsOfOperators(t *testing.T) []request {
	t.Helper()
	files := auditLogs(t)
	var requests []request
	for _, file := range files {
		f, err := os.Open(file)
		if err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewScanner(f)
		lines.Buffer(nil, 1<<20)
		for lines.Scan() {
			if !ofOperator.Match(lines.Bytes()) {
				continue
			}
			var r request
			if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
				continue // an incomplete line
			}
			if ofTest(r.User.Username) && r.ObjectRef.Resource != "" {
				requests = append(requests, r)
			}
		}
		if err := lines.Err(); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		f.Close()
	}
	if len(requests) == 0 {
		t.Fatalf("no operator has asked for anything, according to %v", files)
	}
	return requests
}
