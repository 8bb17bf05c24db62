package mcp

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"github.com/seed-dec29ce4/eca/config"
)

// server supervises one configured server. Its goroutine (run) owns what is not said to be
// otherwise; others tell it what to do.
type server struct {
	name       string
	m          *Manager
	configured config.MCPServer // guarded by the manager's mutex
	wake       chan struct{}
	ctx        context.Context // ends when the server is removed
	cancel     context.CancelFunc
	done       chan struct{} // closed when nothing is left of it

	status atomic.Pointer[Status] // read by anybody

	mu       sync.Mutex // guards commands
	commands []func()

	config   config.MCPServer
	wanted   bool // it should run
	idle     bool // the manager has not begun
	state    State
	reason   string
	offer    *Offer
	conn     *connection    // while running
	attempt  <-chan attempt // while starting; also while stopping, until it gave up
	giveUp   context.CancelFunc
	closed   <-chan struct{}  // while stopping
	retry    <-chan time.Time // until the next restart
	noRetry  func()
	restarts int       // in a row
	since    time.Time // it runs
	again    bool      // start when it has stopped
	waiting  []chan<- reached

	handshake *handshake // belongs to the attempt that runs

	refreshing <-chan refreshed // lists are asked for
	calm       <-chan time.Time // until lists may be asked for again
}

// attempt is what came of a start.
type attempt struct {
	conn  *connection
	offer *Offer
	err   error
}

// reached is what a call gets that asks for the connection.
type reached struct {
	conn *connection
	err  error
}

// permanentError is a reason for which a start is not repeated.
type permanentError struct{ error }

func (e permanentError) Unwrap() error { return e.error }

// newServer returns a server and starts its supervisor. The manager's mutex is held.
func (m *Manager) newServer(name string, c config.MCPServer) *server {
	s := &server{
		name: name, m: m, configured: c, config: c, idle: true, wanted: !c.Disabled,
		wake: make(chan struct{}, 1), done: make(chan struct{}),
		state: Stopped, noRetry: func() {}, giveUp: func() {},
	}
	s.ctx, s.cancel = context.WithCancel(m.ctx)
	s.state = Disabled
	if s.wanted {
		s.state = Starting // as soon as the manager begins
	}
	s.status.Store(&Status{Name: name, State: s.state})
	go s.run()
	if m.begun {
		s.tell(s.begin)
	}
	return s
}

