// Package command implements the slash commands, such as /model.
//
// A message is a command if it begins with a slash and its first word is exactly the name of
// a command. All other messages, including absolute paths, are ordinary prompts. The output
// of a command is Markdown.
//
// Guarantees: neither the output of a command nor a file that it writes contains a secret
// that the configuration knows or that looks like one; the output fits into one message that
// every client accepts (longer output is written to a file); files are never overwritten; a
// command changes only the chat in which it was typed.
//
// The package imports the engine and the configuration; all other dependencies are in Deps.
package command

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/seed-dec29ce4/eca/chat"
	"github.com/seed-dec29ce4/eca/chat/event"
	"github.com/seed-dec29ce4/eca/chat/search"
	"github.com/seed-dec29ce4/eca/config"
	"github.com/seed-dec29ce4/eca/extensions"
	"github.com/seed-dec29ce4/eca/extensions/hooks"
	"github.com/seed-dec29ce4/eca/internal/doctor"
	"github.com/seed-dec29ce4/eca/internal/redact"
	"github.com/seed-dec29ce4/eca/tools/ask"
)

// Store is the part of the chat store that commands use directly.
type Store interface {
	Append(ctx context.Context, meta chat.Meta, events []event.Event) error
	Events(ctx context.Context, id string, from event.Seq, limit int) ([]event.Event, error)
	Window(ctx context.Context, id string, w chat.Window) (chat.Span, error)
}

// Deps are the dependencies of the commands. All fields are required.
type Deps struct {
	Version string // of eca
	Machine chat.Machine
	Config  func() *config.Loaded
	// Extensions returns the user's commands, skills and rules, as last loaded.
	Extensions func() *extensions.Set
	// DenySkill returns the rule that denies a skill to an agent; empty: none.
	DenySkill  func(agent, name string) (rule string)
	ConfigHome string          // folder of the global configuration; may be empty
	Secrets    func() []string // strings that must not be shown
	Roots      func() []string
	Engine     func() *chat.Engine
	Store      Store
	Models     chat.Models
	Choice     func() chat.ModelChoice
	Doctor     func(ctx context.Context) doctor.Report // checks the installation
	// Search finds messages in all chats of the machine. With waitForIndex, it waits until all chats
	// are in the index.
	Search  func(ctx context.Context, query string, limit int, waitForIndex bool) (search.Result, error)
	Hooks   func() []hooks.Info
	Plugins func() Plugins
	// RepoMap returns a map of the folders that focuses on paths and names; empty if the folders
	// have no source code.
	RepoMap  func(ctx context.Context, roots, focus []string) (string, error)
	Logins   Logins
	Spending Spending
	Prompts  Prompts           // prompts of MCP servers
	Ask      func() ask.Client // the user's client, for questions; nil if it does not support them
	Remote   func() string     // instructions for connecting from elsewhere, as Markdown
	TempDir  string            // folder for files that the user did not name
	Now      func() time.Time
	NewID    func() string
}

// Info describes a command.
type Info struct {
	Name        string
	Description string
	Arguments   []Argument
}

// Offer is a command in the list of commands.
type Offer struct {
	Info
	Type string // native, customPrompt, skill or mcpPrompt
}

// Argument of a command.
type Argument struct {
	Name        string
	Description string
	Required    bool
}

// Commands implements chat.Commands. It has more than 40 methods because each slash command is one.
// They share only the dependencies.
type Commands struct {
	deps Deps
	list []definition
}

var _ chat.Commands = (*Commands)(nil)

// definition is a native command. Exactly one of compact, prompt, run, dialog and expand is set.
type definition struct {
	Info
	rest    bool // its last argument extends to the end of the message
	compact bool
	prompt  func(c *Commands, rest string) (string, error)
	run     func(c *Commands, ctx context.Context, in input) (string, error)
	dialog  func(c *Commands) chat.Dialog
	expand  func(c *Commands, ctx context.Context) (string, error) // like prompt, but may take long
	skill   bool                                                   // it is listed as a skill
	extra   bool                                                   // the reference server does not have it
	effect  effect
}

// effect is what a command may change.
type effect int

const (
	changesBeyondChats         effect = iota // files, the configuration, credentials or limits
	changesChats                             // chats at most
	changesBeyondChatsWithArgs               // with arguments; without, nothing
)

