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

// MCPServers lets the face edit the configured MCP servers. An edit is in effect when its method
// returns. Errors can be shown to the user.
type MCPServers interface {
	// AddMCPServer adds a server for all projects, or for a workspace folder: root, or the first
	// folder if root is empty.
	AddMCPServer(name string, s config.MCPServer, inWorkspace bool, root string) (file string, err error)
	// UpdateMCPServer changes the fields that are set in s, and the arguments unless nil.
	UpdateMCPServer(name string, s config.MCPServer, args *[]string) error
	EnableMCPServer(name string, enabled bool) error
	RemoveMCPServer(name string) error

	// StartMCPServer starts a server, even a disabled one. StartMCPServer and StopMCPServer do not
	// wait, and they ignore unknown names.
	StartMCPServer(name string)
	StopMCPServer(name string)
	// ConnectMCPServer starts a server, and logs in to it if the server requires that. It does not
	// wait: it calls tell with messages for the user and their kind ($/showMessage).
	ConnectMCPServer(name string, tell func(kind, text string))
	// LogoutMCPServer forgets the login to a server.
	LogoutMCPServer(name string) error
	// MCPLogin reports whether a login to a server is stored.
	MCPLogin(name string) bool
	// CloseMCPServers stops all servers and waits for their end.
	CloseMCPServers()
	// MCPStatus returns the state of a server, and its tools with whether an agent may use them.
	MCPStatus(name, agent string) (mcp.Status, []tools.Choice)
}

// mcpServers implement the methods about MCP servers.
type mcpServers struct {
	*connection
	host     MCPServers
	settings *settings
}

// MCPStartServer implements protocol.Server. Like the methods below, it ignores unknown names
// (eca-protocol.md 4.10).
func (m *mcpServers) MCPStartServer(_ context.Context, p protocol.MCPParams) error {
	return m.controlMCP(string(p.Name), m.host.StartMCPServer)
}

// MCPStopServer implements protocol.Server.
func (m *mcpServers) MCPStopServer(_ context.Context, p protocol.MCPParams) error {
	return m.controlMCP(string(p.Name), m.host.StopMCPServer)
}

// MCPConnectServer implements protocol.Server: it starts the server, and logs in to it.
func (m *mcpServers) MCPConnectServer(_ context.Context, p protocol.MCPParams) error {
	return m.controlMCP(string(p.Name), func(name string) {
		m.host.ConnectMCPServer(name, func(kind, text string) {
			m.post("$/showMessage", protocol.ShowMessage{Type: kind, Message: text})
		})
	})
}

// controlMCP starts or stops a server after earlier changes of the configuration have taken effect:
// a server that the user enables and then stops must not start afterwards.
func (m *mcpServers) controlMCP(name string, control func(name string)) error {
	m.changeInOrder(func() func() {
		m.settings.resendServer(name)
		control(name)
		return nil
	})
	return nil
}

// MCPLogoutServer implements protocol.Server. The client is sent the server's state even if no
// login was stored.
func (m *mcpServers) MCPLogoutServer(_ context.Context, p protocol.MCPParams) error {
	m.changeInOrder(func() func() {
		m.settings.resendServer(string(p.Name))
		if err := m.host.LogoutMCPServer(string(p.Name)); err != nil {
			m.notify(m.ctx, "$/showMessage", protocol.ShowMessage{Type: "warning", Message: err.Error()})
		}
		m.settings.push(m.ctx)
		return nil
	})
	return nil
}

// MCPEnableServer implements protocol.Server. The client is sent the server's state even if the
// state has not changed, because what the client last saw may be older than its request.
func (m *mcpServers) MCPEnableServer(_ context.Context, p protocol.MCPParams) error {
	return m.enableMCP(string(p.Name), true)
}

// MCPDisableServer implements protocol.Server.
func (m *mcpServers) MCPDisableServer(_ context.Context, p protocol.MCPParams) error {
	return m.enableMCP(string(p.Name), false)
}

func (m *mcpServers) enableMCP(name string, enabled bool) error {
	m.changeInOrder(func() func() {
		if err := m.host.EnableMCPServer(name, enabled); err != nil {
			m.notify(m.ctx, "$/showMessage", protocol.ShowMessage{Type: "warning", Message: err.Error()})
		}
		m.settings.resendServer(name)
		m.settings.push(m.ctx)
		return nil
	})
	return nil
}

// MCPAddServer implements protocol.Server. Its result reports errors (eca-protocol.md 13.1), like
// those of the next two methods.
func (m *mcpServers) MCPAddServer(_ context.Context, req protocol.Request[protocol.MCPServerParams]) (protocol.AsyncResult[protocol.MCPAddResult], error) {
	p, name := req.Params, string(req.Params.Name)
	changeErr := m.changeMCP(func() error {
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
		_, err := m.host.AddMCPServer(name, server, p.Scope == "workspace", root)
		return err
	})
	return func(context.Context) (protocol.MCPAddResult, error) {
		if e := <-changeErr; e != nil {
			return protocol.MCPAddResult{Error: e}, nil
		}
		server, _ := m.settings.mcpServer(name)
		return protocol.MCPAddResult{Server: &server}, nil
	}, nil
}

// MCPUpdateServer implements protocol.Server.
func (m *mcpServers) MCPUpdateServer(_ context.Context, req protocol.Request[protocol.MCPServerParams]) (protocol.AsyncResult[protocol.MCPUpdateResult], error) {
	p := req.Params
	changeErr := m.changeMCP(func() error {
		return m.host.UpdateMCPServer(string(p.Name), mcpConfig(p), (*[]string)(p.Args))
	})
	return func(context.Context) (protocol.MCPUpdateResult, error) {
		return protocol.MCPUpdateResult{Error: <-changeErr}, nil
	}, nil
}

