// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.etcd.io/etcd/api/v3/etcdserverpb"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"

	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/certsecret"
	"github.com/etcd-operator/etcd-operator/pkg/cluster/plan"
	"github.com/etcd-operator/etcd-operator/pkg/etcd"
	"github.com/etcd-operator/etcd-operator/pkg/etcd/etcdtest"
	"github.com/etcd-operator/etcd-operator/pkg/manifest"
)

// put creates a Secret or takes the place of the one of its name.
func (w *world) put(secrets ...*corev1.Secret) {
	w.t.Helper()
	resource := corev1.SchemeGroupVersion.WithResource("secrets")
	for _, s := range secrets {
		s = s.DeepCopy()
		s.ResourceVersion = w.nextVersion()
		err := w.kube.Tracker().Create(resource, s, s.Namespace)
		if apierrors.IsAlreadyExists(err) {
			err = w.kube.Tracker().Update(resource, s, s.Namespace)
		}
		if err != nil {
			w.t.Fatal(err)
		}
	}
}

func (w *world) putAll(secrets map[string]*corev1.Secret) {
	w.t.Helper()
	for _, s := range secrets {
		w.put(s)
	}
}

func TestAClusterWaitsForItsSecretsAndStartsWithThem(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, clock.RealClock{}, tlsCluster())
		secrets := goodSecrets(etcdtest.NewCA(t, "ca"))
		w.put(secrets["peer"], secrets["operator"])
		c := w.cluster(tlsCluster())
		defer run(t, c)()
		settle(w, c)
		st := w.etcdCluster().Status
		if len(w.storedPods()) > 0 || st.Phase != api.ClusterPhaseNone {
			t.Fatalf("phase %q, %d pods without their Secret", st.Phase, len(w.storedPods()))
		}
		for what, text := range map[string]string{
			"reason":            st.Reason,
			"Available":         conditionOf(st, available),
			"CertificatesValid": conditionOf(st, api.ClusterConditionCertificatesValid),
		} {
			if !strings.Contains(text, "Secret servers (spec.TLS.static.member.serverSecret) does not exist") || !strings.Contains(text, "server-ca.crt") {
				t.Errorf("%s: %q", what, text)
			}
		}
		if !w.Told("Certificate Problem: Secret Missing: Secret servers") || w.Told("Spec Refused") {
			t.Errorf("events %q", w.Events())
		}
		if writes := w.count("update", "etcdclusters"); writes > 1 {
			t.Errorf("the status was written %d times", writes)
		}

		w.put(secrets["server"])
		time.Sleep(Period + certRetry)
		synctest.Wait()
		settle(w, c)
		st = w.etcdCluster().Status
		if len(w.storedPods()) != 3 || st.Reason != "" || !strings.HasPrefix(conditionOf(st, api.ClusterConditionCertificatesValid), "True / Certificates valid") {
			t.Errorf("%d pods, reason %q, %s", len(w.storedPods()), st.Reason, conditionOf(st, api.ClusterConditionCertificatesValid))
		}
		if !w.Told("Certificates Valid: ") {
			t.Errorf("events %q", w.Events())
		}
	})
}

// series are the values of a gauge by its labels.
func series(t *testing.T, c prometheus.Collector) map[string]float64 {
	t.Helper()
	reg := prometheus.NewPedanticRegistry()
	if err := reg.Register(c); err != nil {
		t.Fatal(err)
	}
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	values := map[string]float64{}
	for _, family := range families {
		for _, m := range family.GetMetric() {
			var labels []string
			for _, l := range m.GetLabel() {
				labels = append(labels, l.GetValue())
			}
			values[strings.Join(labels, " ")] = m.GetGauge().GetValue()
		}
	}
	return values
}

