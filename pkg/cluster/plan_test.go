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
	"github.com/etcd-operator/etcd-operator/pkg/etcd"
)

var rewrite = flag.Bool("rewrite", false, "rewrite the golden files in testdata")

// TestPlan runs the scripts in testdata/plan. A script is a list of worlds, each
// followed by ---- and the step that is planned in it, first as logs show it and then
// with all its fields (inFull):
//
//	# a comment says what the case is about
//	cluster size=3 version=3.6.16 phase=Running …
//	member NAME [learner] [leader] [down|unstarted] [pod=…] [key=value …]
//	pod NAME [key=value …]
//	volume NAME [key=value …]
//	----
//	the step
//	  field=value flag list[0].field=value
//
// go test ./pkg/cluster -run TestPlan -rewrite writes the steps anew.
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
				got := inFull(plan(o), o.names)
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
func parseWorld(text string) (*observation, error) {
	o := &observation{
		now:         time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC),
		names:       names{namespace: "ns", cluster: "c"},
		gate:        true,
		quorum:      true,
		peerService: belonging{name: "c", uid: "peer", owned: true}, clientService: belonging{name: "c-client", uid: "client", owned: true},
		spec:   api.ClusterSpec{Size: 3, Version: "3.6.16"},
		status: api.ClusterStatus{Phase: api.ClusterPhaseRunning, CurrentVersion: "3.6.16", InitialVersion: "3.6.16"},
	}
	fresh := 0
	o.newName = func() string { fresh++; return fmt.Sprintf("new%d", fresh) }
	running, agreed := "", ""
	var members []memberState
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
				o.clusterVersion, err = etcd.ParseVersion(agreed)
			}
		case "member":
			var m memberState
			var p *podState
			m, p, err = parseMember(o, words[1:], running, uint64(len(members)+1), ic)
			members = append(members, m)
			if p != nil {
				o.pods = append(o.pods, *p)
			}
		case "pod":
			p := podState{name: words[1], uid: podUID(words[1]), created: o.now, manyLearners: true}
			err = parsePod(o, &p, words[2:], running, ic)
			o.pods = append(o.pods, p)
		case "volume":
			err = parseVolume(o, words[1:])
		default:
			err = fmt.Errorf("unknown line %q", line)
		}
		if err != nil {
			return nil, fmt.Errorf("%q: %w", line, err)
		}
	}
	leader := uint64(0)
	for _, m := range members {
		if m.status != nil && m.status.LeaderID == m.ID && !m.stalled {
			leader = m.ID
		}
	}
	for i := range members {
		if s := members[i].status; s != nil && o.quorum {
			s.LeaderID = leader
		}
		members[i].pod = o.pod(members[i].name)
		members[i].volume = o.volume(members[i].name)
	}
	o.members = members
	if err := setScriptRecord(o, text); err != nil {
		return nil, err
	}
	if !o.outdated() {
		o.clusterVersion = etcd.Version{} // observe asks for it only then
	}
	if err := setBudget(o, text); err != nil {
		return nil, err
	}
	for i := range o.pods {
		var names []string
		if list := ic[o.pods[i].name]; list != "" {
			names = strings.Split(list, ",")
		}
		o.pods[i].initialCluster = etcd.InitialCluster{}
		for _, name := range names {
			o.pods[i].initialCluster[o.names.peerURL(name)] = name
		}
	}
	return o, nil
}

func parseCluster(o *observation, words []string) (running string, err error) {
	running = "3.6.16"
	for _, w := range words {
		key, value, _ := strings.Cut(w, "=")
		switch key {
		case "size":
			o.spec.Size, err = strconv.Atoi(value)
		case "version":
			o.spec.Version = value
		case "running":
			running, o.status.CurrentVersion = value, value
		case "agreed": // with the members' version
		case "record", "record-index", "record-revision", "record-id", "no-record", "accept", "index", "revision", "id", "went-back": // set once the members are known
		case "initial":
			o.status.InitialVersion = value
		case "log-target":
			o.logTarget, err = strconv.ParseUint(value, 10, 64)
		case "phase":
			o.status.Phase = api.ClusterPhase(value)
		case "seed":
			o.status.Members.Unready = []string{value}
		case "busybox":
			o.gate = false
		case "paused":
			o.spec.Paused = true
		case "ending":
			o.ending = true
		case "invalid":
			o.invalid = value
		case "certificates":
			// missing: members can't start; untrusted: a new cluster can't be seen.
			o.certificates = certificates{used: true, problems: []certProblem{{why: value, holdsPods: value == "missing", holdsStart: value == "untrusted"}}}
		case "no-quorum":
			o.quorum = false
		case "no-peer-service":
			o.peerService.owned = false
		case "no-client-service":
			o.clientService.owned = false
		case "peer-service":
			err = parseBelonging(&o.peerService, value)
		case "client-service":
			err = parseBelonging(&o.clientService, value)
		case "former-service":
			o.formerServices = append(o.formerServices, belonging{name: value, uid: types.UID("service-" + value), owned: true})
		case "refused":
			o.refused = refusedPods{why: value, until: o.now.Add(time.Second)}
		case "budget": // set once the members are known
		case "drainable":
			o.spec.PodDisruptionBudget = new(false)
		case "template":
			o.template.pod = value
		case "volume-template":
			o.template.volume = value
		case "storage":
			o.spec.Pod = &api.PodPolicy{PersistentVolumeClaimSpec: &corev1.PersistentVolumeClaimSpec{}}
			o.spec.Pod.PersistentVolumeClaimSpec.Resources.Requests = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse(value)}
		case "update-refused":
			o.updateRefused = "no"
		case "restore":
			if o.source = scriptSource(value); value == "unreadable" {
				o.source, o.sourceUnreadable = nil, "it can't be read"
			}
		case "restored-from":
			o.status.RestoredFrom = restoredFrom(scriptSource(value))
		case "mislabelled": // the spec's image, by the version that it holds
			o.mislabels = map[string]string{o.image(o.spec.Version): value}
		case "lift-put-off":
			o.liftPutOff = true
		case "strangers":
			o.strangers, err = strconv.Atoi(value)
		default:
			err = fmt.Errorf("unknown word %q", w)
		}
		if err != nil {
			return "", err
		}
	}
	return running, nil
}

