package cluster

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/seed-dec29ce4/eca/ecp/report"
)

// handle makes the attempt of a message. It publishes the result first and acknowledges second.
func (w *worker) handle(ctx context.Context, msg jetstream.Msg, wait time.Duration) {
	stop := keepAlive(msg, wait)
	defer stop()
	var job work
	meta, err := msg.Metadata()
	if err == nil {
		err = json.Unmarshal(msg.Data(), &job)
	}
	if err == nil && job.V > docVersion {
		err = fmt.Errorf("its version is %d, and this worker knows up to %d: update it", job.V, docVersion)
	}
	if err == nil && !validToken(job.Run) {
		err = fmt.Errorf("%q is not a run", job.Run)
	}
	if err != nil {
		w.leaveToOthers(msg, wait, "the message cannot be used", err)
		return
	}
	if w.stateOf(job.Run).over() {
		w.acknowledge(msg)
		return
	}
	r := w.enter(job.Run)
	err = r.load()
	defer func() { w.leave(job.Run, r, err != nil) }()
	if err != nil {
		w.leaveToOthers(msg, wait, "the run cannot be loaded", err)
		return
	}
	t := &try{w: w, r: r, job: job, deliveries: meta.NumDelivered, subject: resultSubject(job.Run, job.Key), writer: w.o.Name + " " + rand.Text()}
	switch done, err := t.perform(ctx); {
	case err != nil:
		w.leaveToOthers(msg, wait, "the attempt is left to others", err)
	case done:
		w.acknowledge(msg)
	default:
		_ = msg.Nak() // this worker is ending
	}
}

// keepAlive reports that an attempt continues, until the function that it returns is called.
func keepAlive(msg jetstream.Msg, wait time.Duration) (stop func()) {
	ended := make(chan struct{})
	done := make(chan struct{})
	go func() {
		defer close(done)
		beat := time.NewTicker(max(wait/3, 50*time.Millisecond))
		defer beat.Stop()
		for {
			select {
			case <-beat.C:
				_ = msg.InProgress() // a lost report is harmless: the next one may arrive
			case <-ended:
				return
			}
		}
	}()
	return func() {
		close(ended)
		<-done
	}
}

// acknowledge removes a message. If that fails, the message is delivered again, and its result is
// found.
func (w *worker) acknowledge(msg jetstream.Msg) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(w.hard), 10*time.Second)
	defer cancel()
	if err := msg.DoubleAck(ctx); err != nil {
		w.c.log.Warn("cluster: acknowledge an attempt", "err", err)
	}
}

// leaveToOthers returns a message, which is delivered again after a while.
func (w *worker) leaveToOthers(msg jetstream.Msg, wait time.Duration, why string, err error) {
	if w.hard.Err() == nil {
		w.c.log.Warn("cluster: "+why, "subject", msg.Subject(), "err", err)
	}
	_ = msg.NakWithDelay(wait)
}

// try is one try of this worker to make an attempt.
type try struct {
	w          *worker
	r          *workerRun
	job        work
	deliveries uint64
	subject    string // of the result
	writer     string // unique to this try
}

// perform makes the attempt and publishes its result, unless it has one. done reports that there is
// a result, or that none is wanted. Otherwise this worker ran out of time.
func (t *try) perform(ctx context.Context) (done bool, err error) {
	if known, err := t.lookUp(t.r.ctx); err != nil || known != "" {
		return err == nil, err
	}
	if t.r.invalid != nil {
		return t.publish(broken("manifest", t.r.invalid.Error()))
	}
	if t.deliveries > maxDeliveries {
		return t.publish(broken("lost", fmt.Sprintf("%d workers were lost with this attempt, or gave it back", maxDeliveries)))
	}
	c, err := t.r.plan.At(t.job.Place, t.job.Key.Case)
	if err != nil {
		return t.publish(broken("manifest", err.Error()))
	}
	if kind := Kind(c.Scenario.Setup); !slices.Contains(t.w.o.Kinds, kind) {
		return false, fmt.Errorf("this worker does not offer the environment %s", kind)
	}
	if c.VariantKey != t.job.Key.Variant {
		return t.publish(broken("manifest", "the worker's ecp makes other variants of the manifest than the one that submitted it: use the same version"))
	}
	a := t.r.session.Make(t.r.ctx, c, t.job.Key.Attempt)
	if t.r.ctx.Err() != nil {
		return t.w.hard.Err() == nil, nil //nolint:nilerr // the run was cancelled, or this worker ends
	}
	return t.publish(a)
}

// lookUp returns the writer of the published result; it is empty without a result.
func (t *try) lookUp(ctx context.Context) (writer string, err error) {
	msg, err := t.r.results.GetLastMsgForSubject(ctx, t.subject)
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("look for the result: %w", err)
	}
	if writer = msg.Header.Get(headerWriter); writer == "" {
		writer = "unknown"
	}
	return writer, nil
}

// publishTime bounds how long a result waits for unreachable servers.
const publishTime = time.Hour

// publish publishes the result, unless there is one already: if another worker was first, its
// result counts, and this one is dropped.
func (t *try) publish(a report.Attempt) (done bool, err error) {
	ctx, cancel := context.WithTimeout(t.r.ctx, publishTime)
	defer cancel()
	res := result{V: docVersion, Worker: t.w.o.Name, Deliveries: t.deliveries}
	if err := t.upload(ctx, &res, &a); err != nil {
		a = broken("storage", err.Error())
		res.Attempt, res.Blob, res.Diff = &a, "", ""
	}
	msg, err := res.message(t.subject, t.writer, &a)
	if err != nil {
		return false, err
	}
	for wait := 50 * time.Millisecond; ; wait = min(2*wait, 5*time.Second) {
		limited, cancel := context.WithTimeout(ctx, 5*time.Second)
		_, err = t.w.c.js.PublishMsg(limited, msg, jetstream.WithExpectLastSequencePerSubject(0))
		cancel()
		if err == nil {
			return true, nil
		}
		if first, lookErr := t.lookUp(ctx); lookErr == nil && first != "" {
			if first != t.writer {
				t.w.c.log.Info("cluster: another worker's result counts", "subject", t.subject)
			}
			return true, nil
		}
		if ctx.Err() != nil {
			return false, errors.Join(err, ctx.Err())
		}
		t.w.c.log.Warn("cluster: publish a result; trying again", "subject", t.subject, "err", err)
		pause(ctx, wait)
	}
}

// upload stores the parts that are too long for a result separately.
func (t *try) upload(ctx context.Context, res *result, a *report.Attempt) error {
	if path := a.DiffFile; path != "" {
		defer func() { _ = os.Remove(path) }()
		raw, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if res.Diff, err = t.blob(ctx, raw); err != nil {
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
	res.Blob, err = t.blob(ctx, raw)
	return err
}

func (t *try) blob(ctx context.Context, raw []byte) (string, error) {
	name := digest(raw)
	return name, t.w.c.put(ctx, blobsBucket, name, func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(raw)), nil })
}