func TestSecretsAreReadEveryThirtySecondsAndMetricsFollow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		obj := tlsCluster()
		obj.Spec.Paused = true
		w := newWorld(t, clock.RealClock{}, obj)
		ca := etcdtest.NewCA(t, "ca")
		secrets := goodSecrets(ca)
		w.putAll(secrets)
		c := w.cluster(obj)
		stop := run(t, c)
		for range 100 {
			c.Wake()
			synctest.Wait()
		}
		if n := w.count("get", "secrets"); n != 3 {
			t.Errorf("%d reads at the start", n)
		}
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		// With the first pass after thirty seconds each.
		if n, want := w.count("get", "secrets"), 3*(1+int(10*time.Minute/(4*Period))); n != want {
			t.Errorf("%d reads in ten minutes, want %d", n, want)
		}
		if n := w.count("list", "secrets") + w.count("watch", "secrets"); n > 0 {
			t.Errorf("Secrets were listed or watched")
		}
		gauge := c.cfg.Metrics.certificateExpiry
		if got := series(t, gauge); len(got) != 3 {
			t.Errorf("series %v", got)
		}
		soon := time.Now().Add(48 * time.Hour).Truncate(time.Second)
		w.put(certificateSecret(serverUse, certsecret.CertManager, "servers", ca, etcdtest.Leaf{DNS: memberNames, To: soon}, ca))
		time.Sleep(certPeriod + Period)
		synctest.Wait()
		if got := series(t, gauge); got["server c ns"] != float64(soon.Unix()) {
			t.Errorf("series %v, want %d for the server", got, soon.Unix())
		}
		if c.certForms.Server != certsecret.CertManager || c.certForms.Peer != certsecret.Static {
			t.Errorf("forms %+v", c.certForms)
		}
		if got := conditionOf(w.etcdCluster().Status, api.ClusterConditionCertificatesValid); !strings.HasPrefix(got, "False / Certificate Expiring / Secret servers") {
			t.Error(got)
		}
		stop()
		if got := series(t, gauge); len(got) != 0 {
			t.Errorf("series %v of a cluster that is gone", got)
		}
	})
}

func TestASecretThatBecomesUnusableTakesNothingFromWhatIsInUse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, clock.RealClock{}, tlsCluster())
		secrets := goodSecrets(etcdtest.NewCA(t, "ca"))
		w.putAll(secrets)
		c := w.cluster(tlsCluster())
		look := func() *plan.Observation {
			t.Helper()
			time.Sleep(certPeriod)
			o := &plan.Observation{Now: time.Now(), Names: manifest.NamesOf(c.obj), Spec: c.obj.Spec}
			if err := c.observeCertificates(t.Context(), o); err != nil {
				t.Fatal(err)
			}
			return o
		}
		before := look()
		dialled := c.certs.dialled
		if dialled == nil || before.Certificates.CaDigest == "" || before.Blind != "" {
			t.Fatalf("%+v", before.Certificates)
		}
		broken := secrets["operator"].DeepCopy()
		broken.Data["etcd-client.key"] = []byte("garbage")
		w.put(broken)
		for _, name := range []string{"peers", "servers"} {
			if err := w.kube.Tracker().Delete(corev1.SchemeGroupVersion.WithResource("secrets"), "ns", name); err != nil {
				t.Fatal(err)
			}
		}
		after := look()
		if c.certs.dialled != dialled || after.Blind != "" {
			t.Errorf("the operator dropped the certificate that it had: %s", after.Blind)
		}
		if after.Certificates.CaDigest != before.Certificates.CaDigest {
			t.Error("the digest changed: members would be restarted into nothing")
		}
		if len(after.Certificates.Problems) != 3 || after.Certificates.Hold(false) == "" {
			t.Errorf("problems %+v", after.Certificates.Problems)
		}

		// Another operator, which has never read them, takes nothing to have changed.
		c = w.cluster(tlsCluster())
		fresh := look()
		if !fresh.Certificates.UnknownCAs() || !strings.Contains(fresh.Blind, "etcd-client.key") {
			t.Errorf("digest %q, blind: %q", fresh.Certificates.CaDigest, fresh.Blind)
		}
	})
}

func TestASecretThatTheOperatorMayNotRead(t *testing.T) {
	w := newWorld(t, clocktesting.NewFakeClock(noon), tlsCluster())
	w.kube.PrependReactor("get", "secrets", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, apierrors.NewForbidden(corev1.Resource("secrets"), "peers", errors.New("no"))
	})
	c := w.cluster(tlsCluster())
	o, err := c.observe(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if got := o.Certificates.Hold(false); !strings.Contains(got, "grant its service account") {
		t.Errorf("it holds because: %q", got)
	}
}

