package server

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"

	"github.com/seed-dec29ce4/eca/config"
	"github.com/seed-dec29ce4/eca/internal/shorten"
	"github.com/seed-dec29ce4/eca/mcp"
	"github.com/seed-dec29ce4/eca/server/protocol"
	"github.com/seed-dec29ce4/eca/tools"
	"github.com/seed-dec29ce4/eca/workspace"
)

// MCPServers is what the face needs to edit the configured MCP servers. What is edited
// is in effect when a method returns; errors are fit for the user.
type MCPServers interface {
	// AddMCPServer adds a server for all projects, or for a workspace folder: the given
	// one, else the first.
	AddMCPServer(name string, s config.MCPServer, inWorkspace bool, root string) error
	// UpdateMCPServer changes what s does not leave empty, and the arguments unless nil.
	UpdateMCPServer(name string, s config.MCPServer, args *[]string) error
	EnableMCPServer(name string, enabled bool) error
	RemoveMCPServer(name string) error

	// StartMCPServer starts a server, also a disabled one. Neither it nor StopMCPServer
	// waits; unknown names are ignored.
	StartMCPServer(name string)
	StopMCPServer(name string)
	// ConnectMCPServer starts a server, and logs in to it if it wants that. It does not
	// wait: tell is called with what the user should know, of which kind ($/showMessage).
	ConnectMCPServer(name string, tell func(kind, text string))
	// LogoutMCPServer forgets the login to a server.
	LogoutMCPServer(name string) error
	// MCPLogin says whether there is a login to a server.
	MCPLogin(name string) bool
	// CloseMCPServers stops all servers and waits for their end.
	CloseMCPServers()
	// MCPStatus says how a server is, and which of its tools an agent may use.
	MCPStatus(name, agent string) (mcp.Status, []tools.Choice)
}

// MCPStartServer implements protocol.Server. Unknown names are ignored, also below
// (eca-protocol 4.10).
func (s *Server) MCPStartServer(_ context.Context, p protocol.MCPParams) error {
	s.configPush.askAgain(string(p.Name))
	s.host.StartMCPServer(string(p.Name))
	return nil
}

// MCPStopServer implements protocol.Server.
func (s *Server) MCPStopServer(_ context.Context, p protocol.MCPParams) error {
	s.configPush.askAgain(string(p.Name))
	s.host.StopMCPServer(string(p.Name))
	return nil
}

// MCPConnectServer implements protocol.Server: it starts the server, and logs in to it.
func (s *Server) MCPConnectServer(_ context.Context, p protocol.MCPParams) error {
	s.configPush.askAgain(string(p.Name))
	s.host.ConnectMCPServer(string(p.Name), func(kind, text string) {
		s.post("$/showMessage", protocol.ShowMessage{Type: kind, Message: text})
	})
	return nil
}

// MCPLogoutServer implements protocol.Server. The client hears how the server is, also if
// there was nothing to forget.
func (s *Server) MCPLogoutServer(_ context.Context, p protocol.MCPParams) error {
	s.inOrder(func() func() {
		s.configPush.askAgain(string(p.Name))
		if err := s.host.LogoutMCPServer(string(p.Name)); err != nil {
			s.notify(s.ctx, "$/showMessage", protocol.ShowMessage{Type: "warning", Message: err.Error()})
		}
		s.push(s.ctx)
		return nil
	})
	return nil
}

// MCPEnableServer implements protocol.Server. The client hears how the server is, also if it
// was told so before: what it was told last may be older than what it asks for.
func (s *Server) MCPEnableServer(_ context.Context, p protocol.MCPParams) error {
	return s.enableMCP(string(p.Name), true)
}

// MCPDisableServer implements protocol.Server.
func (s *Server) MCPDisableServer(_ context.Context, p protocol.MCPParams) error {
	return s.enableMCP(string(p.Name), false)
}

func (s *Server) enableMCP(name string, enabled bool) error {
	s.inOrder(func() func() {
		if err := s.host.EnableMCPServer(name, enabled); err != nil {
			s.notify(s.ctx, "$/showMessage", protocol.ShowMessage{Type: "warning", Message: err.Error()})
		}
		s.configPush.askAgain(name)
		s.push(s.ctx)
		return nil
	})
	return nil
}

