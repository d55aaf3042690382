// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package selection

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/etcd-operator/etcd-operator/pkg/changelog"
	"github.com/etcd-operator/etcd-operator/pkg/pages"
	"github.com/etcd-operator/etcd-operator/pkg/rewind"
	"github.com/etcd-operator/etcd-operator/pkg/store"
)

// checkHolds checks that an object holds the revision that is asked for, or that the log takes
// it there: by the segments that it returns. It reads a few parts of the object, so that a search
// among many backups is cheap. The whole is verified later.
func (f finder) checkHolds(ctx context.Context, object store.Object, v *Verified) ([]changelog.Mark, error) {
	if f.revision == 0 {
		return nil, nil
	}
	id := clusterOf(object)
	span, err := rewind.ReadSpan(&parts{finder: f, ctx: ctx, object: object})
	switch {
	case errors.Is(err, pages.ErrNoDatabase):
		return nil, damaged{v.Path, err}
	case err != nil:
		return nil, fmt.Errorf("look which revisions the backup holds: %w", err)
	}
	v.EtcdRevision = span.Newest
	if span.Holds(f.revision) {
		return nil, nil
	}
	if f.revision > span.Newest && f.log != nil && id != 0 {
		if segments := chain(f.log.of[id], span.Newest, f.revision); segments != nil {
			return segments, nil
		}
		span.Newest = reach(f.log.of[id], span.Newest)
	}
	return nil, fmt.Errorf("%w: %s: %w", ErrOutside, v.Path, rewind.OutsideError{Revision: f.revision, Span: span})
}

// parts reads an object at any offset, and keeps the last part.
type parts struct {
	finder
	ctx    context.Context //nolint:containedctx // io.ReaderAt has none
	object store.Object
	at     int64
	last   []byte
}

// partSize holds the first pages of a database, and most pages with keys.
const partSize = 64 << 10

func (p *parts) ReadAt(into []byte, offset int64) (int, error) {
	if offset < 0 || offset >= p.object.Size {
		return 0, io.EOF
	}
	end := min(offset+int64(len(into)), p.object.Size)
	if offset < p.at || end > p.at+int64(len(p.last)) {
		part := make([]byte, min(max(partSize, end-offset), p.object.Size-offset))
		if err := p.fetch(part, offset); err != nil {
			return 0, err
		}
		p.at, p.last = offset, part
	}
	n := copy(into, p.last[offset-p.at:end-p.at])
	if n < len(into) {
		return n, io.EOF
	}
	return n, nil
}

// fetch reads a part, and tries again after an error.
func (p *parts) fetch(part []byte, offset int64) error {
	pause := firstPause
	for failed := 1; ; failed++ {
		err := p.fetchOnce(part, offset)
		if err == nil || final(err) || failed == tries {
			return err
		}
		timer := time.NewTimer(pause)
		select {
		case <-timer.C:
			pause *= 2
		case <-p.ctx.Done():
			timer.Stop()
			return fmt.Errorf("stopped: %w", context.Cause(p.ctx))
		}
	}
}

func (p *parts) fetchOnce(part []byte, offset int64) error {
	ctx, cancel := context.WithCancelCause(p.ctx)
	defer cancel(nil)
	stalled := fmt.Errorf("the store has delivered nothing for %v", patience)
	watch := time.AfterFunc(patience, func() { cancel(stalled) })
	defer watch.Stop()
	reader, err := p.place.Get(ctx, p.object.Key, offset)
	if err != nil {
		return because(ctx, stalled, err)
	}
	defer reader.Close()
	if _, err := io.ReadFull(reader, part); err != nil {
		return because(ctx, stalled, fmt.Errorf("%s broke off: %w", p.place.Path(p.object.Key), err))
	}
	if p.progress != nil {
		p.progress(p.object.Key, 0, p.object.Size)
	}
	return nil
}

// nearest is the restorable revisions around one that no backup holds; 0: there is none.
type nearest struct{ below, above int64 }

func (n *nearest) add(e rewind.OutsideError) {
	switch {
	case e.Span.Newest < e.Revision:
		n.below = max(n.below, e.Span.Newest)
	case n.above == 0 || e.Span.Oldest < n.above:
		n.above = e.Span.Oldest
	}
}

func (n *nearest) known() bool { return *n != nearest{} }

func (n nearest) String() string {
	var list []string
	for _, revision := range []int64{n.below, n.above} {
		if revision > 0 {
			list = append(list, fmt.Sprint(revision))
		}
	}
	return "the nearest that can be restored: " + strings.Join(list, " and ")
}
