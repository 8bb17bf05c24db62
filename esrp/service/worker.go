package service

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/seed-dec29ce4/eca/esrp"
)

// WorkerOptions of a worker.
type WorkerOptions struct {
	Operations Operations
	Jobs       int           // how many run at the same time; default 4
	NewID      func() string // UUIDs
	Log        *slog.Logger
}

// Worker takes jobs from a queue and runs them. Close must be called.
type Worker struct {
	o      WorkerOptions
	nc     *nats.Conn
	ctx    context.Context // ends with Close
	cancel context.CancelFunc
	work   sync.WaitGroup
}

// NewWorker starts a worker on a connection, which Close closes. If there is no server yet, the
// worker waits for one.
func NewWorker(nc *nats.Conn, o WorkerOptions) *Worker {
	o.Jobs = orElse(o.Jobs, 4)
	if o.NewID == nil {
		o.NewID = uuid.NewString
	}
	if o.Log == nil {
		o.Log = slog.Default()
	}
	w := &Worker{o: o, nc: nc}
	w.ctx, w.cancel = context.WithCancel(context.Background())
	for range o.Jobs {
		w.work.Go(w.take)
	}
	return w
}

// Close stops the running jobs; their servers are notified and give them to other workers.
func (w *Worker) Close() {
	w.cancel()
	w.work.Wait()
	w.nc.Close()
}

// take runs one job after another, until the worker ends.
func (w *Worker) take() {
	for w.ctx.Err() == nil {
		m, err := w.next()
		if err == nil {
			w.handle(m)
			continue
		}
		if errors.Is(err, nats.ErrTimeout) || errors.Is(err, context.DeadlineExceeded) {
			continue
		}
		w.o.Log.Debug("no job from the queue", "err", err)
		w.pause(retryAfter)
	}
}

// pause waits for a time, or until the worker ends.
func (w *Worker) pause(d time.Duration) {
	select {
	case <-time.After(d):
	case <-w.ctx.Done():
	}
}

func (w *Worker) next() (jetstream.Msg, error) {
	js, err := jetstream.New(w.nc)
	if err != nil {
		return nil, err
	}
	const patience = 30 * time.Second
	ctx, cancel := context.WithTimeout(w.ctx, patience)
	defer cancel()
	consumer, err := js.Consumer(ctx, streamName, consumerName)
	if err != nil {
		return nil, err
	}
	return consumer.Next(jetstream.FetchContext(ctx))
}

// handle handles a message from the queue.
func (w *Worker) handle(m jetstream.Msg) {
	var o jobRef
	if err := json.Unmarshal(m.Data(), &o); err != nil || o.Server == "" || o.Job == "" {
		w.o.Log.Warn("a message in the queue is not a job", "err", err)
		_ = m.Term()
		return
	}
	t := &attempt{w: w, m: m, ref: o, name: w.o.NewID()}
	a, err := t.ask(w.ctx, report{Say: sayStart})
	switch {
	case err != nil:
		w.unreachable(m, o, err)
	case a.Hear == hearRun:
		t.run(a)
	case a.Hear == hearLater:
		_ = m.NakWithDelay(time.Duration(a.LeaseMS) * time.Millisecond)
	case a.Hear == hearAgain:
		_ = m.NakWithDelay(retryAfter)
	default:
		_ = m.Ack()
	}
}

// Limits for jobs whose server does not answer.
const (
	maxUnreachable = 20          // how often a job is offered
	longestWait    = time.Minute // between two offers
)

// unreachable postpones a job whose server does not answer, longer each time, and finally removes
// it from the queue. A server that comes back sends its jobs to the queue again.
func (w *Worker) unreachable(m jetstream.Msg, o jobRef, err error) {
	delivered := uint64(1)
	if meta, err := m.Metadata(); err == nil {
		delivered = meta.NumDelivered
	}
	if delivered >= maxUnreachable {
		w.o.Log.Warn("the server of a job is gone; the job leaves the queue", "job", o.Job, "err", err)
		_ = m.Term()
		return
	}
	wait := min(retryAfter<<(delivered-1), longestWait)
	w.o.Log.Warn("the server of a job cannot be reached; the job waits", "job", o.Job, "wait", wait, "err", err)
	_ = m.NakWithDelay(wait)
}

