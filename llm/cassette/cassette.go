// Package cassette is a model whose answers come from a file: for the offline demo,
// for deterministic evaluations without a key, and for tests. docs/cassettes.md
// describes the format.
//
//   - cassette.go: the format, and which step answers a request;
//   - model.go: a Player as llm.Model;
//   - http.go and http_*.go: a Player behind HTTP, speaking providers' wire formats, with
//     the faults a network can have;
//   - record.go: writes cassettes from live traffic, secrets removed.
//
// The request alone determines which step answers, so a chat can be continued after a restart. The
// only exception is errors that happen a limited number of times. The package does not check that
// requests are well-formed; tests of the wire formats do.
package cassette

import (
	_ "embed"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"

	"github.com/seed-dec29ce4/eca/internal/shorten"
	"github.com/seed-dec29ce4/eca/llm"
)

// version of the format.
const version = 1

//go:embed demo.yaml
var demo []byte

// Demo returns the cassette that plays when no provider is configured.
func Demo() (*Player, error) { return Parse(demo) }

// Cassette is a parsed file.
type Cassette struct {
	Version int    `yaml:"cassette"`
	Title   string `yaml:"title,omitempty"` // answer to requests for a title
	Turns   []Turn `yaml:"turns"`
	Default *Turn  `yaml:"default,omitempty"` // for prompts that no turn answers
}

// Turn answers one user message. If User is set, it answers messages that match; otherwise, it
// answers the message with the same index as the turn.
type Turn struct {
	User  string `yaml:"user,omitempty"` // regular expression
	Said  string `yaml:"said,omitempty"` // the recorded user message, for readers of the file
	Steps []Step `yaml:"steps"`
}

// Step is one response of the model. The first step of a turn answers the user's
// message, each further one the results of the calls before it.
type Step struct {
	Reasoning string        `yaml:"reasoning,omitempty"`
	Text      string        `yaml:"text,omitempty"`
	Repeat    int           `yaml:"repeat,omitempty"` // sends the text this many times, each time as one delta
	Calls     []Call        `yaml:"calls,omitempty"`
	Usage     *Usage        `yaml:"usage,omitempty"`
	Stop      string        `yaml:"stop,omitempty"`  // llm.StopReason; derived if empty
	Delay     time.Duration `yaml:"delay,omitempty"` // between two deltas, and before the first

	// Cases are alternatives to this step. The first case whose If, a regular expression, matches
	// the last tool results is used instead.
	Cases []Step `yaml:"cases,omitempty"`
	If    string `yaml:"if,omitempty"`

	// Faults. Error replaces the answer, or follows it if it is Late; the others end the answer.
	Error *Error `yaml:"error,omitempty"`
	Cut   bool   `yaml:"cut,omitempty"`  // the stream ends without its terminal event
	Hang  bool   `yaml:"hang,omitempty"` // the stream stays open and sends nothing more
	Raw   string `yaml:"raw,omitempty"`  // sent unchanged instead of further events
}

// Call is a tool call. Arguments may contain variables. RawArguments, if set, is sent instead, even
// if it is not valid JSON.
type Call struct {
	ID           string         `yaml:"id,omitempty"`
	Tool         string         `yaml:"tool"`
	Arguments    map[string]any `yaml:"arguments,omitempty"`
	RawArguments string         `yaml:"rawArguments,omitempty"`
}

// Usage is in tokens.
type Usage struct {
	Input     int64 `yaml:"input"`
	Output    int64 `yaml:"output"`
	CacheRead int64 `yaml:"cacheRead,omitempty"`
	// Tokens written to a cache, and how many of them for an hour.
	CacheWrite     int64 `yaml:"cacheWrite,omitempty"`
	CacheWriteLong int64 `yaml:"cacheWriteLong,omitempty"`
	WebSearches    int64 `yaml:"webSearches,omitempty"` // by the provider
}

