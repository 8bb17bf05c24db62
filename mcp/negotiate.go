package mcp

import (
	"context"
	"errors"
	"reflect"
	"slices"
	"sync"
	"time"

	wire "github.com/mark3labs/mcp-go/mcp"

	"github.com/seed-dec29ce4/eca/config"
)

// handshakeLimits are the time limits of a handshake with a server that may not answer requests that
// it does not know.
type handshakeLimits struct {
	// probe is how long a program may take to answer server/discover before eca also sends
	// initialize. The first answer is used, so a slow start does not affect the choice of version.
	probe time.Duration
	// remote is how long a remote server may take to answer server/discover.
	remote time.Duration
	// stuck is how long a program may stay silent after it has received both requests. It is also
	// how long a server that used the newest version before may take to answer server/discover.
	stuck time.Duration
}

// errStuck is the reason to restart a program that answered neither handshake.
var errStuck = errors.New("it read two requests and answered neither")

// handshake records which protocol version worked last for a server.
type handshake struct {
	config  config.MCPServer // the configuration with which it worked
	version string           // empty means unknown
}

// older reports whether to start with the older handshake. For an unknown server, the newest version
// is tried first.
func (h handshake) older() bool { return h.version != "" && !wire.IsModernProtocol(h.version) }

// lastHandshake returns the last successful handshake of a server, if its configuration is still the same.
// Only one goroutine, that of the current start, uses it.
func (s *server) lastHandshake(c config.MCPServer) handshake {
	if s.opening.handshake == nil || !reflect.DeepEqual(s.opening.handshake.config, c) {
		s.opening.handshake = &handshake{config: c}
		if s.m.deps.LastVersion != nil {
			s.opening.handshake.version = s.m.deps.LastVersion(s.name, c)
		}
	}
	return *s.opening.handshake
}

// saveVersion stores the version that a server used.
func (s *server) saveVersion(version string) {
	s.opening.handshake.version = version
	if s.m.deps.SaveVersion != nil {
		s.m.deps.SaveVersion(s.name, s.opening.handshake.config, version)
	}
}

// openProgram starts a program and performs the handshake. If the program exited or hung after the
// request server/discover, openProgram starts it once more and uses the older handshake.
func (m *Manager) openProgram(ctx context.Context, s *server, l Launch, c config.MCPServer) (*connection, *wire.InitializeResult, error) {
	known := s.lastHandshake(c)
	older := known.older()
	for {
		transport := newStdio(l, m.deps.Children, m.deps.Log.With("server", s.name))
		transport.server = s.name
		transport.strayOutput = &s.strayOutput
		s.strayOutput.Store(nil)
		conn := m.newConnection(s.name, transport, l, c)
		var info *wire.InitializeResult
		err := conn.session.start(ctx)
		switch {
		case err != nil:
		case c.ProtocolVersion != "":
			info, err = conn.session.performHandshake(ctx, c.ProtocolVersion)
		case older:
			if info, err = conn.session.olderHandshake(ctx, ""); answered(err) && conn.ctx.Err() == nil {
				info, err = conn.session.performHandshake(ctx, newestVersion)
			}
		default:
			info, err = conn.session.negotiate(ctx, m.handshakeLimits, known, transport.unread)
		}
		if err == nil {
			return conn, info, nil
		}
		ended := conn.ctx.Err() != nil || errors.Is(err, errStuck)
		conn.close("it could not be started")
		var permanent permanentError
		if older || c.ProtocolVersion != "" || !ended && ctx.Err() == nil || errors.As(err, &permanent) {
			return nil, nil, err
		}
		s.opening.handshake.version = wire.LATEST_LEGACY_PROTOCOL_VERSION // also for the next start
		if ctx.Err() != nil {
			return nil, nil, err
		}
		m.deps.Log.Debug("restarting an MCP server, in case server/discover ended it", "server", s.name, "err", l.Clean(err.Error()))
		older = true
	}
}

