package extensions

import (
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/dlclark/regexp2"

	"github.com/seed-dec29ce4/eca/config"
	"github.com/seed-dec29ce4/eca/internal/suggest"
	"github.com/seed-dec29ce4/eca/internal/template"
)

// Access is how a tool is about to use a file.
type Access string

// Kinds of access for which a rule can be enforced.
const (
	Read   Access = "read"
	Modify Access = "modify"
)

// matchTimeout limits one regular expression, since users' patterns may backtrack.
const matchTimeout = 200 * time.Millisecond

// Rule is a text that a model has to follow (eca-features.md 20).
type Rule struct {
	ID      string // the path of its file, with symlinks resolved
	Name    string // the name of its file
	Root    string // the workspace folder that it applies to; empty for all
	Plugin  string // the name of its plugin; empty if it belongs to none
	Text    string
	Agents  []string // the agents that it applies to; empty for all
	Models  []string // regular expressions that match a part of the model's id; empty for all models
	Paths   []string // globs for the files that it applies to; empty for all
	Enforce []Access // access that is refused until the model has fetched the rule; only with Paths

	agentLine   int      // of the key agent
	ineffective []*fault // keys without effect, and frontmatter that is not read as such

	models []*regexp2.Regexp
	globs  []*regexp.Regexp
}

// Static reports whether the rule is always part of the prompt.
func (r Rule) Static() bool { return len(r.Paths) == 0 }

// Invalid returns why no prompt contains the text of the rule, or nil.
func (r Rule) Invalid() error {
	if _, err := template.Parse(r.Text); err != nil {
		return fmt.Errorf("it is not a valid template, so its text is left out: %w", err)
	}
	return nil
}

// Scope returns "project" or "global".
func (r Rule) Scope() string {
	if r.Root != "" {
		return "project"
	}
	return "global"
}

func parseRule(path, text string) (Rule, *fault) {
	d, flt := parseDocument(text)
	if flt != nil {
		return Rule{}, flt
	}
	r := Rule{ID: path, Name: filepath.Base(path), Text: d.body, agentLine: d.line("agent")}
	for _, k := range []struct {
		key string
		to  *[]string
	}{{"agent", &r.Agents}, {"model", &r.Models}, {"paths", &r.Paths}} {
		if *k.to, flt = d.texts(k.key); flt != nil {
			return Rule{}, flt
		}
	}
	for _, m := range r.Models {
		re, err := regexp2.Compile(m, regexp2.None)
		if err != nil {
			return Rule{}, faultf(d.line("model"), "%q is not a regular expression: %v", m, err)
		}
		re.MatchTimeout = matchTimeout
		r.models = append(r.models, re)
	}
	for i, p := range r.Paths {
		p = strings.TrimPrefix(p, "./")
		if strings.HasSuffix(p, "/") {
			p += "**"
		}
		r.Paths[i] = p
		re, err := globPattern(p)
		if err != nil {
			return Rule{}, faultf(d.line("paths"), "%q is not a pattern for paths: %v", p, err)
		}
		r.globs = append(r.globs, re)
	}
	enforce, flt := d.texts("enforce")
	if flt != nil {
		return Rule{}, flt
	}
	for _, e := range enforce {
		if Access(e) != Read && Access(e) != Modify {
			return Rule{}, faultf(d.line("enforce"), "enforce must be read, modify, or both as a list")
		}
		r.Enforce = append(r.Enforce, Access(e))
	}
	if len(r.Enforce) == 0 && !r.Static() {
		r.Enforce = []Access{Modify}
	}
	r.ineffective = d.misspelledKeys("agent", "model", "paths", "enforce")
	for _, p := range r.Paths {
		if strings.HasPrefix(p, "/") || strings.HasPrefix(p, "~") || strings.HasPrefix(p, "../") {
			r.ineffective = append(r.ineffective, faultf(d.line("paths"), "%q matches no file, because paths are relative to the workspace folder", p))
		}
	}
	if len(r.Enforce) > 0 && r.Static() {
		r.ineffective = append(r.ineffective, faultf(d.line("enforce"), "enforce has no effect without paths: the rule is part of every prompt, and no call waits for it"))
	}
	if d.unread != nil {
		r.ineffective = append(r.ineffective, d.unread)
	}
	return r, nil
}