// input is the input of a command.
type input struct {
	session *chat.Session
	args    []string // words; double quotes group
	rest    string   // the message after the name
}

// arg returns the first argument, or "".
func (in input) arg() string {
	if len(in.args) == 0 {
		return ""
	}
	return in.args[0]
}

// New returns the commands.
func New(deps Deps) *Commands { return &Commands{deps: deps, list: definitions()} }

func definitions() []definition {
	file := func(what string) []Argument { return []Argument{{Name: "filepath", Description: what}} }
	return []definition{
		{Info: Info{"init", "Write or improve AGENTS.md for this project", nil}, rest: true, prompt: (*Commands).initPrompt, effect: changesChats},
		{Info: Info{"login", "Log in to a provider of models, for example github-copilot", []Argument{{Name: "provider-id", Description: "Its name in the configuration"}}}, dialog: (*Commands).login},
		{Info: Info{"model", "Show the models, or choose one for this chat", []Argument{{Name: "full-model", Description: "provider/model"}}}, run: (*Commands).model, effect: changesChats},
		{Info: Info{"skills", "List the skills", nil}, run: (*Commands).skills, effect: changesChats},
		{Info: Info{"skill-create", "Write a skill from a name and a description of its content", []Argument{{Name: "name", Description: "The skill name", Required: true}, {Name: "prompt", Description: "What the skill is for", Required: true}}}, rest: true, prompt: (*Commands).skillCreate, effect: changesChats},
		{Info: Info{"costs", "Show the tokens and the cost of this chat, of today and of this month", nil}, run: (*Commands).costs, effect: changesChats},
		{Info: Info{"context", "Show what fills the model's context", nil}, run: (*Commands).context, effect: changesChats},
		{Info: Info{"compact", "Replace this chat's history with a summary, for the model", []Argument{{Name: "additional-input", Description: "What the summary should emphasize"}}}, rest: true, compact: true, effect: changesChats},
		{Info: Info{"fork", "Start a new chat with the history of this one", nil}, run: (*Commands).fork, effect: changesChats},
		{Info: Info{"resume", "List earlier chats, or go on with one of them in this chat", []Argument{{Name: "chat-id", Description: "A number from the list, latest, a chat's id, or page with a number for older chats"}}}, rest: true, run: (*Commands).resume, effect: changesChats},
		{Info: Info{"export", "Write this chat to a JSON file", file("File or folder; default: the folder for temporary files")}, run: (*Commands).export},
		{Info: Info{"import", "Read a chat from a file that /export wrote", []Argument{{Name: "filepath", Description: "The file", Required: true}}}, run: (*Commands).importChat, effect: changesChats},
		{Info: Info{"remote", "Show how to connect to this server from elsewhere", nil}, run: (*Commands).remote, effect: changesChats},
		{Info: Info{"config", "Show the effective configuration and where each value comes from", nil}, run: (*Commands).config, effect: changesChats},
		{Info: Info{"doctor", "Check the installation: settings, providers, network, chat store", nil}, run: (*Commands).doctor, effect: changesChats},
		{Info: Info{"debug-chat", "Write this chat's events to a file, for a bug report", file("File or folder; default: the folder for temporary files")}, run: (*Commands).debugChat},
		{Info: Info{"repo-map-show", "Show the map of the repository; paths or names as arguments set its focus", nil}, rest: true, run: (*Commands).repoMapShow, effect: changesChats},
		{Info: Info{"rules", "List the rules, and the agents, models and paths that they are for", nil}, run: (*Commands).rules, effect: changesChats},
		{Info: Info{"prompt-show", "Show the request that a prompt would send to the model", []Argument{{Name: "optional-prompt", Description: "The prompt to show the request for"}}}, rest: true, run: (*Commands).promptShow, effect: changesChats},
		{Info: Info{"sync-system-prompt", "Regenerate this chat's system prompt from the current files and settings", nil}, run: (*Commands).syncSystemPrompt, effect: changesChats},
		{Info: Info{"subagents", "List the subagents and their configuration", nil}, run: (*Commands).subagents, effect: changesChats},
		{Info: Info{"plugins", "List the installed plugins, and those that the configured sources (or the given one) offer", nil}, rest: true, run: (*Commands).plugins, effect: changesBeyondChatsWithArgs},
		{Info: Info{"plugin-install", "Install a plugin", []Argument{{Name: "plugin", Description: "Plugin name or plugin@marketplace", Required: true}}}, run: (*Commands).pluginInstall},
		{Info: Info{"plugin-uninstall", "Uninstall a plugin", []Argument{{Name: "plugin", Description: "Plugin name", Required: true}}}, run: (*Commands).pluginUninstall},
		{Info: Info{"hooks", "Show the hooks, what they are attached to, and their files", nil}, run: (*Commands).hooks, effect: changesChats},
		{Info: Info{infoSkill, "Give the model a report on this eca, to find out why something does not work: version, models, providers, MCP servers, credentials", nil}, skill: true, expand: (*Commands).ecaInfo, effect: changesChats},
		{Info: Info{"rename", "Give this chat a title", []Argument{{Name: "title", Description: "The title", Required: true}}}, rest: true, extra: true, run: (*Commands).rename, effect: changesChats},
		{Info: Info{"plugin-update", "Fetch the newest plugins of a source", []Argument{{Name: "source", Description: "The source's name", Required: true}}}, extra: true, run: (*Commands).pluginUpdate},
		{Info: Info{"pin", "Keep this chat regardless of its age; off undoes it", []Argument{{Name: "off", Description: "off: chatRetentionDays applies again"}}}, extra: true, run: (*Commands).pin, effect: changesChats},
		{Info: Info{"search", "Find messages in all chats: words, \"phrases\", beginnings*, role:, workspace:, since:, until:", []Argument{{Name: "query", Description: "What to find", Required: true}}}, rest: true, extra: true, run: (*Commands).search, effect: changesChats},
		{Info: Info{"budget", "Show what this chat may spend, or change it: /budget chat $5, /budget turn 200k tokens, /budget day off, /budget reset", []Argument{{Name: "scope", Description: "turn, chat or day; reset: as configured"}, {Name: "limits", Description: "$2, 200k tokens or 30 minutes, with commas between them; or off"}}}, rest: true, extra: true, run: (*Commands).budget, effect: changesBeyondChatsWithArgs},
		{Info: Info{"help", "List the commands", nil}, extra: true, run: (*Commands).help, effect: changesChats},
	}
}

