package mcp

import (
	"context"
	"maps"
	"path/filepath"
	"slices"

	wire "github.com/mark3labs/mcp-go/mcp"

	"github.com/seed-dec29ce4/eca/workspace"
)

// responder answers requests from servers. Each connection gets a new one. The answers about workspace
// folders (roots) are in this file, questions to the user in elicit.go, and requests to a model in
// sampling.go.
type responder struct{ deps Deps }

// handlers returns the handlers of server requests, by method.
func (u responder) handlers() map[string]Handler {
	out := map[string]Handler{}
	if u.deps.Roots != nil {
		out[string(wire.MethodListRoots)] = func(context.Context, ServerRequest) (any, error) { return u.rootList(), nil }
	}
	if u.asker() != nil {
		out[string(wire.MethodElicitationCreate)] = u.elicit
		if u.deps.Sample != nil {
			out[string(wire.MethodSamplingCreateMessage)] = u.sample
		}
	}
	maps.Copy(out, u.deps.Handlers)
	return out
}

// rootList lists the workspace folders.
func (u responder) rootList() wire.ListRootsResult {
	out := wire.ListRootsResult{Roots: []wire.Root{}}
	for _, path := range u.deps.Roots() {
		out.Roots = append(out.Roots, wire.Root{URI: workspace.ToURI(path), Name: filepath.Base(path)})
	}
	return out
}

// RootsChanged notifies the running servers that the workspace folders changed. It does not wait.
func (m *Manager) RootsChanged() {
	m.mu.Lock()
	servers := slices.Collect(maps.Values(m.servers))
	m.mu.Unlock()
	for _, s := range servers {
		s.enqueue(func() {
			if s.conn != nil {
				s.conn.notifyRoots(s)
			}
		})
	}
}

// notifyRoots notifies the server in the background that the workspace folders changed. Servers of
// versions without a handshake request the folders when they need them.
func (c *connection) notifyRoots(s *server) {
	if c.session.modern() {
		return
	}
	c.session.background(func() {
		ctx, cancel := context.WithTimeout(c.ctx, pingTimeout)
		defer cancel()
		if err := c.session.notify(ctx, wire.MethodNotificationRootsListChanged, nil); err != nil && c.ctx.Err() == nil {
			s.m.deps.Log.Debug("cannot notify an MCP server of changed folders", "server", s.name, "err", err)
		}
	})
}
