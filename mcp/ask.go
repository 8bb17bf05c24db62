package mcp

import (
	"context"
	"maps"
	"path/filepath"
	"slices"

	wire "github.com/mark3labs/mcp-go/mcp"

	"github.com/seed-dec29ce4/eca/workspace"
)

// What servers may ask of eca is answered here: which folders there are, a question to the
// user (elicit.go), and the use of a model (sampling.go).

// handlers answer what servers may ask of eca, by method.
func (m *Manager) handlers() map[string]Handler {
	out := map[string]Handler{}
	if m.deps.Roots != nil {
		out[string(wire.MethodListRoots)] = func(context.Context, ServerRequest) (any, error) { return m.rootList(), nil }
	}
	if m.asker() != nil {
		out[string(wire.MethodElicitationCreate)] = m.elicit
		if m.deps.Sample != nil {
			out[string(wire.MethodSamplingCreateMessage)] = m.sample
		}
	}
	maps.Copy(out, m.deps.Handlers)
	return out
}

// rootList names the workspace folders.
func (m *Manager) rootList() wire.ListRootsResult {
	out := wire.ListRootsResult{Roots: []wire.Root{}}
	for _, path := range m.deps.Roots() {
		out.Roots = append(out.Roots, wire.Root{URI: workspace.ToURI(path), Name: filepath.Base(path)})
	}
	return out
}

// RootsChanged tells the servers that run that the workspace has other folders. It does not
// wait.
func (m *Manager) RootsChanged() {
	m.mu.Lock()
	servers := slices.Collect(maps.Values(m.servers))
	m.mu.Unlock()
	for _, s := range servers {
		s.tell(func() {
			if s.conn != nil {
				s.conn.tellRoots(s)
			}
		})
	}
}

// tellRoots tells the server that there are other folders, in the background. Servers of
// versions without a handshake ask when they want to know.
func (c *connection) tellRoots(s *server) {
	if c.session.modern() {
		return
	}
	c.session.background(func() {
		ctx, cancel := context.WithTimeout(c.ctx, pingTime)
		defer cancel()
		if err := c.session.notify(ctx, wire.MethodNotificationRootsListChanged, nil); err != nil && c.ctx.Err() == nil {
			s.m.deps.Log.Debug("an MCP server could not be told of other folders", "server", s.name, "err", err)
		}
	})
}
