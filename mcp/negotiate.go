package mcp

import (
	"context"
	"errors"
	"reflect"
	"slices"
	"time"

	wire "github.com/mark3labs/mcp-go/mcp"

	"github.com/seed-dec29ce4/eca/config"
)

// waits bound what a handshake may cost with servers that do not answer what they do not know.
type waits struct {
	// probe is how long a program may take to answer server/discover before it is sent
	// initialize as well. Its first answer counts, so that a slow start decides nothing.
	probe time.Duration
	// remote is how long a remote server may take to answer server/discover.
	remote time.Duration
	// stuck is how long a program that was sent both may say nothing, and a server that
	// spoke the newest version before may take to answer server/discover.
	stuck time.Duration
}

// errStuck is why a program is started again that answered neither handshake.
var errStuck = errors.New("it has read a request and answers neither that nor the next")

// handshake is what is known of the way in which a server shakes hands, as it is configured.
type handshake struct {
	of      config.MCPServer
	version string // that worked last; empty: not known
}

// older says whether a server is to be greeted in the older way at once. An unknown one is
// asked for the newest version first.
func (h handshake) older() bool { return h.version != "" && !wire.IsModernProtocol(h.version) }

// recall returns how a server shook hands the last time. One attempt at a time uses it.
func (s *server) recall(c config.MCPServer) handshake {
	if s.handshake == nil || !reflect.DeepEqual(s.handshake.of, c) {
		s.handshake = &handshake{of: c}
		if s.m.deps.Spoken != nil {
			s.handshake.version = s.m.deps.Spoken(s.name, c)
		}
	}
	return *s.handshake
}

// remember keeps which version a server spoke.
func (s *server) remember(version string) {
	s.handshake.version = version
	if s.m.deps.Spoke != nil {
		s.m.deps.Spoke(s.name, s.handshake.of, version)
	}
}

// openProgram starts a program and shakes hands with it. Where asking for the newest version
// ended it, or left it stuck, it is started once more and greeted in the older way.
func (m *Manager) openProgram(ctx context.Context, s *server, l Launch, c config.MCPServer) (*connection, *wire.InitializeResult, error) {
	known := s.recall(c)
	older := known.older()
	for {
		transport := newStdio(l, m.deps.Children, m.deps.Log.With("server", s.name))
		transport.server = s.name
		conn := m.newConnection(s.name, transport, l, c)
		var info *wire.InitializeResult
		err := conn.session.start(ctx)
		switch {
		case err != nil:
		case c.ProtocolVersion != "":
			info, err = conn.session.speak(ctx, c.ProtocolVersion)
		case older:
			if info, err = conn.session.greet(ctx, ""); answered(err) && conn.ctx.Err() == nil {
				info, err = conn.session.speak(ctx, newestVersion)
			}
		default:
			info, err = conn.session.negotiate(ctx, m.waits, known, transport.unread)
		}
		if err == nil {
			return conn, info, nil
		}
		ended := conn.ctx.Err() != nil || errors.Is(err, errStuck)
		conn.close()
		var permanent permanentError
		if older || c.ProtocolVersion != "" || !ended && ctx.Err() == nil || errors.As(err, &permanent) {
			return nil, nil, err
		}
		s.handshake.version = wire.LATEST_LEGACY_PROTOCOL_VERSION // for the next start, too
		if ctx.Err() != nil {
			return nil, nil, err
		}
		m.deps.Log.Debug("an MCP server is started again, in case that a question of a newer version ended it", "server", s.name, "err", l.Clean(err.Error()))
		older = true
	}
}

// speak shakes hands in the way of one version.
func (s *session) speak(ctx context.Context, version string) (*wire.InitializeResult, error) {
	if !wire.IsModernProtocol(version) {
		return s.greet(ctx, version)
	}
	info, err := s.discover(ctx)
	if errors.Is(err, errNoVersions) {
		err = nil // somebody said that it speaks this one
	}
	if err == nil {
		s.agree(version)
	}
	return info, err
}

// negotiated is what came of a request of a handshake.
type negotiated struct {
	info *wire.InitializeResult
	err  error
}

// negotiate asks a program for the newest version, and greets it in the older way when it
// refuses that, or has read the question and says nothing for a while. unread says whether it
// has still to read the question, where that can be known: until then it is starting.
func (s *session) negotiate(ctx context.Context, limits waits, known handshake, unread func() (left, known bool)) (*wire.InitializeResult, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	ask := func(request func(context.Context) (*wire.InitializeResult, error)) <-chan negotiated {
		answer := make(chan negotiated, 1)
		if !s.background(func() {
			info, err := request(ctx)
			answer <- negotiated{info, err}
		}) {
			answer <- negotiated{err: s.causeOr(errEnded)}
		}
		return answer
	}
	greet := func(ctx context.Context) (*wire.InitializeResult, error) { return s.initialize(ctx, "") }
	discovered, greeted := ask(s.discover), (<-chan negotiated)(nil)
	var refused error          // the reason why the older handshake failed
	var starting, hasRead bool // the program, as far as is known
	patience := limits.probe
	if known.version != "" {
		patience = limits.stuck
	}
	wait := time.NewTimer(patience)
	defer wait.Stop()
	for {
		select {
		case d := <-discovered:
			if d.err == nil {
				s.agree(newestVersion)
				return d.info, nil
			}
			discovered = nil
			switch {
			case s.ctx.Err() != nil || ctx.Err() != nil:
				return nil, d.err
			case refused != nil:
				return nil, refused
			case unknownOnly(d.err):
				return nil, d.err
			case greeted == nil:
				greeted = ask(greet)
				wait.Reset(limits.stuck)
			}
		case g := <-greeted:
			if g.err == nil {
				return g.info, s.initialized(ctx, g.info)
			}
			if discovered == nil || s.ctx.Err() != nil || ctx.Err() != nil {
				return nil, g.err
			}
			greeted, refused = nil, g.err
			wait.Reset(limits.stuck)
		case <-wait.C:
			if refused != nil {
				return nil, refused
			}
			if greeted == nil {
				left, sure := unread()
				if sure && (left || starting) { // once it has read, it gets its time to answer
					starting = left
					wait.Reset(patience)
					continue
				}
				hasRead = sure
				greeted = ask(greet)
			} else if discovered != nil && hasRead {
				return nil, errStuck
			}
			wait.Reset(limits.stuck)
		}
	}
}

// unknownOnly says whether an error names versions of a server, and eca knows none of them.
func unknownOnly(err error) bool {
	var unknown *versionError
	if !errors.As(err, &unknown) {
		return false
	}
	return !slices.ContainsFunc(unknown.versions, func(v string) bool { return slices.Contains(wire.LegacyProtocolVersions(), v) })
}
