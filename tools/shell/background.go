package shell

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/seed-dec29ce4/eca/internal/proc"
	"github.com/seed-dec29ce4/eca/tools"
)

// Jobs are background commands (eca-features.md 23). They outlive the turn that started them and
// are killed when the daemon exits (on Linux, even if it is killed; see package proc). The end of
// their output is kept in memory, and its beginning in files that the model can read while the job
// is listed.
type Jobs struct {
	dir string
	now func() time.Time

	// startupElapsed fires when start should no longer wait for a job to fail.
	startupElapsed func(b *job) <-chan time.Time

	mu       sync.Mutex // guards the fields below
	next     int
	jobs     []*job // in the order of their numbers, with up to maxEnded ended ones
	closed   bool
	watchers map[chan struct{}]bool
}

const (
	maxJobs   = 10       // running at the same time
	maxEnded  = 20       // ended jobs that are listed
	maxJobLog = 16 << 20 // bytes of a job's output file
	newsLines = 20       // lines of output in the message about the end of a job
)

// job is one of Jobs. Its tools.Job, kill and reported are guarded by the mutex of Jobs; other fields do
// not change.
type job struct {
	process proc.Child
	lines   *outputLines
	log     string // path of its output file
	ended   chan struct{}

	tools.Job
	killRequested bool // it was killed on request
	reported      bool // the chat has been notified that it has ended
}

// NewJobs returns an empty list of jobs. Their output files are in dir, which is created when the first
// one starts.
func NewJobs(dir string, now func() time.Time) *Jobs {
	const settle = 2 * time.Second
	return &Jobs{dir: dir, now: now, startupElapsed: func(*job) <-chan time.Time { return time.After(settle) }, watchers: map[chan struct{}]bool{}}
}

// start starts a command, and waits briefly in case it fails immediately. When the command has
// ended, start calls onEnd and appends the note that it returns to the output.
func (j *Jobs) start(ctx context.Context, children *proc.Pool, info tools.Job, spec proc.Spec, onEnd func() string) (tools.Result, error) {
	b, err := j.launch(children, info, spec, onEnd)
	if err != nil {
		return tools.Result{}, err
	}
	select {
	case <-b.ended:
		j.markReported(b)
		end := j.info(b)
		return tools.Result{
			Failed:  end.Status != tools.JobCompleted,
			Outputs: []string{fmt.Sprintf("The background command %q ended immediately: %s.", end.Label, end.Outcome()), render(b.lines.last(maxLines))},
		}, nil
	case <-ctx.Done():
		j.killAndWait(b)
		return tools.Result{}, errors.New("the command was stopped")
	case <-j.startupElapsed(b):
	}
	out := fmt.Sprintf("%q runs in the background as %s (process %d). Use bg_job to read its output or kill it; the whole output is written to %s.", info.Label, j.info(b).ID, b.process.Pid(), b.log)
	if list, _ := b.lines.unread(); len(list) > 0 {
		out += "\nSo far it has printed:\n" + render(list)
	}
	return tools.Text(out), nil
}