// Reader is the agent that reads a text, and the full id of its model.
type Reader struct{ Agent, Model string }

// appliesTo reports whether a rule applies to a reader. A pattern that times out counts as a match:
// a superfluous rule does less harm than a missing one.
func (r Rule) appliesTo(reader Reader) bool {
	if len(r.Agents) > 0 && !slices.Contains(r.Agents, reader.Agent) {
		return false
	}
	return len(r.models) == 0 || slices.ContainsFunc(r.models, func(re *regexp2.Regexp) bool {
		ok, err := re.MatchString(reader.Model)
		return ok || err != nil
	})
}

// RulesFor returns the path-scoped rules that apply to a reader and a file, ordered by id. path is
// absolute; it may contain symlinks.
func (s *Set) RulesFor(reader Reader, path string) []Rule {
	relative := map[string]string{} // by root
	real := resolve(path)
	for _, root := range s.roots {
		rel, err := filepath.Rel(root, real)
		if err == nil && rel != ".." && !strings.HasPrefix(rel, ".."+string(filepath.Separator)) {
			relative[root] = filepath.ToSlash(rel)
		}
	}
	var out []Rule
	for _, r := range s.Rules {
		if r.Static() || !r.appliesTo(reader) {
			continue
		}
		for root, rel := range relative {
			if (r.Root == "" || r.Root == root) && r.matches(rel) {
				out = append(out, r)
				break
			}
		}
	}
	return out
}

func (r Rule) matches(rel string) bool {
	return slices.ContainsFunc(r.globs, func(re *regexp.Regexp) bool { return re.MatchString(rel) })
}

// Rule returns the rule with the given id if it applies to the reader.
func (s *Set) Rule(reader Reader, id string) (Rule, bool) {
	i := slices.IndexFunc(s.Rules, func(r Rule) bool { return r.ID == id && r.appliesTo(reader) })
	if i < 0 {
		return Rule{}, false
	}
	return s.Rules[i], true
}

// RuleProblems returns problems of rules that have no effect, or not their whole effect: their text is
// not a valid template, or they apply to agents that do not exist. A nil Set has none.
func (s *Set) RuleProblems(agents []string) (out []config.Problem) {
	if s == nil {
		return nil
	}
	for _, r := range s.Rules {
		if err := r.Invalid(); err != nil {
			out = append(out, config.Problem{Origin: config.Origin{Source: r.ID}, Cause: err.Error()})
		}
		for _, flt := range r.ineffective {
			out = append(out, config.Problem{Origin: config.Origin{Source: r.ID, Line: flt.line}, Cause: flt.cause})
		}
		for _, name := range r.Agents {
			if !slices.Contains(agents, name) {
				out = append(out, config.Problem{
					Origin: config.Origin{Source: r.ID, Line: r.agentLine},
					Cause:  fmt.Sprintf("agent: there is no agent %q, so the rule does not apply to it%s", name, suggest.DidYouMean(name, agents)),
				})
			}
		}
	}
	return out
}

// Scoped reports whether there are any path-scoped rules.
func (s *Set) Scoped() bool {
	return slices.ContainsFunc(s.Rules, func(r Rule) bool { return !r.Static() })
}

// resolve resolves the symlinks in the longest existing part of a path.
func resolve(path string) string {
	path = filepath.Clean(path)
	for rest := ""; ; {
		if real, err := filepath.EvalSymlinks(path); err == nil {
			return filepath.Join(real, rest)
		}
		up := filepath.Dir(path)
		if up == path {
			return filepath.Join(path, rest)
		}
		rest = filepath.Join(filepath.Base(path), rest)
		path = up
	}
}
