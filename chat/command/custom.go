package command

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/seed-dec29ce4/eca/chat"
	"github.com/seed-dec29ce4/eca/extensions"
	"github.com/seed-dec29ce4/eca/internal/shorten"
)

// Types of commands, as clients know them.
const (
	typeNative    = "native"
	typeCustom    = "customPrompt"
	typeSkill     = "skill"
	typeMCPPrompt = "mcpPrompt"
)

// customCommand finds a command that is not native: a command of the user, or else a skill, or else
// a prompt of an MCP server (eca-features.md 14). line is the message without the slash.
func (c *Commands) customCommand(name, rest, line string) (chat.Command, bool) {
	set := c.deps.Extensions()
	if cmd, ok := set.Command(name); ok {
		return c.promptCommand(name, cmd.Prompt(rest, splitArgs(rest))), true
	}
	if skill, ok := set.Skill(name); ok {
		cmd := c.promptCommand(name, skill.Invoke(rest, splitArgs(rest)))
		cmd.Check = func(agent string) error { return c.checkSkill(agent, name) }
		return cmd, true
	}
	if cmd, ok := c.mcpPrompt(line); ok {
		return cmd, true
	}
	if why := set.Refused(name); why != "" {
		return c.newCommand(name, func(context.Context, *chat.Session) (string, error) {
			return "", fmt.Errorf("/%s cannot be used: %s", name, why)
		}), true
	}
	return chat.Command{}, false
}

// checkSkill returns an error if a rule denies a skill to an agent. The agent could not load it.
func (c *Commands) checkSkill(agent, name string) error {
	if rule := c.deps.DenySkill(agent, name); rule != "" {
		return fmt.Errorf("the skill %s cannot be used by the agent %s: %s denies eca__skill", name, agent, rule)
	}
	return nil
}

// promptCommand returns a command that sends a prompt to the model, or an error if the prompt is empty.
func (c *Commands) promptCommand(name, text string) chat.Command {
	if strings.TrimSpace(text) != "" {
		return chat.Command{Prompt: text}
	}
	return c.newCommand(name, func(context.Context, *chat.Session) (string, error) {
		return "", fmt.Errorf("/%s has no text that could be sent", name)
	})
}

// customCommands returns the commands that are not native: prompts of MCP servers, skills, and the user's
// commands. Skills that a rule denies to the default agent are left out.
func (c *Commands) customCommands() (prompts, skills, commands []Offer) {
	set := c.deps.Extensions()
	for _, cmd := range set.Commands {
		args := make([]Argument, len(cmd.Arguments))
		for i, a := range cmd.Arguments {
			args[i] = Argument(a)
		}
		commands = append(commands, Offer{Info{cmd.Name, cmp.Or(cmd.Description, cmd.File), args}, typeCustom})
	}
	agent := ""
	if len(set.Skills) > 0 {
		agent = c.deps.Config().AgentOrDefault("")
	}
	for _, s := range set.Skills {
		if _, taken := set.Command(s.Name); !taken && c.checkSkill(agent, s.Name) == nil {
			skills = append(skills, Offer{Info{s.Name, s.Description, []Argument{{Name: "arguments", Description: "Values for its text"}}}, typeSkill})
		}
	}
	return c.mcpPromptOffers(slices.Concat(commands, skills)), skills, commands
}

// location describes what a file belongs to.
func location(root, plugin string) string {
	switch {
	case plugin != "":
		return "plugin " + plugin
	case root == "":
		return "global"
	}
	return "workspace"
}

func (c *Commands) skills(context.Context, input) (string, error) {
	set := c.deps.Extensions()
	var b strings.Builder
	fmt.Fprintf(&b, "- **%s** (built in): a report on this eca for the model\n", infoSkill)
	if len(set.Skills) == 0 {
		b.WriteString("\nYou have no skills. `/skill-create` writes one.\n")
	}
	for _, s := range set.Skills {
		fmt.Fprintf(&b, "- **%s** (%s): %s\n  `%s`\n", s.Name, location(s.Root, s.Plugin), s.Description, s.File)
	}
	return b.String() + fileProblems(set, "skills"), nil
}

// fileProblems lists the problems in more, and then those of files that are in a folder with this
// name, at any depth.
func fileProblems(set *extensions.Set, folder string, more ...string) string {
	var b strings.Builder
	for _, text := range more {
		fmt.Fprintf(&b, "- %s\n", text)
	}
	for _, p := range set.Problems {
		if slices.Contains(strings.Split(filepath.ToSlash(p.Source), "/"), folder) {
			fmt.Fprintf(&b, "- %s\n", p)
		}
	}
	if b.Len() == 0 {
		return ""
	}
	return "\nNot used because of errors:\n\n" + b.String()
}

