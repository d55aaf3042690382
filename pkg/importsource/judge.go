// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package importsource

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/etcd-operator/etcd-operator/pkg/etcd"
	"github.com/etcd-operator/etcd-operator/pkg/finding"
)

// judge collects findings.
type judge struct {
	Facts
	target   Target
	findings []finding.Finding
}

// Judge says what keeps members of the target from joining the etcd, or a new cluster from starting on
// its data. A failure is an obstacle.
func Judge(f Facts, target Target) []finding.Finding {
	j := &judge{Facts: f, target: target}
	j.endpoints()
	if j.oneCluster() {
		j.membership()
		j.leader()
		j.alarms()
		j.versions()
		j.quota()
		j.volume()
		if !target.Copies {
			j.peers() // nobody joins
		}
		j.data()
		j.authentication()
		j.apiServer()
		if target.Copies {
			j.writeStop()
		}
	}
	return j.findings
}

func (j *judge) add(check string, level finding.Level, fix, format string, args ...any) {
	j.findings = append(j.findings, finding.Finding{Check: check, Level: level, Message: fmt.Sprintf(format, args...), Fix: fix})
}

// answered are the endpoints with a status.
func (j *judge) answered() []Answer {
	return slices.DeleteFunc(slices.Clone(j.Answers), func(a Answer) bool { return a.Err != nil })
}

func (j *judge) endpoints() {
	for _, a := range j.Answers {
		fix := "check the address, and that the member runs"
		switch {
		case a.Err == nil:
			j.add("endpoint "+a.Endpoint, finding.OK, "", "member %s, etcd %s", etcd.FormatID(a.Status.MemberID), a.Status.Version)
			continue
		case etcd.AsksForUser(a.Err):
			fix = "name the Secret of a user with the role root: " + j.target.UserFrom
		case etcd.RefusesUser(a.Err):
			fix = "correct the name and the password in the Secret of " + j.target.UserFrom
		case etcd.LacksRole(a.Err):
			fix = "grant the user the role root"
		case etcd.IsTLSFailure(a.Err):
			fix = "name the Secret of a client certificate that the members accept: " + j.target.CertificateFrom
		}
		j.add("endpoint "+a.Endpoint, finding.Failure, fix, "%v", a.Err)
	}
}

// oneCluster reports whether all answers are those of one cluster.
func (j *judge) oneCluster() bool {
	clusters := map[uint64][]string{}
	for _, a := range j.answered() {
		clusters[a.Status.ClusterID] = append(clusters[a.Status.ClusterID], a.Endpoint)
	}
	if len(clusters) > 1 {
		var parts []string
		for id, endpoints := range clusters {
			parts = append(parts, fmt.Sprintf("%s at %s", etcd.FormatID(id), strings.Join(endpoints, " and ")))
		}
		slices.Sort(parts)
		j.add("cluster", finding.Failure, "name the endpoints of one cluster", "the endpoints belong to several clusters: %s", strings.Join(parts, "; "))
	}
	return len(clusters) == 1
}

func (j *judge) membership() {
	const check = "members"
	if j.NotListed != nil {
		j.add(check, finding.Failure, "start the missing members until a quorum answers", "no quorum agrees on the members: %v", j.NotListed)
		return
	}
	voters, whole := 0, true
	for _, m := range j.Members {
		switch {
		case m.Learner && j.target.Copies: // it has no say
		case m.Learner:
			whole = false
			j.add(check, finding.Failure, "promote or remove it first: etcd before 3.6 allows one learner at a time", "member %s is a learner", m)
		case slices.ContainsFunc(j.answered(), func(a Answer) bool { return a.Status.MemberID == m.ID }):
		case j.target.Copies:
			whole = false
			j.add(check, finding.Warning, "name an endpoint of each member: the copy can then come from any of them", "no endpoint leads to member %s", m)
		default:
			whole = false
			j.add(check, finding.Failure, "name an endpoint of each member, and start members that are down: etcd adds members only while all are connected",
				"no endpoint leads to member %s", m)
		}
		if !m.Learner {
			voters++
		}
	}
	if whole {
		j.add(check, finding.OK, "", "all %d answer, and all have a vote", voters)
	}
	if voters == 1 && !j.target.Copies {
		j.add(check, finding.Warning, "keep backups before the import", "a single member can't be replaced without a moment in which both members must live")
	}
}

