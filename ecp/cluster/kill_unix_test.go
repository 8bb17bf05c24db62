//go:build unix

package cluster

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/seed-dec29ce4/eca/internal/needs"
)

// Flags of TestKills: the evaluation contract asks for 50 rounds, and for 100,000 attempts in one
// round; CI has time for fewer.
var (
	rounds = flag.Int("rounds", 3, "runs of TestKills")
	large  = flag.Int("large", 0, "attempts of a run of TestKills, which take no time; 0 means 120 attempts of 0.2 s")
)

// process is a worker or a leader that can be killed.
type process struct {
	cmd  *exec.Cmd
	done chan struct{}
}

func (r *rig) process(name string) *process { return r.startProcess("worker", r.spec(name)) }

// startProcess starts this program as another process, see TestMain.
func (r *rig) startProcess(what string, spec any) *process {
	r.t.Helper()
	raw, err := json.Marshal(spec)
	r.must(err)
	self, err := os.Executable()
	r.must(err)
	cmd := exec.Command(self, what, string(raw))
	cmd.Stderr = testWriter{r.t}
	r.must(cmd.Start())
	p := &process{cmd, make(chan struct{})}
	go func() {
		_ = cmd.Wait()
		close(p.done)
	}()
	r.t.Cleanup(p.kill)
	return p
}

func (p *process) kill() {
	_ = p.cmd.Process.Kill()
	<-p.done
}

// Each of three servers stores all data. Workers are killed at random, and every eight seconds one
// server is stopped and started again. Each attempt still has exactly one result that counts. The
// random seed is printed, and no assertion depends on it.
func TestKills(t *testing.T) {
	needs.Long(t)
	r := newRig(t, 3)
	c := r.dial(RoleController)
	const workers = 3
	attempts, line := 120, "sleep 0.2"
	if *large > 0 {
		attempts, line = *large, ":"
	}
	m := r.manifest(attempts, line, "")
	for round := range *rounds {
		seed := uint64(time.Now().UnixNano())
		t.Logf("round %d, seed %d", round+1, seed)
		random := rand.New(rand.NewPCG(seed, 1))
		d := r.submit(c, m, Submission{})
		if d.Replicas != 3 {
			t.Fatalf("the run has %d replicas, want 3", d.Replicas)
		}
		stop := make(chan struct{})
		var chaos sync.WaitGroup
		ofWorkers, ofServer := random.Uint64(), random.Uint64()
		chaos.Go(func() { r.killWorkers(stop, ofWorkers, round, workers) })
		chaos.Go(func() { r.killServers(stop, ofServer) })
		out := r.follow(t.Context(), c, d, FollowOptions{Lead: true})
		close(stop)
		chaos.Wait()
		r.expect(c, d, out, attempts)
		if t.Failed() {
			return
		}
	}
}

// killWorkers runs the given number of workers. It kills and replaces one of them from time to
// time, until stop is closed.
func (r *rig) killWorkers(stop <-chan struct{}, seed uint64, round, count int) {
	random := rand.New(rand.NewPCG(seed, 2))
	var all []*process
	for i := range count {
		all = append(all, r.process(fmt.Sprintf("w%d-%d", round, i)))
	}
	for n := count; ; n++ {
		select {
		case <-stop:
			for _, p := range all {
				p.kill()
			}
			return
		case <-time.After(time.Duration(200+random.IntN(800)) * time.Millisecond):
		}
		r.t.Log("a worker is killed")
		i := random.IntN(count)
		all[i].kill()
		all[i] = r.process(fmt.Sprintf("w%d-%d", round, n))
	}
}

// killServers stops one server after the other, and starts it again, until stop is closed.
func (r *rig) killServers(stop <-chan struct{}, seed uint64) {
	random := rand.New(rand.NewPCG(seed, 3))
	pause := func(d time.Duration) (stopped bool) {
		select {
		case <-stop:
			return true
		case <-time.After(d):
			return false
		}
	}
	for first := true; ; first = false {
		wait := 8 * time.Second
		if first {
			wait = time.Duration(random.IntN(1000)) * time.Millisecond
		}
		if pause(wait) {
			return
		}
		r.t.Log("a server is stopped")
		n := r.servers[random.IntN(len(r.servers))]
		n.stop()
		pause(time.Duration(500+random.IntN(1500)) * time.Millisecond)
		if err := n.start(); err != nil {
			r.t.Error(err)
			return
		}
		if !n.s.ReadyForConnections(time.Minute) {
			r.t.Error("the server is not ready a minute after its restart")
			return
		}
	}
}

// A worker is suspended for three leases. When it wakes, it ends the attempts that another worker has
// got meanwhile, although their run continues.
func TestWorkerSleeps(t *testing.T) {
	needs.Long(t)
	r := newRig(t, 1)
	c := r.dial(RoleController)
	dir := t.TempDir()
	began, awake := dir+"/began", dir+"/awake"
	line := fmt.Sprintf("if mkdir %s; then echo $$ > %[1]s/pid; sleep 1000; fi; while [ ! -e %s ]; do sleep 0.05; done", began, awake)
	d := r.submit(c, r.manifest(4, line, ""), Submission{})
	sleeper := r.process("sleeper")
	go func() {
		defer func() { r.must(os.WriteFile(awake, nil, 0o600)) }()
		for !fileExists(began + "/pid") {
			time.Sleep(5 * time.Millisecond)
		}
		if err := sleeper.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
			t.Error(err)
		}
		r.process("other")
		time.Sleep(3 * lease)
		if err := sleeper.cmd.Process.Signal(syscall.SIGCONT); err != nil {
			t.Error(err)
		}
		r.waitUntilGone(began + "/pid")
		if messages, _ := r.resultCounts(d); messages != 0 {
			t.Errorf("the run has %d results before its end", messages)
		}
	}()
	out := r.follow(t.Context(), c, d, FollowOptions{Lead: true})
	r.must(sleeper.cmd.Process.Signal(syscall.SIGTERM)) // it ends after publishing its results
	<-sleeper.done
	r.expect(c, d, out, 4)
}