// MCPRemoveServer implements protocol.Server.
func (m *mcpServers) MCPRemoveServer(_ context.Context, req protocol.Request[protocol.MCPParams]) (protocol.AsyncResult[protocol.MCPRemoveResult], error) {
	name := string(req.Params.Name)
	changeErr := m.changeMCP(func() error { return m.host.RemoveMCPServer(name) })
	return func(context.Context) (protocol.MCPRemoveResult, error) {
		if e := <-changeErr; e != nil {
			return protocol.MCPRemoveResult{Error: e}, nil
		}
		return protocol.MCPRemoveResult{Name: name, Removed: true}, nil
	}, nil
}

// changeMCP makes a change, sends the client the new state, and then reports the error, if any.
func (m *mcpServers) changeMCP(change func() error) <-chan *protocol.WindowError {
	result := make(chan *protocol.WindowError, 1)
	m.changeInOrder(func() func() {
		out := &protocol.WindowError{Code: "internal_error", Message: "internal error"} // unless change returns
		defer func() { result <- out }()
		err := change()
		out = nil
		if err != nil {
			out = &protocol.WindowError{Code: "invalid_request", Message: err.Error()}
		}
		m.settings.push(m.ctx)
		return nil
	})
	return result
}

func mcpConfig(p protocol.MCPServerParams) config.MCPServer {
	return config.MCPServer{
		Command: string(p.Command), Env: p.Env, URL: string(p.URL), Headers: p.Headers,
		ClientID: string(p.ClientID), ClientSecret: string(p.ClientSecret), OAuthPort: int(p.OAuthPort), AuthScope: string(p.AuthScope),
	}
}

// mcpServer returns the state of a configured server.
func (s *settings) mcpServer(name string) (protocol.MCPServer, bool) {
	c, ok := s.host.Config().MCPServers[name]
	status, offered := s.host.MCPStatus(name, s.shownAgent())
	out := protocol.MCPServer{
		Type: "mcp", Name: name, Status: string(status.State), Command: c.Command, URL: c.URL, Disabled: c.Disabled, Error: status.Reason,
		HasAuth: s.host.MCPLogin(name),
	}
	if c.Command != "" {
		out.Args = pointerToList(c.Args)
	}
	if status.Offer != nil {
		out.Tools, out.Instructions = fittingTools(offered), shorten.Bytes(status.Offer.Instructions, maxInstructions)
		out.Prompts, out.Resources = offerLists(status.Offer)
	}
	return out, ok
}

// These limit what a message has in addition to a server's tools, so that the message is not too
// long (eca-protocol.md 1.3).
const (
	maxInstructions = 3 << 10 // bytes
	maxListed       = 3 << 10 // bytes of prompts, and of resources
)

// offerLists describes the prompts and resources of a server: as many as fit, without descriptions if
// necessary. The commands and contexts that clients request have the complete lists.
func offerLists(o *mcp.Offer) (*[]protocol.ServerPrompt, *[]protocol.ServerResource) {
	prompts, resources := []protocol.ServerPrompt{}, []protocol.ServerResource{}
	for _, p := range o.Prompts {
		item := protocol.ServerPrompt{Name: p.Name, Description: shortDescription(p.Description), Arguments: []protocol.CommandArgument{}}
		for _, a := range p.Arguments {
			item.Arguments = append(item.Arguments, protocol.CommandArgument{Name: a.Name, Description: shortDescription(a.Description), Required: a.Required})
		}
		prompts = append(prompts, item)
	}
	for _, r := range o.Resources {
		resources = append(resources, protocol.ServerResource{URI: r.URI, Name: r.Name, Description: shortDescription(r.Description), MimeType: r.MediaType})
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

// fittingList returns as many elements of a list as fit, stripped if necessary.
func fittingList[T any](list []T, strip func(*T)) *[]T {
	size := func() int {
		raw, _ := json.Marshal(list) // it cannot fail: the list will be sent
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

// shortDescription shortens a description for a list.
func shortDescription(text string) string { return shorten.Bytes(text, maxDescription) }

// maxDescription is the maximum length of a listed description, in bytes.
const maxDescription = 200

// fittingTools describes tools in a message that is short enough for every client. If necessary, it
// leaves out parameters and shortens descriptions.
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
			out[i].Description = shortDescription(out[i].Description)
		}
	}
	return &out
}

// pushMCP sends the MCP servers that changed, or all if always is set, and those that were removed
// (eca-protocol.md 5.2).
func (s *settings) pushMCP(ctx context.Context, always bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now, requested := map[string]protocol.MCPServer{}, s.takeRequested()
	for _, name := range slices.Sorted(maps.Keys(s.host.Config().MCPServers)) {
		now[name], _ = s.mcpServer(name)
		before, ok := s.mcp[name]
		if always || !ok || requested[name] || !reflect.DeepEqual(before, now[name]) {
			s.notify(ctx, "tool/serverUpdated", now[name])
		}
	}
	for _, name := range slices.Sorted(maps.Keys(s.mcp)) {
		if _, ok := now[name]; !ok {
			s.notify(ctx, "tool/serverRemoved", protocol.ServerRemoved{Name: name})
		}
	}
	s.mcp = now
}
