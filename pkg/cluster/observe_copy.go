// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/etcd-operator/etcd-operator/pkg/cluster/plan"
	"github.com/etcd-operator/etcd-operator/pkg/etcd"
	"github.com/etcd-operator/etcd-operator/pkg/importsource"
	"github.com/etcd-operator/etcd-operator/pkg/notice"
	"github.com/etcd-operator/etcd-operator/pkg/watchdog"
)

// observeCopy asks the etcd to copy whether it refuses writes, and where it stands.
func (c *Cluster) observeCopy(ctx context.Context, o *plan.Observation) {
	i := &c.importer
	i.through = nil
	o.Import.Fence = etcd.Fence(string(c.obj.UID))
	if i.source != nil && o.Copying() && o.Import.Held {
		o.Import.Source, o.Import.Silence = i.askSource(ctx, o.Spec.ImportFrom.Endpoints, o.Import.Fence)
		c.judgeSource(o.Import.Source)
		i.noteSilence(o)
	} else {
		i.silentSince = time.Time{}
	}
	if source := plan.CopiedFrom(o, string(c.obj.UID), i.skip); source != nil && o.Source == nil {
		o.Source = source
	}
}

// judgeSource compares an etcd to copy with the EtcdCluster again: both may have changed in the days in which
// the copy was prepared.
func (c *Cluster) judgeSource(s *plan.CopySource) {
	if s == nil {
		return
	}
	if target, err := importsource.TargetOf(c.obj, c.obj.Namespace); err == nil {
		s.Misfits = obstacles(importsource.Misfits(s.Version, s.DatabaseBytes, target))
	}
}

// noteSilence remembers for how long an etcd to copy has not answered, and what it said last.
func (i *importer) noteSilence(o *plan.Observation) {
	switch {
	case o.Import.Source != nil:
		i.silentSince, i.disarmed = time.Time{}, o.SourceDisarmed()
	case i.silentSince.IsZero():
		i.silentSince = o.Now
	}
	if o.Import.Source == nil {
		o.Import.SilentFor, o.Import.Disarmed = o.Now.Sub(i.silentSince), i.disarmed
	}
}

// sourceAnswer is that of one member of an etcd to copy.
type sourceAnswer struct {
	from   Member
	source *plan.CopySource
	err    error
}

// askSource asks all members of an etcd to copy at once, and returns the first answer that a quorum
// has confirmed. Otherwise silence says why there is none.
func (i *importer) askSource(ctx context.Context, urls []string, fence etcd.Alarm) (source *plan.CopySource, silence string) {
	ctx, cancel := context.WithTimeout(ctx, statusTimeout)
	defer cancel()
	answers := make(chan sourceAnswer, len(urls))
	endpoints := map[etcd.Endpoint]bool{}
	for _, url := range urls {
		ep := etcd.Endpoint{URL: url}
		endpoints[ep] = true
		conn, err := i.source.Conn(ep)
		if err != nil {
			answers <- sourceAnswer{err: err}
			continue
		}
		go func() {
			a := sourceAnswer{from: conn}
			if err := watchdog.Guard(func() (err error) { a.source, err = stateOf(ctx, conn, fence); return err }); err != nil {
				a.err = err
			}
			answers <- a
		}()
	}
	var failed []string
	for range urls { // all goroutines end with ctx
		a := <-answers
		if a.err != nil {
			failed = append(failed, a.err.Error())
		} else if source == nil {
			source, i.through = a.source, a.from
			cancel()
		}
	}
	i.source.Retain(endpoints)
	if source == nil {
		slices.Sort(failed)
		return nil, notice.Shorten(strings.Join(slices.Compact(failed), "; "), 300)
	}
	return source, ""
}

// stateOf asks one member. The first read makes sure that it knows every alarm that was raised
// before. The second one follows what it says of its alarms, and a write that it refuses if one is the fence:
// nobody can write after it then.
func stateOf(ctx context.Context, conn Member, fence etcd.Alarm) (*plan.CopySource, error) {
	if _, err := conn.Commits(ctx); err != nil {
		return nil, err
	}
	status, err := conn.Status(ctx)
	if err != nil {
		return nil, err
	}
	raised, refuses := slices.Contains(status.Alarms, fence), false
	if raised {
		if refuses, err = conn.RefusesWrites(ctx); err != nil {
			return nil, err
		}
	}
	position, err := conn.Commits(ctx)
	if err != nil {
		return nil, err
	}
	if position.Revision == 0 {
		return nil, errors.New("it does not say its revision: the operator needs a user with the role root (spec.auth)")
	}
	version, err := etcd.ParseVersion(status.Version)
	s := &plan.CopySource{
		ClusterID: status.ClusterID, Revision: position.Revision, Raised: raised, Fenced: refuses, KeepsFence: err == nil && version.KeepsFence(),
		Version: status.Version, DatabaseBytes: status.DBSize,
	}
	for _, a := range status.Alarms {
		if a != fence {
			s.Others = append(s.Others, a)
		}
	}
	return s, nil
}