// MCPAddServer implements protocol.Server. What is wrong is told in the result
// (eca-protocol 13.1), as for the two below.
func (s *Server) MCPAddServer(_ context.Context, req protocol.Request[protocol.MCPServerParams]) (protocol.Later[protocol.MCPAddResult], error) {
	p, name := req.Params, string(req.Params.Name)
	wrong := s.changeMCP(func() error {
		root := ""
		if p.WorkspaceURI != "" {
			root = workspace.FromURI(string(p.WorkspaceURI))
		}
		if !slices.Contains([]protocol.Text{"", "global", "workspace"}, p.Scope) {
			return fmt.Errorf("scope must be global or workspace, not %.64q", string(p.Scope))
		}
		server := mcpConfig(p)
		server.Disabled = p.Disabled.Value != nil && *p.Disabled.Value
		if p.Args != nil {
			server.Args = *p.Args
		}
		return s.host.AddMCPServer(name, server, p.Scope == "workspace", root)
	})
	return func(context.Context) (protocol.MCPAddResult, error) {
		if e := <-wrong; e != nil {
			return protocol.MCPAddResult{Error: e}, nil
		}
		m, _ := s.mcpServer(name)
		return protocol.MCPAddResult{Server: &m}, nil
	}, nil
}

// MCPUpdateServer implements protocol.Server.
func (s *Server) MCPUpdateServer(_ context.Context, req protocol.Request[protocol.MCPServerParams]) (protocol.Later[protocol.MCPUpdateResult], error) {
	p := req.Params
	wrong := s.changeMCP(func() error {
		return s.host.UpdateMCPServer(string(p.Name), mcpConfig(p), (*[]string)(p.Args))
	})
	return func(context.Context) (protocol.MCPUpdateResult, error) {
		return protocol.MCPUpdateResult{Error: <-wrong}, nil
	}, nil
}

// MCPRemoveServer implements protocol.Server.
func (s *Server) MCPRemoveServer(_ context.Context, req protocol.Request[protocol.MCPParams]) (protocol.Later[protocol.MCPRemoveResult], error) {
	name := string(req.Params.Name)
	wrong := s.changeMCP(func() error { return s.host.RemoveMCPServer(name) })
	return func(context.Context) (protocol.MCPRemoveResult, error) {
		if e := <-wrong; e != nil {
			return protocol.MCPRemoveResult{Error: e}, nil
		}
		return protocol.MCPRemoveResult{Name: name, Removed: true}, nil
	}, nil
}

// changeMCP makes a change, tells the client of it, and then says what was wrong.
func (s *Server) changeMCP(change func() error) <-chan *protocol.WindowError {
	wrong := make(chan *protocol.WindowError, 1)
	s.inOrder(func() func() {
		out := &protocol.WindowError{Code: "internal_error", Message: "internal error"} // unless change returns
		defer func() { wrong <- out }()
		err := change()
		out = nil
		if err != nil {
			out = &protocol.WindowError{Code: "invalid_request", Message: err.Error()}
		}
		s.push(s.ctx)
		return nil
	})
	return wrong
}

func mcpConfig(p protocol.MCPServerParams) config.MCPServer {
	return config.MCPServer{
		Command: string(p.Command), Env: p.Env, URL: string(p.URL), Headers: p.Headers,
		ClientID: string(p.ClientID), ClientSecret: string(p.ClientSecret), OAuthPort: int(p.OAuthPort), AuthScope: string(p.AuthScope),
	}
}

// mcpServer says how a configured server is.
func (s *Server) mcpServer(name string) (protocol.MCPServer, bool) {
	c, ok := s.host.Config().MCPServers[name]
	status, offered := s.host.MCPStatus(name, s.shownAgent())
	out := protocol.MCPServer{
		Type: "mcp", Name: name, Status: string(status.State), Command: c.Command, URL: c.URL, Disabled: c.Disabled, Error: status.Reason,
		HasAuth: s.host.MCPLogin(name),
	}
	if c.Command != "" {
		out.Args = list(c.Args)
	}
	if status.Offer != nil {
		out.Tools, out.Instructions = fittingTools(offered), shorten.Bytes(status.Offer.Instructions, maxInstructions)
		out.Prompts, out.Resources = listed(status.Offer)
	}
	return out, ok
}

