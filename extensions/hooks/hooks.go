// Package hooks runs the scripts that users attach to events. A script sees an event before or
// after it happens, and may change its effects (eca-features.md, section 18).
//
// A Set contains the hooks of one configuration. Run runs the hooks of an event one after the other,
// sorted by name, and returns their requests as data. The caller decides about them and may ignore
// some: a hook never overrules the approval policy for tools.
//
// A definition that cannot be used is reported with its cause, and the others run. If a script
// hangs, floods its output or prints invalid output, it changes nothing and is killed at its time
// limit at the latest; the processes that it started are killed with it (internal/proc). Only a
// part of its output is kept.
//
// The package does not decide when hooks run, shows nothing to the user (an Observer does), and
// does not load definitions (New accepts them from any source).
package hooks

import (
	"cmp"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/seed-dec29ce4/eca/config"
	"github.com/seed-dec29ce4/eca/internal/proc"
	"github.com/seed-dec29ce4/eca/internal/sandbox"
	"github.com/seed-dec29ce4/eca/internal/suggest"
)

// Event is something that hooks can be attached to.
type Event string

// The events (eca-features.md 18.2).
const (
	SessionStart        Event = "sessionStart"
	SessionEnd          Event = "sessionEnd"
	ChatStart           Event = "chatStart"
	ChatEnd             Event = "chatEnd"
	ChatStatusChanged   Event = "chatStatusChanged"
	SubagentStart       Event = "subagentStart"
	PreRequest          Event = "preRequest"
	PostRequest         Event = "postRequest"
	SubagentPostRequest Event = "subagentPostRequest"
	PreToolCall         Event = "preToolCall"
	PostToolCall        Event = "postToolCall"
	PreCompact          Event = "preCompact"
	PostCompact         Event = "postCompact"
)

// Events lists all events.
func Events() []Event {
	return []Event{
		SessionStart, SessionEnd, ChatStart, ChatEnd, ChatStatusChanged, SubagentStart, PreRequest, PostRequest,
		SubagentPostRequest, PreToolCall, PostToolCall, PreCompact, PostCompact,
	}
}

func eventNames() []string {
	var names []string
	for _, e := range Events() {
		names = append(names, string(e))
	}
	return names
}

// eventNamed returns the event with a name, which may be an old one.
func eventNamed(name string) (Event, bool) {
	switch name {
	case "prePrompt":
		return PreRequest, true
	case "postPrompt":
		return PostRequest, true
	}
	e := Event(name)
	return e, slices.Contains(Events(), e)
}

// Definition is a hook as its user wrote it.
type Definition struct {
	Name   string
	Source string // its origin, for the user: a file with a line, or a plugin
	Claude bool   // a hook of Claude Code: see claude.go
	config.Hook
}

// fromOptions is the source of hooks that the client sent at its start.
const fromOptions = "initializationOptions"

// FromConfig returns the hooks of a configuration. Hooks that the client sent get camel-case names,
// as in the reference server.
func FromConfig(cfg *config.Loaded) []Definition {
	var out []Definition
	for _, name := range slices.Sorted(maps.Keys(cfg.Hooks)) {
		d := Definition{Name: name, Hook: cfg.Hooks[name]}
		if origin, ok := cfg.Origin("hooks", name); ok {
			d.Source = origin.String()
			if origin.Source == fromOptions {
				d.Name = config.CamelCase(name)
			}
		}
		out = append(out, d)
	}
	return out
}

// Problem describes a hook that is ignored, wholly or in part.
type Problem struct {
	Name   string
	Source string
	Path   []string // the invalid key of the hook; empty for the hook itself
	Cause  string

	Harmless bool // the hook runs more often than intended, not less
}

// Options are what a Set needs to run scripts.
type Options struct {
	Executable string     // how eca was started, for scripts that call it
	Children   *proc.Pool // starts scripts; nil starts them without a supervisor

	// Sandbox returns the sandbox policy for the scripts of a definition; nil means no sandbox.
	Sandbox func(Definition) sandbox.Policy

	// Store returns the path of the chat store, and Session the name of the workspace's session;
	// both are passed to scripts.
	Store   func() string
	Session func(roots []string) string
	NewID   func() string
	Log     *slog.Logger
}

// Set contains the hooks of one configuration. A nil Set has no hooks. It is safe for concurrent
// use.
type Set struct {
	opts Options
	list map[Event][]hook
	info []Info

	replaced sync.Map // names of actions that have replaced a tool's result
}

