package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/seed-dec29ce4/eca/ecp/report"
	"github.com/seed-dec29ce4/eca/internal/jet"
)

// handle makes the attempt of a message. It acknowledges the message after it has published the result.
func (w *worker) handle(msg *jet.Delivery, wait time.Duration) {
	leaseCtx, loseLease := context.WithCancelCause(w.attemptsCtx)
	defer loseLease(nil)
	lastBeat := time.Now()
	stop := msg.KeepAlive(func() {
		if time.Since(lastBeat) > wait { // this process was suspended
			loseLease(errLeaseLost)
		}
		lastBeat = time.Now()
	})
	defer stop()
	var job workMessage
	err := json.Unmarshal(msg.Data, &job)
	if err == nil && job.V > docVersion {
		err = fmt.Errorf("its version is %d, but this worker supports only versions up to %d: update the worker", job.V, docVersion)
	}
	if err == nil && !validToken(job.Run) {
		err = fmt.Errorf("%q is not a valid run id", job.Run)
	}
	if err != nil {
		w.returnToQueue(msg, wait, "the message cannot be used", err)
		return
	}
	if w.stateOf(job.Run).over() {
		w.acknowledge(msg)
		return
	}
	r := w.acquireRun(job.Run)
	err = r.load()
	defer func() { w.releaseRun(job.Run, r, err != nil) }()
	if err != nil {
		w.returnToQueue(msg, wait, "the run cannot be loaded", err)
		return
	}
	t := &attempt{w: w, r: r, job: job, deliveries: msg.Count, subject: resultSubject(job.Run, job.Key)}
	switch done, err := t.perform(leaseCtx); {
	case errors.Is(err, errLeaseLost): // the message must not be returned: another worker may have it
		w.c.log.Warn("cluster: an attempt was ended", "subject", msg.Subject, "err", err)
	case err != nil:
		w.returnToQueue(msg, wait, "the attempt is left to others", err)
	case done:
		w.acknowledge(msg)
	default:
		_ = msg.Return(0) // this worker is shutting down
	}
}

// acknowledge removes a message. If that fails, the message is delivered again, and the worker that
// gets it finds the result.
func (w *worker) acknowledge(msg *jet.Delivery) {
	if err := msg.Acknowledge(context.WithoutCancel(w.attemptsCtx)); err != nil {
		w.c.log.Warn("cluster: acknowledge an attempt", "err", err)
	}
}

// returnToQueue returns a message to the server, which delivers it again after wait.
func (w *worker) returnToQueue(msg *jet.Delivery, wait time.Duration, why string, err error) {
	if w.attemptsCtx.Err() == nil {
		w.c.log.Warn("cluster: "+why, "subject", msg.Subject, "err", err)
	}
	_ = msg.Return(wait)
}

// attempt is one delivery of an attempt to this worker.
type attempt struct {
	w          *worker
	r          *workerRun
	job        workMessage
	deliveries uint64
	subject    string // of the result
}

// errLeaseLost is the error for an attempt that another worker may be making now.
var errLeaseLost = errors.New("this worker was suspended for longer than its lease")

// perform makes the attempt and publishes the result, unless there is one already. done reports that
// there is a result, or that none is needed. Otherwise this worker is shutting down. If leaseCtx ends with
// errLeaseLost, perform ends the attempt and returns this error.
func (t *attempt) perform(leaseCtx context.Context) (done bool, err error) {
	if _, err := t.r.results.Last(t.r.ctx, t.subject); err == nil || !errors.Is(err, jet.ErrNotFound) {
		return err == nil, err
	}
	if t.r.invalid != nil {
		return t.publish(failedAttempt("manifest", t.r.invalid.Error()))
	}
	if t.deliveries > maxDeliveries {
		return t.publish(failedAttempt("lost", fmt.Sprintf("%d workers were lost during this attempt, or returned it", maxDeliveries)))
	}
	c, err := t.r.plan.At(t.job.Place, t.job.Key.Case)
	if err != nil {
		return t.publish(failedAttempt("manifest", err.Error()))
	}
	if kind := Kind(c.Scenario.Setup); !slices.Contains(t.w.opts.Kinds, kind) {
		return false, fmt.Errorf("this worker does not offer the environment %s", kind)
	}
	if c.VariantKey != t.job.Key.Variant {
		return t.publish(failedAttempt("manifest", "the worker's ecp does not get the same variants from the manifest as the ecp that submitted it: use the same version"))
	}
	ctx, cancel := context.WithCancel(t.r.ctx)
	defer cancel()
	defer context.AfterFunc(leaseCtx, cancel)()
	a := t.r.session.Make(ctx, c, t.job.Key.Attempt)
	if errors.Is(context.Cause(leaseCtx), errLeaseLost) {
		return false, errLeaseLost
	}
	if t.r.ctx.Err() != nil {
		return t.w.attemptsCtx.Err() == nil, nil //nolint:nilerr // the run was cancelled, or this worker is shutting down
	}
	return t.publish(a)
}

// publishTime limits how long publishing a result waits for unreachable servers.
const publishTime = time.Hour

// publish publishes the result. It drops the result if another worker has already published one.
func (t *attempt) publish(a report.Attempt) (done bool, err error) {
	ctx, cancel := context.WithTimeout(t.r.ctx, publishTime)
	defer cancel()
	res := result{V: docVersion, Worker: t.w.opts.Name, Deliveries: t.deliveries}
	if err := t.upload(ctx, &res, &a); err != nil {
		a = failedAttempt("storage", err.Error())
		res.Attempt, res.Blob, res.Diff = &a, "", ""
	}
	msg, err := res.message(t.subject, &a)
	if err != nil {
		return false, err
	}
	_, err = t.r.results.Append(ctx, msg, 0, t.subject)
	if errors.Is(err, jet.ErrConflict) {
		t.w.c.log.Info("cluster: another worker has already published a result", "subject", t.subject)
		return true, nil
	}
	return err == nil, err
}

// upload stores the parts that are too long for a result separately.
func (t *attempt) upload(ctx context.Context, res *result, a *report.Attempt) error {
	if path := a.DiffFile; path != "" {
		defer func() { _ = os.Remove(path) }()
		raw, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if res.Diff, err = t.w.c.putBlob(ctx, raw); err != nil {
			return err
		}
		a.DiffFile = ""
	}
	raw, err := json.Marshal(a)
	if err != nil {
		return err
	}
	if len(raw) <= maxInline {
		res.Attempt = a
		return nil
	}
	if len(raw) > maxBlob {
		return fmt.Errorf("the result has %d MiB; at most %d can be kept", len(raw)>>20, maxBlob>>20)
	}
	res.Blob, err = t.w.c.putBlob(ctx, raw)
	return err
}
