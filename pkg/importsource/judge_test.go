// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package importsource

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/etcd"
	"github.com/etcd-operator/etcd-operator/pkg/finding"
)

// good are the facts of three members without any obstacle.
func good() Facts {
	f := Facts{ClusterVersion: version("3.6.0"), DataRevision: 20}
	for i := range uint64(3) {
		f.Members = append(f.Members, etcd.Member{ID: i + 1, Name: fmt.Sprint("etcd-", i), PeerURLs: []string{fmt.Sprintf("http://etcd-%d.etcd.old.svc:2380", i)}})
		f.Answers = append(f.Answers, Answer{
			Endpoint: fmt.Sprintf("http://etcd-%d.etcd:2379", i),
			Status:   etcd.Status{MemberID: i + 1, ClusterID: 8, LeaderID: 2, Version: "3.6.16", DBSize: 1 << 20, DBQuota: 2 << 30, Revision: 20},
			Digest:   etcd.Digest{Keys: 5},
		})
	}
	return f
}

func version(text string) etcd.Version {
	v, err := etcd.ParseVersion(text)
	if err != nil {
		panic(err)
	}
	return v
}

func taker() Target {
	return Target{Version: version("3.6.16"), Domain: "orders.default.svc", Quota: 2 << 30, Volume: 8 << 30, UserFrom: "--credentials-secret", CertificateFrom: "--tls-secret"}
}

func runs(f *Facts, version string) {
	for i := range f.Answers {
		f.Answers[i].Status.Version = version
	}
}

func TestNothingKeepsAHealthyEtcdFromItsImport(t *testing.T) {
	findings := Judge(good(), taker())
	if finding.Worst(findings) != finding.OK {
		t.Errorf("findings: %+v", findings)
	}
}