func (j *Jobs) launch(children *proc.Pool, info tools.Job, spec proc.Spec, onEnd func() string) (*job, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.closed {
		return nil, errors.New("eca is shutting down")
	}
	running := 0
	for _, b := range j.jobs {
		if b.Status == tools.JobRunning {
			running++
		}
	}
	if running >= maxJobs {
		return nil, fmt.Errorf("%d background commands are already running; kill one first", maxJobs)
	}
	if err := os.MkdirAll(j.dir, 0o700); err != nil {
		return nil, err
	}
	if j.next == 0 {
		removeStaleLogs(j.dir, j.now())
	}
	j.next++
	path := filepath.Join(j.dir, fmt.Sprintf(logName, os.Getpid(), j.next))
	out, err := os.OpenFile(path, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	b := &job{lines: &outputLines{}, log: path, ended: make(chan struct{}), Job: info}
	b.ID, b.Status, b.Started = fmt.Sprintf("job-%d", j.next), tools.JobRunning, j.now()
	file := &cappedWriter{f: out, remaining: maxJobLog}
	spec.Stdout, spec.Stderr = io.MultiWriter(stream{b.lines, false}, file), io.MultiWriter(stream{b.lines, true}, file)
	if b.process, err = children.Start(spec); err != nil {
		_ = out.Close()
		_ = os.Remove(path)
		return nil, err
	}
	j.jobs = append(j.jobs, b)
	j.changedLocked()
	go func() {
		exit := b.process.Wait()
		if exit.MemoryCause() != "" {
			_, _ = io.WriteString(spec.Stdout, outOfMemoryMessage(exit)+"\n")
		}
		if note := onEnd(); note != "" {
			_, _ = io.WriteString(spec.Stdout, note+"\n")
		}
		_ = out.Close()
		b.lines.flush()
		j.finish(b, exit)
	}()
	return b, nil
}

// finish records how a job ended.
func (j *Jobs) finish(b *job, exit proc.Exit) {
	j.mu.Lock()
	defer j.mu.Unlock()
	defer close(b.ended)
	b.Ended, b.ExitCode = j.now(), exit.Code
	switch {
	case b.killRequested:
		b.Status = tools.JobKilled
	case exit.Code == 0:
		b.Status = tools.JobCompleted
	default:
		b.Status = tools.JobFailed
	}
	j.dropLocked()
	j.changedLocked()
}

// dropLocked removes the job that ended first, with its output file, if more than maxEnded ended jobs
// are listed.
func (j *Jobs) dropLocked() {
	ended := slices.DeleteFunc(slices.Clone(j.jobs), func(b *job) bool { return b.Status == tools.JobRunning })
	if len(ended) <= maxEnded {
		return
	}
	first := slices.MinFunc(ended, func(a, b *job) int { return a.Ended.Compare(b.Ended) })
	j.jobs = slices.DeleteFunc(j.jobs, func(b *job) bool { return b == first })
	_ = os.Remove(first.log) // at the latest by removeStaleLogs
}

// killAndWait kills a job and waits until it has ended. It returns false if it had ended before.
func (j *Jobs) killAndWait(b *job) bool {
	j.mu.Lock()
	running := b.Status == tools.JobRunning
	b.killRequested = b.killRequested || running
	b.reported = b.reported || running // the caller knows
	j.mu.Unlock()
	b.process.Kill()
	<-b.ended
	return running
}

func (j *Jobs) info(b *job) tools.Job {
	j.mu.Lock()
	defer j.mu.Unlock()
	return b.Job
}

func (j *Jobs) find(id string) (*job, bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	i := slices.IndexFunc(j.jobs, func(b *job) bool { return b.ID == id })
	if i < 0 {
		return nil, false
	}
	return j.jobs[i], true
}

// List returns the jobs, the oldest first.
func (j *Jobs) List() []tools.Job {
	j.mu.Lock()
	defer j.mu.Unlock()
	out := make([]tools.Job, len(j.jobs))
	for i, b := range j.jobs {
		out[i] = b.Job
	}
	return out
}

// Kill kills a job and all processes that it started, and waits until they have ended. It returns false
// if there is no such job, or if it had ended before.
func (j *Jobs) Kill(id string) bool {
	b, ok := j.find(id)
	return ok && j.killAndWait(b)
}

// Output returns the end of a job's output.
func (j *Jobs) Output(id string) (job tools.Job, list []tools.JobLine, ok bool) {
	b, ok := j.find(id)
	if !ok {
		return tools.Job{}, nil, false
	}
	return j.info(b), b.lines.all(), true
}

// Watch calls changed after each change of a job's state, until ctx ends. Changes during a call are
// combined into one.
func (j *Jobs) Watch(ctx context.Context, changed func()) {
	wake := make(chan struct{}, 1)
	j.mu.Lock()
	j.watchers[wake] = true
	j.mu.Unlock()
	defer func() {
		j.mu.Lock()
		delete(j.watchers, wake)
		j.mu.Unlock()
	}()
	for {
		select {
		case <-wake:
			changed()
		case <-ctx.Done():
			return
		}
	}
}

func (j *Jobs) changedLocked() {
	for wake := range j.watchers {
		select {
		case wake <- struct{}{}:
		default:
		}
	}
}

// News returns a message for each job of a chat that has ended since the last call.
func (j *Jobs) News(chatID string) []string {
	j.mu.Lock()
	var ended []*job
	for _, b := range j.jobs {
		if b.ChatID == chatID && b.Status != tools.JobRunning && !b.reported {
			b.reported = true
			ended = append(ended, b)
		}
	}
	j.mu.Unlock()
	var out []string
	for _, b := range ended {
		info := j.info(b)
		text := fmt.Sprintf("[The background job %s (%s) has ended: %s, after %s.]", info.ID, info.Label, info.Outcome(), info.Elapsed(info.Ended))
		if last := b.lines.last(newsLines); len(last) > 0 {
			text += "\nThe end of its output:\n" + render(last)
		}
		out = append(out, text)
	}
	return out
}

// markReported records that the chat has been notified of the end of a job.
func (j *Jobs) markReported(b *job) {
	j.mu.Lock()
	defer j.mu.Unlock()
	b.reported = true
}

// Close kills all background commands.
func (j *Jobs) Close() {
	j.mu.Lock()
	j.closed = true
	all := slices.Clone(j.jobs)
	j.mu.Unlock()
	var wg sync.WaitGroup
	for _, b := range all {
		wg.Go(func() { j.killAndWait(b) })
	}
	wg.Wait()
	for _, b := range all {
		_ = os.Remove(b.log) // at the latest by removeStaleLogs
	}
}

// Dir returns the folder of the output files, which need not exist.
func (j *Jobs) Dir() string { return j.dir }

// logName is the format of the name of an output file, with the ids of the daemon's process and the job.
const logName = "job-%d-%d.log"

// removeStaleLogs removes output files of daemons that were killed. A file must be old as well, because the
// folder may be shared with machines and containers that have other process ids.
func removeStaleLogs(dir string, now time.Time) {
	const minAge = 7 * 24 * time.Hour
	entries, _ := os.ReadDir(dir)
	for _, e := range entries {
		var pid, n int
		if _, err := fmt.Sscanf(e.Name(), logName, &pid, &n); err != nil || proc.Alive(pid) {
			continue
		}
		if info, err := e.Info(); err == nil && info.Mode().IsRegular() && now.Sub(info.ModTime()) > minAge {
			_ = os.Remove(filepath.Join(dir, e.Name())) // otherwise retried the next time
		}
	}
}

// jobsOf returns the jobs of a chat, running ones first.
func (j *Jobs) jobsOf(chatID string) []tools.Job {
	list := slices.DeleteFunc(j.List(), func(info tools.Job) bool { return info.ChatID != chatID })
	rank := func(info tools.Job) int {
		if info.Status == tools.JobRunning {
			return 0
		}
		return 1
	}
	slices.SortStableFunc(list, func(a, b tools.Job) int { return cmp.Compare(rank(a), rank(b)) })
	return list
}

// cappedWriter writes the beginning of an output, and a note where it was cut.
type cappedWriter struct {
	f *os.File

	mu        sync.Mutex // guards remaining
	remaining int
}

// Write never fails, because a full disk must not stop a job.
func (c *cappedWriter) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.remaining <= 0 {
		return len(p), nil
	}
	n := min(len(p), c.remaining)
	c.remaining -= n
	if _, err := c.f.Write(p[:n]); err != nil {
		c.remaining = 0
		return len(p), nil
	}
	if c.remaining == 0 {
		_, _ = c.f.WriteString("\n[further output was discarded]\n")
	}
	return len(p), nil
}