// tell has the supervisor do something, in the order in which it is told, and does not wait
// for it.
func (s *server) tell(do func()) {
	s.mu.Lock()
	s.commands = append(s.commands, do)
	s.mu.Unlock()
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// obey does what the supervisor was told.
func (s *server) obey() {
	s.mu.Lock()
	list := s.commands
	s.commands = nil
	s.mu.Unlock()
	for _, do := range list {
		do()
	}
}

// remove ends the server and returns when nothing is left of it.
func (s *server) remove() {
	s.cancel()
	<-s.done
}

func (s *server) run() {
	defer close(s.done)
	defer s.end()
	for {
		var lost <-chan struct{}
		var listsChanged <-chan struct{}
		if s.conn != nil {
			lost = s.conn.lost()
			if s.refreshing == nil && s.calm == nil {
				listsChanged = s.conn.listsChanged
			}
		}
		select {
		case <-s.ctx.Done():
			return
		case <-s.wake:
			s.obey()
		case a := <-s.attempt:
			s.attempt = nil
			s.giveUp()
			s.attempted(a)
		case <-lost:
			s.down(s.conn, s.conn.cause())
		case <-s.closed:
			s.closed = nil
			s.stopped()
		case <-s.retry:
			s.retry = nil
			s.open()
		case <-listsChanged:
			s.refresh(s.conn)
		case r := <-s.refreshing:
			s.refreshing = nil
			s.calm, _ = s.m.deps.After(time.Second) // a server that says so all the time is not asked all the time
			s.take(r)
		case <-s.calm:
			s.calm = nil
		}
	}
}

// end leaves nothing behind.
func (s *server) end() {
	s.noRetry()
	s.giveUp()
	if s.attempt != nil {
		if a := <-s.attempt; a.conn != nil {
			a.conn.close()
		}
	}
	if s.conn != nil {
		s.conn.close()
	}
	if s.closed != nil {
		<-s.closed
	}
	if s.refreshing != nil {
		<-s.refreshing
	}
	s.answer(reached{err: fmt.Errorf("the MCP server %s is not configured any more", s.name)})
}

// set changes the state, and tells of it.
func (s *server) set(next State, reason string) {
	s.state, s.reason = s.state.to(next), reason
	s.publish()
}

func (s *server) publish() {
	s.status.Store(&Status{Name: s.name, State: s.state, Reason: s.reason, Offer: s.offer, conn: s.conn})
	s.m.changed()
}

// begin starts what is enabled.
func (s *server) begin() {
	if !s.idle {
		return
	}
	s.idle = false
	if s.state == Starting {
		s.connect()
	}
}

// start begins a life, or is content with the one that there is.
func (s *server) start() {
	s.wanted, s.restarts = true, 0
	switch s.state {
	case Stopping:
		s.again = true
	case Disabled, Stopped, Failed, NeedsLogin:
		s.open()
	case Starting:
		s.begin()
	case Running:
		s.publish()
	}
}

// open goes from a state of rest to starting.
func (s *server) open() {
	s.noRetry()
	s.retry = nil
	s.set(Starting, "")
	if !s.idle {
		s.connect()
	}
}

// connect tries to reach the server, beside the supervisor.
func (s *server) connect() {
	ctx, cancel := context.WithCancel(s.ctx)
	s.giveUp = cancel
	ch := make(chan attempt, 1)
	s.attempt = ch
	settings, c := s.m.currentSettings(), s.config
	go func() {
		var a attempt
		if err := s.contained(func() { a = s.m.reach(ctx, s, c, settings) }); err != nil {
			a = attempt{err: permanentError{err}}
		}
		ch <- a
	}()
}

// contained does something with what a server said. An error says that it panicked: what a
// server says must not end eca.
func (s *server) contained(do func()) (err error) {
	defer func() {
		if p := recover(); p != nil {
			s.m.deps.Log.Error("bug in eca, please report it", "server", s.name, "what", p, "stack", string(debug.Stack()))
			err = errors.New("internal error; the log says more")
		}
	}()
	do()
	return nil
}

// attempted takes over what came of a start.
func (s *server) attempted(a attempt) {
	if s.state != Starting { // it was stopped meanwhile
		if a.conn == nil {
			s.stopped()
			return
		}
		s.closing(a.conn)
		return
	}
	if a.err != nil {
		s.fail(a.err)
		return
	}
	if s.offer != nil { // until they are listed anew
		a.offer.Resources = s.offer.Resources
		if a.offer.Prompts == nil {
			a.offer.Prompts = s.offer.Prompts
		}
	}
	s.conn, s.offer, s.since = a.conn, a.offer, s.m.deps.Now()
	s.set(Running, "")
	s.answer(reached{conn: a.conn})
}

// down takes notice that a running server is gone.
func (s *server) down(c *connection, cause error) {
	if s.m.deps.Now().Sub(s.since) >= stable {
		s.restarts = 0
	}
	s.conn = nil
	s.m.leaving.Go(c.close)
	s.fail(cause)
}

// FailedMessage is what the log says of a server that failed, with its name and the reason.
const FailedMessage = "MCP server failed"

// fail records why a start or a life ended, and has it started again, if that may help.
func (s *server) fail(err error) {
	reason := err.Error()
	level := slog.LevelError // editors show what has this word
	if errors.Is(err, errUnauthorized) {
		level = slog.LevelWarn // the user is asked to log in
	}
	s.m.deps.Log.Log(s.ctx, level, FailedMessage, "server", s.name, "reason", reason)
	var permanent permanentError
	next := Failed
	switch wait, more := pause(s.restarts); {
	case errors.Is(err, errUnauthorized):
		next, s.offer = NeedsLogin, nil
	case errors.As(err, &permanent) || !s.wanted || !more:
		s.offer = nil
	default:
		s.restarts++
		s.retry, s.noRetry = s.m.deps.After(wait)
	}
	s.set(next, reason)
	s.answer(reached{err: s.unreachable(reason)})
}

// answer lets calls go on that wait for the connection.
func (s *server) answer(r reached) {
	for _, w := range s.waiting {
		w <- r
	}
	s.waiting = nil
}

// stop ends the server's life.
func (s *server) stop() {
	s.wanted = false
	s.halt()
}

// halt goes to rest, whatever the state.
func (s *server) halt() {
	s.again = false
	s.noRetry()
	s.retry = nil
	s.offer = nil
	switch s.state {
	case Starting:
		s.set(Stopping, "")
		if s.attempt == nil {
			s.stopped() // it had not begun
			return
		}
		s.giveUp()
	case Running:
		s.set(Stopping, "")
		conn := s.conn
		s.conn = nil
		s.closing(conn)
	case Failed, NeedsLogin:
		s.set(s.rest(), "")
	case Disabled, Stopped:
		if s.state != s.rest() {
			s.set(s.rest(), "")
		} else {
			s.publish()
		}
	case Stopping:
	}
	s.answer(reached{err: s.unreachable("it was stopped")})
}

// rest is the state of a server that does not run.
func (s *server) rest() State {
	if s.config.Disabled {
		return Disabled
	}
	return Stopped
}

// closing closes a connection beside the supervisor.
func (s *server) closing(c *connection) {
	done := make(chan struct{})
	s.closed = done
	go func() {
		defer close(done)
		c.close()
	}()
}

func (s *server) stopped() {
	s.set(s.rest(), "")
	if s.again {
		s.again = false
		s.open()
	}
}

// restart stops the server, if it runs, and starts it again.
func (s *server) restart() {
	s.wanted, s.restarts = true, 0
	s.halt()
	if s.state == Stopping {
		s.again = true
		return
	}
	s.open()
}

// configure takes over what is configured now.
func (s *server) configure(c config.MCPServer) {
	before := s.config
	s.config = c
	if c.Disabled {
		s.stop()
		return
	}
	before.Disabled = false
	if reflect.DeepEqual(before, c) && (s.state == Running || s.state == Starting) {
		return // it was started although it was disabled
	}
	s.restart()
}
