package mcp

import (
	"context"
	"encoding/json"
	"maps"
	"path/filepath"
	"slices"

	wire "github.com/mark3labs/mcp-go/mcp"

	"github.com/seed-dec29ce4/eca/workspace"
)

// What servers may ask of eca is answered here: which folders there are, a question to the
// user (elicit.go), and the use of a model (sampling.go).

// Handler answers a request of a server, within ctx, which also ends when the server
// cancels the request. What it returns is encoded as the result. An *RPCError goes to the
// server as it is; the text of another error does too.
type Handler func(ctx context.Context, r ServerRequest) (any, error)

// ServerRequest is what a server asks of eca (roots, sampling, elicitation).
type ServerRequest struct {
	Server string // its name in the configuration
	Method string
	Params json.RawMessage // as they came; may be empty
	// Calls are those of the server that run now, the oldest first: it asks because of one
	// of them, or of none.
	Calls []ActiveCall
}

// ActiveCall is a call of a tool that runs.
type ActiveCall struct {
	ChatID, CallID, Agent, Tool string
	Model                       string // full id

	hold func() (release func()) // stops the clock of the call
}

// RPCError is an error that a server gets with its code.
type RPCError struct {
	Code    int
	Message string
}

func (e *RPCError) Error() string { return e.Message }

// handlers answer what servers may ask of eca, by method.
func (m *Manager) handlers() map[string]Handler {
	return map[string]Handler{
		string(wire.MethodListRoots): func(context.Context, ServerRequest) (any, error) { return m.rootList(), nil },
	}
}

// capabilities are what eca says it has.
func (m *Manager) capabilities() map[string]any {
	return map[string]any{"roots": map[string]any{"listChanged": true}}
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
	if s.offer != nil && wire.IsModernProtocol(s.offer.Protocol) {
		return
	}
	c.background(func() {
		ctx, cancel := context.WithTimeout(c.ctx, pingTime)
		defer cancel()
		if err := c.tellServer(ctx, wire.MethodNotificationRootsListChanged); err != nil && c.ctx.Err() == nil {
			s.m.deps.Log.Debug("an MCP server could not be told of other folders", "server", s.name, "err", err)
		}
	})
}
