// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"crypto/tls"
	"fmt"
	"maps"
	"net"
	"slices"
	"sync/atomic"
	"time"

	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/cluster/plan"
	"github.com/etcd-operator/etcd-operator/pkg/etcd"
	"github.com/etcd-operator/etcd-operator/pkg/finding"
	"github.com/etcd-operator/etcd-operator/pkg/importsource"
	"github.com/etcd-operator/etcd-operator/pkg/notice"
)

const (
	// surveyPeriod is the time between two looks at an etcd before the import begins, and surveyRest
	// that after a look for which the members have read their whole databases.
	surveyPeriod, surveyRest = 15 * time.Second, 5 * time.Minute
	// proofPause is the time between two attempts to prove a learner, and proofRest the time
	// after one that has read the whole database.
	proofPause, proofRest = time.Second, 15 * time.Second
	// importJobTimeout bounds one look or one proof. Both read whole databases, page by page: a member
	// that sends nothing ends them much earlier.
	importJobTimeout = time.Hour
)

// importer knows the etcd that the cluster takes over. A look at it reads whole databases, so it
// takes place beside the passes, one at a time.
type importer struct {
	source Members
	id     *etcd.Identity // of source
	skip   bool
	user   etcd.Credentials
	// alone is true if source logs in with tokens of its own.
	alone bool

	secret, version string
	secretID        *etcd.Identity
	readAt          time.Time
	// problem says why the Secret with the client certificate is unusable.
	problem string

	// conns are the members that have answered in this pass, own and former ones, by ID.
	conns map[uint64]Member

	// through is the member of an etcd to copy that has answered in this pass; nil: none.
	through Member
	// silentSince is since when that etcd has not answered; zero: it has. disarmed is true if it said last
	// that it may have taken writes after the last one that the copy holds.
	silentSince time.Time
	disarmed    bool

	job job
	// nextLook is when a look may begin, and nextProof the same for a proof.
	nextLook, nextProof time.Time
	facts               plan.Import // what the jobs have found
	// deep is true if the last look has read the data of the members, and comparing if the one that runs does.
	deep      bool
	comparing *atomic.Bool
	known     digestAt // what the former members have held
	// generation is that of the spec that they have looked at.
	generation int64
}

// end closes all connections to the etcd.
func (i *importer) end() {
	i.job.end()
	if i.source != nil {
		i.source.Close()
	}
	*i = importer{}
}

// observeImport fills in what is known of an etcd to import, before the members are asked.
func (c *Cluster) observeImport(ctx context.Context, o *plan.Observation) error {
	i := &c.importer
	held := slices.Contains(c.obj.Finalizers, api.ImportFinalizer)
	if !o.Importing() || o.Spec.ImportFrom == nil {
		i.end()
		o.Import.Held = held
		return nil
	}
	if i.source == nil {
		i.source = c.cfg.Members()
	}
	if err := c.readImportSecret(ctx, o); err != nil {
		return err
	}
	if id, skip := c.importIdentity(o); id != i.id || skip != i.skip {
		i.id, i.skip = id, skip
		i.source.SetTLS(clientTLS(id, skip))
	}
	if alone := o.Copying(); i.user != c.user.inUse || i.alone != alone {
		i.user, i.alone = c.user.inUse, alone
		if alone {
			i.source.SetCredentials(i.user) // a token of one etcd is none of the other
		} else {
			i.source.ShareLogin(c.etcd)
		}
	}
	o.Import.Held = held
	if begun := o.Status.Import.Begun(); !begun {
		if i.generation != c.obj.Generation {
			i.job.end()
			i.generation, i.facts, i.deep, i.nextLook = c.obj.Generation, plan.Import{}, false, time.Time{}
		}
		if !i.job.running() && mayBegin(o) && !o.Now.Before(i.nextLook) {
			c.survey(ctx, o)
		}
	}
	o.Import = i.found(held)
	if !o.Status.Import.Begun() && i.job.done != nil && !i.deep && i.comparing != nil && i.comparing.Load() {
		// The look that runs has not found the obstacles of the last one again.
		o.Import.Checked, o.Import.Obstacles, o.Import.Comparing = false, nil, true
	}
	if i.problem != "" && !o.Status.Import.Begun() {
		o.Import.Checked, o.Import.Obstacles = true, []string{i.problem}
	}
	return nil
}

