package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/seed-dec29ce4/eca/ecp/runtime"
	"github.com/seed-dec29ce4/eca/internal/jet"
)

// WorkerOptions configure a worker.
type WorkerOptions struct {
	Name  string
	Jobs  int           // concurrent attempts
	Kinds []string      // of environments that it offers; KindHost runs agents in the worker's own environment
	Trust []string      // public keys whose manifests it runs; TrustAnyone accepts all
	Lanes []string      // the lanes that it works on; empty means all lanes of Kinds
	Dir   string        // for the files of runs
	Grace time.Duration // how long attempts may continue when the worker shuts down
	// Prepare returns the options for a run, and a function that is called when the run has ended.
	Prepare func(Settings) (runtime.Options, func(), error) `json:"-"`
}

// maxDeliveries is how often an attempt is delivered to workers before it counts as lost.
const maxDeliveries = 10

// worker makes attempts.
type worker struct {
	c           *Cluster
	opts        WorkerOptions
	slots       chan struct{}
	attemptsCtx context.Context // ends when running attempts must stop

	mu     sync.Mutex // guards the fields below
	states map[string]State
	runs   map[string]*workerRun
	lanes  map[string]bool
}

// Work makes attempts until ctx ends. Running attempts may then continue for Grace.
func (c *Cluster) Work(ctx context.Context, o WorkerOptions) error {
	attemptsCtx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	w := &worker{c: c, opts: o, slots: make(chan struct{}, max(o.Jobs, 1)), attemptsCtx: attemptsCtx, states: map[string]State{}, runs: map[string]*workerRun{}, lanes: map[string]bool{}}
	for range cap(w.slots) {
		w.slots <- struct{}{}
	}
	w.waitForRuns(ctx)
	watching, stop := context.WithCancel(attemptsCtx)
	defer stop()
	if err := c.watchStates(watching, "*.state", w.setState); err != nil {
		return err
	}
	var lanes sync.WaitGroup
	err := c.watch(ctx, laneKey("*"), func(key string, value []byte) {
		if name, ok := w.claimLane(key, value); ok {
			lanes.Go(func() { w.workLane(ctx, name) })
		}
	})
	if err != nil {
		return err
	}
	<-ctx.Done()
	late := time.AfterFunc(o.Grace, cancel)
	defer late.Stop()
	lanes.Wait()
	for range cap(w.slots) { // wait until all attempts have ended
		<-w.slots
	}
	w.closeRuns()
	return nil
}

// waitForRuns waits until a controller has created the streams and buckets, or ctx ends.
func (w *worker) waitForRuns(ctx context.Context) {
	for logged := false; ; logged = true {
		_, err := w.c.runs(ctx)
		if err == nil || ctx.Err() != nil {
			return
		}
		if !errors.Is(err, jet.ErrNotFound) {
			w.c.log.Warn("cluster: open the bucket of runs", "err", err)
		} else if !logged {
			w.c.log.Info("cluster: no runs yet; waiting for the first")
		}
		jet.Pause(ctx, time.Second)
	}
}

// claimLane reports whether this worker has to start working on a lane: it offers the lane, and has not
// started yet.
func (w *worker) claimLane(key string, value []byte) (name string, ok bool) {
	var l Lane
	err := json.Unmarshal(value, &l)
	name = strings.TrimPrefix(key, laneKey(""))
	w.mu.Lock()
	defer w.mu.Unlock()
	if err != nil || w.lanes[name] || !slices.Contains(w.opts.Kinds, l.Kind) || len(w.opts.Lanes) > 0 && !slices.Contains(w.opts.Lanes, name) {
		return name, false
	}
	w.lanes[name] = true
	return name, true
}

// minIdle and maxIdle limit the pause before a lane without work is tried again. The pause grows
// while there is no work.
const (
	minIdle = 20 * time.Millisecond
	maxIdle = 500 * time.Millisecond
)

// workLane fetches attempts of a lane, one for each free slot.
func (w *worker) workLane(ctx context.Context, lane string) {
	idle := minIdle
	var consumer *jet.Consumer // of the lane, once it is known
	for ctx.Err() == nil {
		if consumer == nil {
			consumer, _ = w.c.conn.Consumer(ctx, workStream, "lane-"+lane) // after an error, the lane is tried again
		}
		select {
		case <-w.slots:
		case <-ctx.Done():
			return
		}
		found, err := w.startAttempt(ctx, consumer)
		if found {
			idle = minIdle
			continue
		}
		if err != nil {
			consumer = nil
		}
		w.slots <- struct{}{}
		jet.Pause(ctx, idle)
		idle = min(2*idle, maxIdle)
	}
}

// fetchTime is how long a slot waits for an attempt of one lane before it tries others. (A request
// that does not wait at all gets no answer while the lane's limit is reached.)
const fetchTime = 50 * time.Millisecond