// What the client is told of a server besides its tools fits beside them (1.3).
const (
	maxInstructions = 3 << 10 // bytes
	maxListed       = 3 << 10 // bytes of prompts, and of resources
)

// listed describes what a server has besides tools: as much as fits, rather without
// descriptions. Whole lists are in the commands and contexts that clients ask for.
func listed(o *mcp.Offer) (*[]protocol.ServerPrompt, *[]protocol.ServerResource) {
	prompts, resources := []protocol.ServerPrompt{}, []protocol.ServerResource{}
	for _, p := range o.Prompts {
		item := protocol.ServerPrompt{Name: p.Name, Description: shorter(p.Description), Arguments: []protocol.CommandArgument{}}
		for _, a := range p.Arguments {
			item.Arguments = append(item.Arguments, protocol.CommandArgument{Name: a.Name, Description: shorter(a.Description), Required: a.Required})
		}
		prompts = append(prompts, item)
	}
	for _, r := range o.Resources {
		resources = append(resources, protocol.ServerResource{URI: r.URI, Name: r.Name, Description: shorter(r.Description), MimeType: r.MediaType})
	}
	return fittingList(prompts, func(p *protocol.ServerPrompt) {
			p.Description = ""
			for i := range p.Arguments {
				p.Arguments[i].Description = ""
			}
		}), fittingList(resources, func(r *protocol.ServerResource) {
			r.Description = ""
		})
}

// fittingList is as much of a list as fits, rather stripped.
func fittingList[T any](list []T, strip func(*T)) *[]T {
	size := func() int {
		raw, _ := json.Marshal(list) // it can be: it will be sent
		return len(raw)
	}
	if size() > maxListed {
		for i := range list {
			strip(&list[i])
		}
	}
	for size() > maxListed {
		list = list[:len(list)*3/4]
	}
	return &list
}

// shorter is a description as it is listed.
func shorter(text string) string { return shorten.Bytes(text, shortened) }

// shortened is how long a short description is, in bytes.
const shortened = 200

// fittingTools describes tools in a message that is not too long for any client: rather
// without their parameters, and with shorter descriptions.
func fittingTools(offered []tools.Choice) *[]protocol.ServerTool {
	out, size := []protocol.ServerTool{}, 0
	for _, t := range offered {
		out = append(out, protocol.ServerTool{Name: t.Name, Description: t.Description, Parameters: t.Schema, Disabled: t.Disabled})
		size += len(t.Description) + len(t.Schema) + len(t.Name)
	}
	if size <= maxModelBytes {
		return &out
	}
	size = 0
	for i := range out {
		out[i].Parameters = json.RawMessage(`{"type":"object","properties":{}}`)
		size += len(out[i].Description) + len(out[i].Name)
	}
	for i := range out {
		if size > maxModelBytes {
			out[i].Description = shorter(out[i].Description)
		}
	}
	return &out
}

// pushMCP sends the MCP servers that changed, or all, and those that are gone (5.2).
func (s *Server) pushMCP(ctx context.Context, always bool) {
	s.configPush.mu.Lock()
	defer s.configPush.mu.Unlock()
	now, again := map[string]protocol.MCPServer{}, s.configPush.takeAgain()
	for _, name := range slices.Sorted(maps.Keys(s.host.Config().MCPServers)) {
		now[name], _ = s.mcpServer(name)
		before, ok := s.configPush.mcp[name]
		if always || !ok || again[name] || !reflect.DeepEqual(before, now[name]) {
			s.notify(ctx, "tool/serverUpdated", now[name])
		}
	}
	for _, name := range slices.Sorted(maps.Keys(s.configPush.mcp)) {
		if _, ok := now[name]; !ok {
			s.notify(ctx, "tool/serverRemoved", protocol.ServerRemoved{Name: name})
		}
	}
	s.configPush.mcp = now
}