func (j *judge) leader() {
	leaders := map[uint64]bool{}
	for _, a := range j.answered() {
		leaders[a.Status.LeaderID] = true
	}
	if len(leaders) == 1 && !leaders[0] {
		j.add("leader", finding.OK, "", "all members follow the same leader")
		return
	}
	j.add("leader", finding.Failure, "look again when the election is over", "the members do not agree on a leader")
}

func (j *judge) alarms() {
	var found []string
	for _, a := range j.answered() {
		for _, alarm := range a.Status.Alarms {
			if alarm == j.target.Fence {
				continue
			}
			found = append(found, fmt.Sprintf("%s of member %s", alarm.Type, etcd.FormatID(alarm.MemberID)))
		}
	}
	slices.Sort(found)
	if found = slices.Compact(found); len(found) > 0 {
		j.add("alarms", finding.Failure, "solve the cause, and disarm the alarm with etcdctl alarm disarm; a CORRUPT of an ID that no member has is from an import that was not taken back",
			"there are alarms: %s", strings.Join(found, ", "))
		return
	}
	j.add("alarms", finding.OK, "", "there are none")
}

func (j *judge) peers() {
	const check = "peers"
	schemes := map[string]bool{}
	for _, m := range j.Members {
		for _, text := range m.PeerURLs {
			scheme, host := peer(text)
			schemes[scheme] = true
			ip := net.ParseIP(host)
			switch {
			case host == "localhost" || ip != nil && (ip.IsLoopback() || ip.IsUnspecified()):
				j.add(check, finding.Failure, "change it with etcdctl member update to one that pods can reach, or set spec.importFrom.method to Copy", "pods can't reach the peer URL %s of member %s", text, m)
			case within(host, j.target.Domain):
				j.add(check, finding.Failure, "give the EtcdCluster another name", "the peer URL %s of member %s is in the EtcdCluster's own domain", text, m)
			}
		}
	}
	switch secure, plain := schemes["https"], schemes["http"]; {
	case secure && plain:
		j.add(check, finding.Failure, "give all members peer TLS, or none", "some members use peer TLS, and others none")
	case secure && !j.target.PeerTLS:
		j.add(check, finding.Failure, "set spec.TLS.static.member.peerSecret to a certificate of the source's peer CA", "the source uses peer TLS, and the EtcdCluster none")
	case plain && j.target.PeerTLS:
		j.add(check, finding.Failure, "omit spec.TLS.static.member.peerSecret until the import is over", "the EtcdCluster uses peer TLS, and the source none")
	case secure:
		j.add(check, finding.Unknown, "sign the peer Secret with the source's peer CA; with --peer-auto-tls there is none: set spec.importFrom.method to Copy", "whether the members accept the EtcdCluster's peer certificate")
	case plain:
		j.add(check, finding.OK, "", "no side uses peer TLS")
	}
}

// within reports whether a host is a name in a domain, with or without the cluster domain.
func within(host, domain string) bool {
	return strings.HasSuffix(host, "."+domain) || strings.Contains(host, "."+domain+".") || host == domain
}

func (j *judge) data() {
	const check = "data"
	if j.DataRevision == 0 {
		return
	}
	digests := map[etcd.Digest]bool{}
	for _, a := range j.answered() {
		if a.NoDigest != nil {
			j.add(check, finding.Unknown, "run the check again", "whether the members hold the same data: %v", a.NoDigest)
			return
		}
		digests[a.Digest] = true
	}
	if len(digests) > 1 {
		j.add(check, finding.Failure, "find the member with wrong data, and replace it", "the members hold different data at revision %d", j.DataRevision)
		return
	}
	j.add(check, finding.OK, "", "all members hold the same data at revision %d", j.DataRevision)
}

