// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package backup

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/sirupsen/logrus"

	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/backupobject"
	"github.com/etcd-operator/etcd-operator/pkg/changelog"
	"github.com/etcd-operator/etcd-operator/pkg/etcd"
	"github.com/etcd-operator/etcd-operator/pkg/location"
	"github.com/etcd-operator/etcd-operator/pkg/notice"
	"github.com/etcd-operator/etcd-operator/pkg/recorder"
	"github.com/etcd-operator/etcd-operator/pkg/store"
	"github.com/etcd-operator/etcd-operator/pkg/watchdog"
)

const (
	// farBehind is how many revisions a member is asked for at once. It reads them under a
	// lock that writers need (etcd issue 22264). A new log and a backup are cheaper.
	farBehind = 10_000
	// firstHash is the time from the begin of a recording to the first question for etcd's
	// hash, and hashEvery that from one question to the next, also of recordings that follow
	// each other. The member that answers applies no writes meanwhile.
	firstHash = 5 * time.Minute
	hashEvery = time.Hour
	// storeLimit bounds one segment's way to the store.
	storeLimit = 2 * time.Minute
)

// changeLog records the changes of a cluster in a store.
type changeLog struct {
	cfg    *Config
	log    *logrus.Entry
	obj    *api.EtcdBackup       // nobody changes it
	status *api.ContinuousStatus // when it began; nil: there was none
	wake   func()
	giveUp context.CancelCauseFunc // ends the context of run
	// failures is how many recordings before have stored nothing.
	failures int

	mu       sync.Mutex
	progress logProgress
	// endUnknown is true if the store may have more than the status says: of the operator before, or a
	// segment whose answer is lost.
	endUnknown bool
	hashed     time.Time // when etcd was last asked for its hash; zero: it was not
	// differing is which members differ by the last comparison; nil: there was none.
	differing *string
	// other is the end of a log in the store of another history, under the same ID of the cluster.
	other string
}

// logProgress is how far a log is.
type logProgress struct {
	cluster uint64
	// begin is that of a log that does not continue the one before, while the status does not
	// say so; nil: it does, or the log continues.
	begin  *logBegin
	newest int64
	until  time.Time
	stored bool // at least one segment
	// found is true if the store had more than anybody knew, up to newest.
	found bool
}

func (p *logProgress) applyTo(st *api.ContinuousStatus) {
	if !p.stored && !p.found {
		return
	}
	st.ClusterID = fmt.Sprintf("%016x", p.cluster)
	st.NewestRevision, st.NewestDate = p.newest, notice.Timestamp(p.until)
	if p.begin == nil {
		return
	}
	// A backup that begins then has all that the log lacks.
	st.StartDate, st.StartRevision = notice.Timestamp(notice.RoundUp(p.begin.at)), p.begin.first
	if p.begin.gap != "" {
		st.Gaps++
		st.LastGap = notice.Shorten(p.begin.gap, 500)
	}
}

func (c *changeLog) seen() logProgress {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.progress
}

// differs is which members differ by the last comparison; nil: there was none.
func (c *changeLog) differs() *string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.differing
}

// told notes that the status has the begin.
func (c *changeLog) told(begin *logBegin) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.progress.begin == begin {
		c.progress.begin = nil
	}
}

// run records until ctx ends, or something fails. It can hang in a call to a store that no context
// ends.
func (c *changeLog) run(ctx context.Context) error {
	place, err := c.cfg.OpenLocation(ctx, c.obj.Namespace, &c.obj.Spec)
	if err != nil {
		return fmt.Errorf("open the store (storageType %s): %w", c.obj.Spec.StorageType, err)
	}
	defer place.Close()
	err = c.recordAt(ctx, place)
	if err != nil && ctx.Err() == nil && c.isEndUnknown() {
		if failure := c.findEnd(ctx, place); failure != nil {
			c.log.WithError(failure).Warn("nobody knows how far the log of changes goes in the store: the next attempt looks again")
		}
	}
	return err
}

// recordAt records in a place.
func (c *changeLog) recordAt(ctx context.Context, place *location.Location) error {
	asking := &attempt{cfg: c.cfg, log: c.log, obj: c.obj}
	source, err := asking.source(ctx)
	if err != nil {
		return err
	}
	if n := len(source.Endpoints); n > 0 { // the member of the last recording may answer reads alone
		turn := c.failures % n
		source.Endpoints = slices.Concat(source.Endpoints[turn:], source.Endpoints[:turn])
	}
	member, at, closeMember, err := c.cfg.OpenMember(ctx, source)
	if err != nil {
		return fmt.Errorf("record the changes of etcd: %w%s", err, asking.advice(err))
	}
	defer closeMember()
	newest, beside, mine, err := c.newest(ctx, place, at)
	if err != nil {
		return advised(err, &c.obj.Spec)
	}
	newest, end, err := readEnd(ctx, place, newest, beside)
	if err != nil && !errors.Is(err, changelog.ErrDamaged) {
		return advised(fmt.Errorf("read the end of the log of changes: %w", err), &c.obj.Spec)
	}
	ended := c.follow(ctx, place, member, at, newest, mine, end, err)
	if errors.Is(ended, recorder.ErrOther) {
		c.refuse(place, newest)
	}
	return ended
}