// Error is a failed request.
type Error struct {
	Status     int     `yaml:"status"`
	Message    string  `yaml:"message,omitempty"`
	RetryAfter float64 `yaml:"retryAfter,omitempty"` // seconds
	Times      int     `yaml:"times,omitempty"`      // how often it fails before the step answers; 0 means always
	Late       bool    `yaml:"late,omitempty"`       // sent in the stream, after the content of the step
}

// Player answers requests from a cassette.
type Player struct {
	cassette *Cassette
	users    []*regexp.Regexp // compiled User of the turns; nil where empty

	mu       sync.Mutex // guards failures
	failures map[*Step]int
}

// Parse reads a cassette. Its errors begin with the line and the column, as in `2:1: unknown field`.
func Parse(data []byte) (*Player, error) {
	p := &Player{cassette: &Cassette{}, failures: map[*Step]int{}}
	if err := yaml.UnmarshalWithOptions(data, p.cassette, yaml.Strict()); err != nil {
		return nil, yamlError(err)
	}
	// fail returns an error about the value at a path of the document.
	fail := func(path []any, format string, args ...any) error {
		return fmt.Errorf("%s: %w", position(data, path), fmt.Errorf(format, args...))
	}
	switch p.cassette.Version {
	case version:
	case 0:
		return nil, fail(nil, "this is not a cassette: its first line must be `cassette: %d`", version)
	default:
		return nil, fail([]any{"cassette"}, "it has version %d; this eca reads version %d", p.cassette.Version, version)
	}
	check := func(t *Turn, path ...any) error {
		if len(t.Steps) == 0 {
			return fail(path, "the turn has no steps")
		}
		for i, s := range t.Steps {
			for k, c := range s.Cases {
				if _, err := regexp.Compile(c.If); err != nil {
					return fail(append(path, "steps", i, "cases", k, "if"), "if: %w", err)
				}
			}
		}
		return nil
	}
	for i, t := range p.cassette.Turns {
		var re *regexp.Regexp
		if t.User != "" {
			var err error
			if re, err = regexp.Compile(t.User); err != nil {
				return nil, fail([]any{"turns", i, "user"}, "user: %w", err)
			}
		}
		p.users = append(p.users, re)
		if err := check(&t, "turns", i); err != nil {
			return nil, err
		}
	}
	if t := p.cassette.Default; t != nil {
		return p, check(t, "default")
	}
	return p, nil
}

// position returns the line and the column of the value at a path of keys and indexes, or of the
// last node on the path that can be followed. yaml.Path does the same, but makes eca larger.
func position(data []byte, path []any) string {
	file, err := parser.ParseBytes(data, 0)
	if err != nil || len(file.Docs) == 0 || file.Docs[0].Body == nil {
		return "1:1"
	}
	at := file.Docs[0].Body
	for _, key := range path {
		switch node := at.(type) {
		case *ast.MappingNode:
			for _, v := range node.Values {
				if v.Key.String() == key {
					at = v.Value
				}
			}
		case *ast.SequenceNode:
			if i, ok := key.(int); ok && i < len(node.Values) {
				at = node.Values[i]
			}
		}
	}
	pos := at.GetToken().Position
	return fmt.Sprintf("%d:%d", pos.Line, pos.Column)
}

// yamlError returns a YAML error in one line.
func yamlError(err error) error {
	text, _, _ := strings.Cut(yaml.FormatError(err, false, false), "\n")
	if m := regexp.MustCompile(`^\[(\d+:\d+)\] `).FindStringSubmatch(text); m != nil {
		return errors.New(m[1] + ": " + text[len(m[0]):])
	}
	return errors.New("1:1: " + text)
}

