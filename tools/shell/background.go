package shell

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/seed-dec29ce4/eca/internal/proc"
	"github.com/seed-dec29ce4/eca/tools"
)

// Jobs are background commands. They outlive the turn that started them and die with
// the daemon (if it is killed: on Linux, see package proc). Their output goes to files
// that the model can read until then.
type Jobs struct {
	dir string

	mu     sync.Mutex // guards what follows
	next   int
	jobs   map[int]*proc.Process
	logs   []string // files to remove at the end
	closed bool
}

// maxJobs bounds the background commands that run at the same time.
const maxJobs = 10

// NewJobs keeps the output files of background commands below dir, which is created
// when the first one starts.
func NewJobs(dir string) *Jobs { return &Jobs{dir: dir, jobs: map[int]*proc.Process{}} }

// start starts a command and waits a moment to see whether it fails at once.
func (j *Jobs) start(ctx context.Context, label string, spec proc.Spec) (tools.Result, error) {
	const settle = 2 * time.Second
	p, path, err := j.launch(spec)
	if err != nil {
		return tools.Result{}, err
	}
	t := time.NewTimer(settle)
	defer t.Stop()
	select {
	case <-p.Done():
		exit := p.Wait()
		return tools.Result{
			Failed:  exit.Code != 0,
			Outputs: []string{fmt.Sprintf("The background command %q ended at once with exit code %d.", label, exit.Code), readEnd(path)},
		}, nil
	case <-ctx.Done():
		p.Kill()
		return tools.Result{}, errors.New("the command was stopped")
	case <-t.C:
	}
	return tools.Text(fmt.Sprintf("%q runs in the background as process %d. Its output is written to %s; read that file to see it. It ends with eca, or with `kill -- -%d`.",
		label, p.Pid(), path, p.Pid())), nil
}

func (j *Jobs) launch(spec proc.Spec) (*proc.Process, string, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.closed {
		return nil, "", errors.New("eca is shutting down")
	}
	if len(j.jobs) >= maxJobs {
		return nil, "", fmt.Errorf("%d background commands run already; end one first", maxJobs)
	}
	if err := os.MkdirAll(j.dir, 0o700); err != nil {
		return nil, "", err
	}
	j.next++
	id := j.next
	path := filepath.Join(j.dir, fmt.Sprintf("job-%d-%d.log", os.Getpid(), id))
	out, err := os.OpenFile(path, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, "", err
	}
	limited := &capped{f: out, left: maxJobLog}
	spec.Stdout, spec.Stderr = limited, limited
	p, err := proc.Start(spec)
	if err != nil {
		_ = out.Close()
		return nil, "", err
	}
	j.jobs[id] = p
	j.logs = append(j.logs, path)
	go func() {
		<-p.Done()
		_ = out.Close()
		j.mu.Lock()
		delete(j.jobs, id)
		j.mu.Unlock()
	}()
	return p, path, nil
}

// Close kills all background commands.
func (j *Jobs) Close() {
	j.mu.Lock()
	j.closed = true
	running, logs := slices.Collect(maps.Values(j.jobs)), j.logs
	j.mu.Unlock()
	var wg sync.WaitGroup
	for _, p := range running {
		wg.Go(p.Kill)
	}
	wg.Wait()
	for _, path := range logs {
		_ = os.Remove(path)
	}
}

// maxJobLog bounds the output file of a background command.
const maxJobLog = 16 << 20

// capped writes the beginning of an output and says where it stopped.
type capped struct {
	f *os.File

	mu   sync.Mutex // guards left
	left int
}

func (c *capped) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.left <= 0 {
		return len(p), nil
	}
	n := min(len(p), c.left)
	c.left -= n
	if _, err := c.f.Write(p[:n]); err != nil {
		return 0, err
	}
	if c.left == 0 {
		_, _ = c.f.WriteString("\n[further output is not kept]\n")
	}
	return len(p), nil
}

// readEnd returns the end of a file.
func readEnd(path string) string {
	f, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer f.Close()
	if info, err := f.Stat(); err == nil && info.Size() > maxOutput {
		_, _ = f.Seek(-maxOutput, io.SeekEnd)
	}
	data, _ := io.ReadAll(io.LimitReader(f, maxOutput))
	return string(data)
}