// follow continues the log that ends with a segment, or begins one. unread is why the segment is not
// readable; nil: it is.
func (c *changeLog) follow(ctx context.Context, place *location.Location, member recorder.Member, at etcd.Position, newest changelog.Key, mine bool, end *changelog.Segment, unread error) error {
	begin, anew, err := c.choose(newest, mine, at)
	switch {
	case err != nil:
		return err
	case unread != nil:
		begin, anew = &logBegin{first: at.Revision + 1}, true
		begin.gap = gap(newest.Last, at.Revision, fmt.Sprintf("read the end of the log of changes: %v", unread))
	case begin == nil:
		begin = c.unreported(end)
	}
	if !anew {
		ended := c.record(ctx, place, member, at, newest.Last, end, begin)
		var compacted etcd.CompactedError
		var tooLarge etcd.TooLargeError
		switch {
		case errors.As(ended, &compacted), errors.As(ended, &tooLarge), errors.Is(ended, changelog.ErrGap):
		case errors.Is(ended, recorder.ErrBehind):
			return fmt.Errorf("%w; the log continues when the store takes it, or begins again if it is more than %d revisions behind then", ended, farBehind)
		case errors.Is(ended, recorder.ErrOther):
			return fmt.Errorf("%w: its members were given other data under the same ID: %s", ended, otherPath)
		default:
			return ended
		}
		now, err := position(ctx, member)
		if err != nil {
			return fmt.Errorf("record the changes of etcd: %w", err)
		}
		begin = &logBegin{first: now.Revision + 1, gap: gap(c.last(newest), now.Revision, ended.Error())}
	}
	if err := c.mayBeginAnew(place, newest, c.last(newest), begin.first-1); err != nil {
		return err
	}
	return c.record(ctx, place, member, at, begin.first-1, nil, begin)
}

// choose decides whether the log in the store continues. begin is what to report; nil: nothing. If the
// log is not mine, what the status promises begins with the first own segment: the owner of those
// before it deletes them by its own retention.
func (c *changeLog) choose(newest changelog.Key, mine bool, at etcd.Position) (begin *logBegin, anew bool, err error) {
	here := c.status != nil && c.status.ClusterID == fmt.Sprintf("%016x", at.ClusterID) && c.status.StartDate != nil
	switch {
	case newest.Text == "":
		begin = &logBegin{first: at.Revision + 1}
		switch {
		case here:
			begin.gap = gap(c.status.NewestRevision, at.Revision, "the store has no log of this cluster any more")
		case c.status != nil && c.status.ClusterID != "":
			begin.gap = fmt.Sprintf("after revision %d of the cluster %s: another cluster has taken its place, by a restore or a new creation", c.status.NewestRevision, c.status.ClusterID)
		}
		return begin, true, nil
	case at.Revision < newest.Last:
		return nil, false, behindItsLog(newest.Last)
	case at.Revision-newest.Last > farBehind:
		why := fmt.Sprintf("the log was %d revisions behind, and to read them from etcd would delay its clients", at.Revision-newest.Last)
		return &logBegin{first: at.Revision + 1, gap: gap(newest.Last, at.Revision, why)}, true, nil
	case !here || !mine:
		return &logBegin{first: newest.Last + 1}, false, nil
	}
	return nil, false, nil
}

// unreported is the begin of the log that ends with a segment, if the status still describes the log
// before it: its operator has ended in between, or Kubernetes did not answer. nil: the status has it.
func (c *changeLog) unreported(end *changelog.Segment) *logBegin {
	t := end.Trail
	if t == nil || t.Origin < max(c.status.StartRevision, c.status.NewestRevision) {
		return nil
	}
	return &logBegin{first: t.Origin + 1, gap: gap(c.status.NewestRevision, t.Origin, "the log began again, and the operator ended before it could report why")}
}

func gap(last, head int64, why string) string {
	if head <= last {
		return fmt.Sprintf("after revision %d: %s", last, why)
	}
	return fmt.Sprintf("revisions %d to %d: %s", last+1, head, why)
}

// last is the newest revision of the log, with what was stored meanwhile.
func (c *changeLog) last(before changelog.Key) int64 { return max(before.Last, c.seen().newest) }

