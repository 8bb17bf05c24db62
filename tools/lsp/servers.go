package lsp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"
)

// Servers manages the running language servers. Create it with New.
type Servers struct {
	opts Options
	work sync.WaitGroup // running servers

	// Tests change these limits before the first server starts.
	maxMemory     int64
	checkInterval time.Duration

	mu      sync.Mutex // guards the fields below
	running map[string]*server
	paused  map[string]pause
	failed  map[string]error // the first failure of each program
	closed  bool
}

// pause delays the restart of a failed server.
type pause struct {
	reason   error
	failures int
	until    time.Time
}

// New returns Servers without a running server. The caller must call Close.
func New(o Options) *Servers {
	return &Servers{
		opts: o, maxMemory: maxMemory, checkInterval: checkInterval,
		running: map[string]*server{}, paused: map[string]pause{}, failed: map[string]error{},
	}
}

// Failures describes for the user each server that has failed, once.
func (s *Servers) Failures() (out []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, name := range slices.Sorted(maps.Keys(s.failed)) {
		out = append(out, fmt.Sprintf("The language server %s failed: %v. Until it works, edits do not report its errors. Test it with `eca doctor`, or turn it off with lsp in the configuration.", name, s.failed[name]))
	}
	return out
}

// Close stops all servers.
func (s *Servers) Close() {
	s.mu.Lock()
	s.closed = true
	for _, one := range s.running {
		one.stop(errClosed)
	}
	s.mu.Unlock()
	s.work.Wait()
}

var errClosed = errors.New("eca is shutting down")

// runningFor returns the server for a file, starting it if necessary. The server may not be ready yet. The
// error is ErrNone if no server is installed for such files.
func (v *View) runningFor(path string) (*server, error) {
	f, ok := v.installedFor(path)
	if !ok {
		return nil, ErrNone
	}
	return v.start(f, v.project(f.definition, path))
}

// ErrNone means that no language server is installed for a file.
var ErrNone = errors.New("no language server is installed for this file")

// start returns the server for a project, starting it if necessary.
func (v *View) start(f installedServer, project string) (*server, error) {
	policy, environ, err := v.settings.Bind(f.configured)
	key := f.key(project)
	if err != nil {
		v.mu.Lock()
		defer v.mu.Unlock()
		if s := v.running[key]; s != nil {
			s.stop(err) // the workspace may no longer be trusted
		}
		return nil, err
	}
	return v.runningOrNew(key, func() *server {
		s := newServer(v.Servers, f, project, v.settings.Roots)
		s.policy, s.environ = policy, environ
		return s
	})
}

// awaitReady waits until the server accepts requests, or ctx ends.
func (s *server) awaitReady(ctx context.Context) error {
	select {
	case <-s.ready:
		return s.endError()
	default:
	}
	select {
	case <-s.ready:
		return s.endError()
	case <-ctx.Done():
		return fmt.Errorf("%s is still starting", s.installed.program.name)
	}
}

func (v *View) runningOrNew(key string, create func() *server) (*server, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	now := v.opts.Now()
	if s := v.running[key]; s != nil {
		s.used = now
		return s, nil
	}
	if v.closed {
		return nil, errClosed
	}
	if p := v.paused[key]; now.Before(p.until) {
		return nil, fmt.Errorf("it failed and will be restarted in %s: %w", p.until.Sub(now).Round(time.Second), p.reason)
	}
	if len(v.running) >= maxRunning {
		oldest := slices.MinFunc(slices.Collect(maps.Keys(v.running)), func(a, b string) int { return v.running[a].used.Compare(v.running[b].used) })
		v.running[oldest].stop(nil)
		delete(v.running, oldest)
	}
	s := create()
	s.used, s.started = now, now
	v.running[key] = s
	v.work.Go(func() { v.recordEnd(key, s, s.run()) })
	return s, nil
}

// recordEnd records that a server has ended; a nil reason is not a failure.
func (s *Servers) recordEnd(key string, one *server, reason error) {
	if s.recordFailure(key, one, reason) {
		s.opts.Failed()
	}
}

// recordFailure records a failure and reports whether it is the first of the program.
func (s *Servers) recordFailure(key string, one *server, reason error) (first bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.running[key] == one {
		delete(s.running, key)
	}
	now := s.opts.Now()
	if reason == nil || s.closed {
		delete(s.paused, key)
		return false
	}
	name := one.installed.program.name
	s.opts.Log.Warn("a language server failed", "server", name, "err", reason)
	p := s.paused[key]
	if now.Sub(one.started) > healthyTime {
		p.failures = 0
	}
	d := min(firstPause<<min(p.failures, 20), longestPause)
	s.paused[key] = pause{reason, p.failures + 1, now.Add(d)}
	if s.failed[name] != nil {
		return false
	}
	s.failed[name] = reason
	return true
}

// idle reports whether a server has not been used for a long time.
func (s *Servers) idle(one *server) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.opts.Now().Sub(one.used) > idleTime
}

// key identifies a running server.
func (f installedServer) key(project string) string {
	options, _ := json.Marshal(f.options)
	env, _ := json.Marshal(f.env)
	return strings.Join(slices.Concat([]string{f.path}, f.args, []string{string(options), string(env), project}), "\x00")
}
