package command

import (
	"context"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/seed-dec29ce4/eca/chat"
	"github.com/seed-dec29ce4/eca/chat/event"
)

// Prompts provides the prompts of MCP servers. Their commands are named server:prompt, so that the
// prompts of two servers never collide (eca-features.md 15).
type Prompts interface {
	// Prompts returns all prompts, in a stable order.
	Prompts() []Prompt
	// Prompt gets the messages of a prompt from its server. The user sees the error.
	Prompt(ctx context.Context, server, name string, args map[string]string) ([]event.Said, error)
}

// Prompt is a prompt of an MCP server.
type Prompt struct {
	Server, Name string
	Description  string
	Arguments    []Argument
}

func (p Prompt) info() Info {
	return Info{p.Server + ":" + p.Name, p.Description, p.Arguments}
}

// mcpPromptOffers returns the prompts of MCP servers as commands, each name once. It leaves out names that
// are taken.
func (c *Commands) mcpPromptOffers(taken []Offer) []Offer {
	if c.deps.Prompts == nil {
		return nil
	}
	var out []Offer
	for _, p := range c.deps.Prompts.Prompts() {
		o := Offer{p.info(), typeMCPPrompt}
		same := func(other Offer) bool { return other.Name == o.Name }
		if !slices.ContainsFunc(taken, same) && !slices.ContainsFunc(out, same) {
			out = append(out, o)
		}
	}
	return out
}

// mcpPrompt finds the prompt of an MCP server that a message, without its slash, begins with. Names may
// contain spaces, so the longest name that matches applies.
func (c *Commands) mcpPrompt(line string) (chat.Command, bool) {
	if c.deps.Prompts == nil {
		return chat.Command{}, false
	}
	var found *Prompt
	var rest string
	for _, p := range c.deps.Prompts.Prompts() {
		more, ok := strings.CutPrefix(line, p.info().Name)
		next, _ := utf8.DecodeRuneInString(more)
		if !ok || more != "" && !unicode.IsSpace(next) || found != nil && len(p.info().Name) <= len(found.info().Name) {
			continue
		}
		found, rest = &p, strings.TrimSpace(more)
	}
	if found == nil {
		return chat.Command{}, false
	}
	values := splitArgs(rest)
	if err := (definition{Info: found.info(), rest: len(found.Arguments) > 0}).check(values); err != nil {
		return c.newCommand(found.Name, func(context.Context, *chat.Session) (string, error) { return "", err }), true
	}
	args := assignArguments(found.Arguments, values)
	return chat.Command{Expand: func(ctx context.Context) ([]event.Said, error) {
		return c.deps.Prompts.Prompt(ctx, found.Server, found.Name, args)
	}}, true
}

// assignArguments assigns given values to arguments in order. The last argument gets all remaining values.
func assignArguments(list []Argument, given []string) map[string]string {
	out := map[string]string{}
	for i, a := range list {
		switch {
		case i >= len(given):
		case i == len(list)-1:
			out[a.Name] = strings.Join(given[i:], " ")
		default:
			out[a.Name] = given[i]
		}
	}
	return out
}
