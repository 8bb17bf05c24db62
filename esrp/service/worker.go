package service

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/seed-dec29ce4/eca/esrp"
	"github.com/seed-dec29ce4/eca/internal/jet"
)

// WorkerOptions of a worker.
type WorkerOptions struct {
	Operations Operations
	Jobs       int // how many run at the same time; default 4
	Attempts   int // attempts of a job whose workers are lost; default 5
	Now        func() time.Time
	NewID      func() string // UUIDs
	Log        *slog.Logger
}

// Worker takes jobs from the stream and runs them. Close must be called.
type Worker struct {
	o      WorkerOptions
	conn   *jet.Conn
	ctx    context.Context // ends with Close
	cancel context.CancelFunc
	work   sync.WaitGroup
}

// NewWorker starts a worker on a connection, which Close closes. If no service has made the stream
// yet, the worker waits for it.
func NewWorker(conn *jet.Conn, o WorkerOptions) *Worker {
	o.Jobs = orElse(o.Jobs, 4)
	o.Attempts = orElse(o.Attempts, 5)
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.NewID == nil {
		o.NewID = uuid.NewString
	}
	if o.Log == nil {
		o.Log = slog.Default()
	}
	w := &Worker{o: o, conn: conn}
	w.ctx, w.cancel = context.WithCancel(context.Background())
	for range o.Jobs {
		w.work.Go(w.run)
	}
	return w
}

// Close stops the running jobs and gives them back, for other workers.
func (w *Worker) Close() {
	w.cancel()
	w.work.Wait()
	w.conn.Close()
}

// run runs one job after another, until the worker ends.
func (w *Worker) run() {
	const patience = 30 * time.Second
	for w.ctx.Err() == nil {
		jobs, err := openJobs(w.ctx, w.conn, w.o.Now, w.o.Log)
		var queue *jet.Consumer
		if err == nil {
			queue, err = w.conn.Consumer(w.ctx, streamName, consumerName)
		}
		for err == nil {
			var d *jet.Delivery
			if d, err = queue.FetchUntil(w.ctx, patience); d != nil {
				w.handle(jobs, d)
			}
		}
		if w.ctx.Err() == nil {
			w.o.Log.Debug("there is no job", "err", err)
			jet.Pause(w.ctx, retryAfter)
		}
	}
}

// handle runs the job of a delivery, unless it has ended, and acknowledges it afterwards.
func (w *Worker) handle(s *jobs, d *jet.Delivery) {
	first, err := parseEvent(d.Message)
	if err != nil {
		w.o.Log.Warn("a message in the stream is not a job", "err", err)
		_ = d.Acknowledge(context.WithoutCancel(w.ctx))
		return
	}
	err = (&attempt{jobs: s, w: w, d: d, name: w.o.NewID()}).perform(first)
	switch {
	case err == nil:
		if err := d.Acknowledge(context.WithoutCancel(w.ctx)); err != nil {
			w.o.Log.Warn("a job cannot be acknowledged; it is looked at again", "job", first.id, "err", err)
		}
	case w.ctx.Err() != nil:
		_ = d.Return(0)
		const last = 2 * time.Second
		ctx, cancel := context.WithTimeout(context.WithoutCancel(w.ctx), last)
		defer cancel()
		_ = w.conn.Flush(ctx)
	default:
		w.o.Log.Warn("a job cannot be run now; it waits", "job", first.id, "err", err)
		_ = d.Return(retryAfter)
	}
}

// errOver means that the job has ended, or that another worker has it.
var errOver = errors.New("the job is over")

// errBehind means that NATS does not show an event that it has delivered.
var errBehind = errors.New("NATS does not show all events of the job yet")

// attempt is one attempt at a job.
type attempt struct {
	*jobs
	w    *Worker
	d    *jet.Delivery
	name string
	e    entry // the last event of this attempt
}