func TestEachObstacleIsFoundAlone(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*Facts, *Target)
		level  finding.Level
		want   string
	}{
		"a member is down": {func(f *Facts, _ *Target) { f.Answers = f.Answers[:2] }, finding.Failure, "no endpoint leads to member etcd-2 (3)"},
		"an endpoint needs a user": {func(f *Facts, _ *Target) { f.Answers[0].Err = rpctypes.ErrUserEmpty }, finding.Failure,
			"--credentials-secret"},
		"the password is wrong":    {func(f *Facts, _ *Target) { f.Answers[0].Err = rpctypes.ErrAuthFailed }, finding.Failure, "correct the name and the password"},
		"the user is not root":     {func(f *Facts, _ *Target) { f.Answers[0].Err = rpctypes.ErrPermissionDenied }, finding.Failure, "grant the user the role root"},
		"the certificate is wrong": {func(f *Facts, _ *Target) { f.Answers[0].Err = etcd.ErrTLS }, finding.Failure, "--tls-secret"},
		"two clusters":             {func(f *Facts, _ *Target) { f.Answers[2].Status.ClusterID = 9 }, finding.Failure, "8 at http://etcd-0.etcd:2379 and http://etcd-1.etcd:2379; 9 at"},
		"no quorum":                {func(f *Facts, _ *Target) { f.NotListed = errors.New("no leader") }, finding.Failure, "no quorum agrees"},
		"a learner":                {func(f *Facts, _ *Target) { f.Members[2].Learner = true }, finding.Failure, "etcd-2 (3) is a learner"},
		"one member":               {func(f *Facts, _ *Target) { f.Members, f.Answers = f.Members[:1], f.Answers[:1] }, finding.Warning, "a single member"},
		"no leader":                {func(f *Facts, _ *Target) { f.Answers[0].Status.LeaderID = 0 }, finding.Failure, "do not agree on a leader"},
		"an alarm": {func(f *Facts, _ *Target) {
			for i := range f.Answers {
				f.Answers[i].Status.Alarms = []etcd.Alarm{{MemberID: 10, Type: etcd.AlarmNoSpace}}
			}
		}, finding.Failure, "there are alarms: NOSPACE of member a"},
		"several minors":     {func(f *Facts, _ *Target) { f.Answers[0].Status.Version = "3.5.30" }, finding.Failure, "several minors: 3.5, 3.6"},
		"a downgrade":        {func(f *Facts, _ *Target) { f.ClusterVersion = version("3.5.0") }, finding.Failure, "the cluster's version is 3.5"},
		"no cluster version": {func(f *Facts, _ *Target) { f.NoClusterVersion = errors.New("refused") }, finding.Unknown, "a downgrade runs: refused"},
		"another minor":      {func(_ *Facts, own *Target) { own.Version = version("3.7.3") }, finding.Failure, "set spec.version to a release of 3.6"},
		"no learners":        {func(f *Facts, _ *Target) { runs(f, "3.3.27"); f.ClusterVersion = version("3.3.0") }, finding.Failure, "etcd 3.3.27 has no learners"},
		"an old patch of 3.5": {func(f *Facts, own *Target) {
			runs(f, "3.5.9")
			f.ClusterVersion, own.Version = version("3.5.0"), version("3.5.25")
		}, finding.Warning, "3.5.26 or later"},
		"a smaller quota": {func(_ *Facts, own *Target) { own.Quota = 1 << 30 }, finding.Failure, "--quota-backend-bytes=2147483648"},
		"an unknown quota": {func(f *Facts, _ *Target) {
			for i := range f.Answers {
				f.Answers[i].Status.DBQuota = 0
			}
		}, finding.Unknown, "etcd before 3.6 does not report its quota"},
		"a database above the quota": {func(f *Facts, own *Target) { f.Answers[1].Status.DBSize, own.Volume = 2<<30, 9<<30 }, finding.Failure, "stops all writes"},
		"no volume":                  {func(_ *Facts, own *Target) { own.Volume = 0 }, finding.Warning, "has no volumes"},
		"a volume too small":         {func(_ *Facts, own *Target) { own.Volume = 1 << 19 }, finding.Failure, "request a larger volume"},
		"a volume for one copy":      {func(_ *Facts, own *Target) { own.Volume = 1<<20 + 1 }, finding.Warning, "two copies"},
		"peers on the loopback":      {func(f *Facts, _ *Target) { f.Members[0].PeerURLs[0] = "http://127.0.0.1:2380" }, finding.Failure, "pods can't reach the peer URL http://127.0.0.1:2380"},
		"peers on localhost":         {func(f *Facts, _ *Target) { f.Members[0].PeerURLs[0] = "http://localhost:2380" }, finding.Failure, "pods can't reach"},
		"peers in our domain":        {func(f *Facts, _ *Target) { f.Members[0].PeerURLs[0] = "http://orders-a.orders.default.svc:2380" }, finding.Failure, "own domain"},
		"peers in our whole domain": {func(f *Facts, _ *Target) {
			f.Members[0].PeerURLs[0] = "http://orders-a.orders.default.svc.cluster.local:2380"
		}, finding.Failure, "own domain"},
		"peers with and without TLS":   {func(f *Facts, _ *Target) { f.Members[0].PeerURLs[0] = "https://etcd-0.etcd.old.svc:2380" }, finding.Failure, "others none"},
		"only the EtcdCluster has TLS": {func(_ *Facts, own *Target) { own.PeerTLS = true }, finding.Failure, "omit spec.TLS.static.member.peerSecret"},
		"only the source has TLS":      {func(f *Facts, _ *Target) { secure(f) }, finding.Failure, "the source uses peer TLS"},
		"both have TLS":                {func(f *Facts, own *Target) { secure(f); own.PeerTLS = true }, finding.Unknown, "--peer-auto-tls"},
		"different data":               {func(f *Facts, _ *Target) { f.Answers[1].Digest.Keys = 6 }, finding.Failure, "different data at revision 20"},
		"no data":                      {func(f *Facts, _ *Target) { f.Answers[1].NoDigest = errors.New("timed out") }, finding.Unknown, "timed out"},
		"authentication":               {func(f *Facts, _ *Target) { f.Authentication = true }, finding.Warning, "do not share simple tokens"},
		"authentication with JWT":      {func(f *Facts, own *Target) { f.Authentication, own.AuthToken = true, "jwt,pub-key=x" }, finding.Warning, "uses JWT"},
		"JWT without the key": {func(f *Facts, _ *Target) {
			f.Authentication, f.Token = true, etcd.Token{Known: true, Algorithm: "RS256"}
		}, finding.Failure, "issues tokens as JWT (RS256)"},
		"JWT by another method": {func(f *Facts, own *Target) {
			f.Authentication, f.Token, own.AuthToken = true, etcd.Token{Known: true, Algorithm: "RS256"}, "jwt,pub-key=x,sign-method=ES256"
		}, finding.Failure, "by RS256, and the EtcdCluster by \"ES256\""},
		"JWT by the same method": {func(f *Facts, own *Target) {
			f.Authentication, f.Token, own.AuthToken = true, etcd.Token{Known: true, Algorithm: "RS256"}, "jwt,pub-key=x,sign-method=RS256"
		}, finding.Warning, "uses JWT"},
		"simple tokens, and JWT here": {func(f *Facts, own *Target) {
			f.Authentication, f.Token, own.AuthToken = true, etcd.Token{Known: true}, "jwt,sign-method=RS256"
		}, finding.Failure, "issues simple tokens"},
		"simple tokens":                 {func(f *Facts, _ *Target) { f.Authentication, f.Token = true, etcd.Token{Known: true} }, finding.Warning, "do not share simple tokens"},
		"the own API server":            {func(f *Facts, _ *Target) { f.APIServer = OwnAPIServer }, finding.Failure, "this Kubernetes keeps its own objects there"},
		"another API server":            {func(f *Facts, _ *Target) { f.APIServer = OtherAPIServer }, finding.Warning, "a Kubernetes API server keeps"},
		"nobody knows of an API server": {func(f *Facts, _ *Target) { f.NotSearched = errors.New("denied") }, finding.Unknown, "denied"},
	} {
		f, own := good(), taker()
		test.change(&f, &own)
		findings := Judge(f, own)
		found := slices.ContainsFunc(findings, func(x finding.Finding) bool {
			return x.Level == test.level && strings.Contains(x.Message+"\n"+x.Fix, test.want)
		})
		if !found || finding.Worst(findings) != test.level {
			t.Errorf("%s: want %s %q and nothing worse, got %+v", name, test.level, test.want, findings)
		}
	}
}

