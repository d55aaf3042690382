// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package definition

import (
	"context"
	"errors"
	"io"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sirupsen/logrus"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset/fake"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/utils/clock"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/crd"
	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

func quiet() *logrus.Entry {
	logger := logrus.New()
	logger.SetOutput(io.Discard)
	return logrus.NewEntry(logger)
}

type crdEdit func(*apiextensionsv1.CustomResourceDefinition)

func ourCRD(t *testing.T, edits ...crdEdit) *apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	c, err := crd.EtcdCluster()
	if err != nil {
		t.Fatal(err)
	}
	for _, edit := range edits {
		edit(c)
	}
	return c
}

// writtenBy stamps a CRD, in the form in which an API server returns it.
func writtenBy(version string) crdEdit {
	return func(c *apiextensionsv1.CustomResourceDefinition) {
		stamped(c, version)
		apiextensionsv1.SetDefaults_CustomResourceDefinition(c)
	}
}

func withoutShortNames(c *apiextensionsv1.CustomResourceDefinition) { c.Spec.Names.ShortNames = nil }

func established(c *apiextensionsv1.CustomResourceDefinition) {
	c.Status.Conditions = []apiextensionsv1.CustomResourceDefinitionCondition{
		{Type: apiextensionsv1.NamesAccepted, Status: apiextensionsv1.ConditionTrue},
		{Type: apiextensionsv1.Established, Status: apiextensionsv1.ConditionTrue},
	}
}

func webhook(c *apiextensionsv1.CustomResourceDefinition) {
	c.Spec.Conversion = &apiextensionsv1.CustomResourceConversion{Strategy: apiextensionsv1.WebhookConverter}
}

// ofV094 makes the CRD that v0.9.4 registered, as an API server of today returns it.
func ofV094(c *apiextensionsv1.CustomResourceDefinition) {
	c.Annotations = nil
	c.Spec.PreserveUnknownFields = true
	yes := true
	for i := range c.Spec.Versions {
		c.Spec.Versions[i].Schema = &apiextensionsv1.CustomResourceValidation{
			OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{Type: "object", XPreserveUnknownFields: &yes},
		}
		c.Spec.Versions[i].Subresources = nil
		c.Spec.Versions[i].AdditionalPrinterColumns = nil
	}
}

func TestWhichCRDIsReplaced(t *testing.T) {
	for name, tc := range map[string]struct {
		live    []crdEdit
		version string // of this operator; "" means v1.1.0
		want    verdict
		why     string
	}{
		"the same":                           {live: []crdEdit{writtenBy("v1.1.0")}, want: keep, why: "what this operator registers"},
		"the same, by an older operator":     {live: []crdEdit{writtenBy("v1.0.0")}, want: keep},
		"the same, by a newer operator":      {live: []crdEdit{writtenBy("v2.0.0")}, want: keep},
		"the same, applied by a person":      {want: keep},
		"the same, with their conversion":    {live: []crdEdit{writtenBy("v1.1.0"), webhook}, want: keep},
		"of v0.9.4":                          {live: []crdEdit{ofV094}, want: update, why: "not written by this operator"},
		"of an older operator":               {live: []crdEdit{withoutShortNames, writtenBy("v1.0.9")}, want: update, why: "of operator v1.0.9"},
		"of a newer operator":                {live: []crdEdit{withoutShortNames, writtenBy("v1.1.1")}, want: keep, why: "newer than this one"},
		"of a newer one by number, not text": {live: []crdEdit{withoutShortNames, writtenBy("v1.10.0")}, want: keep},
		"of a release, this is before it":    {live: []crdEdit{withoutShortNames, writtenBy("v1.1.0")}, version: "v1.1.0-dev", want: keep},
		"of a pre-release of this one":       {live: []crdEdit{withoutShortNames, writtenBy("v1.1.0-dev")}, want: update},
		"of this version, but edited":        {live: []crdEdit{withoutShortNames, writtenBy("v1.1.0")}, want: update, why: "edited since"},
		"with a stamp that is no version":    {live: []crdEdit{withoutShortNames, writtenBy("latest")}, want: update, why: "not a version"},
		"of a newer one, this has no number": {live: []crdEdit{withoutShortNames, writtenBy("v9.0.0")}, version: "mine", want: update},
	} {
		t.Run(name, func(t *testing.T) {
			version := tc.version
			if version == "" {
				version = "v1.1.0"
			}
			got, why := judge(ourCRD(t, tc.live...), ourCRD(t), version)
			if got != tc.want || !strings.Contains(why, tc.why) {
				t.Errorf("update: %t (%s), want %t (%s)", got, why, tc.want, tc.why)
			}
		})
	}
}