// perform makes the attempt. Without an error, the job has ended, or another worker has it.
func (a *attempt) perform(first entry) error {
	stopBeats := a.d.KeepAlive(nil) // while data are read
	var r esrp.Request
	goes, err := a.begin(first)
	if !goes || err != nil {
		stopBeats()
		return err
	}
	if first, err = a.whole(a.w.ctx, first); err == nil {
		r, err = esrp.DecodeRequest(first.data)
	}
	if err == nil {
		err = a.inline(a.w.ctx, &r)
	}
	stopBeats()
	if err != nil && (jet.IsOutage(err) || a.w.ctx.Err() != nil) {
		return a.release(err)
	}
	return a.run(r, err)
}

// begin appends that the attempt begins. It returns false if the job has ended.
func (a *attempt) begin(first entry) (goes bool, err error) {
	for {
		last, err := a.last(a.w.ctx, jobPrefix(first.id)+"*")
		switch {
		// A server that has just begun to lead may not have all events yet. The message of a job that
		// is really gone is not handed out again.
		case err == nil && last.seq < first.seq:
			return false, errBehind
		case err != nil || last.final():
			return false, err
		case last.Attempt >= a.w.o.Attempts:
			err = a.giveUp(last)
		default:
			goes = true
			err = a.start(last)
		}
		if !errors.Is(err, jet.ErrConflict) {
			return goes, err
		}
		goes = false
	}
}

func (a *attempt) start(last entry) (err error) {
	var data []byte
	switch last.kind {
	case kindQueued:
		last.Started = a.now().UnixMilli()
	case kindReleased:
		data = message("it runs again")
	default:
		data = message(fmt.Sprintf("its worker was lost; it runs again (attempt %d)", last.Attempt+1))
	}
	last.Attempt++
	last.Worker = a.name
	a.e, err = a.progress(a.w.ctx, last, kindStarted, data)
	return err
}

func (a *attempt) giveUp(last entry) error {
	f := &Failure{Code: esrp.Unknown, Message: fmt.Sprintf("its workers were lost %d times", last.Attempt), Final: true}
	_, err := a.finish(a.w.ctx, last, esrp.JobFailed, failed(f))
	return err
}

// run runs the job and appends its end. wrong is why the request cannot be run, or nil.
func (a *attempt) run(r esrp.Request, wrong error) error {
	ctx, stop := context.WithCancelCause(a.w.ctx)
	defer stop(nil)
	if unlisten, err := a.conn.Listen(stopSubject(a.e.id), func() { stop(errOver) }); err == nil {
		defer unlisten()
	}
	id := a.e.id
	defer a.d.KeepAlive(func() {
		if last, err := a.last(ctx, jobPrefix(id)+"*"); errors.Is(err, errNoJob) || err == nil && (last.final() || last.Worker != a.name) {
			stop(errOver)
		}
	})()
	out, err := a.execute(ctx, stop, r, wrong)
	if err == nil {
		end := esrp.JobSucceeded
		if out.Status != esrp.Succeeded {
			end = esrp.JobFailed
		}
		_, err = a.finish(ctx, a.e, end, out)
	}
	switch {
	case errors.Is(err, jet.ErrConflict), errors.Is(context.Cause(ctx), errOver):
		return nil
	case err != nil && a.w.ctx.Err() != nil:
		return a.release(err)
	}
	return err
}

// release gives the job back because of an error.
func (a *attempt) release(err error) error {
	const last = 2 * time.Second
	ctx, cancel := context.WithTimeout(context.WithoutCancel(a.w.ctx), last)
	defer cancel()
	e := a.e
	e.Attempt-- // it was not lost
	e.Worker = ""
	_, _ = a.progress(ctx, e, kindReleased, message("its worker ends; it waits for another one")) // without it, the next attempt counts one more
	return err
}