// List returns the commands in the order of the reference server: prompts of MCP servers, native
// commands, skills, and the user's own commands. Native commands that the reference server does not
// have come last. Prompts, skills and user's commands with the name of a native command are left out,
// because Find returns the native one.
func (c *Commands) List() []Offer {
	referenceOnly := c.deps.Config().Conformance().ReferenceContent
	var native, builtInSkills, extra []Offer
	for _, d := range c.list {
		switch {
		case d.skill:
			builtInSkills = append(builtInSkills, Offer{d.Info, typeSkill})
		case !d.extra:
			native = append(native, Offer{d.Info, typeNative})
		case !referenceOnly:
			extra = append(extra, Offer{d.Info, typeNative})
		}
	}
	prompts, skills, commands := c.customCommands()
	out := slices.Concat(prompts, native, builtInSkills, skills, commands, extra)
	return slices.DeleteFunc(out, func(o Offer) bool {
		d, native := c.nativeCommand(o.Name)
		return native && o.Type != typeNative && !d.skill
	})
}

// remote shows how to connect from elsewhere.
func (c *Commands) remote(context.Context, input) (string, error) { return c.deps.Remote(), nil }

// ChangesBeyondChats implements chat.Commands.
func (c *Commands) ChangesBeyondChats(message string) bool {
	name, rest, _ := splitCommand(message)
	d, ok := c.nativeCommand(name)
	return ok && (d.effect == changesBeyondChats || d.effect == changesBeyondChatsWithArgs && rest != "")
}

// Native reports whether a name is that of a native command. Custom commands with this name have no
// effect.
func Native(name string) bool {
	return slices.ContainsFunc(definitions(), func(d definition) bool { return d.Name == name })
}

// nativeCommand returns the native command with a name.
func (c *Commands) nativeCommand(name string) (definition, bool) {
	i := slices.IndexFunc(c.list, func(d definition) bool { return d.Name == name })
	if i < 0 {
		return definition{}, false
	}
	return c.list[i], true
}