func TestReplacingKeepsWhatOthersWrote(t *testing.T) {
	live := ourCRD(t, ofV094, webhook, func(c *apiextensionsv1.CustomResourceDefinition) {
		c.ResourceVersion = "7"
		c.Annotations = map[string]string{"theirs": "a"}
		c.Labels = map[string]string{"theirs": "b"}
	})
	before := live.DeepCopy()
	got := replaced(live, ourCRD(t), "v1.0.0")
	if same, err := sameSpec(got, ourCRD(t)); err != nil || !same {
		t.Errorf("the spec is not ours (%v)", err)
	}
	if got.Spec.Conversion == nil || got.Spec.Conversion.Strategy != apiextensionsv1.WebhookConverter {
		t.Error("the conversion is lost")
	}
	if got.ResourceVersion != "7" || got.Annotations["theirs"] != "a" || got.Labels["theirs"] != "b" || got.Annotations[api.OperatorVersionAnnotation] != "v1.0.0" {
		t.Errorf("metadata: %+v", got.ObjectMeta)
	}
	if same, err := sameSpec(live, before); err != nil || !same || live.Annotations[api.OperatorVersionAnnotation] != "" {
		t.Error("the live object was written to")
	}
}

// establishLater makes a fake API server establish CRDs some time after they were
// written.
func establishLater(t *testing.T, client *fake.Clientset, after time.Duration) {
	t.Helper()
	start := time.Now()
	client.PrependReactor("get", "customresourcedefinitions", func(a clienttesting.Action) (bool, runtime.Object, error) {
		obj, err := client.Tracker().Get(a.GetResource(), "", a.(clienttesting.GetAction).GetName())
		if err != nil {
			return true, nil, err
		}
		if time.Since(start) >= after {
			c := obj.(*apiextensionsv1.CustomResourceDefinition).DeepCopy()
			established(c)
			obj = c
		}
		return true, obj, nil
	})
}

func newKeeper(t *testing.T, client *fake.Clientset) *Keeper {
	t.Helper()
	return New(Config{CRDs: client, Want: ourCRD(t), Create: true, Version: "v1.0.0", Clock: clock.RealClock{}, Log: quiet()})
}

func writes(client *fake.Clientset) (verbs []string) {
	for _, a := range client.Actions() {
		if a.GetVerb() != "get" {
			verbs = append(verbs, a.GetVerb())
		}
	}
	return verbs
}

func TestTheCRDIsRegisteredAndAwaited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := fake.NewSimpleClientset()
		establishLater(t, client, 3*time.Second)
		start := time.Now()
		if err := newKeeper(t, client).ensure(t.Context()); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(start); took != 3*time.Second {
			t.Errorf("waited %s for what takes 3 s", took)
		}
		c, err := client.ApiextensionsV1().CustomResourceDefinitions().Get(t.Context(), api.EtcdClusterCRDName, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if c.Annotations[api.OperatorVersionAnnotation] != "v1.0.0" {
			t.Errorf("annotations %v", c.Annotations)
		}
	})
}

func TestAnOlderCRDIsUpdatedAndOursIsNot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := fake.NewSimpleClientset(ourCRD(t, ofV094))
		establishLater(t, client, 0)
		for _, want := range []string{"update", ""} {
			client.ClearActions()
			if err := newKeeper(t, client).ensure(t.Context()); err != nil {
				t.Fatal(err)
			}
			if got := strings.Join(writes(client), " "); got != want {
				t.Errorf("writes %q, want %q", got, want)
			}
		}
	})
}

// Two operators that start at once both find no CRD, or both update it.
func TestALostRaceIsTriedAgain(t *testing.T) {
	for verb, err := range map[string]error{
		"create": apierrors.NewAlreadyExists(schema.GroupResource{}, api.EtcdClusterCRDName),
		"update": apierrors.NewConflict(schema.GroupResource{}, api.EtcdClusterCRDName, errors.New("modified")),
	} {
		synctest.Test(t, func(t *testing.T) {
			client := fake.NewSimpleClientset()
			if verb == "update" {
				client = fake.NewSimpleClientset(ourCRD(t, ofV094))
			}
			establishLater(t, client, 0)
			failures := 1
			client.PrependReactor(verb, "customresourcedefinitions", func(clienttesting.Action) (bool, runtime.Object, error) {
				failures--
				return failures >= 0, nil, err
			})
			if err := newKeeper(t, client).ensure(t.Context()); err != nil {
				t.Errorf("%s: %v", verb, err)
			}
			if tried := 1 - failures; tried != 2 {
				t.Errorf("%s: tried %d times, want 2", verb, tried)
			}
		})
	}
}

