package lsp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/seed-dec29ce4/eca/internal/jsonrpc"
	"github.com/seed-dec29ce4/eca/internal/lineproc"
	"github.com/seed-dec29ce4/eca/internal/proc"
	"github.com/seed-dec29ce4/eca/internal/sandbox"
	"github.com/seed-dec29ce4/eca/workspace"
)

// server is one run of a language server.
type server struct {
	manager   *Servers
	installed installedServer
	root      string // of the project, resolved
	names     []rootName
	workspace *workspace.Workspace
	policy    sandbox.Policy
	environ   []string

	used, started time.Time   // guarded by manager.mu
	waited        atomic.Bool // an edit has waited for it to start

	ready         chan struct{} // closed when it accepts requests, or has ended
	ended         chan struct{}
	stopRequested chan struct{}    // closed to stop the server
	conn          *jsonrpc.Conn    // set before ready is closed, unless it could not start
	capabilities  initializeResult // set before ready is closed, unless it could not start
	stderr        lineproc.Tail

	docsLock chan struct{}                   // a mutex (lock, unlock), held while notifications about documents are sent
	folders  map[string]map[string]time.Time // files in the folders of documents; guarded by docsLock

	mu        sync.Mutex // guards the fields below
	stopped   bool
	endReason error // why the server has ended or is being stopped; nil if that is not a failure
	docs      map[string]*document
	reports   reports
}

// rootName is a workspace folder, as the client writes it and with symlinks resolved.
type rootName struct{ written, resolved string }

func newServer(m *Servers, f installedServer, root string, roots []string) *server {
	var names []rootName
	for _, r := range roots {
		names = append(names, rootName{r, workspace.Resolve(r)})
	}
	return &server{
		manager: m, installed: f, root: root, names: names, workspace: workspace.New(roots...),
		ready: make(chan struct{}), ended: make(chan struct{}), stopRequested: make(chan struct{}),
		docsLock: make(chan struct{}, 1), folders: map[string]map[string]time.Time{},
		docs: map[string]*document{}, reports: newReports(),
	}
}

// stop stops the server; a nil reason is not a failure.
func (s *server) stop(reason error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.stopped {
		s.stopped, s.endReason = true, reason
		close(s.stopRequested)
	}
}

// endError returns why the server has ended; nil if it has not ended.
func (s *server) endError() error {
	select {
	case <-s.ended:
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.endReason == nil {
			return errors.New("the language server has ended")
		}
		return s.endReason
	default:
		return nil
	}
}

// run starts the server and waits until it has ended. It returns why the server has ended; nil if that
// is not a failure.
func (s *server) run() error {
	err := s.serve()
	s.mu.Lock()
	if s.stopped {
		err = s.endReason
	}
	s.stopped, s.endReason = true, err
	s.mu.Unlock()
	close(s.ended)
	select {
	case <-s.ready:
	default:
		close(s.ready)
	}
	return err
}

func (s *server) serve() error {
	stdin, in, err := os.Pipe()
	if err != nil {
		return err
	}
	defer in.Close()
	out, stdout, err := os.Pipe()
	if err != nil {
		_ = stdin.Close()
		return err
	}
	child, err := s.manager.opts.Children.Start(s.spec(stdin, stdout))
	_, _ = stdin.Close(), stdout.Close()
	if err != nil {
		_ = out.Close()
		return err
	}
	input := &meter{File: out, now: s.manager.opts.Now}
	s.conn = jsonrpc.NewConn(input, in, jsonrpc.Options{MaxFrame: maxMessage, Log: s.manager.opts.Log, FirstID: 1})
	s.conn.Start(context.Background(), s.handle)
	err = s.converse(child)
	s.shutDown(child)
	if err != nil && input.flooded.Load() {
		err = errors.New("it sent more than eca reads")
	}
	return err
}

func (s *server) spec(stdin, stdout *os.File) proc.Spec {
	env := []string{}
	for name, value := range s.installed.env {
		env = append(env, name+"="+value)
	}
	return proc.Spec{
		Path: s.installed.path, Args: s.installed.args, Dir: s.root, Environ: s.environ, Env: env,
		Stdin: stdin, Stdout: stdout, Stderr: &s.stderr, Sandbox: s.policy,
	}
}