// podUID is the UID of a pod of a script. A volume or a Service of the same name has
// another.
func podUID(name string) types.UID { return types.UID("pod-" + name) }

// scriptSource is a backup by the name that scripts give it, which may be followed by
// a colon and large, or moved to another server.
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
func parseBelonging(b *belonging, state string) error {
	switch what, edited, _ := strings.Cut(state, ":"); what {
	case "missing":
		b.owned = false
	case "leaving":
		b.leaving = true
	case "put-off":
		b.putOff = true
	case "taken":
		b.owned, b.taken = false, true
	case "edited":
		b.edited = edited
	case "remake":
		b.remake, b.edited = true, "ports"
	default:
		return fmt.Errorf("unknown state %q", state)
	}
	return nil
}

var budgetWords = regexp.MustCompile(`budget=(\S+)`)

// setBudget makes the disruption budget as it should be, but for what the
// script says.
func setBudget(o *observation, text string) error {
	o.budget.name, o.budget.uid = "c", "budget"
	if o.wantsBudget() {
		o.budget.owned, o.budget.minAvailable = true, o.minAvailable()
	}
	for _, match := range budgetWords.FindAllStringSubmatch(text, -1) {
		if n, err := strconv.Atoi(match[1]); err == nil {
			o.budget.owned, o.budget.minAvailable = true, n
			continue
		}
		if n, ok := strings.CutPrefix(match[1], "written:"); ok {
			var err error
			if o.budget.written, err = strconv.Atoi(n); err != nil {
				return err
			}
			continue
		}
		if err := parseBelonging(&o.budget.belonging, match[1]); err != nil {
			return err
		}
	}
	return nil
}

func parseMember(o *observation, words []string, running string, id uint64, ic map[string]string) (memberState, *podState, error) {
	name := words[0]
	m := memberState{
		Member: etcd.Member{ID: id, Name: name, PeerURLs: []string{o.names.peerURL(name)}},
		name:   name,
		status: &etcd.Status{MemberID: id, LeaderID: 1, Version: running, RaftIndex: 5000, RaftApplied: 5000},
	}
	p := &podState{name: name, uid: podUID(name), ip: "ip-of-" + name, created: o.now.Add(-time.Hour), scheduled: true, atGate: true, started: true, running: true, ready: true, manyLearners: true}
	if err := parsePod(o, p, nil, running, ic); err != nil {
		return m, nil, err
	}
	var podWords []string
	for _, w := range words[1:] {
		key, value, _ := strings.Cut(w, "=")
		switch key {
		case "leader":
			m.status.LeaderID = id
		case "learner":
			m.Learner = true
		case "foreign":
			m.name, m.PeerURLs = "", []string{"http://" + name + ":2380"}
			m.status, p = nil, nil
		case "unheard":
			m.status, m.err, m.downSince = nil, etcd.ErrTLS, o.now.Add(-time.Hour)
		case "down":
			m.status, p.ready = nil, false // the kubelet asks it as well
			m.downSince = o.now.Add(-time.Second)
			if value != "" {
				d, err := time.ParseDuration(value)
				if err != nil {
					return m, nil, err
				}
				m.downSince = o.now.Add(-d)
			}
		case "stalled":
			d, err := time.ParseDuration(cmp.Or(value, "1s"))
			if err != nil {
				return m, nil, err
			}
			m.stalled, m.downSince = true, o.now.Add(-d)
		case "copying": // for so long, and still
			m.Name, m.status, m.received = "", nil, o.now
			p.ready = false
			d, err := time.ParseDuration(value)
			if err != nil {
				return m, nil, err
			}
			p.created = o.now.Add(-d)
		case "received": // so long ago
			d, err := time.ParseDuration(value)
			if err != nil {
				return m, nil, err
			}
			m.received = o.now.Add(-d)
		case "unseen":
			m.received, m.copyUnseen = time.Time{}, true
		case "unstarted":
			m.Name, m.status = "", nil
			p.started, p.running, p.ready, p.created = false, false, false, o.now
		case "gone":
			m.status, p = nil, nil
		case "runs":
			m.status.Version = value
		case "applied":
			n, err := strconv.ParseUint(value, 10, 64)
			if err != nil {
				return m, nil, err
			}
			m.status.RaftApplied = n
		case "db":
			n, err := strconv.ParseInt(value, 10, 64)
			if err != nil {
				return m, nil, err
			}
			m.status.DBSize = n
		case "alarms": // ID:TYPE,ID:TYPE
			for text := range strings.SplitSeq(value, ",") {
				of, alarm, _ := strings.Cut(text, ":")
				id, err := strconv.ParseUint(of, 10, 64)
				if err != nil {
					return m, nil, err
				}
				m.status.Alarms = append(m.status.Alarms, etcd.Alarm{MemberID: id, Type: alarm})
			}
		case "quota":
			n, err := strconv.ParseInt(value, 10, 64)
			if err != nil {
				return m, nil, err
			}
			m.status.DBQuota = n
		default:
			podWords = append(podWords, w)
		}
	}
	if p == nil {
		return m, nil, nil
	}
	return m, p, parsePod(o, p, podWords, running, ic)
}

