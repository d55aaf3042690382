// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package restore

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"time"

	"github.com/sirupsen/logrus"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/record"
	"k8s.io/utils/clock"

	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/generated/clientset/versioned"
	"github.com/etcd-operator/etcd-operator/pkg/loop"
	"github.com/etcd-operator/etcd-operator/pkg/notice"
	"github.com/etcd-operator/etcd-operator/pkg/selection"
)

const (
	// betweenSteps passes from one step to the next.
	betweenSteps = 50 * time.Millisecond
	// behindInARow is how often the world may have moved on before that counts as a
	// failure: then somebody undoes what is done.
	behindInARow = 5
	// reasonInterval is the time between two writes that only report progress.
	reasonInterval = time.Second
	// shutdownTimeout limits the work at the end of the operator. It is shorter than the 30 s
	// that Kubernetes waits for a pod, and long enough for a busy API server. The operator
	// holds its Lease until then. If it has lost the Lease, the process ends before.
	shutdownTimeout = 15 * time.Second
)

// Config is what all restores of an operator share.
type Config struct {
	Kube    kubernetes.Interface
	Etcd    versioned.Interface
	Dynamic dynamic.Interface
	// Server serves the backups, under URL and the name of the restore, such as
	// http://etcd-restore-operator.ns.svc:19999/v1/backup/.
	Server Server
	URL    string
	// Reached explains why URL may not lead to Server; nil: it does.
	Reached func() error
	// VolumeDir is the directory of backups with backupStorageType Volume; "": there
	// are none.
	VolumeDir string
	Recorder  record.EventRecorder
	Metrics   *Metrics
	Logger    *logrus.Entry
	Clock     clock.Clock
	// StatusMissing is called if the API server knows an EtcdRestore and not its status subresource;
	// may be nil.
	StatusMissing func()
	// OpenLocation and Find default to pkg/location and pkg/selection.
	OpenLocation OpenLocation
	Find         Find
}

// Restore manages one EtcdRestore. All fields but the mailbox belong to the
// goroutine of Run.
type Restore struct {
	*loop.Mailbox[*api.EtcdRestore]
	cfg Config
	log *logrus.Entry

	// obj is the newest state of the object that is known.
	obj     *api.EtcdRestore
	notices notices

	job       *job           // nil while no attempt is under way
	outcome   *outcome       // of the last attempt, where it is not on record yet
	abandoned *abandonedRead // what hangs; nil: nothing
	offer     *offer         // nil while nothing is offered
	loss      lossReport     // of the lost quorum that the restore follows

	// statusWrittenAt is the time of the last write of the status.
	statusWrittenAt time.Time
	// dropsConditions reports whether the API server dropped the conditions of the last
	// status, because its CustomResourceDefinition is older.
	dropsConditions bool
	// trouble is why Kubernetes did not do what it was last asked for, and troubled the type of the
	// step that asked.
	trouble  string
	troubled reflect.Type
	// unacceptable means that the API server did not take the EtcdCluster that is on record.
	unacceptable  bool
	namespaceEnds bool
	denied        map[string]bool
	createdAt     []time.Time // when the EtcdCluster was made, of late
	editsSeen     []time.Time // when an edit of the EtcdCluster made a look in vain, of late
	behind        int         // looks in a row after which the world had moved on
	// gone is true when the object is no longer there; ctx will end.
	gone    bool
	backoff loop.Backoff
}

// errGone: the object is gone, or another has its name.
var errGone = errors.New("the EtcdRestore is gone")

// New returns the Restore of an EtcdRestore. Nothing happens before Run.
func New(cfg Config, obj *api.EtcdRestore) (*Restore, error) {
	if obj.UID == "" {
		return nil, fmt.Errorf("EtcdRestore %s/%s has no UID: it did not come from an API server", obj.Namespace, obj.Name)
	}
	if cfg.OpenLocation == nil {
		cfg.OpenLocation = inStores(cfg.Kube, cfg.VolumeDir)
	}
	if cfg.Find == nil {
		cfg.Find = selection.Find
	}
	r := &Restore{
		cfg:     cfg,
		log:     cfg.Logger.WithFields(logrus.Fields{"restore-namespace": obj.Namespace, "restore-name": obj.Name}),
		Mailbox: loop.NewMailbox[*api.EtcdRestore](),
		obj:     obj.DeepCopy(),
		denied:  map[string]bool{},
	}
	r.notices = notices{Board: notice.Board[*api.EtcdRestore]{Recorder: cfg.Recorder, Log: r.log, Object: r.obj}}
	return r, nil
}

// Run manages the restore until ctx ends. When it returns, nothing of it is under
// way any more. An object under deletion must stay with it until it is gone.
func (r *Restore) Run(ctx context.Context) {
	r.log.WithField("phase", r.obj.Status.Phase).Info("managing the restore")
	defer r.log.Info("no longer managing the restore")
	defer r.cfg.Metrics.Forget(r.obj)
	defer func() { // also in a panic
		r.dropOffer()
		if r.job != nil {
			r.job.Stop(errStopped)
			r.job.Wait()
		}
	}()
	r.cfg.Metrics.appear(r.obj)
	r.cfg.Metrics.saw(r.obj)

	loop.Run(ctx, r.cfg.Clock, r.Mailbox, loop.Reconciler[*api.EtcdRestore]{Take: r.take, Pass: r.reconcile})
	r.end(ctx)
}

