package cluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/seed-dec29ce4/eca/ecp/report"
	"github.com/seed-dec29ce4/eca/ecp/runtime"
	"github.com/seed-dec29ce4/eca/internal/needs"
)

// A run on one server and two workers: all attempts have a result, and the state of the run is
// finished.
func TestRun(t *testing.T) {
	r := newRig(t, 1)
	c := r.dial(RoleController)
	d := r.submit(c, r.manifest(40, ":", ""), Submission{})
	r.work(r.spec("a"))
	r.work(r.spec("b"))
	r.expect(c, d, r.follow(t.Context(), c, d, FollowOptions{Lead: true}), 40)
	if s, err := c.State(t.Context(), d.Run); err != nil || s.State != StateFinished {
		t.Errorf("%+v, %v", s, err)
	}
	runs, err := c.List(t.Context())
	if err != nil || len(runs) != 1 || runs[0].Progress.Done != 40 || runs[0].Progress.Passed != 40 {
		t.Errorf("%+v, %v", runs, err)
	}
	// A later reader with the rights of a viewer sees the same.
	viewer := r.dial(RoleViewer)
	later, err := viewer.Doc(t.Context(), d.Run)
	if err != nil {
		t.Fatal(err)
	}
	r.expect(c, d, r.follow(t.Context(), viewer, later, FollowOptions{}), 40)
	r.expect(c, d, r.follow(t.Context(), viewer, later, FollowOptions{Snapshot: true}), 40)
}

// The leader of a run ends in the middle, and another process continues.
func TestLeaderIsLost(t *testing.T) {
	r := newRig(t, 1)
	c := r.dial(RoleController)
	d := r.submit(c, r.manifest(200, "sleep 0.02", ""), Submission{})
	r.work(r.spec("a"))
	first, cancel := context.WithCancel(t.Context())
	go func() {
		for {
			if messages, _ := r.resultCounts(d); messages >= 20 {
				cancel()
				return
			}
		}
	}()
	if out := r.follow(first, c, d, FollowOptions{Lead: true}); !out.Interrupted || out.NotRun == 0 {
		t.Errorf("interrupted %v, %d not run", out.Interrupted, out.NotRun)
	}
	r.expect(c, d, r.follow(t.Context(), r.dial(RoleController), d, FollowOptions{Lead: true}), 200)
}

// A limit of a model holds over all workers, and can be raised while attempts run.
func TestLimitOfALane(t *testing.T) {
	needs.Long(t)
	r := newRig(t, 1)
	c := r.dial(RoleController)
	running := filepath.Join(t.TempDir(), "running")
	log := filepath.Join(t.TempDir(), "log")
	r.must(os.Mkdir(running, 0o700))
	// Each attempt records how many attempts are running.
	line := fmt.Sprintf("touch %s/$$; ls %[1]s | wc -l >> %s; sleep 0.05; rm %[1]s/$$", running, log)
	d := r.submit(c, r.manifest(200, line, ""), Submission{Limits: map[string]int{"m": 3}, Settings: Settings{Config: map[string]any{"model": "m"}}})
	r.work(r.spec("a"))
	r.work(r.spec("b"))
	most := func() (most, samples int) {
		raw, err := os.ReadFile(log)
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			t.Error(err)
		}
		words := strings.Fields(string(raw))
		for _, word := range words {
			n, err := strconv.Atoi(word)
			if err != nil {
				t.Error(err)
			}
			most = max(most, n)
		}
		return most, len(words)
	}
	name := laneToken("m", KindHost)
	go func() {
		for {
			if n, samples := most(); samples < 50 {
				time.Sleep(10 * time.Millisecond)
				continue
			} else if n != 3 { // less would mean that nothing runs concurrently
				t.Errorf("%d attempts at the same time, want 3", n)
			}
			break
		}
		l, err := c.Lane(t.Context(), name)
		if err != nil || l.Limit != 3 {
			t.Errorf("%+v, %v", l, err)
		}
		l.Limit = 5
		if err := c.SetLimit(t.Context(), name, l); err != nil {
			t.Error(err)
		}
		begun := time.Now()
		for n := 3; n < 4 && t.Context().Err() == nil; n, _ = most() {
			time.Sleep(10 * time.Millisecond)
		}
		t.Logf("the new limit has an effect after %s", time.Since(begun).Round(time.Millisecond))
	}()
	r.expect(c, d, r.follow(t.Context(), c, d, FollowOptions{Lead: true}), 200)
	if n, _ := most(); n != 5 {
		t.Errorf("%d attempts at the same time with the new limit, want 5", n)
	}
	// The same model in another kind of environment would have another limit.
	if err := c.openLane(t.Context(), laneToken("m", runtime.KindLocal), Lane{Model: "m", Kind: runtime.KindLocal, Limit: 2}, true); err == nil {
		t.Error("openLane accepted a second limit for the same model")
	}
}

