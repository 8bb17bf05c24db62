package extensions

import (
	"path/filepath"
	"strings"
)

// Kinds of extensions, as they are named in problems.
const (
	kindAgent   = "agents"
	kindSkill   = "skills"
	kindRule    = "rules"
	kindCommand = "commands"
)

// agents collects the Markdown agents. Agents of a workspace take precedence over global ones.
func (g *gatherer) agents() {
	if g.in.Pure {
		return
	}
	byID := map[string]Agent{}
	matches := func(name string) bool {
		return isMarkdown(name) && isRegularName(name) && !strings.EqualFold(name, "README.md")
	}
	loadFiles(g, kindAgent, search{flat: true, matches: matches}, g.locations(nil, ".eca/agents"), parseAgent, func(f foundFile, a Agent) {
		a.Root, a.Plugin, a.pluginDir = f.root, f.plugin.Name, f.plugin.Dir
		if first, taken := byID[a.ID]; taken {
			g.reportDuplicate(f, first.File, first.Root, first.Plugin, "agent", a.ID)
			return
		}
		byID[a.ID] = a
		g.set.Agents = append(g.set.Agents, a)
	})
}

// asAny converts a parser's result.
func asAny[T any](item T, flt *fault) (any, *fault) {
	if flt != nil {
		return nil, flt
	}
	return item, nil
}

// reportDuplicate reports a file whose name is already taken by another file of the same location.
// It is intended that a workspace's file replaces a global one, and a user's file one of a plugin
// or of Claude Code.
func (g *gatherer) reportDuplicate(f foundFile, first, root, plugin, what, name string) {
	if f.root == root && !f.claude && (f.plugin.Name == "" || plugin != "") {
		g.problem(f.path, 0, "the %s %s is not used: %s has the same name", what, name, first)
	}
}

func (g *gatherer) skills() {
	byName := map[string]Skill{}
	s := search{matches: func(name string) bool { return name == skillFile }, stopAtMatch: true}
	loadFiles(g, kindSkill, s, g.locations(g.in.Skills, ".eca/skills", ".agents/skills"), parseSkill, func(f foundFile, k Skill) {
		k.Root, k.Plugin, k.Name = f.root, f.plugin.Name, f.plugin.qualify(k.Name)
		if first, taken := byName[k.Name]; taken {
			g.reportDuplicate(f, first.File, first.Root, first.Plugin, "skill", k.Name)
			return
		}
		byName[k.Name] = k
		g.set.Skills = append(g.set.Skills, k)
	})
}

func (g *gatherer) rules() {
	seen := map[string]bool{}
	loadFiles(g, kindRule, search{matches: isRegularName, anyConfiguredName: true}, g.locations(g.in.Rules, ".eca/rules"), parseRule, func(f foundFile, r Rule) {
		r.Plugin = f.plugin.Name
		if r.ID = resolve(f.path); seen[r.ID] || r.Text == "" {
			return
		}
		seen[r.ID] = true
		if f.root != "" {
			r.Root = resolve(f.root)
		}
		for _, root := range g.set.roots {
			if r.Root == "" && strings.HasPrefix(r.ID, root+string(filepath.Separator)) {
				r.Root = root
			}
		}
		g.set.Rules = append(g.set.Rules, r)
	})
}

func (g *gatherer) commands() {
	byName := map[string]Command{}
	s := search{matches: func(name string) bool { return isMarkdown(name) && isRegularName(name) }, anyConfiguredName: true}
	loadFiles(g, kindCommand, s, g.locations(g.in.Commands, ".eca/commands"), parseCommand, func(f foundFile, c Command) {
		c.Root, c.Plugin, c.Name = f.root, f.plugin.Name, f.plugin.qualify(c.Name)
		if first, taken := byName[c.Name]; taken {
			g.reportDuplicate(f, first.File, first.Root, first.Plugin, "command", c.Name)
			return
		}
		byName[c.Name] = c
		g.set.Commands = append(g.set.Commands, c)
	})
}