// step finds the step that answers a request.
func (p *Player) step(req llm.Request) (*Step, vars, error) {
	v := readRequest(req)
	if req.Purpose == llm.PurposeTitle || strings.Contains(req.System, "Title generator") {
		return &Step{Text: p.cassette.Title}, v, nil
	}
	turn := p.turn(v)
	if turn == nil {
		return nil, v, &llm.Error{Kind: llm.ErrBadRequest, Message: fmt.Sprintf(
			"The cassette has no turn for the prompt %q: it has %s, this is prompt %d, and there is no default; add a turn or a default to the file, or record it again",
			shorten.Text(v.user, maxQuoted), count(len(p.cassette.Turns), "turn"), v.userIndex+1)}
	}
	if v.step >= len(turn.Steps) {
		return nil, v, &llm.Error{Kind: llm.ErrBadRequest, Message: fmt.Sprintf(
			"The cassette's turn for %q has only %s, but the tool results need another; add a step to the file, or record it again", shorten.Text(v.user, maxQuoted), count(len(turn.Steps), "step"))}
	}
	s := &turn.Steps[v.step]
	for i := range s.Cases {
		if re, err := regexp.Compile(s.Cases[i].If); err == nil && re.MatchString(v.results) { // Parse checks it
			return &s.Cases[i], v, nil
		}
	}
	return s, v, nil
}

// maxQuoted is how much of a prompt an error quotes, in runes.
const maxQuoted = 80

func count(n int, noun string) string {
	if n != 1 {
		noun += "s"
	}
	return fmt.Sprintf("%d %s", n, noun)
}

func (p *Player) turn(v vars) *Turn {
	for i, re := range p.users {
		if re != nil && re.MatchString(v.user) {
			return &p.cassette.Turns[i]
		}
	}
	if v.userIndex < len(p.cassette.Turns) && p.users[v.userIndex] == nil {
		return &p.cassette.Turns[v.userIndex]
	}
	return p.cassette.Default
}

// nextError returns the step's error if it is due, and counts it.
func (p *Player) nextError(s *Step) *Error {
	if s.Error == nil {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if s.Error.Times > 0 && p.failures[s] >= s.Error.Times {
		return nil
	}
	p.failures[s]++
	return s.Error
}

// vars describes the state of the conversation in a request.
type vars struct {
	user      string // the last user message
	userIndex int    // how many user messages came before it
	step      int    // how many times tool results have been sent since
	workspace string
	results   string // the last tool results
}

func readRequest(req llm.Request) vars {
	v := vars{userIndex: -1}
	for _, m := range req.Messages {
		if m.Role != llm.User {
			continue
		}
		var results []string
		hasText := false
		for _, part := range m.Parts {
			switch part := part.(type) {
			case llm.Text:
				if !hasText {
					v.user, hasText = part.Text, true
				}
			case llm.ToolResult:
				results = append(results, part.Text)
			}
		}
		if hasText {
			v.userIndex++
			v.step = 0
		}
		if len(results) > 0 {
			v.step++
			v.results = strings.Join(results, "\n")
		}
	}
	if m := regexp.MustCompile(`(?m)^## Workspace folders\n- (.+)$`).FindStringSubmatch(req.System); m != nil {
		v.workspace = m[1]
	}
	return v
}

// expand resolves ${workspace} and ${result:REGEX}: the first group, or the whole
// match, in the last tool results.
func (v vars) expand(s string) string {
	return regexp.MustCompile(`\$\{(workspace|result:(?:[^{}]|\{[^{}]*\})*)\}`).ReplaceAllStringFunc(s, func(m string) string {
		expr := m[2 : len(m)-1]
		if expr == "workspace" {
			return v.workspace
		}
		re, err := regexp.Compile(strings.TrimPrefix(expr, "result:"))
		if err != nil {
			return m
		}
		groups := re.FindStringSubmatch(v.results)
		if len(groups) == 0 {
			return ""
		}
		return groups[len(groups)-1]
	})
}

func (v vars) expandAny(x any) any {
	switch x := x.(type) {
	case string:
		return v.expand(x)
	case map[string]any:
		out := make(map[string]any, len(x))
		for k, sub := range x {
			out[k] = v.expandAny(sub)
		}
		return out
	case []any:
		out := make([]any, len(x))
		for i, sub := range x {
			out[i] = v.expandAny(sub)
		}
		return out
	}
	return x
}
