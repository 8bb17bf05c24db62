package mcp

import (
	"context"
	"log/slog"
	"maps"
	"reflect"
	"slices"
	"sync"
	"time"

	"github.com/seed-dec29ce4/eca/config"
	"github.com/seed-dec29ce4/eca/tools"
)

// Manager runs the configured servers. It is safe for concurrent use.
type Manager struct {
	deps Deps
	ctx  context.Context
	stop context.CancelFunc

	handshakeLimits handshakeLimits

	mu       sync.Mutex // guards the fields below
	begun    bool
	closed   bool
	settings Settings
	servers  map[string]*server
	closing  sync.WaitGroup // servers that are being removed, and connections that are being closed

	statusChanged chan struct{} // closed and replaced at each status change
	version       uint64        // increases with each status change
}

// New returns a manager without servers. The caller must call Close.
func New(d Deps) *Manager {
	if d.Log == nil {
		d.Log = slog.Default()
	}
	if d.After == nil {
		d.After = timer
	}
	if d.Changed == nil {
		d.Changed = func() {}
	}
	ctx, stop := context.WithCancel(context.Background())
	return &Manager{
		deps: d, ctx: ctx, stop: stop, servers: map[string]*server{}, statusChanged: make(chan struct{}),
		handshakeLimits: handshakeLimits{probe: time.Second, remote: 3 * time.Second, stuck: 10 * time.Second},
	}
}

// Apply applies a configuration: it starts the new servers, stops the removed ones, restarts the
// changed ones and leaves the others alone. Before Begin it starts nothing.
func (m *Manager) Apply(settings Settings, servers map[string]config.MCPServer) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return
	}
	m.settings = settings
	changed := false
	for name, s := range m.servers {
		if _, ok := servers[name]; !ok {
			delete(m.servers, name)
			m.closing.Go(s.remove)
			changed = true
		}
	}
	for _, name := range slices.Sorted(maps.Keys(servers)) {
		c := servers[name]
		if s, ok := m.servers[name]; !ok {
			m.servers[name] = m.newServer(name, c)
			changed = true
		} else if !reflect.DeepEqual(s.configured, c) {
			s.configured = c
			s.enqueue(func() { s.configure(c) })
		}
	}
	if changed {
		m.changedLocked()
	}
}

// Begin starts the enabled servers concurrently and does not wait for them.
func (m *Manager) Begin() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.begun || m.closed {
		return
	}
	m.begun = true
	for _, s := range m.servers {
		s.enqueue(s.begin)
	}
}

// Start starts a server, even if it is disabled, has failed or waits for a restart. Start and Stop
// ignore unknown names.
func (m *Manager) Start(name string) {
	if s, ok := m.server(name); ok {
		s.enqueue(s.start)
	}
}

// Connect starts a server as Start does, and waits until it is running or has failed.
func (m *Manager) Connect(ctx context.Context, name string) error {
	s, ok := m.server(name)
	if !ok {
		return nil
	}
	s.enqueue(s.start)
	_, err := s.connection(ctx)
	return err
}

// Stop stops a server until it is started again or its configuration changes.
func (m *Manager) Stop(name string) {
	if s, ok := m.server(name); ok {
		s.enqueue(func() { s.stop("the user stopped it") })
	}
}

// Restart stops a server and starts it again.
func (m *Manager) Restart(name string) {
	if s, ok := m.server(name); ok {
		s.enqueue(func() { s.restart("to restart it") })
	}
}

func (m *Manager) server(name string) (*server, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	s, ok := m.servers[name]
	return s, ok
}

// Status returns the status of a server.
func (m *Manager) Status(name string) (Status, bool) {
	s, ok := m.server(name)
	if !ok {
		return Status{}, false
	}
	return *s.status.Load(), true
}

// Statuses lists all servers, by name.
func (m *Manager) Statuses() []Status {
	m.mu.Lock()
	defer m.mu.Unlock()
	var out []Status
	for _, name := range slices.Sorted(maps.Keys(m.servers)) {
		out = append(out, *m.servers[name].status.Load())
	}
	return out
}

// Tools lists the tools of all servers that are running or restarting. The caller owns the slice.
func (m *Manager) Tools() []tools.Tool {
	var out []tools.Tool
	for _, s := range m.Statuses() {
		if s.Offer == nil {
			continue
		}
		for _, t := range s.Offer.Tools {
			out = append(out, t)
		}
	}
	return out
}

// Version increases with each status change. As long as it is the same, Tools returns the same tools.
func (m *Manager) Version() uint64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.version
}

// Settled waits until no server is starting any more, or ctx ends.
func (m *Manager) Settled(ctx context.Context) {
	for {
		m.mu.Lock()
		statusChanged, busy := m.statusChanged, false
		for _, s := range m.servers {
			busy = busy || s.status.Load().State == Starting
		}
		busy = busy && !m.closed
		m.mu.Unlock()
		if !busy {
			return
		}
		select {
		case <-statusChanged:
		case <-ctx.Done():
			return
		}
	}
}

// changed announces a status change.
func (m *Manager) changed() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.changedLocked()
}

func (m *Manager) changedLocked() {
	close(m.statusChanged)
	m.statusChanged = make(chan struct{})
	m.version++
	m.deps.Changed()
}

func (m *Manager) currentSettings() Settings {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.settings
}

// Close stops all servers concurrently and returns when all have ended.
func (m *Manager) Close() {
	m.mu.Lock()
	if !m.closed {
		m.closed = true
		m.changedLocked()
	}
	servers := slices.Collect(maps.Values(m.servers))
	m.mu.Unlock()
	m.stop()
	for _, s := range servers {
		<-s.done
	}
	m.closing.Wait()
}
