package extensions

import (
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/dlclark/regexp2"
)

// Access is what a tool is about to do with a file.
type Access string

// The actions that a rule can be enforced for.
const (
	Read   Access = "read"
	Modify Access = "modify"
)

// matchTimeout bounds one regular expression: users' patterns may backtrack.
const matchTimeout = 200 * time.Millisecond

// Rule is a text that a model has to follow (eca-features 20).
type Rule struct {
	ID      string // the path of its file, links resolved
	Name    string // of its file
	Root    string // the workspace folder it is for; empty: all of them
	Plugin  string // the name of the plugin it belongs to; empty: none
	Text    string
	Agents  []string // that it is for; empty: all
	Models  []string // regular expressions, found anywhere in the model's id; empty: all
	Paths   []string // globs; a rule without is for everything
	Enforce []Access // what is refused until the rule was fetched; only with paths

	models []*regexp2.Regexp
	globs  []*regexp.Regexp
}

// Static says that the rule is always in the prompt.
func (r Rule) Static() bool { return len(r.Paths) == 0 }

// Scope is project or global.
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
	r := Rule{ID: path, Name: filepath.Base(path), Text: d.body}
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
	for _, p := range r.Paths {
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
	return r, nil
}

// A Who names the reader of a text by its agent and the full id of its model.
type Who struct{ Agent, Model string }

// appliesTo says whether a rule is for somebody. A pattern that runs out of time counts as
// one that matches: a rule too many does less harm than one that is missing.
func (r Rule) appliesTo(w Who) bool {
	if len(r.Agents) > 0 && !slices.Contains(r.Agents, w.Agent) {
		return false
	}
	return len(r.models) == 0 || slices.ContainsFunc(r.models, func(re *regexp2.Regexp) bool {
		ok, err := re.MatchString(w.Model)
		return ok || err != nil
	})
}

// RulesFor returns the path-scoped rules for a file, by its absolute path with links
// resolved or not, and somebody, ordered by id.
func (s *Set) RulesFor(w Who, path string) []Rule {
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
		if r.Static() || !r.appliesTo(w) {
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

// Rule finds a rule that somebody has by its id.
func (s *Set) Rule(w Who, id string) (Rule, bool) {
	i := slices.IndexFunc(s.Rules, func(r Rule) bool { return r.ID == id && r.appliesTo(w) })
	if i < 0 {
		return Rule{}, false
	}
	return s.Rules[i], true
}

// Scoped says whether there are path-scoped rules at all.
func (s *Set) Scoped() bool {
	return slices.ContainsFunc(s.Rules, func(r Rule) bool { return !r.Static() })
}

// resolve follows the links in a path, up to where it exists.
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
