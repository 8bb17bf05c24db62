package remote

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/seed-dec29ce4/eca/chat"
)

// Models looks up models and their variants; the daemon implements it.
type Models interface {
	// CheckModel returns the full id of the model that a name refers to. It requests the provider's list
	// of models if necessary, and returns an error if there is no such model.
	CheckModel(ctx context.Context, name string) (id string, err error)
	// Variants lists the variants of a model; ok is false if the model cannot be used.
	Variants(model string) (variants []string, ok bool)
}

// checkModel returns an error if a model cannot be used, or its provider does not have it. The user's
// default model and the chat's model are accepted even if the provider does not list them. session may
// be nil.
func (f api) checkModel(ctx context.Context, session *chat.Session, name string) error {
	chosen := []string{f.opts.Config().DefaultModel}
	if session != nil {
		chosen = append(chosen, session.Meta().Model)
	}
	if _, usable := f.opts.Models.Variants(name); usable && slices.Contains(chosen, name) {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, promptPatience)
	defer cancel()
	_, err := f.opts.Models.CheckModel(ctx, name)
	return err
}

// model answers POST chats/ID/model: it sets the chat's model, and the variant if the request names one.
func (f api) model(c *call) (any, error) {
	model := c.text("model")
	if model == "" {
		return nil, badRequest("model is missing")
	}
	session, err := f.existingChat(c)
	if err != nil {
		return nil, err
	}
	if err := f.checkModel(c.ctx, session, model); err != nil {
		return nil, badRequest(err.Error())
	}
	return nil, f.choose(c, session, model)
}

// variant answers POST chats/ID/variant: it sets the variant of the chat's model.
func (f api) variant(c *call) (any, error) {
	if c.text("variant") == "" {
		return nil, badRequest("variant is missing")
	}
	session, err := f.existingChat(c)
	if err != nil {
		return nil, err
	}
	return nil, f.choose(c, session, session.Meta().Model)
}

// change applies a change to a chat, and waits until it has taken effect, so that the device's next
// request sees it. It notifies the other clients.
func (f api) change(c *call, session *chat.Session, change func(m *chat.Meta)) error {
	if _, err := session.Change(change).Wait(c.ctx); err != nil {
		return err
	}
	f.hub.news.Announce(chat.ChatChanged, session.ID())
	return nil
}

// choose sets a chat's model, with the variant that the request names.
func (f api) choose(c *call, session *chat.Session, model string) error {
	variant := c.text("variant")
	if known, _ := f.opts.Models.Variants(model); variant != "" && !slices.Contains(known, variant) {
		return badRequest(fmt.Sprintf("the model %s has no variant %q", model, variant))
	}
	return f.change(c, session, func(m *chat.Meta) { m.Model, m.Variant = model, variant })
}

// agent answers POST chats/ID/agent: it sets the chat's agent.
func (f api) agent(c *call) (any, error) {
	name := c.text("agent")
	if name == "" {
		return nil, badRequest("agent is missing")
	}
	session, err := f.existingChat(c)
	if err != nil {
		return nil, err
	}
	agent, known := f.opts.Config().FindAgent(name)
	if !known {
		return nil, badRequest(fmt.Sprintf("there is no agent %q that chats can use", name))
	}
	return nil, f.change(c, session, func(m *chat.Meta) { m.Agent = agent })
}

// server returns the name of the MCP server that a request is about.
func (f api) server(c *call) (name string, err error) {
	name = c.path("name")
	if _, ok := f.opts.Config().MCPServers[name]; !ok {
		return "", errNoServer
	}
	return name, nil
}

// controlServer returns the function that sends a notification about an MCP server, such as
// mcp/startServer.
func controlServer(method string) func(f api, c *call) (any, error) {
	return func(f api, c *call) (any, error) {
		name, err := f.server(c)
		if err != nil {
			return nil, err
		}
		return nil, f.hub.conn.Notify(c.ctx, method, map[string]any{"name": name})
	}
}

// addServer adds an MCP server to the user's configuration.
func (f api) addServer(c *call) (any, error) {
	if c.text("name") == "" {
		return nil, badRequest("name is missing")
	}
	return f.changeServers(c, "mcp/addServer", c.body)
}

// removeServer removes an MCP server from the configuration.
func (f api) removeServer(c *call) (any, error) {
	name, err := f.server(c)
	if err != nil {
		return nil, err
	}
	_, err = f.changeServers(c, "mcp/removeServer", map[string]any{"name": name})
	return nil, err
}

// changeServers changes the configured MCP servers, and returns the result.
func (f api) changeServers(c *call, method string, params any) (any, error) {
	var result json.RawMessage
	if err := f.hub.conn.Call(c.ctx, method, params, &result); err != nil {
		return nil, err
	}
	var refused struct{ Error *struct{ Message string } }
	if json.Unmarshal(result, &refused) == nil && refused.Error != nil {
		return nil, badRequest(refused.Error.Message)
	}
	return result, nil
}
