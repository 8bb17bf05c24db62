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

// Prompts are those of MCP servers. They are called server:prompt, as a whole, so that two
// servers never collide (eca-features 15).
type Prompts interface {
	// Prompts lists them, in a stable order.
	Prompts() []Prompt
	// Prompt returns what one says. It may take as long as the server does; the error is
	// fit for the user.
	Prompt(ctx context.Context, server, name string, args map[string]string) ([]event.Said, error)
}

// Prompt is one of an MCP server.
type Prompt struct {
	Server, Name string
	Description  string
	Arguments    []Argument
}

func (p Prompt) info() Info {
	return Info{p.Server + ":" + p.Name, p.Description, p.Arguments}
}

// servedOffers describes the prompts that can be called, each name once: what the user has
// under a name hides a server's.
func (c *Commands) servedOffers(taken []Offer) []Offer {
	if c.deps.Prompts == nil {
		return nil
	}
	var out []Offer
	for _, p := range c.deps.Prompts.Prompts() {
		o := Offer{p.info(), typeServed}
		same := func(other Offer) bool { return other.Name == o.Name }
		if !slices.ContainsFunc(taken, same) && !slices.ContainsFunc(out, same) {
			out = append(out, o)
		}
	}
	return out
}

// served finds the prompt of an MCP server that a message without its slash calls. Names
// may have spaces in them: the longest that fits counts.
func (c *Commands) served(line string) (chat.Command, bool) {
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
	given := words(rest)
	if err := (definition{Info: found.info(), rest: len(found.Arguments) > 0}).check(given); err != nil {
		return c.runs(found.Name, func(context.Context, *chat.Session) (string, error) { return "", err }), true
	}
	args := positional(found.Arguments, given)
	return chat.Command{Expand: func(ctx context.Context) ([]event.Said, error) {
		return c.deps.Prompts.Prompt(ctx, found.Server, found.Name, args)
	}}, true
}

// positional gives words to arguments in their order; the last takes all that is left.
func positional(list []Argument, given []string) map[string]string {
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