func parseVolume(o *observation, words []string) error {
	v := volumeState{name: words[0], uid: types.UID("volume-" + words[0]), template: o.template.volume, size: resource.MustParse("1Gi"), version: o.status.CurrentVersion}
	for _, w := range words[1:] {
		key, value, _ := strings.Cut(w, "=")
		switch key {
		case "version":
			v.version = value
		case "template":
			v.template = value
		case "size":
			v.size = resource.MustParse(value)
		case "deleting":
			v.deleting = true
		case "refused":
			v.refusedSize = "no"
		default:
			return fmt.Errorf("unknown word %q", w)
		}
	}
	o.volumes = append(o.volumes, v)
	return nil
}

func parsePod(o *observation, p *podState, words []string, running string, ic map[string]string) error {
	if p.version == "" {
		p.version, p.image = running, o.image(running)
		p.template = o.template
	}
	for _, w := range words {
		key, value, _ := strings.Cut(w, "=")
		switch key {
		case "version":
			p.version, p.image = value, o.image(value)
		case "template":
			p.template.pod = value
		case "volume-template":
			p.template.volume = value
		case "metadata":
			p.metadataOutdated = true
		case "guarded":
			p.guarded = true
		case "noted":
			p.guarded, p.noted = true, true
		case "note-put-off":
			p.guarded, p.notePutOff = true, true
		case "pending":
			p.started, p.running, p.ready = false, false, false
		case "stuck":
			p.problem = "no node"
		case "crowded":
			nodes, err := strconv.Atoi(value)
			if err != nil {
				return err
			}
			p.crowded, p.scheduled, p.problem = nodes, false, "anti-affinity"
		case "off-volume":
			p.problem, p.offVolume, p.scheduled = "no node has its volume", true, false
		case "dataless":
			p.problem, p.dataless = "the volume holds no data", true
		case "legacy":
			p.legacy = true
		case "otherrepo":
			p.image = "elsewhere/etcd:v" + p.version
		case "previous":
			p.previous = value
		case "ic":
			ic[p.name] = value
		case "seed":
			p.seed = true
		case "source":
			p.source = sourceDigest(scriptSource(value))
		case "preparing":
			p.preparing, p.scheduled = value, true
		case "gate":
			p.atGate, p.scheduled = true, true
		case "started":
			p.started = true
		case "running":
			p.started, p.running = true, true
		case "stopped":
			p.running, p.ready = false, false
		case "notready":
			p.ready = false
		case "ready":
			p.ready = true
		case "deleting":
			p.deleting, p.deleteBy = true, o.now.Add(time.Minute)
		case "overdue":
			p.deleting, p.deleteBy = true, o.now.Add(-time.Minute)
		case "finished":
			p.finished, p.running, p.ready = true, false, false
		case "badimage":
			p.badImage, p.running, p.ready, p.problem = true, false, false, "ImagePullBackOff"
		case "crashing":
			p.crashing, p.running, p.ready, p.problem = true, false, false, "CrashLoopBackOff"
		case "fewlearners":
			p.manyLearners = false
		case "node":
			p.node = value
		case "age":
			d, err := time.ParseDuration(value)
			if err != nil {
				return err
			}
			p.created = o.now.Add(-d)
		default:
			return fmt.Errorf("unknown word %q", w)
		}
	}
	return nil
}