func secure(f *Facts) {
	for i := range f.Members {
		f.Members[i].PeerURLs[0] = strings.Replace(f.Members[i].PeerURLs[0], "http:", "https:", 1)
	}
}

func TestATargetIsWhatItsMembersWillRunWith(t *testing.T) {
	obj := &api.EtcdCluster{Spec: api.ClusterSpec{Version: "3.5.30", Pod: &api.PodPolicy{
		EtcdEnv:   []corev1.EnvVar{{Name: "ETCD_QUOTA_BACKEND_BYTES", Value: "5"}, {Name: "ETCD_AUTH_TOKEN", Value: "jwt"}},
		ExtraArgs: []string{"--quota-backend-bytes=7"},
		PersistentVolumeClaimSpec: &corev1.PersistentVolumeClaimSpec{Resources: corev1.VolumeResourceRequirements{
			Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")},
		}},
	}}}
	obj.Name = "orders"
	got, err := TargetOf(obj, "prod")
	if err != nil {
		t.Fatal(err)
	}
	if want := (Target{Version: version("3.5.30"), Domain: "orders.prod.svc", Quota: 7, Volume: 1 << 30, AuthToken: "jwt"}); got.Domain != want.Domain ||
		got.Quota != want.Quota || got.Volume != want.Volume || got.AuthToken != want.AuthToken || got.PeerTLS || !got.Version.EQ(want.Version.Version) {
		t.Errorf("target %+v, want %+v", got, want)
	}
	if got, err := TargetOf(&api.EtcdCluster{}, "prod"); err != nil || got.Quota != 2<<30 || got.Volume != 0 {
		t.Errorf("an EtcdCluster without a spec: %+v, %v", got, err)
	}
}

// copier is a target that starts on a copy.
func copier() Target {
	own := taker()
	own.Copies, own.Version = true, version("3.7.3")
	return own
}

// measured are good facts with the speed of a snapshot.
func measured() Facts {
	f := good()
	f.Yield = Yield{Bytes: 1 << 18, Took: time.Second}
	return f
}

