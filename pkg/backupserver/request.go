// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package backupserver

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/etcd-operator/etcd-operator/pkg/store"
)

// pieceSize is how much a request reads from the store and sends at once, and so the memory
// that it takes.
const pieceSize = 64 << 10

// request is an open request. Its handler owns it; others may end it.
type request struct {
	server *Server
	offer  *offer
	w      http.ResponseWriter
	ctx    context.Context
	cancel context.CancelCauseFunc
	ended  chan struct{} // closed when the handler has returned

	mu   sync.Mutex // guards the deadline of writes, and over
	over bool
}

func newRequest(s *Server, o *offer, w http.ResponseWriter, r *http.Request) *request {
	ctx, cancel := context.WithCancelCause(r.Context())
	return &request{server: s, offer: o, w: w, ctx: ctx, cancel: cancel, ended: make(chan struct{})}
}

// end makes the request end soon, wherever it is. It does nothing to one that is over.
func (r *request) end(why error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.over {
		return // its connection may serve another request by now
	}
	r.over = true
	r.cancel(why)
	// The handler may be waiting for its client.
	_ = http.NewResponseController(r.w).SetWriteDeadline(time.Unix(1, 0))
}

// done marks the request as over. The handler no longer uses the connection.
func (r *request) done() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.over = true
	r.cancel(nil)
}

// mayWrite sets the deadline of the next write.
func (r *request) mayWrite() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.over {
		return context.Cause(r.ctx)
	}
	return http.NewResponseController(r.w).SetWriteDeadline(time.Now().Add(r.server.cfg.ProgressTimeout))
}

// answer sends the client the part that it asks for.
func (r *request) answer(req *http.Request) {
	b, etag, header := r.offer.backup, `"`+r.offer.backup.SHA256+`"`, r.w.Header()
	header.Set("Cache-Control", "no-store")
	if !matches(req, etag) {
		r.refuse(http.StatusPreconditionFailed, "the backup that is offered now is another one")
		return
	}
	offset, partial, err := offsetOf(req, etag, b.Size)
	if err != nil {
		header.Set("Content-Range", fmt.Sprintf("bytes */%d", b.Size))
		r.refuse(http.StatusRequestedRangeNotSatisfiable, err.Error())
		return
	}
	if r.server.wholeOnly(r.offer) {
		offset, partial = 0, false
	}
	status := http.StatusOK
	if partial {
		status = http.StatusPartialContent
		header.Set("Content-Range", fmt.Sprintf("bytes %d-%d/%d", offset, b.Size-1, b.Size))
	}
	header.Set("ETag", etag)
	header.Set("Accept-Ranges", "bytes")
	header.Set("Content-Type", "application/octet-stream")
	header.Set("Content-Length", strconv.FormatInt(b.Size-offset, 10))
	if req.Method == http.MethodHead {
		r.w.WriteHeader(status)
		return
	}
	log := r.server.cfg.Logger.WithFields(logrus.Fields{"name": r.offer.name, "client": req.RemoteAddr, "offset": offset, "size": b.Size})
	log.Info("a client fetches the backup")
	sent, err := r.stream(offset, status)
	log = log.WithField("sent", sent)
	if err != nil {
		log.WithError(err).Warn("a client was not sent all that it asked for")
		return
	}
	log.Info("a client was sent the backup to its end")
}

// refuse answers without a backup, and says why.
func (r *request) refuse(status int, why string) {
	if r.mayWrite() == nil {
		http.Error(r.w, why, status)
	}
}

// failure is an error of the store.
type failure struct{ err error }

func (f failure) Error() string { return f.err.Error() }
func (f failure) Unwrap() error { return f.err }

// stream sends the backup from an offset on. If it returns early, the server closes the
// connection, because it has sent less than it has announced.
func (r *request) stream(offset int64, status int) (sent int64, err error) {
	defer func() {
		var failed failure
		if !errors.As(err, &failed) || r.ctx.Err() != nil && !errors.Is(context.Cause(r.ctx), errStoreStalls) {
			return // the client ended it, or the server
		}
		if errors.Is(err, ErrReplaced) && sent > 0 {
			r.server.notRight(r.offer)
		}
		if r.offer.backup.Failed != nil {
			r.offer.backup.Failed(failed.err)
		}
		if sent == 0 {
			header := r.w.Header()
			for _, name := range []string{"Content-Length", "Content-Range", "ETag", "Accept-Ranges"} {
				header.Del(name)
			}
			r.refuse(http.StatusBadGateway, reason(failed.err))
		}
	}()
	source, err := r.open(offset)
	if err != nil {
		return 0, err
	}
	defer source.close()
	piece := make([]byte, pieceSize)
	for left := r.offer.backup.Size - offset; left > 0; {
		n, err := source.next(piece[:min(int64(pieceSize), left)], left)
		if err != nil {
			return sent, err
		}
		if err := r.mayWrite(); err != nil {
			return sent, err
		}
		if sent == 0 {
			r.w.WriteHeader(status)
		}
		written, err := r.w.Write(piece[:n])
		if sent == 0 && err == nil {
			// A client of a slow store must learn at once that its request is being served.
			err = http.NewResponseController(r.w).Flush()
		}
		sent, left = sent+int64(written), left-int64(written)
		r.server.cfg.Sent(r.offer.name, written)
		if err != nil {
			return sent, errors.Join(err, context.Cause(r.ctx))
		}
		if r.offer.backup.Served != nil {
			r.offer.backup.Served(offset + sent)
		}
	}
	return sent, nil
}

// reason turns an error of the store into a text for people of the cluster's namespace. The
// text quotes nothing from the store.
func reason(err error) string {
	for kind, words := range map[error]string{
		store.ErrNoCredentials: "the operator has no credentials for the store",
		store.ErrNotFound:      "the backup is not in the store any more",
		store.ErrNoBucket:      "the store has no such bucket any more",
		store.ErrDenied:        "the store refuses the credentials",
		ErrReplaced:            "the object in the store is not the backup that was verified",
		io.EOF:                 "the object in the store is not the backup that was verified",
	} {
		if errors.Is(err, kind) {
			return words + ": see the EtcdRestore"
		}
	}
	return "the store can't give the backup now: see the EtcdRestore"
}