// startAttempt starts an attempt, if there is one. The attempt frees the slot when it ends.
func (w *worker) startAttempt(ctx context.Context, consumer *jet.Consumer) (found bool, err error) {
	if consumer == nil {
		return false, nil
	}
	msg, err := consumer.Fetch(fetchTime)
	if msg == nil {
		return false, err
	}
	go func() {
		defer func() { w.slots <- struct{}{} }()
		w.handle(msg, consumer.Lease())
	}()
	return true, nil
}

// setState handles a change of a run's state. It stops the running attempts of a cancelled run. It
// removes a run that has ended when none of its attempts is running.
func (w *worker) setState(run string, s State) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.states[run] = s
	r := w.runs[run]
	if r == nil {
		return
	}
	if s.State == StateCancelled || s.State == StateFinished {
		r.cancel()
	}
	if s.over() && r.users == 0 {
		delete(w.runs, run)
		go r.close()
	}
}

func (w *worker) stateOf(run string) State {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.states[run]
}

// workerRun is a run whose attempts this worker makes.
type workerRun struct {
	ctx    context.Context // ends when the run is cancelled
	cancel context.CancelFunc
	users  int // running attempts; guarded by worker.mu

	load    func() error
	doc     *Stored
	plan    *runtime.Plan
	session *runtime.Session
	results *jet.Stream
	dir     string
	release func()
	invalid error // why the manifest cannot be run on any machine, or nil
}

// acquireRun returns a run for an attempt. The first attempt of a run must load it. The caller must call
// leave afterwards.
func (w *worker) acquireRun(run string) *workerRun {
	w.mu.Lock()
	defer w.mu.Unlock()
	r := w.runs[run]
	if r == nil {
		ctx, cancel := context.WithCancel(w.attemptsCtx)
		r = &workerRun{ctx: ctx, cancel: cancel, release: func() {}}
		r.load = sync.OnceValue(func() error { return w.loadRun(r, run) })
		w.runs[run] = r
	}
	r.users++
	return r
}

// releaseRun releases a run. If the run could not be loaded, the next attempt loads it again.
func (w *worker) releaseRun(run string, r *workerRun, failed bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	r.users--
	if (failed || w.states[run].over()) && w.runs[run] == r {
		delete(w.runs, run)
	} else if w.runs[run] == r {
		return
	}
	if r.users == 0 {
		r.cancel()
		go r.close()
	}
}

func (w *worker) closeRuns() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for run, r := range w.runs {
		delete(w.runs, run)
		r.cancel()
		r.close()
	}
}

func (r *workerRun) close() {
	if r.session != nil {
		r.session.Close()
	}
	r.release()
	if r.dir != "" {
		_ = os.RemoveAll(r.dir)
	}
}

// errUntrusted is the error for a run that this worker must not run.
var errUntrusted = errors.New("no key that this worker trusts has signed it")

// loadRun fetches the files of a run. Its errors concern this worker at this time: another worker may
// succeed, or this one later.
func (w *worker) loadRun(r *workerRun, run string) (err error) {
	if r.doc, err = w.c.Doc(r.ctx, run); err != nil {
		return err
	}
	if !slices.Contains(w.opts.Trust, TrustAnyone) && !slices.Contains(w.opts.Trust, r.doc.SignedBy) {
		return fmt.Errorf("run %s, signed by %q: %w", run, r.doc.SignedBy, errUntrusted)
	}
	if r.doc.Run != run { // the document was replaced by that of another run
		return fmt.Errorf("the document of run %s is that of run %s", run, r.doc.Run)
	}
	if r.results, err = w.c.conn.Stream(r.ctx, resultStreams+run); err != nil {
		return err
	}
	if r.dir, err = os.MkdirTemp(w.opts.Dir, "ecp-run-"); err != nil {
		return err
	}
	files := filepath.Join(r.dir, "files")
	if err := os.Mkdir(files, 0o700); err != nil {
		return err
	}
	m, err := w.c.Fetch(r.ctx, r.doc, files)
	var problems runtime.Problems
	if errors.As(err, &problems) {
		r.invalid = err
		return nil
	}
	if err != nil {
		return err
	}
	options, release, err := w.opts.Prepare(r.doc.Settings)
	if err != nil {
		return err
	}
	r.release = release
	options.Artifacts = filepath.Join(r.dir, "diffs")
	if err := errors.Join(os.Mkdir(options.Artifacts, 0o700), r.doc.Settings.Apply(&options)); err != nil {
		return err
	}
	if r.plan, r.invalid = runtime.NewPlan(m, options); r.invalid == nil {
		r.session = runtime.NewSession(r.plan, options)
	}
	return nil
}