// hook is a definition that was compiled without errors.
type hook struct {
	Definition
	event   Event
	visible bool
	actions []action
	matcher matcher
}

// action is one script of a hook.
type action struct {
	config.HookAction
	name   string
	limit  time.Duration
	policy sandbox.Policy
}

// defaultLimit is the time limit of an action without its own.
const defaultLimit = 30 * time.Second

// New returns the set of some definitions, and the problems in them.
func New(defs []Definition, opts Options) (*Set, []Problem) {
	s := &Set{opts: opts, list: map[Event][]hook{}}
	var problems []Problem
	defs = slices.Clone(defs)
	slices.SortStableFunc(defs, func(a, b Definition) int { return strings.Compare(a.Name, b.Name) })
	for _, d := range defs {
		h, wrong := compile(d)
		for _, p := range wrong {
			p.Name, p.Source = d.Name, d.Source
			problems = append(problems, p)
		}
		for i := range h.actions {
			if opts.Sandbox != nil {
				h.actions[i].policy = opts.Sandbox(d)
			}
		}
		if len(h.actions) > 0 {
			s.list[h.event] = append(s.list[h.event], h)
			s.info = append(s.info, h.describe())
		}
	}
	return s, problems
}

// compile checks a definition. A hook without actions is unusable.
func compile(d Definition) (h hook, wrong []Problem) {
	problem := func(cause string, path ...string) { wrong = append(wrong, Problem{Path: path, Cause: cause}) }
	event, ok := eventNamed(d.Type)
	if !ok {
		text := fmt.Sprintf("unknown event %q%s", d.Type, suggest.DidYouMean(d.Type, eventNames()))
		if d.Type == "" {
			text = "the hook has no type: add the event at which it runs, such as preToolCall"
		}
		problem(text, "type")
		return hook{}, wrong
	}
	h = hook{Definition: d, event: event, visible: d.Visible == nil || *d.Visible}
	var err error
	if h.matcher, err = d.compileMatcher(event); err != nil {
		problem(err.Error(), "matcher")
		return hook{}, wrong
	}
	if p, found := h.checkMatcher(); found {
		wrong = append(wrong, p)
	}
	if len(d.Actions) == 0 {
		problem("it has no actions")
		return hook{}, wrong
	}
	for i, a := range d.Actions {
		name := d.Name
		if len(d.Actions) > 1 {
			name = fmt.Sprintf("%s-%d", d.Name, i+1)
		}
		switch {
		case a.Type != "shell":
			text := fmt.Sprintf("action %d has the type %q; it must be shell", i+1, a.Type)
			if a.Type == "" {
				text = fmt.Sprintf(`action %d has no type: add "type": "shell"`, i+1)
			}
			problem(text, "actions", strconv.Itoa(i), "type")
		case (a.Shell == "") == (a.File == ""):
			problem(fmt.Sprintf("action %d needs either shell or file", i+1), "actions", strconv.Itoa(i))
		default:
			h.actions = append(h.actions, action{HookAction: a, name: name, limit: limit(cmp.Or(a.Timeout, d.Timeout))})
		}
	}
	return h, wrong
}

func (d Definition) compileMatcher(e Event) (matcher, error) {
	text, isText := d.Matcher.(string)
	if !d.Claude || !isText || text == "" {
		return newMatcher(e, d.Matcher)
	}
	re, err := compileRegexp(text)
	return matcher{text: text, claude: re}, err
}

// limit returns the time limit for a value in milliseconds.
func limit(millis *int) time.Duration {
	if millis == nil || *millis <= 0 {
		return defaultLimit
	}
	return time.Duration(*millis) * time.Millisecond
}

// Any reports whether an event has hooks.
func (s *Set) Any(e Event) bool { return s != nil && len(s.list[e]) > 0 }

// Info describes a hook for the user.
type Info struct {
	Name        string
	Event       Event
	Description string
	Matcher     string // empty if the hook runs always
	Source      string
	Actions     []string // the scripts
	Visible     bool
}

func (h hook) describe() Info {
	i := Info{Name: h.Name, Event: h.event, Description: h.Description, Matcher: h.matcher.text, Source: h.Source, Visible: h.visible}
	for _, a := range h.actions {
		text := a.Shell
		if a.File != "" {
			text = a.File
		}
		i.Actions = append(i.Actions, text)
	}
	return i
}

// List describes the usable hooks, sorted by name.
func (s *Set) List() []Info {
	if s == nil {
		return nil
	}
	return s.info
}