// attempt is one attempt at a job.
type attempt struct {
	w    *Worker
	m    jetstream.Msg
	ref  jobRef
	name string
}

// ask sends a report to the server and returns its answer.
func (t *attempt) ask(ctx context.Context, r report) (a answer, err error) {
	r.Job, r.Worker = t.ref.Job, t.name
	body, err := encoded(r)
	if err != nil {
		return answer{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, coordinatorTimeout)
	defer cancel()
	m, err := t.w.nc.RequestWithContext(ctx, coordinatorSubject(t.ref.Server), body)
	if err != nil {
		return answer{}, err
	}
	return a, json.Unmarshal(m.Data, &a)
}

// askWithRetry repeats a report until the server answers, or ctx ends.
func (t *attempt) askWithRetry(ctx context.Context, r report) (answer, error) {
	for {
		a, err := t.ask(ctx, r)
		if err == nil && a.Hear != hearAgain {
			return a, nil
		}
		if ctx.Err() != nil {
			return answer{}, ctx.Err()
		}
		select {
		case <-time.After(retryAfter):
		case <-ctx.Done():
			return answer{}, ctx.Err()
		}
	}
}

// errOver means that the job has ended and no more reports are wanted. errGone means that its
// server has been silent for so long that another worker has the job, or will get it when the
// server is back.
var (
	errOver = errors.New("the job is over")
	errGone = errors.New("the server of the job is gone")
)

// goneAfter is for how many leases a server may be silent before its job is given up.
const goneAfter = 2

// run runs the job and reports the result.
func (t *attempt) run(a answer) {
	ctx, stop := context.WithCancelCause(t.w.ctx)
	defer stop(nil)
	sub, err := t.w.nc.Subscribe(stopSubject(t.ref.Job), func(*nats.Msg) { stop(errOver) })
	if err == nil {
		defer func() { _ = sub.Unsubscribe() }()
	}
	news := make(chan Progress, 1)
	var helper sync.WaitGroup
	helper.Go(func() { t.report(ctx, stop, time.Duration(a.LeaseMS)*time.Millisecond, news) })
	out, err := t.execute(ctx, a, news)
	if err == nil && ctx.Err() == nil {
		_, err = t.askWithRetry(ctx, report{Say: sayDone, Data: out})
	}
	cause := context.Cause(ctx)
	ended := t.w.ctx.Err() != nil && !errors.Is(cause, errOver)
	stop(nil)
	helper.Wait()
	if ended {
		t.release()
		return
	}
	if errors.Is(cause, errGone) {
		t.w.o.Log.Warn("the server of a job does not answer; the job is given up", "job", t.ref.Job)
		_ = t.m.NakWithDelay(retryAfter)
		return
	}
	if err != nil && !errors.Is(cause, errOver) {
		t.w.o.Log.Warn("a job's result could not be delivered", "job", t.ref.Job, "err", err)
	}
	_ = t.m.Ack()
}

// release gives the job back because the worker ends.
func (t *attempt) release() {
	const farewell = 2 * time.Second
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.w.ctx), farewell)
	defer cancel()
	_, _ = t.ask(ctx, report{Say: sayRelease}) // if this fails, the lease runs out
	_ = t.m.Nak()
	_ = t.w.nc.FlushWithContext(ctx)
}

// report notifies the server that the worker is alive, and of the progress, until ctx ends. If the
// server is silent for too long, report stops the job.
func (t *attempt) report(ctx context.Context, stop context.CancelCauseFunc, lease time.Duration, news <-chan Progress) {
	tick := time.NewTicker(max(lease/4, time.Millisecond))
	defer tick.Stop()
	answered := time.Now()
	number := 0
	for {
		r := report{Say: sayAlive}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		case p := <-news:
			data, err := p.value().Canonical()
			if err != nil {
				continue
			}
			number++
			r = report{Say: sayProgress, Number: number, Data: data}
		}
		_ = t.m.InProgress()
		a, err := t.ask(ctx, r)
		switch {
		case err == nil && a.Hear == hearOver:
			stop(errOver)
			return
		case err == nil:
			answered = time.Now()
		case time.Since(answered) > goneAfter*lease:
			stop(errGone)
			return
		}
	}
}

