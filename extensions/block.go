package extensions

import (
	"fmt"
	"html"
	"regexp"
	"slices"
	"strings"

	"github.com/seed-dec29ce4/eca/internal/template"
)

// Query describes the turn, and the agent and model, for which texts are rendered.
type Query struct {
	Reader
	Roots    []string
	Subagent bool
	Enabled  func(tool string) bool // reports whether the model may call a tool, by its full name
}

// vars returns the template variables of a text.
func (q Query) vars(text string) template.Vars {
	vars := template.Vars{"isSubagent": q.Subagent, "workspaceRoots": q.Roots}
	for _, name := range regexp.MustCompile(`toolEnabled_[A-Za-z0-9_-]+`).FindAllString(text, -1) {
		vars[name] = q.Enabled(strings.TrimPrefix(name, "toolEnabled_"))
	}
	return vars
}

// Render returns the text of a rule for a reader. A template that cannot be rendered is an error:
// half a rule may mean the opposite.
func (r Rule) Render(q Query) (string, error) {
	text, err := template.Text(r.Text, q.vars(r.Text))
	if err != nil {
		return "", fmt.Errorf("the rule %s is not a valid template: %w", r.ID, err)
	}
	return strings.TrimSpace(text), nil
}

// Block is a section of a system prompt.
type Block struct{ Name, Text string }

// fetchRuleTool and skillTool load listed rules and skills; a model without them gets no list.
const (
	fetchRuleTool = "eca__fetch_rule"
	skillTool     = "eca__skill"
)

// RulesBlock returns the static rules, global ones first, and the list of path-scoped rules that
// the model has to fetch. problems names the rules that were left out.
func (s *Set) RulesBlock(q Query) (blocks []Block, problems []string) {
	for _, scope := range []string{"global", "project"} {
		for _, r := range s.Rules {
			if !r.Static() || r.Scope() != scope || !r.appliesTo(q.Reader) {
				continue
			}
			text, err := r.Render(q)
			if err != nil {
				problems = append(problems, err.Error())
			} else if text != "" {
				blocks = append(blocks, Block{r.ID, tag("rule", []string{"name", r.Name, "scope", scope, "workspace", r.Root}, text)})
			}
		}
	}
	if !q.Enabled(fetchRuleTool) {
		return blocks, problems
	}
	var list []string
	for _, r := range s.Rules {
		if r.Static() || !r.appliesTo(q.Reader) {
			continue
		}
		enforce := make([]string, len(r.Enforce))
		for i, e := range r.Enforce {
			enforce[i] = string(e)
		}
		list = append(list, tag("rule", []string{
			"id", r.ID, "name", r.Name, "scope", r.Scope(), "workspace", r.Root,
			"paths", strings.Join(r.Paths, ", "), "enforced", strings.Join(enforce, ", "),
		}, ""))
	}
	if len(list) > 0 {
		blocks = append(blocks, Block{"path-scoped rules", "More rules apply to certain files. Read each with the tool eca__fetch_rule before you change a file whose path, from its workspace folder on, matches one of its patterns, and before you read it where the rule is enforced to read.\n" +
			strings.Join(list, "\n")})
	}
	return blocks, problems
}

// SkillsBlock lists the skills for which allowed returns true.
func (s *Set) SkillsBlock(q Query, allowed func(name string) bool) []Block {
	if !q.Enabled(skillTool) {
		return nil
	}
	var list []string
	for _, k := range s.Skills {
		if allowed(k.Name) {
			list = append(list, tag("skill", []string{"name", k.Name}, k.Description))
		}
	}
	if len(list) == 0 {
		return nil
	}
	return []Block{{"skills", "Instructions for kinds of tasks. When a task fits a description, load the skill with the tool eca__skill first.\n" + strings.Join(list, "\n")}}
}

// tag encloses a text in a tag. attributes are alternating names and values; empty values are
// omitted.
func tag(name string, attributes []string, text string) string {
	var b strings.Builder
	b.WriteString("<" + name)
	for pair := range slices.Chunk(attributes, 2) {
		if pair[1] != "" {
			fmt.Fprintf(&b, " %s=\"%s\"", pair[0], html.EscapeString(pair[1]))
		}
	}
	switch {
	case text == "":
		b.WriteString("/>")
	case strings.Contains(text, "\n") || name == "rule":
		fmt.Fprintf(&b, ">\n%s\n</%s>", text, name)
	default:
		fmt.Fprintf(&b, ">%s</%s>", text, name)
	}
	return b.String()
}