// converse initializes the server, and returns when it has to stop or has ended.
func (s *server) converse(child proc.Child) error {
	ctx, cancel := context.WithTimeout(context.Background(), startTime)
	defer cancel()
	go func() {
		select {
		case <-s.stopRequested:
			cancel()
		case <-ctx.Done():
		}
	}()
	s.changesIn(s.root) // remembers the files, so that the next call returns the changes since
	err := s.conn.Call(ctx, "initialize", s.initializeParams(), &s.capabilities)
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("it did not start within %s", startTime)
	case err != nil && ctx.Err() == nil:
		return s.exitReason(child, err)
	case err != nil:
		return err
	}
	if err := s.conn.Notify(ctx, "initialized", struct{}{}); err != nil {
		return s.exitReason(child, err)
	}
	close(s.ready)
	tick := time.NewTicker(s.manager.checkInterval)
	defer tick.Stop()
	for {
		select {
		case <-s.stopRequested:
			return nil
		case <-s.conn.EOF():
			return s.exitReason(child, errors.New("it closed its output"))
		case <-tick.C:
		}
		if s.manager.idle(s) {
			s.stop(nil)
		}
		if size, ok := proc.Memory(child.Pid()); ok && size > s.manager.maxMemory {
			return fmt.Errorf("it used more than %d MiB of memory", s.manager.maxMemory>>20)
		}
	}
}

// exitReason returns why the server ended without being stopped.
func (s *server) exitReason(child proc.Child, err error) error {
	if proc.Within(child.Done(), closeTime) {
		exit := child.Wait()
		err = errors.New("it " + lineproc.Describe(&exit))
		if cause := exit.MemoryCause(); cause != "" {
			err = errors.New(cause)
		}
	}
	if text := lineproc.Reason(s.stderr.String()); text != "" {
		err = fmt.Errorf("%w: %s", err, text)
	}
	return err
}

// shutDown stops the child.
func (s *server) shutDown(child proc.Child) {
	ctx, cancel := context.WithTimeout(context.Background(), closeTime)
	defer cancel()
	select {
	case <-s.ready:
		if s.conn.Call(ctx, "shutdown", nil, nil) == nil && s.conn.Notify(ctx, "exit", nil) == nil {
			proc.Within(child.Done(), closeTime)
		}
	default: // it may not respond
	}
	child.Kill()
	s.conn.Close()
	<-s.conn.Done()
}

// handle answers requests of the server, and takes its reports.
func (s *server) handle(_ context.Context, req *jsonrpc.Request) (any, error) {
	switch req.Method {
	case "textDocument/publishDiagnostics":
		var p publishDiagnostics
		if json.Unmarshal(req.Params, &p) == nil {
			s.handleReport(p)
		}
		return nil, nil
	case "workspace/configuration":
		var p struct{ Items []json.RawMessage }
		_ = json.Unmarshal(req.Params, &p) // the answer is null for each setting: eca sends options only with initialize
		return make([]any, min(len(p.Items), 1000)), nil
	case "workspace/workspaceFolders":
		return []any{map[string]string{"uri": s.uri(s.root), "name": s.root}}, nil
	case "workspace/applyEdit":
		return map[string]bool{"applied": false}, nil
	case "window/showDocument":
		return map[string]bool{"success": false}, nil
	case "client/registerCapability", "client/unregisterCapability", "window/workDoneProgress/create", "window/showMessageRequest",
		"workspace/diagnostic/refresh", "workspace/semanticTokens/refresh", "workspace/inlayHint/refresh", "workspace/codeLens/refresh":
		return nil, nil
	}
	if req.IsCall {
		return nil, jsonrpc.Errorf(jsonrpc.CodeMethodNotFound, "eca does not support %s", req.Method)
	}
	return nil, nil
}

// workspacePath returns a resolved path as the client writes it.
func (s *server) workspacePath(real string) string {
	for _, root := range s.names {
		if rest, ok := strings.CutPrefix(real, root.resolved); ok && (rest == "" || os.IsPathSeparator(rest[0])) {
			return root.written + rest
		}
	}
	return real
}

func (s *server) uri(path string) string { return workspace.ToURI(path) }

// meter reads from a server, which may send a burst but not flood eca permanently.
type meter struct {
	*os.File
	now     func() time.Time
	since   time.Time
	count   float64 // bytes in excess of the rate
	flooded atomic.Bool
}

func (m *meter) Read(p []byte) (int, error) {
	n, err := m.File.Read(p)
	now := m.now()
	m.count = max(0, m.count-now.Sub(m.since).Seconds()*floodRate) + float64(n)
	m.since = now
	if m.count > floodBurst {
		m.flooded.Store(true)
		return 0, io.ErrUnexpectedEOF
	}
	return n, err
}
