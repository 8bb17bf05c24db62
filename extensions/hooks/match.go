package hooks

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/dlclark/regexp2"

	"github.com/seed-dec29ce4/eca/internal/suggest"
	"github.com/seed-dec29ce4/eca/tools"
)

// matchTimeout limits one regular expression, since users' patterns may backtrack.
const matchTimeout = 200 * time.Millisecond

// matcher selects the tool calls or compactions that a hook is for. The zero matcher matches
// everything.
type matcher struct {
	text      string // as the user wrote it
	trigger   string // for a compaction: manual or auto
	name      *regexp2.Regexp
	selectors []selector
	claude    *regexp2.Regexp // see claudeSubject
}

// selector is one key of a matcher object.
type selector struct {
	key  string
	args map[string][]*regexp2.Regexp
}

// newMatcher compiles a matcher. It returns the zero matcher for events that have no matchers.
func newMatcher(e Event, v any) (matcher, error) {
	if v == nil || v == "" {
		return matcher{}, nil
	}
	raw, err := json.Marshal(v)
	if err != nil {
		return matcher{}, err
	}
	m := matcher{text: string(raw)}
	text, isText := v.(string)
	if isText {
		m.text = text
	}
	switch e {
	case PreCompact, PostCompact:
		if !isText {
			return matcher{}, fmt.Errorf("the matcher %s must be \"manual\" or \"auto\"", raw)
		}
		m.trigger = text
		return m, nil
	case PreToolCall, PostToolCall:
	default:
		return matcher{}, nil
	}
	if isText {
		m.name, err = compileRegexp(text)
		return m, err
	}
	object, ok := v.(map[string]any)
	if !ok {
		return matcher{}, fmt.Errorf("the matcher %s must be a pattern or an object of tools", raw)
	}
	for _, key := range slices.Sorted(maps.Keys(object)) {
		s, err := newSelector(key, object[key])
		if err != nil {
			return matcher{}, err
		}
		m.selectors = append(m.selectors, s)
	}
	return m, nil
}

// checkMatcher returns a problem if a matcher has no effect, or selects nothing.
func (h hook) checkMatcher() (p Problem, found bool) {
	p.Path = []string{"matcher"}
	switch h.event {
	case PreToolCall, PostToolCall:
		return p, false
	case PreCompact, PostCompact:
		triggers := []string{"manual", "auto"}
		t := h.matcher.trigger
		p.Cause = fmt.Sprintf("the matcher %q is neither manual nor auto, so the hook never runs%s", t, suggest.DidYouMean(t, triggers))
		return p, t != "" && !slices.Contains(triggers, t)
	}
	p.Harmless = true
	p.Cause = fmt.Sprintf("the matcher has no effect, because hooks of %s run for each of these events; remove it", h.event)
	return p, !h.Claude && h.Matcher != nil && h.Matcher != ""
}

func newSelector(key string, v any) (selector, error) {
	s := selector{key: key}
	var body struct {
		ArgsMatchers map[string][]string `json:"argsMatchers"`
	}
	raw, err := json.Marshal(v)
	if err == nil {
		err = json.Unmarshal(raw, &body)
	}
	if err != nil {
		return s, fmt.Errorf("the matcher of %s must be {\"argsMatchers\": {\"argument\": [\"pattern\"]}}", key)
	}
	for arg, patterns := range body.ArgsMatchers {
		if s.args == nil {
			s.args = map[string][]*regexp2.Regexp{}
		}
		s.args[arg] = nil
		for _, p := range patterns {
			re, err := compileRegexp(p)
			if err != nil {
				return s, err
			}
			s.args[arg] = append(s.args[arg], re)
		}
	}
	return s, nil
}

// compileRegexp compiles a pattern that must match the whole value, as in the reference server.
func compileRegexp(pattern string) (*regexp2.Regexp, error) {
	if _, err := regexp2.Compile(pattern, regexp2.None); err != nil { // the error quotes the user's own text
		return nil, fmt.Errorf("the matcher %q is not a valid regular expression: %w", pattern, err)
	}
	re, err := regexp2.Compile(`\A(?:`+pattern+`)\z`, regexp2.None)
	if err != nil {
		return nil, fmt.Errorf("the matcher %q is not a valid regular expression: %w", pattern, err)
	}
	re.MatchTimeout = matchTimeout
	return re, nil
}

// matches reports whether a hook is for a call.
func (m matcher) matches(c Call) bool {
	switch {
	case m.claude != nil:
		subject := claudeSubject(c)
		return subject == "" || matchesRegexp(m.claude, subject)
	case m.trigger != "":
		return m.trigger == c.Trigger
	case c.Tool == nil:
		return true
	case m.name != nil:
		return matchesRegexp(m.name, c.Tool.Server+"__"+c.Tool.Name)
	case m.selectors == nil:
		return true
	}
	var args map[string]json.RawMessage
	_ = json.Unmarshal(c.Tool.Arguments, &args)
	return slices.ContainsFunc(m.selectors, func(s selector) bool {
		return s.selects(*c.Tool) && s.matchesArguments(args)
	})
}

func (s selector) selects(t Tool) bool {
	return s.key == t.Server+"__"+t.Name || s.key == t.Server || t.Server == tools.Native && s.key == t.Name
}

// matchesArguments reports whether each argument named in the selector has a matching value.
func (s selector) matchesArguments(args map[string]json.RawMessage) bool {
	for name, patterns := range s.args {
		raw, ok := args[name]
		if !ok {
			return false
		}
		var text string
		if json.Unmarshal(raw, &text) != nil {
			text = string(bytes.TrimSpace(raw))
		}
		if !slices.ContainsFunc(patterns, func(re *regexp2.Regexp) bool { return matchesRegexp(re, text) }) {
			return false
		}
	}
	return true
}

// matchesRegexp treats a pattern that times out as a match, since the hook may have to prevent
// something. A dot matches no line break, so a text with line breaks also matches with spaces instead.
func matchesRegexp(re *regexp2.Regexp, s string) bool {
	ok, err := re.MatchString(s)
	return ok || err != nil || strings.Contains(s, "\n") && matchesRegexp(re, strings.ReplaceAll(s, "\n", " "))
}