// maxPreview is the length of the shown beginning of a rule, in characters.
const maxPreview = 120

func (c *Commands) rules(context.Context, input) (string, error) {
	set := c.deps.Extensions()
	var b strings.Builder
	list := func(title string, static bool) {
		first := true
		for _, r := range set.Rules {
			if r.Static() != static || r.Invalid() != nil {
				continue
			}
			if first {
				fmt.Fprintf(&b, "### %s\n\n", title)
			}
			first = false
			fmt.Fprintf(&b, "- **%s** (%s)%s\n  `%s`\n  %s\n", r.Name, ruleScope(r), filters(r), r.ID, preview(r.Text))
		}
		if !first {
			b.WriteString("\n")
		}
	}
	list("Always in the prompt", true)
	list("For certain files, fetched when they are needed", false)
	var invalid []string
	for _, r := range set.Rules {
		if err := r.Invalid(); err != nil {
			invalid = append(invalid, fmt.Sprintf("%s: %v", r.ID, err))
		}
	}
	if b.Len() == 0 && len(invalid) == 0 {
		b.WriteString("There are no rules. They are files in `.eca/rules`, or in the folder `rules` of the global configuration.\n")
	}
	return b.String() + fileProblems(set, "rules", invalid...), nil
}

// ruleScope describes what a rule belongs to.
func ruleScope(r extensions.Rule) string {
	if r.Plugin != "" {
		return location(r.Root, r.Plugin)
	}
	return r.Scope()
}

// filters describes the agents, models and paths that a rule is for.
func filters(r extensions.Rule) string {
	var out string
	add := func(what string, list []string) {
		if len(list) > 0 {
			out += fmt.Sprintf("; %s `%s`", what, strings.Join(list, "`, `"))
		}
	}
	add("agent", r.Agents)
	add("model", r.Models)
	add("paths", r.Paths)
	var enforce []string
	for _, e := range r.Enforce {
		enforce = append(enforce, string(e))
	}
	add("enforced to", enforce)
	return out
}

func preview(text string) string {
	return shorten.Text(strings.Join(strings.Fields(text), " "), maxPreview)
}

func (c *Commands) subagents(context.Context, input) (string, error) {
	agents := c.deps.Config().Agents
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(agents)) {
		a := agents[name]
		if !a.Subagent() {
			continue
		}
		fmt.Fprintf(&b, "- **%s**", name)
		if a.Description != "" {
			b.WriteString(": " + a.Description)
		}
		if a.DefaultModel != "" {
			fmt.Fprintf(&b, "; model `%s`", a.DefaultModel)
		}
		if a.MaxSteps != nil {
			fmt.Fprintf(&b, "; at most %s", count(*a.MaxSteps, "step"))
		}
		if a.SpawnableBy != nil && len(a.SpawnableBy) == 0 {
			b.WriteString("; no agent can start it")
		} else if a.SpawnableBy != nil {
			fmt.Fprintf(&b, "; for `%s`", strings.Join(a.SpawnableBy, "`, `"))
		}
		b.WriteString("\n")
	}
	if b.Len() == 0 {
		b.WriteString("There are no subagents: agents whose mode is subagent.\n")
	}
	return b.String() + fileProblems(c.deps.Extensions(), "agents"), nil
}

// skillCreate asks the model to write a skill.
func (c *Commands) skillCreate(rest string) (string, error) {
	name, wish, _ := strings.Cut(rest, " ")
	name = strings.Trim(name, `"`)
	if name == "" || strings.ContainsAny(name, `/\.`) {
		return "", errors.New("the name of a skill is one word without dots and slashes, such as release-notes")
	}
	var b strings.Builder
	b.WriteString(c.deps.Config().Prompts.SkillCreate)
	fmt.Fprintf(&b, "\n\nName: %s\nWhat it is for: %s\n", name, strings.TrimSpace(wish))
	for _, root := range c.deps.Roots() {
		fmt.Fprintf(&b, "Folder if it belongs to the project: %s\n", filepath.Join(root, ".eca", "skills", name))
	}
	if home := c.deps.ConfigHome; home != "" {
		fmt.Fprintf(&b, "Folder if it is good for all projects: %s\n", filepath.Join(home, "skills", name))
	}
	return b.String(), nil
}