// A budget bounds the spending of all workers: running attempts continue, and no others begin. With
// eight attempts at a time, at most sixteen are paid for beyond the budget.
func TestBudget(t *testing.T) {
	needs.Long(t)
	r := newRig(t, 1)
	c := r.dial(RoleController)
	d := r.submit(c, r.manifest(200, "sleep 2", ""), Submission{Limits: map[string]int{"m": 8}, Settings: Settings{
		Config: map[string]any{"model": "m"}, Budget: runtime.Budget{CostUSD: 1},
	}})
	r.work(r.spec("a"))
	r.work(r.spec("b"))
	out := r.follow(t.Context(), c, d, FollowOptions{Lead: true})
	made, _ := r.resultCounts(d)
	t.Logf("%d attempts of a cent were made of a budget for 100", made)
	if made < 100 || made > 116 || out.Counts.Passed != int(made) || out.Counts.Error+out.NotRun != 200-int(made) || out.Status != report.Error {
		t.Errorf("%d attempts: %+v, %d not run, %s", made, out.Counts, out.NotRun, out.Status)
	}
	if s, err := c.State(t.Context(), d.Run); err != nil || s.State != StateFinished || !strings.Contains(s.Reason, "budget") {
		t.Errorf("%+v, %v", s, err)
	}
}

// A worker only runs manifests that were signed with a trusted key, in the kinds of environments
// that it offers.
func TestTrust(t *testing.T) {
	r := newRig(t, 1)
	c := r.dial(RoleController)
	began := filepath.Join(t.TempDir(), "began")
	m := r.manifest(3, "echo >> "+began, "")
	for name, change := range map[string]func(*WorkerOptions){
		"another key": func(o *WorkerOptions) { o.Trust = []string{r.public["stranger"]} },
		"no key":      func(o *WorkerOptions) { o.Trust = nil },
	} {
		t.Run(name, func(t *testing.T) {
			d := r.submit(c, m, Submission{})
			spec := r.spec("a")
			change(&spec.Options)
			w, job := r.handler(spec, c, d)
			if done := w.try(job); done || began != "" && fileExists(began) {
				t.Errorf("it was run")
			}
		})
	}
	t.Run("another kind", func(t *testing.T) {
		d := r.submit(c, m, Submission{})
		spec := r.spec("a")
		spec.Options.Kinds = []string{runtime.KindLocal} // and the message is in its lane
		w, job := r.handler(spec, c, d)
		if w.try(job) || fileExists(began) {
			t.Error("it was run")
		}
	})
	t.Run("forged", func(t *testing.T) { // by an attacker who may write documents, and knows the public key
		d := r.submit(c, m, Submission{})
		kv, err := c.runs(t.Context())
		r.must(err)
		doc, _, err := kv.Get(t.Context(), docKey(d.Run))
		r.must(err)
		forged := strings.Replace(string(doc), "sh agent.sh", "touch "+began+"; sh agent.sh", 1)
		if forged == string(doc) {
			t.Fatal("the document has no target")
		}
		r.must(kv.Put(t.Context(), docKey(d.Run), []byte(forged)))
		w, job := r.handler(r.spec("a"), c, d)
		if w.try(job) || fileExists(began) {
			t.Error("it was run")
		}
	})
	t.Run("trusted", func(t *testing.T) {
		d := r.submit(c, m, Submission{})
		w, job := r.handler(r.spec("a"), c, d)
		if !w.try(job) || !fileExists(began) {
			t.Error("it was not run")
		}
	})
}

