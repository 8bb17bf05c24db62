package daemon

import (
	"context"
	"encoding/json"
	"slices"

	"github.com/seed-dec29ce4/eca/chat"
	"github.com/seed-dec29ce4/eca/extensions"
	"github.com/seed-dec29ce4/eca/tools"
	"github.com/seed-dec29ce4/eca/tools/guide"
)

// rulesAndSkills provides the rules and skills for the system prompt.
type rulesAndSkills struct{ s *Snapshot }

// Blocks implements chat.SystemSource.
func (w rulesAndSkills) Blocks(_ context.Context, q chat.SystemQuery) (blocks []chat.SystemBlock, problems []string) {
	set := w.s.extensions
	query := extensions.Query{
		Reader: extensions.Reader{Agent: q.Agent, Model: q.Model}, Roots: q.Roots,
		Subagent: q.Subagent, Enabled: q.Enabled,
	}
	add := func(section chat.Section, list []extensions.Block) {
		for _, b := range list {
			blocks = append(blocks, chat.SystemBlock{Section: section, Name: b.Name, Text: b.Text})
		}
	}
	rules, problems := set.RulesBlock(query)
	add(chat.SectionRules, rules)
	add(chat.SectionSkills, set.SkillsBlock(query, func(name string) bool {
		return w.s.judgeSkill(tools.Call{Agent: q.Agent, Model: q.Model, Roots: q.Roots}, name).Decision != tools.Deny
	}))
	return blocks, problems
}

// judgeSkill judges the call that loads a skill. The rules for a skill's name decide which agents may load
// it (eca-features.md 15).
func (s *Snapshot) judgeSkill(call tools.Call, name string) tools.Verdict {
	args, err := json.Marshal(map[string]string{"name": name})
	if err != nil {
		return tools.Verdict{Decision: tools.Deny, Reason: err.Error()}
	}
	call.Arguments = args
	return s.policy.Judge(call, tools.Spec{Server: tools.Native, Name: "skill", ReadOnly: true}, tools.Plan{})
}

// library gives tools the users' rules and skills, as they were when the tools were created.
type library struct {
	tools *toolbox
	*Snapshot
}

var _ guide.Source = library{}

// Skills implements guide.Source.
func (l library) Skills() []string {
	names := make([]string, len(l.extensions.Skills))
	for i, s := range l.extensions.Skills {
		names[i] = s.Name
	}
	return names
}

// Skill implements guide.Source.
func (l library) Skill(name string) (guide.Skill, bool) {
	s, ok := l.extensions.Skill(name)
	return guide.Skill{Name: s.Name, Dir: s.Dir, Body: s.Body}, ok
}

// Rule implements guide.Source.
func (l library) Rule(call tools.Call, id string) (rule guide.Rule, found bool, err error) {
	r, ok := l.extensions.Rule(readerOf(call), id)
	if !ok || r.Static() {
		return guide.Rule{}, false, nil
	}
	text, err := r.Render(extensions.Query{
		Reader: readerOf(call), Roots: call.Roots, Subagent: call.Subagent() || !l.config.Agents[call.Agent].Primary(),
		Enabled: func(tool string) bool {
			t, ok := l.tools.toolsOf(l.Snapshot).Lookup(tool)
			return ok && l.policy.HiddenBy(call.Agent, t.Spec()) == ""
		},
	})
	return guide.Rule{ID: r.ID, Text: text}, true, err
}

func readerOf(call tools.Call) extensions.Reader {
	return extensions.Reader{Agent: call.Agent, Model: call.Model}
}

// Applies implements guide.Source.
func (l library) Applies(call tools.Call, id, path string) bool {
	return slices.ContainsFunc(l.extensions.RulesFor(readerOf(call), path), func(r extensions.Rule) bool { return r.ID == id })
}

// Needed implements guide.Source. It leaves out rules whose text is empty or cannot be read,
// because the model could never fetch them.
func (l library) Needed(call tools.Call, path string, access guide.Access) []string {
	var out []string
	for _, r := range l.extensions.RulesFor(readerOf(call), path) {
		if !slices.Contains(r.Enforce, extensions.Access(access)) {
			continue
		}
		if text, _, err := l.Rule(call, r.ID); err == nil && text.Text != "" {
			out = append(out, r.ID)
		}
	}
	return out
}

// withRulesAndSkills adds the tools skill and fetch_rule if the user has skills and rules for them,
// and the gate that makes calls on files wait for rules.
func (b *toolbox) withRulesAndSkills(list []tools.Tool, s *Snapshot) []tools.Tool {
	set := s.extensions
	if set == nil {
		return list
	}
	source := library{b, s}
	if len(set.Skills) > 0 {
		list = append(list, guide.SkillTool(source))
	}
	if !set.Scoped() {
		return list
	}
	list = append(list, guide.FetchRuleTool(source))
	access := map[string]guide.Access{"read_file": guide.Read, "write_file": guide.Modify, "edit_file": guide.Modify, "multi_edit": guide.Modify}
	for i, t := range list {
		if a, ok := access[t.Spec().Name]; ok {
			list[i] = guide.Gate(t, a, source)
		}
	}
	return list
}