func (p Progress) value() esrp.Value {
	v := esrp.ObjectValue()
	if p.Message != "" {
		v.Members = append(v.Members, esrp.Member{Key: "message", Value: esrp.StringValue(p.Message)})
	}
	if p.Current != 0 || p.Total != 0 {
		v.Members = append(v.Members, esrp.Member{Key: "current", Value: esrp.IntValue(p.Current)})
	}
	if p.Total != 0 {
		v.Members = append(v.Members, esrp.Member{Key: "total", Value: esrp.IntValue(p.Total)})
	}
	return v
}

// execute runs the operation and returns the response, with the fields that a worker knows.
func (t *attempt) execute(ctx context.Context, a answer, news chan Progress) ([]byte, error) {
	r, err := esrp.DecodeRequest(a.Request)
	if err != nil {
		return nil, err
	}
	limit := time.Duration(r.Mode.TimeoutMS) * time.Millisecond
	limited, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	result, err := t.call(limited, Call{Job: t.ref.Job, Attempt: a.Attempt, Request: r, Progress: func(p Progress) {
		select {
		case news <- p:
		default:
		}
	}})
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	out := esrp.Response{Version: esrp.Version, RequestID: r.ID, Status: esrp.Succeeded}
	if err == nil {
		err = t.outputs(ctx, &out, result)
	}
	var f *Failure
	switch {
	case err == nil:
	case limited.Err() != nil:
		out = failed(&Failure{
			Code: esrp.Timeout, Message: fmt.Sprintf("it took longer than %d ms", r.Mode.TimeoutMS),
			Final: !t.w.o.Operations.Repeatable(r),
		})
	case errors.As(err, &f):
		out = failed(f)
	default:
		out = failed(&Failure{Code: esrp.Unknown, Message: err.Error()})
	}
	out.RequestID = r.ID
	return out.Value().Canonical()
}

// call runs the operation; a panic becomes a failure.
func (t *attempt) call(ctx context.Context, c Call) (r Result, err error) {
	defer func() {
		if p := recover(); p != nil {
			t.w.o.Log.Error("an operation panicked", "job", c.Job, "panic", p)
			err = fmt.Errorf("the operation panicked: %v", p)
		}
	}()
	if err := t.w.o.Operations.Check(c.Request); err != nil {
		return Result{}, err
	}
	return t.w.o.Operations.Run(ctx, c)
}

// outputs adds a call's outputs to its response. An output that is large, or does not fit with the
// others, becomes an artifact.
func (t *attempt) outputs(ctx context.Context, r *esrp.Response, result Result) error {
	room := maxInline
	for _, o := range result.Outputs {
		body := esrp.Body{Name: o.Name, ContentType: o.ContentType}
		if size := inlineSize(o.Data); size <= room {
			body.Data, body.Encoding = encode(o.Data)
			room -= size
			r.Outputs = append(r.Outputs, body)
			continue
		}
		hash, err := t.upload(ctx, o.Data)
		if err != nil {
			return err
		}
		body.Data, body.Encoding = artifactPrefix+hash, esrp.Path
		r.Outputs = append(r.Outputs, body)
		r.Artifacts = append(r.Artifacts, esrp.Artifact{
			ID: esrp.DerivedUUID(t.ref.Job + " " + o.Name + " " + hash), Kind: esrp.Blob, URI: body.Data,
			SHA256: hash, SizeBytes: uint64(len(o.Data)), Retention: esrp.Run,
		})
	}
	return nil
}

// upload sends an output to the server in pieces.
func (t *attempt) upload(ctx context.Context, data []byte) (hash string, err error) {
	for sent := 0; ; sent += pieceSize {
		sent = min(sent, len(data))
		a, err := t.askWithRetry(ctx, report{Say: sayBlob, Number: sent, Piece: data[sent:min(sent+pieceSize, len(data))]})
		switch {
		case err != nil:
			return "", err
		case a.Hear != hearRun:
			return "", &Failure{Code: esrp.OutOfMemory, Message: "cannot keep an output: " + a.Reason, Final: true}
		case sent == len(data):
			return a.Reason, nil
		}
	}
}
