// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	k8stesting "k8s.io/client-go/testing"
	"sigs.k8s.io/yaml"

	"github.com/etcd-operator/etcd-operator/internal/plugin/summary"
	"github.com/etcd-operator/etcd-operator/internal/plugin/tunnel"
	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

func TestErrorsOfTheCommandLine(t *testing.T) {
	w := newWorld(t, nightly())
	for line, test := range map[string]struct {
		code int
		want string
	}{
		"statsu orders":                           {1, "Did you mean this?\n\tstatus"},
		"members":                                 {1, "See 'kubectl etcd members --help' for usage"},
		"members orders --bogus":                  {1, "See 'kubectl etcd members --help' for usage"},
		"members orders -o xml":                   {1, "the format must be json, yaml, wide or name"},
		"top orders -o wide":                      {1, "the format must be json or yaml"},
		"status --bogus":                          {3, "See 'kubectl etcd status --help' for usage"},
		"status orders -A":                        {3, "use either names or --all-namespaces"},
		"status --interval 0s":                    {3, "must be positive"},
		"replace orders-b --dry-run=server":       {1, "it must be none or client"},
		"restore orders --newest --dry-run=maybe": {1, "it must be none or client"},
	} {
		code, out, errOut := w.run(strings.Split(line, " ")...)
		if code != test.code || !strings.Contains(errOut, test.want) || out != "" {
			t.Errorf("%s: exit code %d, want %d and %q: %s%s", line, code, test.code, test.want, out, errOut)
		}
	}
}

func TestStatusOfSeveralClustersIsAListHoweverManyThereAre(t *testing.T) {
	w := newWorld(t, nightly())
	for _, args := range [][]string{{"status", "-o", "json"}, {"status", "-A", "-o", "json"}, {"status", "orders", "orders", "-o", "json"}} {
		_, out, errOut := w.run(args...)
		var list []summary.Summary
		if err := json.Unmarshal([]byte(out), &list); err != nil || len(list) == 0 || list[0].Name != "orders" {
			t.Errorf("%q prints %s%s: %v", args, out, errOut, err)
		}
	}
	if err := w.etcd.EtcdV1beta2().EtcdClusters("default").Delete(t.Context(), "orders", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	code, out, errOut := w.run("status", "-o", "json")
	if code != 0 || out != "[]\n" || errOut != "No EtcdClusters found in default namespace.\n" {
		t.Errorf("exit code %d: %q, %q", code, out, errOut)
	}
}

func TestAClusterThatIsNotThereHidesNoOther(t *testing.T) {
	code, out, errOut := newWorld(t, nightly()).run("status", "nope", "orders")
	if code != 3 || !strings.Contains(errOut, `"nope" not found`) {
		t.Errorf("exit code %d: %s", code, errOut)
	}
	contains(t, out, "orders   3.7.3   SERVING")
}

func TestStatusOfAllNamespaces(t *testing.T) {
	other := &api.EtcdCluster{ObjectMeta: metav1.ObjectMeta{Name: "orders", Namespace: "test", UID: "u2"}, Spec: api.ClusterSpec{Size: 1}}
	code, out, errOut := newWorld(t, nightly(), other).run("status", "--all-namespaces")
	if code != 2 {
		t.Errorf("exit code %d, want that of the worst: %s", code, errOut)
	}
	contains(t, out, "default/orders   3.7.3   SERVING", "test/orders   -   DOWN", "kubectl etcd doctor orders -n test")
}

func TestConnectionsOfAClusterEndWithTheLookAtIt(t *testing.T) {
	var objects []runtime.Object
	for i := range 40 {
		objects = append(objects, &api.EtcdCluster{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("c", i), Namespace: "test", UID: "u2"}, Spec: api.ClusterSpec{Size: 1}})
	}
	w := newWorld(t, objects...)
	if _, out, errOut := w.run("status", "-A"); strings.Count(out, "test/c") < 40 {
		t.Errorf("it prints %s%s", out, errOut)
	}
	if most, left := w.mostOpen.Load(), w.open.Load(); most > sameTime || left != 0 {
		t.Errorf("%d tunnels were open at the same time, and %d are left", most, left)
	}
}

func TestStatusWithoutATunnelIsTheOperators(t *testing.T) {
	w := newWorld(t, nightly())
	w.refuse = fmt.Errorf("no WebSockets here: %w", tunnel.ErrNoConnection)
	w.update(func(c *api.EtcdCluster) {
		for i, name := range names {
			c.Status.MemberStatuses = append(c.Status.MemberStatuses, api.MemberStatus{Name: name, ID: fmt.Sprint(i + 1), Healthy: true, Leader: i == 0, Version: "3.7.3"})
		}
	})
	code, out, _ := w.run("status", "orders")
	if code != 0 {
		t.Errorf("exit code %d: a proxy that breaks the tunnel is no outage", code)
	}
	contains(t, out, "3 of 3 voters healthy", "as the operator last saw them", "no WebSockets here")
	w.update(func(c *api.EtcdCluster) {
		c.Status.Conditions[0].Status, c.Status.Conditions[0].Reason = corev1.ConditionFalse, "Quorum lost"
	})
	if code, _, _ := w.run("status", "orders"); code != 2 {
		t.Errorf("exit code %d: the operator reports an outage", code)
	}
}