// Find implements chat.Commands.
func (c *Commands) Find(message string) (chat.Command, bool) {
	name, rest, ok := splitCommand(message)
	if !ok {
		return chat.Command{}, false
	}
	d, ok := c.nativeCommand(name)
	if !ok {
		if found, ok := c.customCommand(name, rest, strings.TrimPrefix(strings.TrimSpace(message), "/")); ok {
			return found, true
		}
		return c.suggestCommand(name)
	}
	in := input{args: splitArgs(rest), rest: rest}
	if err := d.check(in.args); err != nil {
		return c.newCommand(name, func(context.Context, *chat.Session) (string, error) { return "", err }), true
	}
	if d.compact {
		return chat.Command{Compact: rest}, true
	}
	if d.dialog != nil {
		return chat.Command{Dialog: d.dialog(c), Text: rest}, true
	}
	if d.expand != nil {
		return chat.Command{Expand: func(ctx context.Context) ([]event.Said, error) {
			text, err := d.expand(c, ctx)
			return []event.Said{{Role: "user", Text: text}}, err
		}}, true
	}
	if d.prompt != nil {
		text, err := d.prompt(c, rest)
		if err == nil {
			return chat.Command{Prompt: text}, true
		}
		return c.newCommand(name, func(context.Context, *chat.Session) (string, error) { return "", err }), true
	}
	return c.newCommand(name, func(ctx context.Context, s *chat.Session) (string, error) {
		in.session = s
		return d.run(c, ctx, in)
	}), true
}

// check returns an error if the number of arguments is wrong.
func (d definition) check(args []string) error {
	required := 0
	usage := "/" + d.Name
	for _, a := range d.Arguments {
		if a.Required {
			required++
			usage += " <" + a.Name + ">"
		} else {
			usage += " [" + a.Name + "]"
		}
	}
	switch {
	case len(args) < required:
		return fmt.Errorf("/%s needs an argument: %s", d.Name, usage)
	case len(args) > 0 && len(d.Arguments) == 0 && !d.rest:
		return fmt.Errorf("/%s takes no arguments", d.Name)
	case len(args) > len(d.Arguments) && !d.rest:
		return fmt.Errorf("/%s has too many arguments: %s (double quotes keep words together)", d.Name, usage)
	}
	return nil
}

// newCommand returns a command that calls run and shows its output, without secrets and truncated to fit
// into a message.
func (c *Commands) newCommand(name string, run func(context.Context, *chat.Session) (string, error)) chat.Command {
	return chat.Command{Run: func(ctx context.Context, s *chat.Session) (string, error) {
		text, err := run(ctx, s)
		clean := c.redactor()
		if err != nil {
			if shown := clean.String(err.Error()); shown != err.Error() {
				err = errors.New(shown)
			}
			return "", err
		}
		if text = strings.TrimSpace(text); text == "" {
			return "", nil
		}
		return c.fitMessage(name, clean.String(text)), nil
	}}
}

func (c *Commands) redactor() *redact.Redactor { return redact.New(c.deps.Secrets()...) }

// splitCommand splits a message that begins with a slash into a command's name and the rest; ok is false
// for other messages.
func splitCommand(message string) (name, rest string, ok bool) {
	message, ok = strings.CutPrefix(strings.TrimSpace(message), "/")
	if !ok {
		return "", "", false
	}
	end := strings.IndexFunc(message, unicode.IsSpace)
	if end < 0 {
		end = len(message)
	}
	return message[:end], strings.TrimSpace(message[end:]), true
}

// splitArgs splits arguments at white space. Double quotes keep words together; an unclosed quote
// reaches to the end.
func splitArgs(s string) []string {
	var out []string
	var word strings.Builder
	inWord, quoted := false, false
	for _, r := range s {
		switch {
		case r == '"':
			inWord, quoted = true, !quoted
		case unicode.IsSpace(r) && !quoted:
			if inWord {
				out = append(out, word.String())
			}
			word.Reset()
			inWord = false
		default:
			inWord = true
			word.WriteRune(r)
		}
	}
	if inWord {
		out = append(out, word.String())
	}
	return out
}