// found is what the jobs have found, and what the pass itself knows.
func (i *importer) found(held bool) plan.Import {
	found := i.facts
	found.Held, found.Problem = held, i.problem
	return found
}

// mayBegin reports whether a look at the etcd can lead to the begin of an import.
func mayBegin(o *plan.Observation) bool {
	return !o.Ending && !o.Spec.Paused && o.Invalid == ""
}

// ends reports whether nothing but a deletion is left to do. An import outlasts it.
func (c *Cluster) ends(o *plan.Observation) bool {
	return o.Ending && !slices.Contains(c.obj.Finalizers, api.ImportFinalizer)
}

// clientTLS is the configuration for a client; nil without an identity.
func clientTLS(id *etcd.Identity, skip bool) *tls.Config {
	if id == nil {
		return nil
	}
	return id.ClientConfig(skip)
}

// importIdentity is the client's certificate for the endpoints.
func (c *Cluster) importIdentity(o *plan.Observation) (id *etcd.Identity, skip bool) {
	if o.Spec.ImportFrom.ClientTLSSecret != "" {
		return c.importer.secretID, false
	}
	if !o.Spec.ClientTLS() {
		return nil, false
	}
	return c.certs.held["operator"].ID, o.Spec.SkipsVerification()
}

// survey looks at the etcd beside the passes, and changes nothing there.
func (c *Cluster) survey(ctx context.Context, o *plan.Observation) {
	i := &c.importer
	target, err := importsource.TargetOf(c.obj, c.obj.Namespace)
	if err != nil {
		i.facts.Checked, i.facts.Obstacles = true, []string{err.Error()}
		return
	}
	if o.Import.Held {
		target.Fence = etcd.Fence(string(c.obj.UID)) // from before somebody wiped the status
	}
	target.UserFrom, target.CertificateFrom = "spec.auth.credentialsSecret", "spec.importFrom.clientTLSSecret"
	comparing := &atomic.Bool{}
	i.comparing = comparing
	source := &importsource.Source{
		Dial: func(ctx context.Context, address string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "tcp", address)
		},
		TLS: clientTLS(i.id, i.skip), User: i.user, Copies: target.Copies,
		Own: importsource.MarkOfCluster(c.obj.Namespace, c.obj.Name, string(c.obj.UID)),
		Worthwhile: func(f importsource.Facts) bool {
			none := len(obstacles(importsource.Judge(f, target))) == 0
			comparing.Store(none)
			return none
		},
	}
	for _, url := range o.Spec.ImportFrom.Endpoints {
		source.Endpoints = append(source.Endpoints, etcd.Endpoint{URL: url})
	}
	i.job.start(ctx, importJobTimeout, c.Wake, func(ctx context.Context) func() {
		facts := c.cfg.Survey(ctx, source)
		found := plan.Import{Checked: true, Obstacles: obstacles(importsource.Judge(facts, target)), Members: facts.Members}
		for _, a := range facts.Answers {
			if a.Err == nil {
				found.ClusterID = a.Status.ClusterID
			}
		}
		if target.Copies {
			found.WriteStop = writeStop(facts)
		}
		if why := uncompared(facts); why != "" && len(found.Obstacles) == 0 {
			found.Obstacles = []string{why}
		}
		pause := surveyPeriod
		if facts.DataRevision > 0 {
			pause = surveyRest
		}
		return func() { i.facts, i.deep, i.nextLook = found, facts.DataRevision > 0, c.cfg.Clock.Now().Add(pause) }
	}, c.importJobFailed)
}

// writeStop is what a copy expects.
func writeStop(facts importsource.Facts) api.ImportWriteStop {
	w := api.ImportWriteStop{DatabaseBytes: facts.DatabaseSize()}
	expected, how, err := facts.WriteStop()
	if err != nil {
		w.Expectation = "unknown: " + notice.Shorten(err.Error(), 300)
		return w
	}
	w.ExpectedSeconds, w.Expectation = int64(expected/time.Second), how
	return w
}

// obstacles are the findings that keep members from joining.
func obstacles(findings []finding.Finding) []string {
	var list []string
	for _, f := range findings {
		if f.Level != finding.Failure {
			continue
		}
		text := f.Check + ": " + notice.Shorten(f.Message, 300)
		if f.Fix != "" {
			text += " (" + f.Fix + ")"
		}
		list = append(list, text)
	}
	return list
}