// report appends the progress until news is closed. If another event came first, the job is over.
func (a *attempt) report(ctx context.Context, stop context.CancelCauseFunc, news <-chan Progress) {
	for p := range news {
		data, err := p.value().Canonical()
		if err != nil || ctx.Err() != nil {
			continue
		}
		e, err := a.progress(ctx, a.e, kindProgress, data)
		if err == nil {
			a.e = e
		} else if errors.Is(err, jet.ErrConflict) {
			stop(errOver)
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

// execute runs the operation and returns the response, with the fields that a worker knows. The
// error is that the job must stop.
func (a *attempt) execute(ctx context.Context, stop context.CancelCauseFunc, r esrp.Request, wrong error) (out esrp.Response, err error) {
	limit := time.Duration(r.Mode.TimeoutMS) * time.Millisecond
	limited, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	var result Result
	if err = wrong; err == nil {
		result, err = a.call(ctx, limited, stop, r)
	}
	if ctx.Err() != nil {
		return out, context.Cause(ctx)
	}
	out = esrp.Response{Version: esrp.Version, Status: esrp.Succeeded}
	if err == nil {
		err = a.outputs(ctx, limited, &out, result)
	}
	var f *Failure
	switch {
	case ctx.Err() != nil:
		return out, context.Cause(ctx)
	case err == nil:
	case errors.Is(err, jet.ErrConflict):
		return out, err
	case limited.Err() != nil && wrong == nil: // whatever the operation makes of it
		out = timedOut(r)
	case errors.As(err, &f):
		out = failed(f)
	default:
		out = failed(&Failure{Code: esrp.Unknown, Message: err.Error()})
	}
	return out, nil
}

// call runs the operation and appends its progress; a panic becomes a failure. The time limit does not
// end the appending: if NATS has taken an event, the next one must follow it.
func (a *attempt) call(ctx, limited context.Context, stop context.CancelCauseFunc, r esrp.Request) (result Result, err error) {
	news := make(chan Progress, 1)
	var reporter sync.WaitGroup
	reporter.Go(func() { a.report(ctx, stop, news) })
	defer reporter.Wait()
	var open sync.Mutex // guards ended: an operation may report its progress late
	ended := false
	defer func() {
		if p := recover(); p != nil {
			a.log.Error("an operation panicked", "job", a.e.id, "panic", p)
			err = fmt.Errorf("the operation panicked: %v", p)
		}
		open.Lock()
		defer open.Unlock()
		ended = true
		close(news)
	}()
	if err := a.w.o.Operations.Check(r); err != nil {
		return Result{}, err
	}
	return a.w.o.Operations.Run(limited, Call{Job: a.e.id, Attempt: a.e.Attempt, Request: r, Progress: func(p Progress) {
		open.Lock()
		defer open.Unlock()
		if ended {
			return
		}
		select {
		case news <- p:
		default:
		}
	}})
}

// outputs adds a call's outputs to its response. An output that is large, or does not fit with the
// others, becomes an artifact.
func (a *attempt) outputs(ctx, limited context.Context, r *esrp.Response, result Result) error {
	room := maxInline / 2 // so that the response's message has them, with all else in it
	for _, o := range result.Outputs {
		body := esrp.Body{Name: o.Name, ContentType: o.ContentType}
		if size := inlineSize(o.Data); size <= room {
			body.Data, body.Encoding = encode(o.Data)
			room -= size
			r.Outputs = append(r.Outputs, body)
			continue
		}
		if len(o.Data) > maxBlob {
			return &Failure{Code: esrp.OutOfMemory, Message: fmt.Sprintf("cannot keep an output: it is longer than %d bytes", maxBlob), Final: true}
		}
		hash, err := a.blobs.PutBytes(limited, o.Data)
		if err != nil {
			return err
		}
		body.Data, body.Encoding = artifactPrefix+hash, esrp.Path
		r.Outputs = append(r.Outputs, body)
		artifact := esrp.Artifact{
			ID: esrp.DerivedUUID(a.e.id + " " + o.Name + " " + hash), Kind: esrp.Blob, URI: body.Data,
			SHA256: hash, SizeBytes: uint64(len(o.Data)), Retention: esrp.Run,
		}
		r.Artifacts = append(r.Artifacts, artifact)
		list, _ := esrp.Response{Artifacts: []esrp.Artifact{artifact}}.Value().Get("artifacts")
		data, err := list.Items[0].Canonical()
		if err != nil {
			return err
		}
		if a.e, err = a.progress(ctx, a.e, kindArtifact, data); err != nil {
			return err
		}
	}
	return nil
}