// take continues from a newer state of the object. One that is older than what is known
// says nothing new.
func (r *Restore) take(obj *api.EtcdRestore) {
	if loop.Outdated(obj, r.obj) {
		return
	}
	if obj.Generation != r.obj.Generation || obj.DeletionTimestamp != nil {
		r.backoff.Skip()
	}
	r.know(obj)
}

func (r *Restore) know(obj *api.EtcdRestore) {
	r.obj, r.notices.Object = obj, obj
	r.cfg.Metrics.saw(obj)
}

// reconcile notes how an attempt has ended, and makes a pass.
func (r *Restore) reconcile(ctx context.Context) time.Duration {
	if r.job != nil {
		if result, ended := r.job.Result(); ended {
			r.job, r.outcome, r.abandoned = nil, &result, r.job.attempt.abandoned
		}
	}
	return r.pass(ctx)
}

// pass does what is due and reports how long the next look may wait.
func (r *Restore) pass(ctx context.Context) time.Duration {
	if r.gone {
		return loop.LongestSleep
	}
	now := r.cfg.Clock.Now()
	if wait := r.backoff.Remaining(now); wait > 0 {
		return wait
	}
	wait, err := r.look(ctx, now)
	switch {
	case err == nil:
		r.behind = 0
		r.backoff.Reset()
		return min(max(wait, betweenSteps), loop.LongestSleep)
	case errors.Is(err, errGone):
		r.gone = true
		r.dropOffer()
		if r.job != nil {
			r.job.Stop(errEdited)
		}
		return loop.LongestSleep
	case ctx.Err() != nil:
		return loop.LongestSleep
	case errors.Is(err, errBehind) && r.behind < behindInARow:
		r.behind++
		r.log.WithError(err).Info("looking again")
		return betweenSteps
	}
	wait = r.backoff.Fail(now)
	r.log.WithError(err).WithField("failures", r.backoff.Failures()).Error("Kubernetes does not do what it was asked for; trying again")
	return wait
}

// look observes, decides, puts on record what is about to be done, and does it.
func (r *Restore) look(ctx context.Context, now time.Time) (time.Duration, error) {
	if err := r.refresh(ctx); err != nil {
		return 0, err
	}
	if r.job != nil && (generation(r.job.attempt.obj) != generation(r.obj) || r.obj.DeletionTimestamp != nil && !committed(&r.obj.Status)) {
		r.job.Stop(errEdited)
		return loop.LongestSleep, nil // its end is waited for
	}
	if r.outcome != nil && r.outcome.generation != generation(r.obj) {
		r.outcome = nil
	}
	o, err := r.observe(ctx, now)
	if err != nil {
		return 0, errors.Join(err, r.reportBlind(ctx, now, err))
	}
	v := plan(o)
	if r.trouble != "" && reflect.TypeOf(v.step) != r.troubled {
		// The step is no longer due: somebody else has done it, or it was done and its answer lost.
		r.trouble, o.trouble = "", ""
		v = plan(o)
	}
	wrote, err := r.write(ctx, now, &v)
	if err != nil {
		return 0, err
	}
	if v.consumed {
		r.outcome = nil
	}
	if v.overtaken {
		r.editsSeen = append(r.editsSeen, now)
	}
	r.keepOffer(ctx, o.token)
	if v.step == nil {
		if wrote {
			return betweenSteps, nil
		}
		return v.wait, nil
	}
	err = v.step.apply(ctx, r)
	switch {
	case err == nil:
		r.trouble = ""
		return betweenSteps, nil
	case !errors.Is(err, errBehind) && ctx.Err() == nil:
		r.trouble, r.troubled = notice.Shorten(err.Error(), 1000), reflect.TypeOf(v.step)
	}
	return 0, err
}

// end has nothing of ours keep a namespace that is being deleted with this operator in
// it: nobody would come back for it.
func (r *Restore) end(ctx context.Context) {
	if r.gone || done(r.obj) || !committed(&r.obj.Status) {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownTimeout)
	defer cancel()
	if !r.seeNamespace(ctx) {
		return
	}
	if r.job != nil {
		r.job.Stop(errStopped)
		r.job.Wait()
		r.job = nil
	}
	for hasFinalizer(r.obj) && ctx.Err() == nil {
		_, err := r.look(ctx, r.cfg.Clock.Now())
		if errors.Is(err, errGone) {
			return
		}
		if err != nil {
			r.log.WithError(err).Warn("the namespace is being deleted, and the finalizer of the EtcdRestore keeps it; trying again")
			select {
			case <-ctx.Done():
			case <-r.cfg.Clock.After(betweenSteps):
			}
		}
	}
}

// refresh reads the object again. What is decided by it can't be taken back, and a
// cache may be behind what another operator has done. A restore that has come to its
// end does nothing, and asks nobody.
func (r *Restore) refresh(ctx context.Context) error {
	if done(r.obj) && !hasFinalizer(r.obj) {
		return nil
	}
	return r.read(ctx)
}

// read gets the object from the API server.
func (r *Restore) read(ctx context.Context) error {
	live, err := r.cfg.Etcd.EtcdV1beta2().EtcdRestores(r.obj.Namespace).Get(ctx, r.obj.Name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err) && !apierrors.HasStatusCause(err, metav1.CauseTypeUnexpectedServerResponse):
		return errGone
	case err != nil:
		return fmt.Errorf("read the EtcdRestore: %w", granted(err, "get etcdrestores"))
	case live.UID != r.obj.UID:
		return errGone
	}
	r.know(live)
	return nil
}