func TestWhatIsForbiddenIsTriedAgainUntilTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := fake.NewSimpleClientset()
		establishLater(t, client, 0)
		granted := time.Now().Add(time.Minute)
		client.PrependReactor("create", "customresourcedefinitions", func(clienttesting.Action) (bool, runtime.Object, error) {
			return time.Now().Before(granted), nil, apierrors.NewForbidden(schema.GroupResource{Resource: "customresourcedefinitions"}, "", errors.New("no role"))
		})
		r := newKeeper(t, client)
		if err := r.register(t.Context()); err == nil || !strings.Contains(err.Error(), "role") || !strings.Contains(err.Error(), "-create-crd=false") {
			t.Errorf("the error does not say what to do: %v", err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		defer cancel()
		if err := r.ensure(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v", err)
		}
		if err := r.ensure(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// /readyz shows why the CRD is not registered, also when somebody has deleted it while the operator runs.
func TestWhyTheCRDCannotBeRegisteredIsSaid(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := fake.NewSimpleClientset()
		var granted atomic.Bool
		client.PrependReactor("create", "customresourcedefinitions", func(clienttesting.Action) (bool, runtime.Object, error) {
			return !granted.Load(), nil, apierrors.NewForbidden(schema.GroupResource{Resource: "customresourcedefinitions"}, "etcdclusters", errors.New("RBAC says no"))
		})
		establishLater(t, client, 2*time.Minute)
		says := &said{}
		k := newKeeper(t, client)
		k.Waiting = says
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() { defer close(ended); k.Keep(ctx) }()
		k.Missing()
		time.Sleep(time.Minute)
		for _, want := range []string{"etcdclusters.etcd.database.coreos.com", "RBAC says no"} {
			if !strings.Contains(says.said(), want) {
				t.Errorf("it says %q and not %q", says.said(), want)
			}
		}
		granted.Store(true)
		time.Sleep(5 * time.Minute)
		if says.said() != "" {
			t.Errorf("the CRD is there, and it says %q", says.said())
		}
		cancel()
		<-ended
	})
}

func TestACRDThatIsNotEstablishedIsExplained(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := fake.NewSimpleClientset(ourCRD(t, func(c *apiextensionsv1.CustomResourceDefinition) {
			c.Status.Conditions = []apiextensionsv1.CustomResourceDefinitionCondition{
				{Type: apiextensionsv1.Established, Status: apiextensionsv1.ConditionFalse, Reason: "NotAccepted"},
				{Type: apiextensionsv1.NamesAccepted, Status: apiextensionsv1.ConditionFalse, Reason: "ShortNamesConflict", Message: `"etcd" is already in use`},
			}
		}))
		err := newKeeper(t, client).awaitEstablished(t.Context())
		if err == nil || !strings.Contains(err.Error(), `"etcd" is already in use`) {
			t.Errorf("got %v", err)
		}
	})
}

// apiServer serves EtcdClusters from a certain time on.
type apiServer struct {
	from  time.Time
	asked int
}

func (s *apiServer) ServerResourcesForGroupVersionWithContext(_ context.Context, groupVersion string) (*metav1.APIResourceList, error) {
	s.asked++
	switch {
	case groupVersion != "etcd.database.coreos.com/v1beta2":
		return nil, errors.New("asked for " + groupVersion)
	case s.asked == 1:
		return nil, errors.New("connection refused")
	case s.asked == 2: // the group has other kinds
		return &metav1.APIResourceList{APIResources: []metav1.APIResource{{Name: "etcdclusters/status"}, {Name: "etcdbackups"}}}, nil
	case time.Now().Before(s.from):
		return nil, apierrors.NewNotFound(schema.GroupResource{}, "")
	default:
		return &metav1.APIResourceList{APIResources: []metav1.APIResource{{Name: "etcdclusters/status"}, {Name: "etcdclusters"}}}, nil
	}
}

func TestWithoutCreateCRDTheOperatorWaitsForIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		if err := newKeeper(t, fake.NewSimpleClientset()).awaitServed(t.Context(), &apiServer{from: start.Add(time.Hour)}); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(start); took < time.Hour || took > time.Hour+servedPoll {
			t.Errorf("waited %s for what takes an hour", took)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if err := newKeeper(t, fake.NewSimpleClientset()).awaitServed(ctx, &apiServer{from: time.Now().Add(time.Hour)}); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v", err)
		}
	})
}
