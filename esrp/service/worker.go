package service

import (
	"cmp"
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

// WorkerOptions configure a Worker.
type WorkerOptions struct {
	Operations Operations
	Jobs       int // number of jobs that run at the same time; default 4
	Attempts   int // how often a job is started if its workers are lost, before it fails; default 5
	Now        func() time.Time
	NewID      func() string // UUIDs
	Log        *slog.Logger
}

// Worker fetches jobs from the stream and runs them. Close must be called.
type Worker struct {
	o      WorkerOptions
	conn   *jet.Conn
	ctx    context.Context // ends with Close
	cancel context.CancelFunc
	work   sync.WaitGroup
}

// NewWorker starts a worker on a connection, which Close closes. The worker waits until a service has
// created the stream.
func NewWorker(conn *jet.Conn, o WorkerOptions) *Worker {
	o.Jobs = orDefault(o.Jobs, 4)
	o.Attempts = orDefault(o.Attempts, 5)
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.NewID == nil {
		o.NewID = uuid.NewString
	}
	o.Log = cmp.Or(o.Log, slog.Default())
	w := &Worker{o: o, conn: conn}
	w.ctx, w.cancel = context.WithCancel(context.Background())
	for range o.Jobs {
		w.work.Go(w.run)
	}
	return w
}

// Close stops the running jobs and releases them for other workers.
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
			w.o.Log.Debug("cannot fetch jobs", "err", err)
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
	err = (&attempt{jobs: s, w: w, delivery: d, name: w.o.NewID()}).perform(first)
	switch {
	case err == nil:
		if err := d.Acknowledge(context.WithoutCancel(w.ctx)); err != nil {
			w.o.Log.Warn("cannot acknowledge a job; it will be delivered again", "job", first.id, "err", err)
		}
	case w.ctx.Err() != nil:
		_ = d.Return(0)
		const last = 2 * time.Second
		ctx, cancel := context.WithTimeout(context.WithoutCancel(w.ctx), last)
		defer cancel()
		_ = w.conn.Flush(ctx)
	default:
		w.o.Log.Warn("cannot run a job now; retrying later", "job", first.id, "err", err)
		_ = d.Return(retryAfter)
	}
}

// errEnded means that the job has ended, or that another worker runs it.
var errEnded = errors.New("the job has ended")

// errIncomplete means that reads from NATS do not return an event that NATS has already delivered.
var errIncomplete = errors.New("NATS does not return all events of the job yet")

// attempt is one attempt at a job.
type attempt struct {
	*jobs
	w         *Worker
	delivery  *jet.Delivery
	name      string
	lastEvent jobEvent // the last event of this attempt
}

// perform makes the attempt. If it returns nil, the job has ended, or another worker runs it.
func (a *attempt) perform(first jobEvent) error {
	stopKeepAlive := a.delivery.KeepAlive(nil) // while the request is read
	var r esrp.Request
	started, err := a.begin(first)
	if !started || err != nil {
		stopKeepAlive()
		return err
	}
	if first, err = a.withData(a.w.ctx, first); err == nil {
		r, err = esrp.DecodeRequest(first.data)
	}
	if err == nil {
		err = a.inlineArtifacts(a.w.ctx, &r)
	}
	stopKeepAlive()
	if err != nil && (jet.IsOutage(err) || a.w.ctx.Err() != nil) {
		return a.release(err)
	}
	return a.run(r, err)
}

// begin appends the event that starts the attempt. It returns false if the job has ended. It ends a job
// that has no attempts left.
func (a *attempt) begin(first jobEvent) (started bool, err error) {
	for {
		last, err := a.last(a.w.ctx, jobPrefix(first.id)+"*")
		switch {
		// A server that has just become the leader may not have all events yet. If the job was really
		// deleted, NATS does not deliver its message again.
		case err == nil && last.seq < first.seq:
			return false, errIncomplete
		case err != nil || last.final():
			return false, err
		case last.Attempt >= a.w.o.Attempts:
			err = a.failLost(last)
		default:
			started = true
			err = a.start(last)
		}
		if !errors.Is(err, jet.ErrConflict) {
			return started, err
		}
		started = false
	}
}

func (a *attempt) start(last jobEvent) (err error) {
	var data []byte
	switch last.kind {
	case kindQueued:
		last.Started = a.now().UnixMilli()
	case kindReleased:
		data = progressData("it runs again")
	default:
		data = progressData(fmt.Sprintf("its worker was lost; it runs again (attempt %d)", last.Attempt+1))
	}
	last.Attempt++
	last.Worker = a.name
	a.lastEvent, err = a.appendEvent(a.w.ctx, last, kindStarted, data)
	return err
}

func (a *attempt) failLost(last jobEvent) error {
	f := &Failure{Code: esrp.Unknown, Message: fmt.Sprintf("its workers were lost %d times", last.Attempt), Final: true}
	_, err := a.finish(a.w.ctx, last, esrp.JobFailed, failedResponse(f))
	return err
}

// run runs the job and appends its end. invalid is the reason why the request cannot be run, or nil.
func (a *attempt) run(r esrp.Request, invalid error) error {
	ctx, stop := context.WithCancelCause(a.w.ctx)
	defer stop(nil)
	if unlisten, err := a.conn.Listen(stopSubject(a.lastEvent.id), func() { stop(errEnded) }); err == nil {
		defer unlisten()
	}
	id := a.lastEvent.id
	defer a.delivery.KeepAlive(func() {
		if last, err := a.last(ctx, jobPrefix(id)+"*"); errors.Is(err, errNoJob) || err == nil && (last.final() || last.Worker != a.name) {
			stop(errEnded)
		}
	})()
	out, err := a.execute(ctx, stop, r, invalid)
	if err == nil {
		end := esrp.JobSucceeded
		if out.Status != esrp.Succeeded {
			end = esrp.JobFailed
		}
		_, err = a.finish(ctx, a.lastEvent, end, out)
	}
	switch {
	case errors.Is(err, jet.ErrConflict), errors.Is(context.Cause(ctx), errEnded):
		return nil
	case err != nil && a.w.ctx.Err() != nil:
		return a.release(err)
	}
	return err
}

