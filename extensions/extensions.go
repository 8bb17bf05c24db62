// Package extensions reads what users add to eca in files: agents, skills, rules and
// custom commands (eca-features 12, 14, 15, 20). Hooks have a package below it.
//
//	agents    *.md in <config home>/agents and <root>/.eca/agents
//	skills    SKILL.md below <config home>/skills, <root>/.eca/skills, <root>/.agents/skills, skills[].path
//	rules     any file below <config home>/rules, <root>/.eca/rules, rules[].path
//	commands  *.md below <config home>/commands, <root>/.eca/commands, commands[].path
//
// and in folders of these names of each plugin, and of .claude if the user wants that.
//
// It guarantees that a Set never changes; that loading never fails: a file that cannot
// be used is named in Problems with its line and cause, and the others load; that a file
// is read again only when it, or a file that it includes, may have changed; and that the
// search is bounded, wherever links lead.
//
// It decides nothing: agents become configuration (package config merges them), what a
// rule or a skill says becomes text for a model, and who may use it is the policy's
// business. It does not watch; Set.Files names what to watch.
package extensions

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/seed-dec29ce4/eca/config"
)

// Set is what the files say, at one moment. Its lists must not be changed.
type Set struct {
	Agents   []Agent   // by id; one for each
	Skills   []Skill   // by name; one for each
	Rules    []Rule    // by id
	Commands []Command // by name; one for each

	Problems []Problem     // what is not used, by file and line
	Units    []config.Unit // files that need trust, trusted or not; of agents, what needs it beyond their configuration
	Files    []string      // to watch: files, and folders as path/* (see package watch)

	roots []string // workspace folders, links resolved
}

// Problem is a file, or a part of one, that is not used.
type Problem struct {
	Path  string
	Line  int // 0 if unknown
	Cause string
}

func (p Problem) String() string {
	if p.Line > 0 {
		return fmt.Sprintf("%s:%d: %s", p.Path, p.Line, p.Cause)
	}
	return p.Path + ": " + p.Cause
}

// Inputs say where to look.
type Inputs struct {
	ConfigHome string   // folder of the global files; empty: none
	Roots      []string // workspace folders, absolute
	Rules      []string // rules[].path
	Commands   []string // commands[].path
	Skills     []string // skills[].path
	Pure       bool     // pureConfig: no agents, and no global files
	Claude     bool     // files of Claude Code count: agents, skills, commands in .claude of the workspace folders
	ClaudeHome string   // and in this folder; empty: none
	Plugins    []Plugin // their files come after all others; the last of them goes first

	// Expand resolves the dynamic strings of a text that is in a file in dir, of the
	// plugin in the given folder if that is not empty. It returns the files that it looked
	// for.
	Expand func(text, dir, plugin string) (out string, files []string, err error)

	// Trusts says whether the user trusts a file of a workspace folder that runs commands,
	// reads what is not in the folder, or leads out of it. Without that it is not used. Nil
	// trusts all.
	Trusts func(config.Unit) bool

	// Gone says whether a file that was in use, and that is missing now, is to count no more:
	// some editors remove a file before they write it again. Nil says that it is.
	Gone func(path string) bool
}

// Plugin is a folder with agents, skills, rules and commands of its own (eca-features 21).
type Plugin struct {
	Name string // begins the names of its skills and commands
	Dir  string // links resolved; what links lead to elsewhere does not count
}

// qualify returns what users call a plugin's skill or command: plugin:name, or the plugin's
// name alone if both are the same.
func (p Plugin) qualify(name string) string {
	if p.Name == "" || strings.EqualFold(p.Name, name) {
		return name
	}
	return p.Name + ":" + name
}

// Fragments returns the agents as configuration, in the order in which they are merged:
// below what the user wrote in JSON. A nil Set has none.
func (s *Set) Fragments() []config.Fragment {
	if s == nil {
		return nil
	}
	out := make([]config.Fragment, len(s.Agents))
	for i, a := range s.Agents {
		out[i] = a.fragment()
	}
	return out
}

// Wrong returns the Problems; a nil Set has none.
func (s *Set) Wrong() []Problem {
	if s == nil {
		return nil
	}
	return s.Problems
}

// Empty says that there is nothing, also nothing wrong.
func (s *Set) Empty() bool {
	return len(s.Agents)+len(s.Skills)+len(s.Rules)+len(s.Commands)+len(s.Problems)+len(s.Units) == 0
}

// Skill finds a skill by its name.
func (s *Set) Skill(name string) (Skill, bool) {
	i := slices.IndexFunc(s.Skills, func(k Skill) bool { return k.Name == name })
	if i < 0 {
		return Skill{}, false
	}
	return s.Skills[i], true
}

// Refused returns why the file of a command or a skill with this name is not used. It is empty if
// there is no such file.
func (s *Set) Refused(name string) string {
	_, own, plugged := strings.Cut(name, ":")
	if !plugged {
		own = name
	}
	names := func(path string) bool {
		base, dir := filepath.Base(path), filepath.Base(filepath.Dir(path))
		if base == skillFile {
			return strings.EqualFold(dir, own)
		}
		return markdown(base) && !slices.Contains([]string{kindAgent, kindRule}, dir) && strings.EqualFold(strings.TrimSuffix(base, filepath.Ext(base)), own)
	}
	for _, p := range s.Problems {
		if names(p.Path) {
			return p.String()
		}
	}
	for _, u := range s.Units {
		if !u.Trusted && names(u.File) {
			return u.File + ": it has no effect until the folder is trusted; `eca trust` shows it and asks"
		}
	}
	return ""
}

// Command finds a custom command by its name.
func (s *Set) Command(name string) (Command, bool) {
	i := slices.IndexFunc(s.Commands, func(c Command) bool { return c.Name == name })
	if i < 0 {
		return Command{}, false
	}
	return s.Commands[i], true
}