func TestASecretThatCanNotBeReadJustNowChangesNothing(t *testing.T) {
	w := newWorld(t, clocktesting.NewFakeClock(noon), tlsCluster())
	w.kube.PrependReactor("get", "secrets", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, apierrors.NewTimeoutError("busy", 1)
	})
	if _, err := w.cluster(tlsCluster()).observe(t.Context()); err == nil || !strings.Contains(err.Error(), "read Secret") {
		t.Errorf("error %v", err)
	}
}

// An API server whose key management is down gives no Secrets, for hours perhaps.
func TestSecretsThatCanNotBeReadAnyMoreStopNothing(t *testing.T) {
	fake := clocktesting.NewFakeClock(time.Now())
	w := newWorld(t, fake, tlsCluster())
	ca := etcdtest.NewCA(t, "ca")
	secrets := goodSecrets(ca)
	secrets["server"] = certificateSecret(serverUse, certsecret.Static, "servers", ca, etcdtest.Leaf{DNS: memberNames, To: fake.Now().Add(48 * time.Hour)}, ca)
	w.putAll(secrets)
	c := w.cluster(tlsCluster())
	look := func() *plan.Observation {
		t.Helper()
		fake.Step(certPeriod)
		o, err := c.observe(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return o
	}
	reasons := func(o *plan.Observation) (all []string) {
		for _, p := range o.Certificates.Problems {
			all = append(all, p.Reason)
		}
		return all
	}
	before := look()
	dialled := c.certs.dialled
	down, tries := true, 0
	w.kube.PrependReactor("get", "secrets", func(clienttesting.Action) (bool, runtime.Object, error) {
		tries++
		return down, nil, apierrors.NewInternalError(fmt.Errorf("try %d: key management is down", tries))
	})
	after := look()
	if got, want := reasons(after), []string{"Secret Not Read", "Secret Not Read", "Secret Not Read", "Certificate Expiring"}; !slices.Equal(got, want) {
		t.Errorf("problems %q, want %q", got, want)
	}
	if why := after.Certificates.Problems[0].Why; !strings.Contains(why, "Secret peers (spec.TLS.static.member.peerSecret)") || !strings.Contains(why, "InternalError") {
		t.Errorf("it says %q", why)
	}
	if after.Certificates.Hold(true) != "" || after.Blind != "" || after.Certificates.CaDigest != before.Certificates.CaDigest || c.certs.dialled != dialled {
		t.Errorf("it continues with less than it had: %+v, blind: %q", after.Certificates, after.Blind)
	}
	if len(after.Certificates.Expiries) != 3 {
		t.Errorf("dates %v", after.Certificates.Expiries)
	}
	if again := look(); !slices.Equal(again.Certificates.Problems, after.Certificates.Problems) {
		t.Errorf("the same is reported in other words: %v", again.Certificates.Problems)
	}

	// The operator does not forget the problem that holds pods back.
	down = false
	if err := w.kube.Tracker().Delete(corev1.SchemeGroupVersion.WithResource("secrets"), "ns", "peers"); err != nil {
		t.Fatal(err)
	}
	look()
	down = true
	if o := look(); !strings.Contains(o.Certificates.Hold(false), "Secret peers (spec.TLS.static.member.peerSecret) does not exist") {
		t.Errorf("problems %v", o.Certificates.Problems)
	}
	down = false
	w.put(secrets["peer"])
	if o := look(); !slices.Equal(reasons(o), []string{"Certificate Expiring"}) {
		t.Errorf("problems %+v", o.Certificates.Problems)
	}
}

// The operator always uses the current certificate of its Secret, also on existing connections.
// It asks a member that refuses the certificate again as soon as there is another.
func TestTheOperatorTakesUpANewCertificate(t *testing.T) {
	ca, other := etcdtest.NewCA(t, "ca"), etcdtest.NewCA(t, "other")
	fake := clocktesting.NewFakeClock(time.Now())
	w := newWorld(t, fake, tlsCluster())
	secrets := goodSecrets(ca)
	w.putAll(secrets)
	w.put(certificateSecret(operatorUse, certsecret.Static, "operators", other, etcdtest.Leaf{}, ca))
	c := w.cluster(tlsCluster())
	t.Cleanup(c.etcd.Close)
	serves, err := serve(serverUse.Files, secrets["server"])
	if err != nil {
		t.Fatal(err)
	}
	m := (&etcdtest.Member{TLS: serves, Status: &etcdserverpb.StatusResponse{Version: "3.6.16"}}).Start(t)
	status := func() error {
		o := &plan.Observation{Now: fake.Now(), Names: manifest.NamesOf(c.obj), Spec: c.obj.Spec}
		if err := c.observeCertificates(t.Context(), o); err != nil {
			t.Fatal(err)
		}
		conn, err := c.conn(o, etcd.Endpoint{URL: "https://c-a.c.ns.svc:" + m.Port, IP: m.IP})
		if err != nil {
			return err
		}
		_, err = conn.Status(t.Context())
		c.seeTLS(o, []answer{{err: err}})
		if (err != nil) != (o.Blind != "") {
			t.Errorf("error %v, blind: %q", err, o.Blind)
		}
		return err
	}
	if err := status(); !etcd.IsTLSFailure(err) {
		t.Fatalf("a stranger's status: %v", err)
	}
	w.put(secrets["operator"])
	fake.Step(certRetry)
	if err := status(); err != nil {
		t.Fatalf("with the new certificate: %v", err)
	}
	w.put(certificateSecret(operatorUse, certsecret.Static, "operators", other, etcdtest.Leaf{}, ca))
	fake.Step(certRetry)
	if err := status(); err != nil {
		t.Fatalf("the Secret was read though nothing was wrong: %v", err)
	}
	fake.Step(certPeriod)
	if err := status(); !etcd.IsTLSFailure(err) {
		t.Fatalf("with a stranger's certificate: %v", err)
	}
}

func TestBlindnessIsNotTakenForALostQuorum(t *testing.T) {
	for name, c := range map[string]struct {
		ready int
		want  string
	}{
		"a quorum of pods is ready": {2, "Unknown / Operator can't connect / The operator can't connect to the members and changes none of them: bad certificate; Kubernetes finds 2 of 3 ready"},
		"no quorum of pods is":      {1, "False / Operator can't connect / "},
	} {
		o := look(t, "cluster size=3 no-quorum\nmember a unheard\nmember b unheard\nmember c unheard")
		o.Members, o.Blind, o.Status.Size = nil, "bad certificate", 3
		for i := range o.Pods {
			o.Pods[i].Ready = i < c.ready
		}
		st := statusAfter(o, plan.Plan(o), 1)
		if got := conditionOf(st, available); !strings.HasPrefix(got, c.want) {
			t.Errorf("%s: %s", name, got)
		}
		if st.Phase != api.ClusterPhaseRunning || st.Size != 3 {
			t.Errorf("%s: phase %s, size %d", name, st.Phase, st.Size)
		}
	}
}

// A node may be down while members refuse the operator. The others may serve, and no quorum is lost.
func TestARefusedCertificateCountsBesideASilentMember(t *testing.T) {
	refuses := fmt.Errorf("status of c: %w: the member refuses the operator's: expired certificate", etcd.ErrTLS)
	silent, answers := errors.New("no answer"), error(nil)
	for name, c := range map[string]struct {
		errs   []error
		refuse string // the member that the operator names; "": it is not blind
	}{
		"all refuse":                    {[]error{refuses, refuses, refuses}, "a"},
		"a quorum may refuse":           {[]error{silent, refuses, refuses}, "b"},
		"those that refuse are too few": {[]error{silent, silent, refuses}, ""},
		"one answers":                   {[]error{answers, refuses, refuses}, ""},
		"none refuses":                  {[]error{silent, silent, silent}, ""},
		"the others do not run":         {[]error{refuses}, "a"},
	} {
		cluster := newWorld(t, clocktesting.NewFakeClock(noon), tlsCluster()).cluster(tlsCluster())
		o := &plan.Observation{Status: api.ClusterStatus{Phase: api.ClusterPhaseRunning, Size: 3}}
		var list []answer
		for i, err := range c.errs {
			list = append(list, answer{pod: manifest.PodState{Name: string(rune('a' + i))}, err: err})
		}
		cluster.seeTLS(o, list)
		want := ""
		if c.refuse != "" {
			want = "the TLS handshake with " + c.refuse + " failed: the member refuses the operator's: expired certificate"
		}
		if o.Blind != want {
			t.Errorf("%s: blind: %q, want %q", name, o.Blind, want)
		}
	}
}

func TestBlindnessIsToldOnceAndSoIsItsEnd(t *testing.T) {
	w := newWorld(t, clocktesting.NewFakeClock(noon), tlsCluster())
	c := w.cluster(tlsCluster())
	with := func(status corev1.ConditionStatus) api.ClusterStatus {
		return api.ClusterStatus{Phase: api.ClusterPhaseRunning, Conditions: []api.ClusterCondition{{Type: available, Status: status, Message: "message"}}}
	}
	serves, blind, lost := with(corev1.ConditionTrue), with(corev1.ConditionUnknown), with(corev1.ConditionFalse)
	for _, change := range [][2]api.ClusterStatus{{serves, blind}, {blind, blind}, {blind, serves}} {
		c.notices.statusChanged(change[0], change[1])
	}
	if got := strings.Join(w.Events(), "\n"); got != "Cannot Connect: message\nConnected Again: The operator can connect to the members again: a quorum serves" {
		t.Errorf("events:\n%s", got)
	}
	c.notices.statusChanged(blind, lost)
	if !w.Told("Quorum Lost: ") {
		t.Errorf("a quorum that was lost out of sight is not reported: %q", w.Events())
	}
}

// runningPod is the pod of a member on a volume, as the operator makes it now.
func (w *world) runningPod(c *Cluster, name string) {
	w.t.Helper()
	pod, err := c.podOf(w.t.Context(), manifest.MemberPod{Name: name, Version: "3.6.16", Volume: true, Rejoins: true})
	if err != nil {
		w.t.Fatal(err)
	}
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: manifest.EtcdContainer, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}}
	pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
	if err := w.kube.CoreV1().Pods("ns").Delete(w.t.Context(), name, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
		w.t.Fatal(err)
	}
	pod.UID = types.UID(name + w.nextVersion())
	w.makePod(pod)
}

