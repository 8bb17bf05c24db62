package mcp

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	wire "github.com/mark3labs/mcp-go/mcp"

	"github.com/seed-dec29ce4/eca/chat/event"
	"github.com/seed-dec29ce4/eca/internal/shorten"
)

// Prompt is a prompt of a server (eca-features.md 15).
type Prompt struct {
	Server, Name string
	Description  string
	Arguments    []Argument

	nameOnServer      string   // the name that the server uses
	argumentsOnServer []string // the names that the server uses for the arguments
}

// Argument is an argument of a prompt. Arguments have the order in which the server declares them.
type Argument struct {
	Name        string
	Description string
	Required    bool
}

// Limits of prompts.
const (
	maxPrompts         = 1000
	maxPromptArguments = 50
	maxPromptText      = 256 << 10 // bytes of a prompt's messages
	maxShort           = 2000      // bytes of a description in a list
)

// Prompts lists the prompts of all servers that are running or restarting, by server.
func (m *Manager) Prompts() []Prompt {
	var out []Prompt
	for _, s := range m.Statuses() {
		if s.Offer != nil {
			out = append(out, s.Offer.Prompts...)
		}
	}
	return out
}

// Prompt gets the messages of a prompt with arguments from a server. The error can be shown to the
// user.
func (m *Manager) Prompt(ctx context.Context, server, name string, args map[string]string) ([]event.Said, error) {
	var out []event.Said
	params := m.promptParams(server, name, args)
	err := m.ask(ctx, server, func(ctx context.Context, c *connection) error {
		raw, err := c.get(ctx, wire.MethodPromptsGet, params)
		if err != nil {
			return err
		}
		out, err = promptMessages(raw, c.clean)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("cannot get the prompt %s of the MCP server %s: %w", name, server, err)
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("the prompt %s of the MCP server %s is empty", name, server)
	}
	return out, nil
}

// promptParams returns the parameters of prompts/get with the server's own names.
func (m *Manager) promptParams(server, name string, args map[string]string) map[string]any {
	sent := maps.Clone(args)
	for _, p := range m.Prompts() {
		if p.Server != server || p.Name != name {
			continue
		}
		name = p.nameOnServer
		for i, a := range p.Arguments {
			if value, given := sent[a.Name]; given {
				delete(sent, a.Name)
				sent[p.argumentsOnServer[i]] = value
			}
		}
		break
	}
	return map[string]any{"name": name, "arguments": sent}
}

// promptMessages converts the messages of a prompt for a chat: it joins adjacent messages of one role.
func promptMessages(raw json.RawMessage, clean func(string) string) ([]event.Said, error) {
	var res struct {
		Messages []struct {
			Role    wire.Role       `json:"role"`
			Content json.RawMessage `json:"content"`
		} `json:"messages"`
	}
	if err := decode(raw, &res); err != nil {
		return nil, err
	}
	var out []event.Said
	size := 0
	for _, m := range res.Messages {
		role := event.SaidByUser
		if m.Role == wire.RoleAssistant {
			role = event.SaidByModel
		}
		got := convertContent(m.Content)
		got.images = slices.DeleteFunc(got.images, func(i event.Image) bool { return !acceptedImage(i.MediaType) })
		text := clean(strings.Join(got.texts, "\n"))
		if size += len(text); size > maxPromptText {
			text = shorten.Bytes(text, max(len(text)-(size-maxPromptText), 0)) + "\n[The rest of this prompt is omitted.]"
		}
		if last := len(out) - 1; last >= 0 && out[last].Role == role {
			out[last].Text += "\n\n" + text
			out[last].Images = append(out[last].Images, got.images...)
		} else {
			out = append(out, event.Said{Role: role, Text: text, Images: got.images})
		}
		if size > maxPromptText {
			break
		}
	}
	return out, nil
}

// ask sends a server a request without side effects. It waits for a server that is starting, starts
// a failed one, and repeats the request if the server lost the session.
func (m *Manager) ask(ctx context.Context, name string, request func(context.Context, *connection) error) error {
	s, ok := m.server(name)
	if !ok {
		return errors.New("there is no such MCP server")
	}
	for mayRetry := true; ; mayRetry = false {
		conn, err := s.connection(ctx)
		if err != nil {
			return err
		}
		callCtx, cancel := conn.withCallLimit(ctx)
		err = request(callCtx, conn)
		cause := context.Cause(callCtx)
		cancel()
		switch {
		case err == nil:
			return nil
		case cause != nil:
			return cause
		case errors.Is(err, errSessionLost) && mayRetry:
			conn.session.cancel(errSessionLost)
		case errors.Is(err, errUnauthorized):
			conn.session.cancel(err)
			return err
		default:
			return conn.cleanError(err)
		}
	}
}

// get sends a request without side effects and returns the raw answer.
func (c *connection) get(ctx context.Context, method wire.MCPMethod, params any) (json.RawMessage, error) {
	return c.session.ask(ctx, request{method: string(method), params: params})
}

// withCallLimit returns a context that also ends with the connection, and after the call time limit.
func (c *connection) withCallLimit(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(c.ctx, func() { cancel(c.cause()) })
	limited, end := context.WithTimeoutCause(ctx, c.silenceLimit, fmt.Errorf("%w: the server said nothing for %s", errTimeout, c.silenceLimit))
	return limited, func() {
		end()
		stop()
		cancel(nil)
	}
}

// listPrompts fetches all prompts of the server.
func (c *connection) listPrompts(ctx context.Context, s *server) ([]Prompt, error) {
	if c.capabilities.Prompts == nil {
		return nil, nil
	}
	var out []Prompt
	err := fetchPages(ctx, c, wire.MethodPromptsList, func(page *wire.ListPromptsResult) wire.Cursor {
		for _, p := range page.Prompts {
			if p.Name == "" || len(p.Name) > maxToolName || len(p.Arguments) > maxPromptArguments || len(out) == maxPrompts {
				s.m.deps.Log.Warn("omitting a prompt of an MCP server", "server", s.name, "prompt", shorten.Bytes(p.Name, 100))
				continue
			}
			prompt := Prompt{Server: s.name, Name: oneLine(p.Name), nameOnServer: p.Name, Description: c.shortText(cmp.Or(p.Description, p.Title))}
			for _, a := range p.Arguments {
				prompt.argumentsOnServer = append(prompt.argumentsOnServer, a.Name)
				prompt.Arguments = append(prompt.Arguments, Argument{Name: shorten.Bytes(oneLine(a.Name), maxToolName), Description: c.shortText(cmp.Or(a.Description, a.Title)), Required: a.Required})
			}
			out = append(out, prompt)
		}
		return page.NextCursor
	})
	return out, err
}

// shortText shortens a server's text for a list.
func (c *connection) shortText(text string) string { return shorten.Bytes(c.clean(text), maxShort) }