func (j *judge) authentication() {
	const check = "authentication"
	own := strings.HasPrefix(j.target.AuthToken, "jwt")
	switch {
	case !j.Authentication:
		j.add(check, finding.OK, "", "it is disabled")
	case j.target.Copies:
		j.add(check, finding.Warning, "programs that make their own tokens need the key of the EtcdCluster", "it is enabled: users and roles come along, and clients log in again")
	case j.Token.Algorithm != "" && !own:
		j.add(check, finding.Failure, "restart the source's members with --auth-token=simple first: their clients log in again, and no key is needed",
			"the source issues tokens as JWT (%s), and the EtcdCluster has no key for them: its members would refuse the tokens of clients, and the source theirs", j.Token.Algorithm)
	case j.Token.Algorithm != "" && j.Token.Algorithm != signMethod(j.target.AuthToken):
		j.add(check, finding.Failure, "give the EtcdCluster the source's --auth-token and key",
			"the source signs its tokens by %s, and the EtcdCluster by %q: they would refuse each other's tokens", j.Token.Algorithm, signMethod(j.target.AuthToken))
	case j.Token.Known && j.Token.Algorithm == "" && own:
		j.add(check, finding.Failure, "remove --auth-token from the EtcdCluster until the import is over",
			"the source issues simple tokens, and the EtcdCluster JWT: they would refuse each other's tokens")
	case !own:
		j.add(check, finding.Warning, "if the source runs with --auth-token=jwt, give the EtcdCluster the same flag and key",
			"it is enabled: clients log in again at each new member, because members do not share simple tokens")
	default:
		j.add(check, finding.Warning, "check that the source has the same --auth-token and key", "it is enabled, and the EtcdCluster uses JWT")
	}
}

// signMethod is the algorithm in a value of --auth-token, such as RS256.
func signMethod(authToken string) string {
	for option := range strings.SplitSeq(authToken, ",") {
		if method, ok := strings.CutPrefix(option, "sign-method="); ok {
			return method
		}
	}
	return ""
}

// copyOverhead is what a write stop takes beside the copy of the data: etcd starts, and the operator
// notices each stage. restoreFactor is how much longer the copy takes than the source needs to send
// it: etcd's tool reads and writes it again, and the disk keeps it.
const (
	copyOverhead  = 10 * time.Second
	restoreFactor = 3
)

// WriteStop is how long nobody can write during a copy, and how that is computed. The error says why
// it is unknown.
func (f Facts) WriteStop() (expected time.Duration, how string, err error) {
	if f.Yield.Bytes == 0 {
		return 0, "", cmp.Or(f.NotYielded, errors.New("nobody has measured how fast the source sends its database"))
	}
	size := f.DatabaseSize()
	sends := time.Duration(float64(f.Yield.Took) * float64(size) / float64(f.Yield.Bytes))
	expected = (copyOverhead + restoreFactor*sends + time.Second - 1).Truncate(time.Second)
	return expected, fmt.Sprintf("%.0f s, and %d times the time in which the source sends its database of %d bytes; it has sent %d bytes in %d ms",
		copyOverhead.Seconds(), restoreFactor, size, f.Yield.Bytes, f.Yield.Took.Milliseconds()), nil
}

func (j *judge) writeStop() {
	const check = "write stop"
	if j.DataRevision == 0 {
		return // other findings come first
	}
	expected, how, err := j.WriteStop()
	if err != nil {
		j.add(check, finding.Unknown, "run the check again", "how long nobody can write: %v", err)
		return
	}
	j.add(check, finding.OK, "", "nobody can write for about %.0f s after the commit: %s", expected.Seconds(), how)
}

func (j *judge) apiServer() {
	const check = "api server"
	switch {
	case j.NotSearched != nil:
		j.add(check, finding.Unknown, "", "whether an API server keeps its objects there: %v", j.NotSearched)
	case j.APIServer == OwnAPIServer:
		j.add(check, finding.Failure, "leave this etcd to the tool that installed Kubernetes", "this Kubernetes keeps its own objects there, and the EtcdCluster among them")
	case j.APIServer == OtherAPIServer:
		j.add(check, finding.Warning, "check that it is not the Kubernetes on which the EtcdCluster will run", "a Kubernetes API server keeps its objects there")
	default:
		j.add(check, finding.OK, "", "no Kubernetes API server keeps its objects there")
	}
}