// waitUntilGone waits until the processes whose numbers a file has are gone, for at most ten seconds.
func (r *rig) waitUntilGone(file string) {
	raw, err := os.ReadFile(file)
	if err != nil {
		r.t.Error(err)
	}
	end := time.Now().Add(10 * time.Second)
	for word := range strings.FieldsSeq(string(raw)) {
		pid, err := strconv.Atoi(word)
		if err != nil {
			r.t.Error(err)
			return
		}
		for syscall.Kill(pid, 0) == nil {
			if time.Now().After(end) {
				r.t.Errorf("process %d still runs", pid)
				return
			}
			time.Sleep(10 * time.Millisecond)
		}
	}
}

// Cancelling a run ends its running attempts and begins no others. Another run continues.
func TestCancel(t *testing.T) {
	r := newRig(t, 1)
	c := r.dial(RoleController)
	began := filepath.Join(t.TempDir(), "began")
	d := r.submit(c, r.manifest(50, "echo $$ >> "+began+"; sleep 1000", ""), Submission{})
	r.work(r.spec("a"))
	pids := func() int {
		raw, _ := os.ReadFile(began) // may not exist
		return bytes.Count(raw, []byte("\n"))
	}
	go func() {
		for pids() < 4 {
			time.Sleep(10 * time.Millisecond)
		}
		if err := c.Control(t.Context(), d.Run, StateCancelled); err != nil {
			t.Error(err)
		}
	}()
	out := r.follow(t.Context(), c, d, FollowOptions{Lead: true})
	if len(out.Scenarios) != 0 || out.NotRun != 50 {
		t.Errorf("%d results, %d not run", len(out.Scenarios), out.NotRun)
	}
	r.waitUntilGone(began)
	if err := c.Control(t.Context(), d.Run, StateRunning); err == nil {
		t.Error("Control accepted to continue a cancelled run")
	}
	next := r.submit(c, r.manifest(10, ":", ""), Submission{})
	r.expect(c, next, r.follow(t.Context(), c, next, FollowOptions{Lead: true}), 10)
	if n := pids(); n != 4 {
		t.Errorf("%d attempts began, want 4", n)
	}
}

// The process that leads a run is killed in the middle. Another one leads, and no attempt is made
// twice.
func TestLeaderIsKilled(t *testing.T) {
	needs.Long(t)
	r := newRig(t, 1)
	c := r.dial(RoleController)
	began := t.TempDir()
	d := r.submit(c, r.manifest(300, "mktemp "+began+"/XXXXXX >/dev/null; sleep 0.02", ""), Submission{})
	leader := r.startProcess("leader", leaderSpec{URL: r.url(), Seed: string(r.seeds[RoleController]), Run: d.Run, Dir: t.TempDir()})
	r.work(r.spec("a"))
	for {
		if messages, _ := r.resultCounts(d); messages >= 100 {
			break
		}
	}
	leader.kill()
	if messages, _ := r.resultCounts(d); messages >= 300 {
		t.Error("the run had ended before its leader was killed")
	}
	r.expect(c, d, r.follow(t.Context(), c, d, FollowOptions{Lead: true}), 300)
	if n := count(t, began); n != 300 {
		t.Errorf("%d attempts were made, want 300", n)
	}
}

// Two of three servers are down: nothing is accepted and nothing is lost, and the run continues
// when one of them is back.
func TestNoQuorum(t *testing.T) {
	needs.Long(t)
	r := newRig(t, 3)
	c := r.dial(RoleController)
	d := r.submit(c, r.manifest(40, "sleep 0.05", ""), Submission{})
	r.work(r.spec("a"))
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		for {
			if messages, _ := r.resultCounts(d); messages >= 5 {
				break
			}
		}
		for _, n := range r.servers[1:] {
			n.stop()
		}
		time.Sleep(time.Second) // in this time, nothing can be stored
		for _, n := range r.servers[1:] {
			if err := n.start(); err != nil {
				t.Error(err)
			}
		}
	}()
	out := r.follow(t.Context(), c, d, FollowOptions{Lead: true})
	<-gone
	r.expect(c, d, out, 40)
}

// A process that begins to follow a run while servers are down waits for them, for longer than a
// request to them may take.
func TestFollowWhileServersAreDown(t *testing.T) {
	needs.Long(t)
	r := newRig(t, 3)
	c := r.dial(RoleController)
	d := r.submit(c, r.manifest(4, "true", ""), Submission{})
	r.work(r.spec("a"))
	for _, n := range r.servers[1:] {
		n.stop()
	}
	back := make(chan struct{})
	go func() {
		defer close(back)
		time.Sleep(7 * time.Second) // requests fail after 5
		for _, n := range r.servers[1:] {
			if err := n.start(); err != nil {
				t.Error(err)
			}
		}
	}()
	out := r.follow(t.Context(), c, d, FollowOptions{Lead: true})
	<-back
	r.expect(c, d, out, 4)
}
