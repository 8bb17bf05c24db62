package mcp

import (
	"context"
	"errors"
	"log/slog"
	"reflect"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"github.com/seed-dec29ce4/eca/config"
)

// server supervises one configured server. Its goroutine (run) owns all fields, except those whose
// comment names another rule. Other goroutines send commands to it (enqueue).
type server struct {
	name       string
	m          *Manager
	configured config.MCPServer // guarded by the manager's mutex
	wake       chan struct{}
	ctx        context.Context // ends when the server is removed
	cancel     context.CancelFunc
	done       chan struct{} // closed when the server has ended completely

	status      atomic.Pointer[Status] // read by any goroutine
	strayOutput atomic.Pointer[string] // output of a starting program that is not a message; nil if it printed none

	mu       sync.Mutex // guards commands
	commands []func()

	config         config.MCPServer
	shouldRun      bool
	awaitingBegin  bool // the first start waits for Manager.Begin, or for a user who starts the server
	state          State
	reason         string
	offer          *Offer          // tools and more; nil before the first start
	conn           *connection     // while running
	closed         <-chan struct{} // while stopping; closes when the connection has ended
	opening        opening
	backoff        backoff
	startAfterStop bool
	waiting        []chan<- connectResult

	refreshing   <-chan fetchedLists // the running refresh of lists
	refreshPause <-chan time.Time    // fires when lists may be fetched again; nil if they may be
}

// opening is the current start, if any, and the handshake that worked in earlier ones.
type opening struct {
	result    <-chan startResult // while starting; also while stopping, until the start has given up
	giveUp    context.CancelFunc
	handshake *handshake // used by the current attempt; nil before the first
}

// backoff delays the restarts of a server that ends unexpectedly.
type backoff struct {
	due      <-chan time.Time // fires when the next restart is due
	cancel   func()           // cancels this restart
	restarts int              // restarts in a row
	since    time.Time        // start of the current run
}

// startResult is the outcome of a start.
type startResult struct {
	conn  *connection
	offer *Offer
	err   error
}

// connectResult is the outcome for a call that waits for the connection.
type connectResult struct {
	conn *connection
	err  error
}

// permanentError is an error of a start that another attempt cannot resolve, such as a missing
// program.
type permanentError struct{ error }

func (e permanentError) Unwrap() error { return e.error }

// newServer returns a server and starts its supervisor. The manager's mutex is held.
func (m *Manager) newServer(name string, c config.MCPServer) *server {
	s := &server{
		name: name, m: m, configured: c, config: c, awaitingBegin: true, shouldRun: !c.Disabled,
		wake: make(chan struct{}, 1), done: make(chan struct{}),
		state: Stopped, backoff: backoff{cancel: func() {}}, opening: opening{giveUp: func() {}},
	}
	s.ctx, s.cancel = context.WithCancel(m.ctx)
	s.state = Disabled
	if s.shouldRun {
		s.state = Starting // as soon as the manager begins
	}
	s.status.Store(&Status{Name: name, State: s.state})
	go s.run()
	if m.begun {
		s.enqueue(s.begin)
	}
	return s
}

