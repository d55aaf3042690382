// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"cmp"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"

	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/certcheck"
	"github.com/etcd-operator/etcd-operator/pkg/cluster/plan"
	"github.com/etcd-operator/etcd-operator/pkg/etcd"
	"github.com/etcd-operator/etcd-operator/pkg/manifest"
)

var rewrite = flag.Bool("rewrite", false, "rewrite the golden files in testdata")

// TestPlan runs the scripts in testdata/plan. A script is a list of worlds. After each come
// ---- and the planned step, first as logs show it and then with all its fields (inFull):
//
//	# a comment says what the case is about
//	cluster size=3 version=3.6.16 phase=Running …
//	member NAME [learner] [leader] [down|unstarted] [pod=…] [key=value …]
//	pod NAME [key=value …]
//	volume NAME [key=value …]
//	etcdbackup NAME [key=value …]
//	etcdrestore [key=value …]
//	----
//	the step
//	  field=value flag list[0].field=value
//
// go test ./pkg/cluster -run TestPlan -rewrite rewrites the steps.
func TestPlan(t *testing.T) {
	files, err := filepath.Glob("testdata/plan/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no scripts: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			script, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			var out strings.Builder
			for i, c := range strings.Split(strings.TrimSpace(string(script)), "\n\n") {
				world, want, _ := strings.Cut(c, "\n----")
				o, err := parseWorld(world)
				if err != nil {
					t.Fatalf("case %d: %v", i+1, err)
				}
				step := plan.Plan(o)
				got := inFull(step, o.Names)
				if o.Recovery.Chosen != "" || !o.Recovery.LostSince.IsZero() {
					got += recoveryInFull(o, step)
				}
				if got != strings.TrimSpace(want) && !*rewrite {
					t.Errorf("in this world\n%s\nthe plan is\n%s\nand should be%s", world, got, want)
				}
				fmt.Fprintf(&out, "%s\n----\n%s\n\n", world, got)
			}
			if *rewrite {
				if err := os.WriteFile(file, []byte(strings.TrimSuffix(out.String(), "\n")), 0o600); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

// parseWorld builds an observation from a script's text. Members are healthy,
// with a ready pod of the cluster's version, unless the script says otherwise.
func parseWorld(text string) (*plan.Observation, error) {
	o := &plan.Observation{
		Now:         time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC),
		Names:       manifest.Names{Namespace: "ns", Cluster: "c"},
		Gate:        true,
		Quorum:      true,
		PeerService: plan.OwnedObject{Name: "c", UID: "peer", Owned: true}, ClientService: plan.OwnedObject{Name: "c-client", UID: "client", Owned: true},
		Spec:   api.ClusterSpec{Size: 3, Version: "3.6.16"},
		Status: api.ClusterStatus{Phase: api.ClusterPhaseRunning, CurrentVersion: "3.6.16", InitialVersion: "3.6.16"},
	}
	for i := range 10 {
		o.NewNames = append(o.NewNames, fmt.Sprintf("new%d", i+1))
	}
	running, agreed := "", ""
	silent := uint64(0) // leads
	var members []plan.MemberState
	ic := map[string]string{} // of pods, by what the script says
	for line := range strings.SplitSeq(text, "\n") {
		words := strings.Fields(line)
		if len(words) == 0 || strings.HasPrefix(line, "#") {
			continue
		}
		var err error
		switch words[0] {
		case "cluster":
			running, err = parseCluster(o, words[1:])
			agreed = cmp.Or(agreed, running)
			if i := slices.IndexFunc(words, func(w string) bool { return strings.HasPrefix(w, "agreed=") }); i >= 0 {
				agreed = strings.TrimPrefix(words[i], "agreed=")
			}
			if err == nil {
				o.ClusterVersion, err = etcd.ParseVersion(agreed)
			}
		case "member":
			var m plan.MemberState
			var p *manifest.PodState
			m, p, err = parseMember(o, words[1:], running, uint64(len(members)+1), ic)
			members = append(members, m)
			if slices.ContainsFunc(words, func(w string) bool { return strings.HasPrefix(w, "silent=") }) {
				silent = m.ID
			}
			if p != nil {
				o.Pods = append(o.Pods, *p)
			}
		case "pod":
			p := manifest.PodState{Name: words[1], UID: podUID(words[1]), Created: o.Now, ManyLearners: true}
			err = parsePod(o, &p, words[2:], running, ic)
			o.Pods = append(o.Pods, p)
		case "volume":
			err = parseVolume(o, words[1:])
		case "etcdbackup":
			err = parseEtcdBackup(o, words[1:])
		case "etcdrestore":
			err = parseEtcdRestore(o, words[1:])
		default:
			err = fmt.Errorf("unknown line %q", line)
		}
		if err != nil {
			return nil, fmt.Errorf("%q: %w", line, err)
		}
	}
	leader := silent
	for _, m := range members {
		if silent == 0 && m.Status != nil && m.Status.LeaderID == m.ID && !m.Stalled {
			leader = m.ID
		}
	}
	for i := range members {
		if s := members[i].Status; s != nil && o.Quorum && s.LeaderID != 0 {
			s.LeaderID = leader
		}
		if down := members[i].DownSince; !down.IsZero() {
			if o.QuorumReturned.After(down) && members[i].Awaited == 0 {
				down = o.QuorumReturned
			}
			members[i].Awaited = o.Now.Sub(down)
		}
		members[i].Pod = o.Pod(members[i].PodName)
		members[i].Volume = o.Volume(members[i].PodName)
	}
	o.Members = members
	for _, m := range members {
		if m.PodName != "" && !m.Learner && !strings.Contains(text, "uncompared") {
			if o.Import.Proven == nil {
				o.Import.Proven = map[uint64]bool{}
			}
			o.Import.Proven[m.ID] = true
		}
	}
	if err := setScriptRecord(o, text); err != nil {
		return nil, err
	}
	if !o.Outdated() {
		o.ClusterVersion = etcd.Version{} // observe asks for it only then
	}
	if err := setBudget(o, text); err != nil {
		return nil, err
	}
	if err := setBridges(o, text); err != nil {
		return nil, err
	}
	for i := range o.Pods {
		var names []string
		if list := ic[o.Pods[i].Name]; list != "" {
			names = strings.Split(list, ",")
		}
		o.Pods[i].InitialCluster = etcd.InitialCluster{}
		for _, name := range names {
			peerURL := o.Names.PeerURL(name)
			if strings.HasPrefix(name, "old-") { // a former member
				peerURL = "http://" + name + ":2380"
			}
			o.Pods[i].InitialCluster[peerURL] = name
		}
	}
	return o, nil
}

func parseCluster(o *plan.Observation, words []string) (running string, err error) {
	running = "3.6.16"
	for _, w := range words {
		key, value, _ := strings.Cut(w, "=")
		switch key {
		case "size":
			o.Spec.Size, err = strconv.Atoi(value)
		case "version":
			o.Spec.Version = value
		case "running":
			running, o.Status.CurrentVersion = value, value
		case "agreed": // with the members' version
		case "record", "record-index", "record-revision", "record-id", "no-record", "accept", "index", "revision", "id", "went-back": // set once the members are known
		case "initial":
			o.Status.InitialVersion = value
		case "literal-tags": // by an annotation
			o.StatedLiteralTags = true
		case "began": // by a person's word
			o.StatedOrigin = value
		case "log-target":
			o.LogTarget, err = strconv.ParseUint(value, 10, 64)
			o.LogCount = etcd.SnapshotCount
		case "phase":
			o.Status.Phase = api.ClusterPhase(value)
		case "seed":
			o.Status.Members.Unready = []string{value}
		case "auth": // wanted, is, and more
			parseAuth(o, strings.Split(value, ":"))
		case "busybox":
			o.Gate = false
		case "paused":
			o.Spec.Paused = true
		case "ending":
			o.Ending = true
		case "invalid":
			o.Invalid = value
		case "tolerated":
			o.Tolerated = value
		case "certificates":
			// missing: members can't start; untrusted: the operator can't see a new cluster; refused: members refuse each other.
			o.Certificates = certcheck.Certificates{Used: true, Problems: []certcheck.CertProblem{{Why: value, HoldsPods: value == "missing", HoldsStart: value == "untrusted"}}}
			if value == "refused" {
				o.Certificates.MembersHeld = "refused"
			}
		case "accepting": // the certificate of peers, surely
			o.Certificates.Accepting = strings.Split(value, ",")
		case "refusing":
			o.Certificates.Refusing = strings.Split(value, ",")
		case "no-quorum":
			o.Quorum = false
		case "returned": // the quorum, so long ago
			var d time.Duration
			d, err = time.ParseDuration(value)
			o.QuorumReturned = o.Now.Add(-d)
		case "no-peer-service":
			o.PeerService.Owned = false
		case "no-client-service":
			o.ClientService.Owned = false
		case "served": // by a client Service, which may be gone
			o.Status.ServiceName = o.ClientService.Name
		case "peer-service":
			err = parseBelonging(&o.PeerService, value)
		case "client-service":
			err = parseBelonging(&o.ClientService, value)
		case "former-service":
			o.FormerServices = append(o.FormerServices, plan.OwnedObject{Name: value, UID: types.UID("service-" + value), Owned: true})
		case "refused":
			o.Refused = plan.RefusedPods{Why: value, Until: o.Now.Add(time.Second)}
		case "budget", "bridge": // set once the members are known
		case "drainable":
			o.Spec.PodDisruptionBudget = new(false)
		case "template":
			o.Template.Pod = value
		case "volume-template":
			o.Template.Volume = value
		case "storage":
			o.Spec.Pod = &api.PodPolicy{PersistentVolumeClaimSpec: &corev1.PersistentVolumeClaimSpec{}}
			o.Spec.Pod.PersistentVolumeClaimSpec.Resources.Requests = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse(value)}
		case "quorum-since": // so long ago
			var d time.Duration
			d, err = time.ParseDuration(value)
			o.QuorumSince = o.Now.Add(-d)
		case "update-refused":
			o.UpdateRefused, o.UpdatePutOff = "no", true
		case "restore":
			if o.Source = scriptSource(value); value == "unreadable" {
				o.Source, o.SourceUnreadable = nil, "it can't be read"
			}
		case "restored-from":
			o.Status.RestoredFrom = manifest.RestoredFrom(scriptSource(value))
		case "mislabelled": // the spec's image, by the version that it holds
			o.Mislabels = map[string]string{o.Image(o.Spec.Version): value}
		case "lost", "chosen", "choice", "unread", "automatic", "quorum-seen", "watched", "announced", "confirmed", "unconfirmed", "automatic-choice", "created", "learner":
			err = parseRecovery(o, key, value)
		case "votes-undone":
			o.VotesUndone, err = strconv.Atoi(value)
		case "join-singly":
			o.JoinSingly = true
		case "lift-put-off":
			o.LiftPutOff = true
		case "import":
			parseImport(o, strings.Split(value, ":"))
			if source := plan.CopiedFrom(o, "uid", false); source != nil {
				o.Source = source
			}
		case "strangers":
			o.PodsOfOthers, err = strconv.Atoi(value)
		case "ready-strangers":
			o.ReadyPodsOfOthers = strings.Split(value, ",")
			o.PodsOfOthers = len(o.ReadyPodsOfOthers)
		default:
			err = fmt.Errorf("unknown word %q", w)
		}
		if err != nil {
			return "", err
		}
	}
	return running, nil
}

// parseAuth reads whether authentication is wanted and enabled, and what is special about the
// user.
func parseAuth(o *plan.Observation, words []string) {
	o.Spec.Auth = &api.AuthPolicy{CredentialsSecret: "login", Enabled: new(words[0] == "on")}
	o.Auth.Enabled = new(words[1] == "on")
	for _, w := range words[2:] {
		switch w {
		case "new":
			o.Auth.NewPassword = true
		case "unusable":
			o.Auth.Unusable = "it is another user"
		case "unknown":
			o.Auth.Enabled = nil
		case "unset":
			o.Spec.Auth.Enabled = nil
		}
	}
}

// parseImport reads how far an import is. Without the word begun, it has not begun.
func parseImport(o *plan.Observation, words []string) {
	o.Spec.ImportFrom = &api.ImportSource{Endpoints: []string{"http://old-0:2379"}}
	for _, w := range words {
		switch w {
		case "new":
			o.Status.Phase, o.Status.InitialVersion, o.Quorum = api.ClusterPhaseNone, "", false
		case "answers": // an own member does
			o.Quorum, o.Seen.ClusterID = true, 7
		case "checked":
			o.Import.Checked, o.Import.ClusterID, o.Import.Members = true, 7, []etcd.Member{{ID: 1, Name: "old-0"}}
		case "obstacle":
			o.Import.Checked, o.Import.Obstacles = true, []string{"alarms: there are alarms"}
		case "held":
			o.Import.Held = true
		case "begun":
			o.Status.Import = &api.ImportStatus{ClusterID: "7"}
		case "no-secret": // with the client certificate
			o.Import.Problem = "Secret import does not exist: create it"
		case "removed": // by somebody else, a former member on record
			o.Status.Import.Members = append(o.Status.Import.Members, api.ImportedMember{ID: "ff", Name: "old-9"})
		case "copy": // in place of members that join
			o.Spec.ImportFrom.Method, o.Import.Fence = api.ImportCopy, etcd.Alarm{MemberID: 99, Type: etcd.AlarmCorrupt}
		case "joins": // now
			o.Spec.ImportFrom.Method = api.ImportJoin
		case "copies": // has begun
			o.Status.Import = &api.ImportStatus{ClusterID: "7", Method: api.ImportCopy, WriteStop: &api.ImportWriteStop{ExpectedSeconds: 12, DatabaseBytes: 1 << 20}}
		case "open", "fenced", "unfenced", "moved", "corrupt", "full", "full-3.6", "elsewhere": // the etcd to copy answers
			raised := w != "open" && w != "elsewhere"
			o.Import.Source = &plan.CopySource{ClusterID: 7, Revision: 20, Raised: raised, Fenced: raised && w != "unfenced", KeepsFence: w == "full-3.6"}
			switch w {
			case "full", "full-3.6":
				o.Import.Source.Others = []etcd.Alarm{{MemberID: 1, Type: etcd.AlarmNoSpace}}
			case "moved":
				o.Import.Source.Revision = 21
			case "corrupt":
				o.Import.Source.Others = []etcd.Alarm{{MemberID: 1, Type: etcd.AlarmCorrupt}}
			case "elsewhere":
				o.Import.Source.ClusterID = 8
			}
		case "silent": // it does not, for long
			o.Import.Silence, o.Import.SilentFor = "no route", time.Minute
		case "slow":
			o.Import.Silence, o.Import.SilentFor = "no answer within 2s", 8*time.Second
		case "misfits": // it answers, and has changed since the check
			o.Import.Source.Misfits = []string{"version: the data does not fit"}
		case "disarmed": // when it answered last
			o.Import.Disarmed = true
		case "stopping":
			o.Status.Import.WriteStop.BeginDate = "2026-01-01T11:59:00Z"
		case "stopped":
			o.Status.Import.WriteStop.BeginDate, o.Status.Import.WriteStop.Revision = "2026-01-01T11:59:00Z", 20
		case "lapsed":
			o.Status.Import.WriteStop.Lapsed = true
		case "taking-back":
			o.Status.Import.Phase = api.ImportTakingBack
		case "unnamed": // the field is gone
			o.Spec.ImportFrom = nil
		case "commit":
			o.Spec.ImportFrom.Commit = true
		case "committed":
			o.Spec.ImportFrom.Commit, o.Status.Import.CommitDate = true, "2026-01-01T11:00:00Z"
		case "complete":
			o.Status.Import.CompletionDate = "2026-01-01T11:00:00Z"
		}
	}
}

// podUID is the UID of a pod of a script. A volume or a Service of the same name has
// another.
func podUID(name string) types.UID { return types.UID("pod-" + name) }

// scriptSource returns the backup of that name in scripts. After the name may come a colon, and
// large or moved (to another server).
func scriptSource(name string) *api.SeedBackup {
	name, variant, _ := strings.Cut(name, ":")
	b := &api.SeedBackup{Restore: "c", RestoreUID: types.UID(name), Size: 1 << 20, Key: "key-" + name}
	switch variant {
	case "large":
		b.Size = 100 << 30
	case "moved":
		b.URL = "http://elsewhere"
	}
	return b
}

// parseBelonging reads the state of a Service or budget that is not as it should
// be.
func parseBelonging(b *plan.OwnedObject, state string) error {
	switch what, edited, _ := strings.Cut(state, ":"); what {
	case "missing":
		b.Owned = false
	case "leaving":
		b.Leaving = true
	case "put-off":
		b.PutOff = true
	case "taken":
		b.Owned, b.Taken = false, true
	case "edited":
		b.Edited = edited
	case "remake":
		b.Remake, b.Edited = true, "ports"
	default:
		return fmt.Errorf("unknown state %q", state)
	}
	return nil
}

var budgetWords = regexp.MustCompile(`budget=(\S+)`)

// setBudget makes the disruption budget as it should be, but for what the
// script says.
func setBudget(o *plan.Observation, text string) error {
	o.Budget.Name, o.Budget.UID = "c", "budget"
	if o.WantsBudget() {
		o.Budget.Owned, o.Budget.MinAvailable = true, o.MinAvailable()
	}
	for _, match := range budgetWords.FindAllStringSubmatch(text, -1) {
		if n, err := strconv.Atoi(match[1]); err == nil {
			o.Budget.Owned, o.Budget.MinAvailable = true, n
			continue
		}
		if n, ok := strings.CutPrefix(match[1], "written:"); ok {
			var err error
			if o.Budget.Written, err = strconv.Atoi(n); err != nil {
				return err
			}
			continue
		}
		if err := parseBelonging(&o.Budget.OwnedObject, match[1]); err != nil {
			return err
		}
	}
	return nil
}

var bridgeWords = regexp.MustCompile(`bridge=(\S+)`)

// setBridges adds the Services of others: a name, and how each differs from a known and wanted
// one that leads to all ready members. leads=a,b@old-1,c! are two ready ones, the second under a
// host name, and one that is not ready.
func setBridges(o *plan.Observation, text string) error {
	for _, match := range bridgeWords.FindAllStringSubmatch(text, -1) {
		words := strings.Split(match[1], ":")
		b := plan.Bridge{Service: words[0], Known: true, Wanted: true, Families: []corev1.IPFamily{corev1.IPv6Protocol}}
		for _, w := range words[1:] {
			key, value, _ := strings.Cut(w, "=")
			switch key {
			case "unknown":
				b.Known = false
			case "unwanted":
				b.Wanted = false
			case "put-off":
				b.PutOff = true
			case "not-ready":
				b.NotReady = true
			case "edited":
				b.Edited = value
			case "hosts":
				b.Hostnames = strings.Split(value, ",")
			case "leads":
				for end := range strings.SplitSeq(value, ",") {
					name, host, _ := strings.Cut(end, "@")
					name, stopped := strings.CutSuffix(name, "!")
					b.Leads = append(b.Leads, manifest.BridgeEnd{Pod: name, UID: podUID(name), Addresses: []string{"ip-of-" + name}, Ready: !stopped, Hostname: host})
				}
			default:
				return fmt.Errorf("unknown word %q of a bridge", w)
			}
		}
		o.Bridges = append(o.Bridges, b)
	}
	return nil
}

func parseMember(o *plan.Observation, words []string, running string, id uint64, ic map[string]string) (plan.MemberState, *manifest.PodState, error) {
	name := words[0]
	m := plan.MemberState{
		Member:  etcd.Member{ID: id, Name: name, PeerURLs: []string{o.Names.PeerURL(name)}},
		PodName: name,
		Status:  &etcd.Status{MemberID: id, LeaderID: 1, Version: running, RaftIndex: 5000, RaftApplied: 5000},
	}
	p := &manifest.PodState{Name: name, UID: podUID(name), IP: "ip-of-" + name, IPs: []string{"ip-of-" + name}, Created: o.Now.Add(-time.Hour), Scheduled: true, AtGate: true, Started: true, Running: true, Ready: true, ManyLearners: true}
	if err := parsePod(o, p, nil, running, ic); err != nil {
		return m, nil, err
	}
	var podWords []string
	for _, w := range words[1:] {
		key, value, _ := strings.Cut(w, "=")
		switch key {
		case "leader":
			m.Status.LeaderID = id
		case "learner":
			m.Learner = true
		case "foreign":
			m.PodName, m.PeerURLs = "", []string{"http://" + name + ":2380"}
			m.Status, p = nil, nil
		case "former", "stranger": // a member of an imported etcd
			m.PodName, m.PeerURLs, p = "", []string{"http://" + name + ":2380"}, nil
			if value == "down" {
				m.Status, m.DownSince = nil, o.Now.Add(-time.Hour)
			}
			if key == "former" && o.Status.Import != nil {
				o.Status.Import.Members = append(o.Status.Import.Members, api.ImportedMember{ID: etcd.FormatID(id), Name: name})
			}
		case "uncompared":
		case "proven":
			if o.Import.Proven == nil {
				o.Import.Proven = map[uint64]bool{}
			}
			o.Import.Proven[id] = true
		case "unheard":
			m.Status, m.Err, m.DownSince = nil, etcd.ErrTLS, o.Now.Add(-time.Hour)
		case "down":
			m.Status, p.Ready = nil, false // the kubelet asks it as well
			m.DownSince = o.Now.Add(-time.Second)
			if value != "" {
				d, err := time.ParseDuration(value)
				if err != nil {
					return m, nil, err
				}
				m.DownSince = o.Now.Add(-d)
			}
		case "leaderless":
			d, err := time.ParseDuration(value)
			if err != nil {
				return m, nil, err
			}
			m.Status.LeaderID, m.DownSince = 0, o.Now.Add(-d)
		case "silent": // leads, and does not answer the operator for so long
			d, err := time.ParseDuration(value)
			if err != nil {
				return m, nil, err
			}
			m.Status, m.DownSince = nil, o.Now.Add(-d)
		case "stalled", "hung":
			d, err := time.ParseDuration(cmp.Or(value, "1s"))
			if err != nil {
				return m, nil, err
			}
			m.Stalled, m.DownSince = true, o.Now.Add(-d)
			if key == "hung" { // also while there was no quorum
				m.Awaited = d
			}
		case "copying": // for so long, and still
			m.Name, m.Status, m.Received = "", nil, o.Now
			p.Ready = false
			d, err := time.ParseDuration(value)
			if err != nil {
				return m, nil, err
			}
			p.Created, m.DownSince = o.Now.Add(-d), o.Now.Add(-d)
		case "received": // so long ago
			d, err := time.ParseDuration(value)
			if err != nil {
				return m, nil, err
			}
			m.Received = o.Now.Add(-d)
		case "unseen":
			m.Received, m.CopyUnseen = time.Time{}, true
		case "unstarted":
			m.Name, m.Status = "", nil
			p.Started, p.Running, p.Ready, p.Created = false, false, false, o.Now
		case "gone":
			m.Status, p = nil, nil
		case "runs":
			m.Status.Version = value
		case "applied", "index":
			n, err := strconv.ParseUint(value, 10, 64)
			if err != nil {
				return m, nil, err
			}
			m.Status.RaftApplied = n
			if key == "index" {
				m.Status.RaftIndex = n
			}
		case "revision":
			n, err := strconv.ParseInt(value, 10, 64)
			if err != nil {
				return m, nil, err
			}
			m.Status.Revision, m.Status.RaftTerm, m.Status.ClusterID = n, 4, 7
		case "db":
			n, err := strconv.ParseInt(value, 10, 64)
			if err != nil {
				return m, nil, err
			}
			m.Status.DBSize = n
		case "alarms": // ID:TYPE,ID:TYPE
			for text := range strings.SplitSeq(value, ",") {
				of, alarm, _ := strings.Cut(text, ":")
				id, err := strconv.ParseUint(of, 10, 64)
				if err != nil {
					return m, nil, err
				}
				m.Status.Alarms = append(m.Status.Alarms, etcd.Alarm{MemberID: id, Type: alarm})
			}
		case "quota":
			n, err := strconv.ParseInt(value, 10, 64)
			if err != nil {
				return m, nil, err
			}
			m.Status.DBQuota = n
		default:
			podWords = append(podWords, w)
		}
	}
	if p == nil {
		return m, nil, nil
	}
	return m, p, parsePod(o, p, podWords, running, ic)
}

func parseVolume(o *plan.Observation, words []string) error {
	v := manifest.VolumeState{Name: words[0], UID: types.UID("volume-" + words[0]), Template: o.Template.Volume, Size: resource.MustParse("1Gi"), Version: o.Status.CurrentVersion}
	for _, w := range words[1:] {
		key, value, _ := strings.Cut(w, "=")
		switch key {
		case "version":
			v.Version = value
		case "template":
			v.Template = value
		case "size":
			v.Size = resource.MustParse(value)
		case "lost":
			v.Lost = true
		case "unbound": // since it was made
			v.Lost, v.Unbound, v.Version = true, true, ""
		case "capacity":
			v.Capacity = resource.MustParse(value)
		case "resize-pending":
			v.ResizePending = true
		case "resize-problem":
			v.ResizeProblem = value
		case "deleting":
			v.Deleting = true
		case "refused":
			v.RefusedSize, v.SizePutOff = "no", true
		case "delete-put-off":
			v.DeletePutOff = true
		case "owner":
			v.Owner = manifest.ParseOwner(value)
		case "adopted": // from an earlier operator
			v.Template, v.Version = "", ""
		default:
			return fmt.Errorf("unknown word %q", w)
		}
	}
	o.Volumes = append(o.Volumes, v)
	return nil
}

func parsePod(o *plan.Observation, p *manifest.PodState, words []string, running string, ic map[string]string) error {
	if p.Version == "" {
		p.Version, p.Image = running, o.Image(running)
		p.Template = o.Template
	}
	for _, w := range words {
		key, value, _ := strings.Cut(w, "=")
		switch key {
		case "version":
			p.Version, p.Image = value, o.Image(value)
		case "template":
			p.Template.Pod = value
		case "volume-template":
			p.Template.Volume = value
		case "metadata":
			p.MetadataOutdated = true
		case "guarded":
			p.Guarded = true
		case "launcher":
			p.Launcher = "/launcher"
		case "claimed":
			p.Claimed = true
		case "noted":
			p.Guarded, p.Noted = true, true
		case "note-put-off":
			p.Guarded, p.NotePutOff = true, true
		case "delete-put-off":
			p.DeletePutOff, p.DeleteRefused = true, true
		case "delete-failed":
			p.DeletePutOff = true
		case "image-put-off":
			p.ImagePutOff = true
		case "pending":
			p.Started, p.Running, p.Ready = false, false, false
		case "stuck":
			p.Problem = "no node"
		case "crowded":
			nodes, err := strconv.Atoi(value)
			if err != nil {
				return err
			}
			p.Crowded, p.Scheduled, p.Problem = nodes, false, "anti-affinity"
		case "off-volume":
			p.Problem, p.OffVolume, p.Scheduled = "no node has its volume", true, false
		case "dataless":
			p.Problem, p.Dataless = "the volume holds no data", true
		case "legacy":
			p.Legacy = true
		case "recorded":
			p.ImageOnRecord = true
		case "digest": // of the admitted image
			p.Admitted = p.Image + "@" + value
		case "image":
			p.Image = value
		case "literal": // its image's tag has no v
			p.Image, p.LiteralTag = o.Spec.EffectiveRepository()+":"+p.Version, true
		case "otherrepo":
			p.Image = "elsewhere/etcd:v" + p.Version
		case "previous":
			p.Previous = value
		case "ic":
			ic[p.Name] = value
		case "address":
			p.IP = "ip-of-" + p.Name
		case "not-serving", "data-server":
			if err := parseNotServing(o, p, key, value); err != nil {
				return err
			}
		case "seed":
			p.Seed = true
		case "source":
			if p.Source = manifest.SourceDigest(scriptSource(value)); value == "copy" {
				p.Source = manifest.SourceDigest(o.Source)
			}
		case "preparing":
			p.Preparing, p.Scheduled = value, true
		case "reaching":
			p.Reaching, p.Scheduled = true, true
		case "gate":
			p.AtGate, p.Scheduled = true, true
		case "started":
			p.Started = true
		case "unproven":
			p.Started, p.Unproven = true, true
		case "running":
			p.Started, p.Running = true, true
		case "stopped":
			p.Running, p.Ready = false, false
		case "notready":
			p.Ready = false
		case "readyfor":
			d, err := time.ParseDuration(value)
			if err != nil {
				return err
			}
			p.ReadySince = o.Now.Add(-d)
		case "startingup":
			p.StartingUp = true
		case "startedup":
			p.StartedUp = true
		case "restarting":
			p.Ready, p.Restarting = false, true
		case "ready":
			p.Ready = true
		case "deleting":
			p.Deleting, p.DeleteBy = true, o.Now.Add(time.Minute)
		case "overdue":
			p.Deleting, p.DeleteBy = true, o.Now.Add(-time.Minute)
		case "finished":
			p.Finished, p.Running, p.Ready = true, false, false
		case "badimage":
			p.BadImage, p.Running, p.Ready, p.Problem = true, false, false, "ImagePullBackOff"
		case "crashing":
			p.Crashing, p.Running, p.Ready, p.Problem = true, false, false, "CrashLoopBackOff"
		case "foreign": // by its owner
			p.Problem, p.DataOwner = "the data belongs to another user", manifest.ParseOwner(value)
			p.Running, p.Ready = false, false
		case "owner-put-off":
			p.OwnerPutOff = true
		case "runs-as":
			p.RunsAs = manifest.ParseOwner(value)
		case "shell-probes":
			p.ShellProbes = true
		case "livez-probes":
			p.LivezProbes = true
		case "ended": // so long ago
			d, err := time.ParseDuration(value)
			if err != nil {
				return err
			}
			p.Ended = o.Now.Add(-d)
		case "restarts":
			n, err := strconv.ParseInt(value, 10, 32)
			if err != nil {
				return err
			}
			p.Restarts = int32(n)
		case "snapshots":
			if value == "unread" {
				p.SnapshotCount = manifest.UnreadSnapshotCount
				break
			}
			n, err := strconv.ParseUint(value, 10, 64)
			if err != nil {
				return err
			}
			p.SnapshotCount = n
		case "fewlearners":
			p.ManyLearners = false
		case "node":
			p.Node = value
		case "age":
			d, err := time.ParseDuration(value)
			if err != nil {
				return err
			}
			p.Created = o.Now.Add(-d)
		default:
			return fmt.Errorf("unknown word %q", w)
		}
	}
	return nil
}