// cert-manager with a new key for the CA exchanges the CA and the certificate at once. The operator restarted
// the first member, which no other one accepted any more, and replaced it after ten minutes, again and again.
func TestAMemberRestartsOnlyIfTheOthersAcceptItsCertificate(t *testing.T) {
	a, b := etcdtest.NewCA(t, "ca"), etcdtest.NewCA(t, "ca")
	renewed := a.SignedBy(a)
	fake := clocktesting.NewFakeClock(time.Now())
	obj := tlsCluster()
	obj.Spec.Pod = &api.PodPolicy{PersistentVolumeClaimSpec: &corev1.PersistentVolumeClaimSpec{}}
	w := newWorld(t, fake, obj)
	w.putAll(goodSecrets(a))
	c := w.cluster(obj)
	after := certPeriod
	quorum := false // in which all pods are members
	look := func(secret *corev1.Secret) *plan.Observation {
		t.Helper()
		if secret != nil {
			w.put(secret)
		}
		fake.Step(after)
		w.watch()
		o := &plan.Observation{Now: fake.Now(), Names: manifest.NamesOf(obj), Spec: obj.Spec}
		err := c.observeCertificates(t.Context(), o)
		if err == nil {
			o.Template, err = c.template()
		}
		if err == nil {
			err = c.observePods(t.Context(), o)
		}
		if err != nil {
			t.Fatal(err)
		}
		for i := 0; quorum && i < len(o.Pods); i++ {
			p := &o.Pods[i]
			o.Quorum, o.Members = true, append(o.Members, plan.MemberState{Member: etcd.Member{ID: uint64(i + 1)}, PodName: p.Name, Pod: p,
				Volume: &manifest.VolumeState{Name: p.Name}, Status: &etcd.Status{LeaderID: 1}})
		}
		c.judgeMembers(o)
		for _, p := range o.Pods {
			if p.MetadataOutdated {
				if err := c.setMetadata(t.Context(), plan.SetMetadata{Pod: p.Name, UID: p.UID, Template: o.Template}); err != nil {
					t.Fatal(err)
				}
			}
		}
		return o
	}
	// next is the step of three members that are well, with what was seen of the certificates.
	next := func(o *plan.Observation) plan.Step {
		world := healthyPods(t, "cluster size=3 storage=1Gi template="+o.Template.Pod, o.Pods)
		world.Certificates = o.Certificates
		return plan.Plan(world)
	}
	peer := func(by *etcdtest.CA, trusts ...*etcdtest.CA) *corev1.Secret {
		return certificateSecret(peerUse, certsecret.Static, "peers", by, etcdtest.Leaf{DNS: memberNames}, trusts...)
	}
	all := func() {
		for _, name := range []string{"a", "b", "c"} {
			w.runningPod(c, name)
		}
	}
	check := func(what string, o *plan.Observation, held, restarts bool) {
		t.Helper()
		if (o.Certificates.MembersHeld != "") != held || (len(o.Certificates.Problems) > 0) != held {
			t.Errorf("%s: held %q, problems %+v", what, o.Certificates.MembersHeld, o.Certificates.Problems)
		}
		if _, recycles := next(o).(plan.RecyclePod); recycles != restarts {
			t.Errorf("%s: %s", what, next(o))
		}
	}

	look(nil)
	all()
	o := look(nil)
	first := o.Template.Pod
	check("nothing changes", o, false, false)
	check("the certificate is renewed", look(peer(a, a)), false, false)
	check("the CA is renewed with its key", look(peer(a, renewed)), false, true)

	o = look(peer(b, b))
	check("another CA in one step", o, true, false)
	for _, words := range []string{"Secret peers", "peer.crt", "both CAs in peer-ca.crt", "kubectl delete pods -n ns -l etcd_cluster=c)"} {
		if !strings.Contains(o.Certificates.MembersHeld, words) {
			t.Errorf("it does not say %q: %s", words, o.Certificates.MembersHeld)
		}
	}
	if again := look(nil); again.Certificates.MembersHeld != o.Certificates.MembersHeld {
		t.Errorf("other words: %s", again.Certificates.MembersHeld)
	}
	w.runningPod(c, "b") // one is lost, and returns with the new CA
	check("one member has restarted", look(nil), true, false)
	w.editPod("a", func(pod *corev1.Pod) { pod.Status.ContainerStatuses[0].RestartCount++ })
	check("two members have restarted", look(nil), true, false)
	check("the former CA before the new one", look(peer(a, b)), true, false)

	w.runningPod(c, "a")
	w.runningPod(c, "c")
	look(peer(b, b))
	all()
	check("all members have restarted", look(nil), false, false)

	// Somebody deletes all pods at once after an exchange. They are back before the operator has read the Secret.
	look(nil)
	w.put(peer(a, a))
	all()
	after = time.Second
	look(nil)
	look(nil)
	after = certPeriod
	check("pods that have read what the operator had not", look(nil), false, true)
	check("and later", look(nil), false, true)
	w.put(peer(b, b))
	look(nil)
	all()
	check("all members have restarted again", look(nil), false, false)

	// In three steps.
	look(nil)
	check("both CAs", look(peer(b, b, a)), false, true)
	check("the certificate of the new CA too early", look(peer(a, b, a)), true, false)
	// c has yet to restart. That ends the hold, unless it would not know the CA either.
	quorum = true
	look(peer(b, b, a))
	w.runningPod(c, "a")
	w.runningPod(c, "b")
	look(nil)
	check("two know both", look(nil), false, true)
	o = look(peer(a, b, a))
	check("the certificate of the new CA before the last member has restarted", o, true, true)
	if step, ok := next(o).(plan.RecyclePod); !ok || step.Name != "c" || !strings.Contains(o.Certificates.MembersHeld, "the operator restarts c") {
		t.Errorf("%s: %s", next(o), o.Certificates.MembersHeld)
	}
	const byHand = "kubectl delete pod -n ns c)"
	edited := (&plan.Observation{}).Certificates
	edited.HoldMembers(c.certs.held["peer"], o.Names, "", []string{"c"}, true)
	if !strings.Contains(o.Certificates.MembersHeld, byHand) || strings.Contains(edited.MembersHeld, byHand) {
		t.Errorf("%s; and after an edit: %s", o.Certificates.MembersHeld, edited.MembersHeld)
	}
	chain := peer(a, etcdtest.NewCA(t, "third"))
	chain.Data["peer.crt"] = slices.Concat(chain.Data["peer.crt"], a.PEM)
	check("that certificate, with which no restarted member would agree", look(chain), true, false)
	look(peer(a, b, a))
	w.runningPod(c, "c")
	check("the last member has restarted", look(nil), false, false)
	quorum = false

	look(peer(b, b, a))
	all()
	look(nil)
	check("all know both", look(nil), false, false)
	check("the certificate of the new CA", look(peer(a, b, a)), false, false)
	last := look(peer(a, a))
	check("the new CA alone", last, false, true)
	if last.Pods[0].PeerCAs == "" {
		t.Error("the operator does not know the CAs of a member")
	}
	if o.Template.Pod == first {
		t.Error("the template does not follow the CAs")
	}
}