// If there is a result already, a later one is dropped, from any worker. If a worker publishes a
// result twice because the first acknowledgement was lost, it counts once.
func TestLateResult(t *testing.T) {
	r := newRig(t, 1)
	c := r.dial(RoleController)
	d := r.submit(c, r.manifest(1, ":", ""), Submission{})
	h, job := r.handler(r.spec("a"), c, d)
	run := h.w.acquireRun(d.Run)
	r.must(run.load())
	for _, kind := range []string{"first", "second", "first"} {
		a := &attempt{w: h.w, r: run, job: job, deliveries: 1, subject: resultSubject(d.Run, job.Key)}
		if done, err := a.publish(failedAttempt(kind, "its message")); !done || err != nil {
			t.Errorf("%s: %v, %v", kind, done, err)
		}
		if m, err := run.results.Last(t.Context(), a.subject); err != nil || !strings.Contains(string(m.Data), `"first"`) {
			t.Errorf("the result is %s, %v", m.Data, err)
		}
	}
	if messages, subjects := r.resultCounts(d); messages != 1 || subjects != 1 {
		t.Errorf("%d results of %d attempts", messages, subjects)
	}
	h.w.releaseRun(d.Run, run, true)
}

func fileExists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// handler is a worker that gets a single attempt from a test.
type handler struct {
	w *worker
	t *testing.T
}

func (r *rig) handler(spec workerSpec, c *Cluster, d *Stored) (handler, workMessage) {
	r.t.Helper()
	o := spec.options()
	h := handler{&worker{c: r.dial(RoleWorker), opts: o, attemptsCtx: r.t.Context(), states: map[string]State{}, runs: map[string]*workerRun{}}, r.t}
	m, err := c.Fetch(r.t.Context(), d, r.t.TempDir())
	r.must(err)
	p, err := runtime.NewPlan(m, baseOptions(""))
	r.must(err)
	for first := range p.Cases() {
		return h, workMessage{V: docVersion, Run: d.Run, Key: attemptKey{first.VariantKey, first.ID, 1}, Place: first.Position}
	}
	r.t.Fatal("there is no case")
	return h, workMessage{}
}

// try reports whether the attempt has a result.
func (h handler) try(job workMessage) bool {
	r := h.w.acquireRun(job.Run)
	err := r.load()
	defer func() { h.w.releaseRun(job.Run, r, err != nil) }()
	if err != nil {
		h.t.Log(err)
		return false
	}
	a := &attempt{w: h.w, r: r, job: job, deliveries: 1, subject: resultSubject(job.Run, job.Key)}
	done, err := a.perform(h.t.Context())
	h.t.Log(done, err)
	return done && err == nil
}

// A small run next to a large one on the same lane does not wait for its end, because only a window
// of each run's attempts is handed out.
func TestSmallRunBesideALargeOne(t *testing.T) {
	r := newRig(t, 1)
	c := r.dial(RoleController)
	same := Submission{Limits: map[string]int{"m": 4}, Settings: Settings{Config: map[string]any{"model": "m"}}}
	large := r.submit(c, r.manifest(3000, "sleep 0.02", ""), same)
	r.work(r.spec("a"))
	var leading sync.WaitGroup
	leading.Go(func() { r.follow(t.Context(), c, large, FollowOptions{Lead: true}) })
	defer leading.Wait()
	before := uint64(0)
	for before < 10 {
		before, _ = r.resultCounts(large)
	}
	small := r.submit(c, r.manifest(20, "sleep 0.02", ""), same)
	r.expect(c, small, r.follow(t.Context(), c, small, FollowOptions{Lead: true}), 20)
	if after, _ := r.resultCounts(large); after-before > 4*minWindow {
		t.Errorf("%d attempts of the large run were made meanwhile", after-before)
	}
	if err := c.Control(t.Context(), large.Run, StateCancelled); err != nil {
		t.Error(err)
	}
}