// What keeps members from joining is no obstacle to a copy, unless the data would suffer.
func TestWhatKeepsAnEtcdFromACopy(t *testing.T) {
	fence := etcd.Alarm{MemberID: 99, Type: etcd.AlarmCorrupt}
	for name, test := range map[string]struct {
		change func(*Facts, *Target)
		level  finding.Level
		want   string
	}{
		"nothing":                {func(*Facts, *Target) {}, finding.OK, "nobody can write for about 22 s after the commit: 10 s, and 3 times"},
		"the same minor":         {func(_ *Facts, own *Target) { own.Version = version("3.6.16") }, finding.OK, "etcd 3.6.16 starts on data of 3.6"},
		"the next minor":         {func(*Facts, *Target) {}, finding.OK, "etcd 3.7.3 starts on data of 3.6"},
		"an earlier minor":       {func(_ *Facts, own *Target) { own.Version = version("3.5.35") }, finding.Failure, "the data does not fit"},
		"no learners":            {func(f *Facts, _ *Target) { runs(f, "3.3.27"); f.ClusterVersion = version("3.3.0") }, finding.Failure, "has no learners"},
		"peers on the loopback":  {func(f *Facts, _ *Target) { f.Members[0].PeerURLs[0] = "http://127.0.0.1:2380" }, finding.OK, "nobody can write"},
		"peer TLS of the source": {func(f *Facts, _ *Target) { secure(f) }, finding.OK, "nobody can write"},
		"tokens that need a key": {func(f *Facts, _ *Target) {
			f.Authentication, f.Token = true, etcd.Token{Known: true, Algorithm: "RS256"}
		}, finding.Warning, "clients log in again"},
		"a learner":        {func(f *Facts, _ *Target) { f.Members[2].Learner = true }, finding.OK, "nobody can write"},
		"a member is down": {func(f *Facts, _ *Target) { f.Answers = f.Answers[:2] }, finding.Warning, "no endpoint leads to member etcd-2 (3)"},
		"no quorum":        {func(f *Facts, _ *Target) { f.NotListed = errors.New("no leader") }, finding.Failure, "no quorum agrees"},
		"a smaller quota":  {func(_ *Facts, own *Target) { own.Quota = 1 << 30 }, finding.Warning, "the source's quota is"},
		"a database near the usual quota": {func(f *Facts, own *Target) {
			runs(f, "3.5.35")
			f.ClusterVersion, f.Answers[1].Status.DBSize, own.Quota = version("3.5.0"), 1900<<20, 8<<30
			for i := range f.Answers {
				f.Answers[i].Status.DBQuota = 0
			}
		}, finding.Warning, "make room in the source before the commit"},
		"a database above it": {func(f *Facts, own *Target) { f.Answers[1].Status.DBSize, own.Volume = 2<<30, 9<<30 }, finding.Failure, "stops all writes"},
		"an alarm":            {func(f *Facts, _ *Target) { f.Answers[0].Status.Alarms = []etcd.Alarm{fence} }, finding.Failure, "CORRUPT of member 63"},
		"its own alarm":       {func(f *Facts, own *Target) { f.Answers[0].Status.Alarms, own.Fence = []etcd.Alarm{fence}, fence }, finding.OK, "nobody can write"},
		"different data":      {func(f *Facts, _ *Target) { f.Answers[1].Digest.Keys = 6 }, finding.Failure, "hold different data"},
		"our API server":      {func(f *Facts, _ *Target) { f.APIServer = OwnAPIServer }, finding.Failure, "this Kubernetes keeps"},
		"nobody has measured": {func(f *Facts, _ *Target) { f.Yield, f.NotYielded = Yield{}, errors.New("too slow") }, finding.Unknown, "how long nobody can write: too slow"},
	} {
		f, own := measured(), copier()
		test.change(&f, &own)
		findings := Judge(f, own)
		said := slices.ContainsFunc(findings, func(x finding.Finding) bool {
			return strings.Contains(x.Message+x.Fix, test.want) && x.Level == test.level
		})
		if failed := finding.Worst(findings) == finding.Failure; !said || failed != (test.level == finding.Failure) {
			t.Errorf("%s: %+v", name, findings)
		}
	}
}

func TestMisfits(t *testing.T) {
	own := copier() // of 3.7
	for _, tc := range []struct {
		version string
		size    int64
		change  func(*Target)
		want    string
	}{
		{"3.6.16", 1 << 20, func(*Target) {}, ""},
		{"3.7.3", 1 << 20, func(*Target) {}, ""},
		{"", 0, func(*Target) {}, ""},
		{"3.8.0", 1 << 20, func(*Target) {}, "set the cluster's version to 3.8 or later"},
		{"3.6.16", 1 << 20, func(t *Target) { t.Version = version("3.5.35") }, "set the cluster's version to 3.6 or later"},
		{"3.6.16", own.Quota, func(t *Target) { t.Volume = 9 << 30 }, "a member of the EtcdCluster stops all writes at"},
		{"3.6.16", 2 << 20, func(t *Target) { t.Volume = 1 << 20 }, "a volume has 1048576 bytes, and the database 2097152"},
		{"3.6.16", 2 << 20, func(t *Target) { t.Volume = 0 }, ""},
	} {
		target := own
		tc.change(&target)
		var got []string
		for _, f := range Misfits(tc.version, tc.size, target) {
			if f.Level == finding.Failure {
				got = append(got, f.Message)
			}
		}
		if said := strings.Join(got, "; "); (tc.want == "") != (said == "") || !strings.Contains(said, tc.want) {
			t.Errorf("%s, %d bytes: %q, want %q", tc.version, tc.size, said, tc.want)
		}
	}
}