// record records from a revision on. end is the segment that ends with it; nil: a log begins.
// begin is reported with the first segment.
func (c *changeLog) record(ctx context.Context, place *location.Location, member recorder.Member, at etcd.Position, last int64, end *changelog.Segment, begin *logBegin) error {
	cluster := at.ClusterID
	c.log.WithFields(logrus.Fields{"cluster": fmt.Sprintf("%016x", cluster), "revision": last + 1}).Info("recording the changes of etcd")
	tail := changelog.NewTail(cluster, last)
	var known *changelog.Revision
	var since time.Time
	var leases []int64
	if end != nil {
		tail, since, leases = changelog.TailOf(end), end.Until, recorder.LeasesLeft(end)
		if n := len(end.Revisions); n > 0 {
			known = &end.Revisions[n-1]
		}
	}
	others := &rivals{log: c, begun: c.cfg.Clock.Now(), own: map[string]bool{}}
	defer others.end()
	r := recorder.Recorder{
		Member: member, Cluster: cluster, Since: since, Leases: leases, Lag: c.obj.Spec.Continuous.MaxLag(), Clock: c.cfg.Clock, Hashes: c.hashes(at), Budget: c.cfg.Waiting,
		Store: func(ctx context.Context, s *changelog.Segment) error {
			tail.Tie(s)
			err := c.store(ctx, place, s)
			if err == nil {
				tail.Stored(s)
				err = others.stored(ctx, place, changelog.KeyOf(place.Key, s))
			}
			if err != nil {
				c.loseEnd()
			}
			return err
		},
		Stored: func(s *changelog.Segment) {
			c.mu.Lock()
			first := !c.progress.stored
			if begin != nil {
				begin.at = s.Until
				c.progress.begin, begin = begin, nil
				first = true
			}
			c.progress.cluster, c.progress.newest, c.progress.until, c.progress.stored = cluster, s.Last, s.Until, true
			c.endUnknown = false
			c.other = "" // etcd has the last revision of the log, or the log is at another place
			c.mu.Unlock()
			if first {
				c.wake()
			}
		},
	}
	return r.Run(ctx, last, known)
}

// hashes says when to ask for etcd's hash, and does it. Only a hash on which members agree goes into
// the log: that of one with corrupt data would make restores refuse good backups.
func (c *changeLog) hashes(at etcd.Position) recorder.Hashes {
	c.mu.Lock()
	defer c.mu.Unlock()
	h := recorder.Hashes{First: firstHash, Every: hashEvery}
	if !c.hashed.IsZero() {
		h.First = max(h.First, hashEvery-c.cfg.Clock.Since(c.hashed))
	}
	h.Ask = func(ctx context.Context, revision int64) (changelog.Checkpoint, error) {
		c.mu.Lock()
		c.hashed = c.cfg.Clock.Now()
		c.mu.Unlock()
		got, err := watchdog.GuardValue(func() (comparison, error) {
			// Members and certificates change.
			source, err := (&attempt{cfg: c.cfg, log: c.log, obj: c.obj}).source(ctx)
			if err != nil {
				return comparison{}, err
			}
			return c.cfg.HashAt(ctx, source, at.ClusterID, at.MemberID, revision)
		})
		if ctx.Err() != nil {
			return changelog.Checkpoint{}, ctx.Err()
		}
		if err != nil {
			c.log.WithError(err).Warn("the log gets no hash of etcd's keys: the next question follows in an hour")
		}
		if err == nil || got.differing != "" {
			c.mu.Lock()
			c.differing = &got.differing
			c.mu.Unlock()
			c.wake()
		}
		return got.agreed, err
	}
	return h
}

// lastHash is when etcd was last asked for its hash. Any goroutine may call it.
func (c *changeLog) lastHash() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.hashed
}

// store stores a segment. A store that does not take it in time ends the whole log: it may hang in a call
// that no context ends, and nothing else may be stored beside that.
func (c *changeLog) store(ctx context.Context, place *location.Location, s *changelog.Segment) error {
	text, err := s.Encode()
	if err != nil {
		return err
	}
	tooLate := fmt.Errorf("the store did not take %s of changes within %s", notice.Bytes(int64(len(text))), storeLimit)
	watch := time.AfterFunc(storeLimit, func() { c.giveUp(tooLate) })
	defer watch.Stop()
	_, err = place.Put(ctx, changelog.KeyOf(place.Key, s), store.Upload{
		Body: bytes.NewReader(text), Size: int64(len(text)),
		Metadata: map[string]string{
			backupobject.MetaUID: string(c.obj.UID), backupobject.MetaName: c.obj.Namespace + "/" + c.obj.Name,
			backupobject.MetaSize: strconv.Itoa(len(text)),
		},
	})
	if err == nil {
		return nil // also after the end of ctx: the store has it
	}
	switch cause := context.Cause(ctx); {
	case errors.Is(cause, tooLate):
		err = tooLate
	case cause != nil:
		return cause
	}
	return advised(fmt.Errorf("store the log of changes: %w", err), &c.obj.Spec)
}