// performHandshake performs the handshake of one version.
func (s *session) performHandshake(ctx context.Context, version string) (*wire.InitializeResult, error) {
	if !wire.IsModernProtocol(version) {
		return s.olderHandshake(ctx, version)
	}
	info, err := s.discover(ctx, nil)
	if errors.Is(err, errNoVersions) {
		err = nil // the version is known from the configuration or an earlier start
	}
	if err == nil {
		s.setVersion(version)
	}
	return info, err
}

// handshakeResult is the outcome of one handshake request.
type handshakeResult struct {
	info *wire.InitializeResult
	err  error
}

// negotiate sends server/discover to a program. It sends the older handshake when the program refuses
// this request, or reads it and stays silent for a while.
//
// unread reports whether a request is still unread (pending), if the system can tell (known). The
// program's time to answer begins when it has read the request; until then, it counts as starting.
func (s *session) negotiate(ctx context.Context, limits handshakeLimits, known handshake, unread func() (pending, known bool)) (*wire.InitializeResult, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	ask := func(request func(context.Context) (*wire.InitializeResult, error)) <-chan handshakeResult {
		answer := make(chan handshakeResult, 1)
		if !s.background(func() {
			info, err := request(ctx)
			answer <- handshakeResult{info, err}
		}) {
			answer <- handshakeResult{err: context.Cause(s.ctx)}
		}
		return answer
	}
	initialize := func(ctx context.Context) (*wire.InitializeResult, error) { return s.initialize(ctx, "") }
	requestSent := make(chan struct{})
	sent := sync.OnceFunc(func() { close(requestSent) })
	discover := func(ctx context.Context) (*wire.InitializeResult, error) { return s.discover(ctx, sent) }
	discoverResult, initResult := ask(discover), (<-chan handshakeResult)(nil)
	var initErr error          // the error of the older handshake
	var starting, hasRead bool // whether the program is known to be starting, or to have read the request
	readTimeout := limits.probe
	if known.version != "" {
		readTimeout = limits.stuck
	}
	wait := time.NewTimer(readTimeout)
	wait.Stop() // stopped until the request has been sent
	defer wait.Stop()
	for {
		select {
		case <-requestSent:
			requestSent = nil
			wait.Reset(readTimeout)
		case d := <-discoverResult:
			if d.err == nil {
				s.setVersion(newestVersion)
				return d.info, nil
			}
			discoverResult = nil
			switch {
			case s.ctx.Err() != nil || ctx.Err() != nil:
				return nil, d.err
			case initErr != nil:
				return nil, initErr
			case noCommonVersion(d.err):
				return nil, d.err
			case initResult == nil:
				initResult = ask(initialize)
				wait.Reset(limits.stuck)
			}
		case g := <-initResult:
			if g.err == nil {
				return g.info, s.completeHandshake(ctx, g.info)
			}
			if discoverResult == nil || s.ctx.Err() != nil || ctx.Err() != nil {
				return nil, g.err
			}
			initResult, initErr = nil, g.err
			wait.Reset(limits.stuck)
		case <-wait.C:
			if initErr != nil {
				return nil, initErr
			}
			if initResult == nil {
				pending, sure := unread()
				if sure && (pending || starting) { // the program's time to answer begins when it has read the request
					starting = pending
					wait.Reset(readTimeout)
					continue
				}
				hasRead = sure
				initResult = ask(initialize)
			} else if discoverResult != nil && hasRead {
				return nil, errStuck
			}
			wait.Reset(limits.stuck)
		}
	}
}

// noCommonVersion reports whether an error means that eca supports none of a server's versions.
func noCommonVersion(err error) bool {
	var unknown *versionError
	if !errors.As(err, &unknown) {
		return false
	}
	return !slices.ContainsFunc(unknown.versions, func(v string) bool { return slices.Contains(wire.LegacyProtocolVersions(), v) })
}