func TestNamesAndWideColumns(t *testing.T) {
	w := newWorld(t, nightly())
	for line, want := range map[string]string{
		"status orders -o name":  "etcdcluster.etcd.database.coreos.com/orders\n",
		"members orders -o name": "pod/orders-a\npod/orders-b\npod/orders-c\n",
		"backups orders -o name": "etcdbackup.etcd.database.coreos.com/nightly\n",
	} {
		if _, out, errOut := w.run(strings.Split(line, " ")...); out != want {
			t.Errorf("%s prints %q, want %q: %s", line, out, want, errOut)
		}
	}
	for line, want := range map[string]string{
		"status orders":  "QUOTA   RESTARTS   ID",
		"members orders": "CLIENT URL",
		"backups orders": "KEPT",
	} {
		_, narrow, _ := w.run(strings.Split(line, " ")...)
		_, wide, _ := w.run(strings.Split(line+" -o wide", " ")...)
		if strings.Contains(narrow, want) || !strings.Contains(wide, want) {
			t.Errorf("%s: %q belongs to -o wide:\n%s\n%s", line, want, narrow, wide)
		}
	}
}

func TestADryRunPrintsAManifestThatKubectlTakes(t *testing.T) {
	for _, line := range []string{"backup orders --dry-run -o yaml", "restore orders --newest --dry-run=client -o yaml"} {
		w := newWorld(t, nightly())
		code, out, errOut := w.run(strings.Split(line, " ")...)
		var object struct {
			APIVersion, Kind string
			Metadata         metav1.ObjectMeta
			Spec             struct{ S3 *api.S3BackupSource }
		}
		if err := yaml.Unmarshal([]byte(out), &object); err != nil {
			t.Errorf("%s: exit code %d, %v: %s%s", line, code, err, out, errOut)
		}
		if code != 0 || object.APIVersion != "etcd.database.coreos.com/v1beta2" || object.Metadata.Namespace != "default" || object.Spec.S3 == nil {
			t.Errorf("%s: exit code %d: %s%s", line, code, out, errOut)
		}
		for _, action := range w.etcd.Actions() {
			if action.GetVerb() == "create" || action.GetVerb() == "delete" {
				t.Errorf("%s: it has asked for %v", line, action)
			}
		}
	}
}

func TestTextForPeopleLeavesTheOutputToPrograms(t *testing.T) {
	w := newWorld(t, nightly())
	code, out, errOut := w.run("restore", "orders", "--newest", "--confirm", "orders", "--wait=false", "-o", "name")
	if code != 0 || out != "etcdrestore.etcd.database.coreos.com/orders\n" {
		t.Errorf("exit code %d: %q", code, out)
	}
	contains(t, errOut, "588 revisions are lost")
}

func TestCtrlCEndsTheQuestionOfARestore(t *testing.T) {
	w := newWorld(t, nightly())
	never, end := io.Pipe()
	t.Cleanup(func() { end.Close() })
	ctx, cancel := context.WithCancel(t.Context())
	w.stdin = readerFunc(func(p []byte) (int, error) {
		cancel()
		return never.Read(p)
	})
	code, _, errOut := w.runContext(ctx, "restore", "orders", "--newest")
	if code != interrupted {
		t.Errorf("exit code %d: %s", code, errOut)
	}
	if _, err := w.restoreObject(); !apierrors.IsNotFound(err) {
		t.Errorf("there is an EtcdRestore: %v", err)
	}
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

func TestARestoreWithoutItsOperator(t *testing.T) {
	w := newWorld(t, nightly())
	w.etcd.PrependReactor("create", "etcdrestores", func(k8stesting.Action) (bool, runtime.Object, error) {
		return true, nil, apierrors.NewNotFound(schema.GroupResource{Group: api.GroupName, Resource: "etcdrestores"}, "")
	})
	code, _, errOut := w.run("restore", "orders", "--newest", "--confirm", "orders")
	if code != 1 || !strings.Contains(errOut, "deploy the restore operator first") {
		t.Errorf("exit code %d: %s", code, errOut)
	}
}

func TestHelpOfACommandOmitsTheFlagsOfKubectl(t *testing.T) {
	w := newWorld(t)
	_, command, _ := w.run("status", "--help")
	_, all, _ := w.run("--help")
	if strings.Contains(command, "--as-uid") || !strings.Contains(command, `"kubectl etcd --help" lists the flags`) || !strings.Contains(all, "--as-uid") {
		t.Errorf("the help is\n%s\n%s", command, all)
	}
}

func TestBackupsThatTheUserMayNotReadAreUnknown(t *testing.T) {
	w := newWorld(t, nightly())
	w.etcd.PrependReactor("list", "etcdbackups", func(k8stesting.Action) (bool, runtime.Object, error) {
		return true, nil, apierrors.NewForbidden(schema.GroupResource{Group: api.GroupName, Resource: "etcdbackups"}, "", nil)
	})
	code, out, _ := w.run("status", "orders")
	if code != 0 {
		t.Errorf("exit code %d", code)
	}
	contains(t, out, "Backups    unknown: etcdbackups", "is forbidden")
	_, out, _ = w.run("status", "orders", "-o", "json")
	contains(t, out, `"backupsNotRead": "`)
}