// enqueue queues a command for the supervisor, which runs commands in order. It does not wait.
func (s *server) enqueue(do func()) {
	s.mu.Lock()
	s.commands = append(s.commands, do)
	s.mu.Unlock()
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// runCommands runs the queued commands.
func (s *server) runCommands() {
	s.mu.Lock()
	list := s.commands
	s.commands = nil
	s.mu.Unlock()
	for _, do := range list {
		do()
	}
}

// remove stops the server and returns when it has ended completely.
func (s *server) remove() {
	s.cancel()
	<-s.done
}

func (s *server) run() {
	defer close(s.done)
	defer s.cleanUp()
	for {
		var lost <-chan struct{}
		var listsChanged <-chan struct{}
		if s.conn != nil {
			lost = s.conn.done()
			if s.refreshing == nil && s.refreshPause == nil {
				listsChanged = s.conn.listsChanged
			}
		}
		select {
		case <-s.ctx.Done():
			return
		case <-s.wake:
			s.runCommands()
		case a := <-s.opening.result:
			s.opening.result = nil
			s.opening.giveUp()
			s.finishStart(a)
		case <-lost:
			s.connectionLost(s.conn, s.conn.cause())
		case <-s.closed:
			s.closed = nil
			s.finishStop()
		case <-s.backoff.due:
			s.backoff.due = nil
			s.beginStart()
		case <-listsChanged:
			s.refresh(s.conn)
		case r := <-s.refreshing:
			s.refreshing = nil
			s.refreshPause, _ = s.m.deps.After(time.Second) // limits the refreshes for a server that constantly reports changes
			s.storeLists(r)
		case <-s.refreshPause:
			s.refreshPause = nil
		}
	}
}

// cleanUp stops everything that is still running.
func (s *server) cleanUp() {
	s.backoff.cancel()
	s.opening.giveUp()
	if s.opening.result != nil {
		if a := <-s.opening.result; a.conn != nil {
			a.conn.close(s.endReason())
		}
	}
	if s.conn != nil {
		s.conn.close(s.endReason())
	}
	if s.closed != nil {
		<-s.closed
	}
	if s.refreshing != nil {
		<-s.refreshing
	}
	s.replyToWaiting(connectResult{err: s.unreachable(s.endReason())})
}

// endReason returns why the server is removed.
func (s *server) endReason() string {
	if s.m.ctx.Err() != nil {
		return "eca is shutting down"
	}
	return "it is no longer configured"
}

// setState changes the state and publishes it.
func (s *server) setState(next State, reason string) {
	s.state, s.reason = s.state.moveTo(next), reason
	s.publish()
}

func (s *server) publish() {
	s.status.Store(&Status{Name: s.name, State: s.state, Reason: s.reason, Offer: s.offer, conn: s.conn})
	s.m.changed()
}

// begin starts the server if it is enabled and has waited for the manager to begin.
func (s *server) begin() {
	if !s.awaitingBegin {
		return
	}
	s.awaitingBegin = false
	if s.state == Starting {
		s.connectInBackground()
	}
}

// start starts the server at the user's request, or because a call needs it. It has no effect while
// the server runs.
func (s *server) start() {
	s.shouldRun, s.backoff.restarts = true, 0
	switch s.state {
	case Stopping:
		s.startAfterStop = true
	case Disabled, Stopped, Failed, NeedsLogin:
		s.beginStart()
	case Starting:
		s.begin()
	case Running:
		s.publish()
	}
}

// beginStart begins a start, at once or when the manager begins. It requires that there is no connection.
func (s *server) beginStart() {
	s.backoff.cancel()
	s.backoff.due = nil
	s.setState(Starting, "")
	if !s.awaitingBegin {
		s.connectInBackground()
	}
}

// connectInBackground tries to reach the server; run gets the outcome.
func (s *server) connectInBackground() {
	ctx, cancel := context.WithCancel(s.ctx)
	s.opening.giveUp = cancel
	ch := make(chan startResult, 1)
	s.opening.result = ch
	settings, c := s.m.currentSettings(), s.config
	go func() {
		var a startResult
		if err := s.recoverPanic(func() { a = s.m.connectAndList(ctx, s, c, settings) }); err != nil {
			a = startResult{err: permanentError{err}}
		}
		ch <- a
	}()
}

// recoverPanic runs code that handles a server's data, and converts a panic to an error, so that such
// data cannot crash eca.
func (s *server) recoverPanic(do func()) (err error) {
	defer func() {
		if p := recover(); p != nil {
			s.m.deps.Log.Error("bug in eca, please report it", "server", s.name, "what", p, "stack", string(debug.Stack()))
			err = errors.New("internal error; see the log")
		}
	}()
	do()
	return nil
}

// finishStart handles the outcome of a start.
func (s *server) finishStart(a startResult) {
	if s.state != Starting { // it was stopped in the meantime
		if a.conn == nil {
			s.finishStop()
			return
		}
		s.closeInBackground(a.conn, "it was stopped during its start")
		return
	}
	if a.err != nil {
		s.fail(a.err)
		return
	}
	if s.offer != nil { // keep the earlier lists until they have been fetched again
		a.offer.Resources = s.offer.Resources
		if a.offer.Prompts == nil {
			a.offer.Prompts = s.offer.Prompts
		}
	}
	s.conn, s.offer, s.backoff.since = a.conn, a.offer, s.m.deps.Now()
	s.setState(Running, "")
	s.replyToWaiting(connectResult{conn: a.conn})
}

// connectionLost handles the end of a running server.
func (s *server) connectionLost(c *connection, cause error) {
	if s.m.deps.Now().Sub(s.backoff.since) >= stableAfter {
		s.backoff.restarts = 0
	}
	s.conn = nil
	s.m.closing.Go(func() { c.close("it failed") })
	s.fail(cause)
}

// FailedMessage is the log message for a server that failed; the server's name and the reason are
// attributes.
const FailedMessage = "MCP server failed"

// fail records why a start or a run ended, and schedules a restart if that may help.
func (s *server) fail(err error) {
	reason := err.Error()
	level := slog.LevelError // editors show log lines of this level
	if errors.Is(err, errUnauthorized) {
		level = slog.LevelWarn // the user gets a request to log in
	}
	s.m.deps.Log.Log(s.ctx, level, FailedMessage, "server", s.name, "reason", reason)
	var permanent permanentError
	next := Failed
	switch wait, more := restartDelay(s.backoff.restarts); {
	case errors.Is(err, errUnauthorized):
		next, s.offer = NeedsLogin, nil
	case errors.As(err, &permanent) || !s.shouldRun || !more:
		s.offer = nil
	default:
		s.backoff.restarts++
		s.backoff.due, s.backoff.cancel = s.m.deps.After(wait)
	}
	s.setState(next, reason)
	s.replyToWaiting(connectResult{err: s.unreachable(reason)})
}

// replyToWaiting sends the outcome of a start to the calls that wait for the connection.
func (s *server) replyToWaiting(r connectResult) {
	for _, w := range s.waiting {
		w <- r
	}
	s.waiting = nil
}

// stop ends the server's run.
func (s *server) stop(why string) {
	s.shouldRun = false
	s.shutDown(why)
}

// shutDown moves to an idle state from any state. why is the reason that running and waiting calls
// get.
func (s *server) shutDown(why string) {
	s.startAfterStop = false
	s.backoff.cancel()
	s.backoff.due = nil
	s.offer = nil
	switch s.state {
	case Starting:
		s.setState(Stopping, "")
		if s.opening.result == nil {
			s.finishStop() // the start had not begun
			return
		}
		s.opening.giveUp()
	case Running:
		s.setState(Stopping, "")
		conn := s.conn
		s.conn = nil
		s.closeInBackground(conn, why)
	case Failed, NeedsLogin:
		s.setState(s.idleState(), "")
	case Disabled, Stopped:
		if s.state != s.idleState() {
			s.setState(s.idleState(), "")
		} else {
			s.publish()
		}
	case Stopping:
	}
	s.replyToWaiting(connectResult{err: s.unreachable(why)})
}

// idleState returns the idle state of the server.
func (s *server) idleState() State {
	if s.config.Disabled {
		return Disabled
	}
	return Stopped
}

func (s *server) closeInBackground(c *connection, why string) {
	done := make(chan struct{})
	s.closed = done
	go func() {
		defer close(done)
		c.close(why)
	}()
}

func (s *server) finishStop() {
	s.setState(s.idleState(), "")
	if s.startAfterStop {
		s.startAfterStop = false
		s.beginStart()
	}
}

// restart stops the server, if it is running, and starts it again.
func (s *server) restart(why string) {
	s.shouldRun, s.backoff.restarts = true, 0
	s.shutDown(why)
	if s.state == Stopping {
		s.startAfterStop = true
		return
	}
	s.beginStart()
}

// configure applies the current configuration.
func (s *server) configure(c config.MCPServer) {
	previous := s.config
	s.config = c
	if c.Disabled {
		s.stop("it was disabled in the configuration")
		return
	}
	previous.Disabled = false
	if reflect.DeepEqual(previous, c) && (s.state == Running || s.state == Starting) {
		return // only `disabled` changed, and the user had already started the server
	}
	s.restart("its configuration changed")
}