// healthyPods is a world of members that are well, on volumes, whose pods have these templates.
func healthyPods(t *testing.T, cluster string, pods []manifest.PodState) *plan.Observation {
	t.Helper()
	world := cluster
	for i, p := range pods {
		world += fmt.Sprintf("\nmember %s template=%s\nvolume %s", p.Name, p.Template.Pod, p.Name)
		if i == 0 {
			world = strings.Replace(world, "member "+p.Name, "member "+p.Name+" leader", 1)
		}
	}
	return look(t, world)
}

// A member without peers follows its Secret at once. One that is cut off from the quorum holds up nothing.
func TestAMemberWithoutConnectionsHoldsUpNothing(t *testing.T) {
	a, b := etcdtest.NewCA(t, "ca"), etcdtest.NewCA(t, "ca")
	for name, c := range map[string]struct {
		size, members int
		quorum        bool
		healthy, left bool // the member, or it is none any more
		held          bool
	}{
		"alone":            {size: 1, members: 1},
		"about to grow":    {size: 3, members: 1, held: true},
		"about to shrink":  {size: 1, members: 2, held: true},
		"cut off":          {size: 3, members: 3, quorum: true},
		"in the quorum":    {size: 3, members: 3, quorum: true, healthy: true, held: true},
		"no member":        {size: 3, members: 3, quorum: true, healthy: true, left: true},
		"without a quorum": {size: 3, members: 3, held: true},
		"nobody knows":     {size: 3, members: 3, left: true, held: true},
	} {
		fake := clocktesting.NewFakeClock(time.Now())
		obj := tlsCluster()
		obj.Spec.Size = c.size
		w := newWorld(t, fake, obj)
		w.putAll(goodSecrets(a))
		cl := w.cluster(obj)
		o := &plan.Observation{Now: fake.Now(), Names: manifest.NamesOf(obj), Spec: obj.Spec, Quorum: c.quorum, Members: make([]plan.MemberState, c.members)}
		if !c.left {
			o.Members[0].PodName = "a"
		}
		if c.healthy {
			o.Members[0].Status = &etcd.Status{LeaderID: 1}
		}
		if err := cl.observeCertificates(t.Context(), o); err != nil {
			t.Fatal(err)
		}
		noted := strings.Join(cl.certs.held["peer"].ID.CAs(), ",")
		o.Pods = []manifest.PodState{{Name: "a", Running: true, Claimed: true, PeerCAs: noted}}
		w.putAll(goodSecrets(b))
		fake.Step(certPeriod)
		o.Now = fake.Now()
		if err := cl.observeCertificates(t.Context(), o); err != nil {
			t.Fatal(err)
		}
		cl.judgeMembers(o)
		if held := o.Certificates.MembersHeld != ""; held != c.held {
			t.Errorf("%s: %q", name, o.Certificates.MembersHeld)
		}
		if o.PeersRefuse() != (c.held && c.members > 1) {
			t.Errorf("%s: they refuse each other: %t", name, o.PeersRefuse())
		}
	}
}