// release appends the event that releases the job for other workers, and returns err.
func (a *attempt) release(err error) error {
	const last = 2 * time.Second
	ctx, cancel := context.WithTimeout(context.WithoutCancel(a.w.ctx), last)
	defer cancel()
	e := a.lastEvent
	e.Attempt-- // only lost attempts count
	e.Worker = ""
	_, _ = a.appendEvent(ctx, e, kindReleased, progressData("its worker is shutting down; waiting for another one")) // if it fails, this attempt counts as lost
	return err
}

// appendProgress appends progress events until updates is closed. It stops the job if another writer appended an
// event, because the job then has ended or another worker runs it.
func (a *attempt) appendProgress(ctx context.Context, stop context.CancelCauseFunc, updates <-chan Progress) {
	for p := range updates {
		data, err := p.value().Canonical()
		if err != nil || ctx.Err() != nil {
			continue
		}
		e, err := a.appendEvent(ctx, a.lastEvent, kindProgress, data)
		if err == nil {
			a.lastEvent = e
		} else if errors.Is(err, jet.ErrConflict) {
			stop(errEnded)
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

// execute runs the operation and returns the response; finish adds the other fields. An error means
// that the job was stopped and has no response.
func (a *attempt) execute(ctx context.Context, stop context.CancelCauseFunc, r esrp.Request, invalid error) (out esrp.Response, err error) {
	limit := time.Duration(r.Mode.TimeoutMS) * time.Millisecond
	limited, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	var result Result
	if err = invalid; err == nil {
		result, err = a.call(ctx, limited, stop, r)
	}
	if ctx.Err() != nil {
		return out, context.Cause(ctx)
	}
	out = esrp.Response{Version: esrp.Version, Status: esrp.Succeeded}
	if err == nil {
		err = a.addOutputs(ctx, limited, &out, result)
	}
	var f *Failure
	switch {
	case ctx.Err() != nil:
		return out, context.Cause(ctx)
	case err == nil:
	case errors.Is(err, jet.ErrConflict):
		return out, err
	case limited.Err() != nil && invalid == nil: // whatever error the operation returns
		out = timeoutResponse(r)
	case errors.As(err, &f):
		out = failedResponse(f)
	default:
		out = failedResponse(&Failure{Code: esrp.Unknown, Message: err.Error()})
	}
	return out, nil
}

// call runs the operation and appends its progress. It converts a panic to an error. The time limit does
// not stop the appending: if NATS has stored an event, the next one must follow it.
func (a *attempt) call(ctx, limited context.Context, stop context.CancelCauseFunc, r esrp.Request) (result Result, err error) {
	updates := make(chan Progress, 1)
	var reporter sync.WaitGroup
	reporter.Go(func() { a.appendProgress(ctx, stop, updates) })
	defer reporter.Wait()
	var endedLock sync.Mutex // guards ended, because an operation may report progress after it has returned
	ended := false
	defer func() {
		if p := recover(); p != nil {
			a.log.Error("an operation panicked", "job", a.lastEvent.id, "panic", p)
			err = fmt.Errorf("the operation panicked: %v", p)
		}
		endedLock.Lock()
		defer endedLock.Unlock()
		ended = true
		close(updates)
	}()
	if err := a.w.o.Operations.Check(r); err != nil {
		return Result{}, err
	}
	return a.w.o.Operations.Run(limited, Call{Job: a.lastEvent.id, Attempt: a.lastEvent.Attempt, Request: r, Progress: func(p Progress) {
		endedLock.Lock()
		defer endedLock.Unlock()
		if ended {
			return
		}
		select {
		case updates <- p:
		default:
		}
	}})
}

// addOutputs adds the outputs of a call to its response. An output that does not fit into the message of
// the response becomes an artifact.
func (a *attempt) addOutputs(ctx, limited context.Context, r *esrp.Response, result Result) error {
	room := maxInline / 2 // leaves the other half for the rest of the response
	for _, o := range result.Outputs {
		body := esrp.Body{Name: o.Name, ContentType: o.ContentType}
		if size := inlineSize(o.Data); size <= room {
			body.Data, body.Encoding = encodeBody(o.Data)
			room -= size
			r.Outputs = append(r.Outputs, body)
			continue
		}
		if len(o.Data) > maxBlob {
			return &Failure{Code: esrp.OutOfMemory, Message: fmt.Sprintf("cannot store an output: it is longer than %d bytes", maxBlob), Final: true}
		}
		hash, err := a.blobs.PutBytes(limited, o.Data)
		if err != nil {
			return err
		}
		body.Data, body.Encoding = artifactPrefix+hash, esrp.Path
		r.Outputs = append(r.Outputs, body)
		artifact := esrp.Artifact{
			ID: esrp.DerivedUUID(a.lastEvent.id + " " + o.Name + " " + hash), Kind: esrp.Blob, URI: body.Data,
			SHA256: hash, SizeBytes: uint64(len(o.Data)), Retention: esrp.Run,
		}
		r.Artifacts = append(r.Artifacts, artifact)
		list, _ := esrp.Response{Artifacts: []esrp.Artifact{artifact}}.Value().Get("artifacts")
		data, err := list.Items[0].Canonical()
		if err != nil {
			return err
		}
		if a.lastEvent, err = a.appendEvent(ctx, a.lastEvent, kindArtifact, data); err != nil {
			return err
		}
	}
	return nil
}