// uncompared says why a look without obstacles has not compared the data of the members; "" if it has. A
// member alone has none to compare with. A copy takes the data of any member, and nothing compares it later.
func uncompared(facts importsource.Facts) string {
	answered, unread := 0, ""
	for _, a := range facts.Answers {
		if a.Err != nil {
			continue
		}
		answered++
		if a.NoDigest != nil && unread == "" {
			unread = a.Endpoint + ": " + notice.Shorten(a.NoDigest.Error(), 300)
		}
	}
	if answered < 2 || unread == "" {
		return ""
	}
	return fmt.Sprintf("data: whether the members hold the same data is not known yet, because the operator could not read that of %s"+
		" (it tries again every %.0f minutes; if the etcd compacts more often than a read takes, compact less often until the import begins)",
		unread, surveyRest.Minutes())
}

// formerAnswers are the members of an imported etcd, which a pass asks like own members.
func (c *Cluster) formerAnswers(o *plan.Observation) []answer {
	i := &c.importer
	i.conns = map[uint64]Member{}
	if i.source == nil || !o.Status.Import.Begun() || o.Copying() {
		return nil
	}
	var answers []answer
	endpoints := map[etcd.Endpoint]bool{}
	for _, url := range o.Spec.ImportFrom.Endpoints {
		ep := etcd.Endpoint{URL: url}
		endpoints[ep] = true
		conn, err := i.source.Conn(ep)
		answers = append(answers, answer{former: url, conn: conn, err: err})
	}
	i.source.Retain(endpoints)
	return answers
}

// prove starts a proof of a member that needs one, and fills in what is proven.
func (c *Cluster) prove(ctx context.Context, o *plan.Observation) {
	i := &c.importer
	if i.source == nil || !o.Quorum || o.Copying() {
		return
	}
	if !i.job.running() && !o.Now.Before(i.nextProof) {
		if m, ok := unproven(o, &i.facts); ok {
			c.startProof(ctx, o, m)
		}
	}
	o.Import = i.found(o.Import.Held)
}

// unproven returns a member whose proof is next: a learner that could vote or, before the commit,
// a voter, which another operator has proven.
func unproven(o *plan.Observation, facts *plan.Import) (m plan.MemberState, ok bool) {
	for _, m := range o.Own() {
		if m.Healthy() && m.Pod != nil && !facts.Proven[m.ID] && (m.Learner || !o.Committed()) {
			return m, true
		}
	}
	return plan.MemberState{}, false
}

func (c *Cluster) startProof(ctx context.Context, o *plan.Observation, m plan.MemberState) {
	i := &c.importer
	p := &proof{member: m, own: i.conns[m.ID], former: map[string]Member{}}
	for _, f := range o.Witnesses() {
		p.former[f.Title()] = i.conns[f.ID]
		if f.ID == o.Leader() {
			p.leader = f.Title()
		}
	}
	if len(m.PeerURLs) > 0 {
		p.peer = m.PeerURLs[0]
	}
	if i.known.revision > 0 && o.Now.Sub(i.known.at) < digestReuse {
		p.known = i.known
	}
	if i.facts.Doubt == "" {
		i.facts.Doubt = "for the comparison of " + m.PodName + " with a former member, which reads all keys and values of both"
	}
	i.job.start(ctx, importJobTimeout, c.Wake, func(ctx context.Context) func() {
		doubt, pause := p.run(ctx)
		return func() {
			i.nextProof = c.cfg.Clock.Now().Add(pause)
			if p.known.revision != i.known.revision {
				p.known.at = o.Now
				i.known = p.known
			}
			if i.facts.Doubt = doubt; doubt == "" {
				i.facts.Proven = with(i.facts.Proven, m.ID)
			}
		}
	}, c.importJobFailed)
}

// importJobFailed notes a panic beside the passes.
func (c *Cluster) importJobFailed(err error) {
	next := c.cfg.Clock.Now().Add(surveyPeriod)
	c.importer.nextLook, c.importer.nextProof = next, next
	c.log.WithError(err).Error("a look at the etcd to import failed")
}

// with returns a set with one ID more. Observations share the former set.
func with(set map[uint64]bool, id uint64) map[uint64]bool {
	more := maps.Clone(set)
	if more == nil {
		more = map[uint64]bool{}
	}
	more[id] = true
	return more
}
