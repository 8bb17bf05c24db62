// Package extensions reads the files with which users extend eca: agents, skills, rules and custom
// commands (eca-features.md 12, 14, 15, 20). Hooks have a package below it.
//
//	agents    *.md in <config home>/agents and <root>/.eca/agents
//	skills    SKILL.md below <config home>/skills, <root>/.eca/skills, <root>/.agents/skills, skills[].path
//	rules     any file below <config home>/rules, <root>/.eca/rules, rules[].path
//	commands  *.md below <config home>/commands, <root>/.eca/commands, commands[].path
//
// in folders with these names in each plugin, and in .claude if the user enables that.
//
// A Set never changes. Loading never fails: a file that cannot be used is listed in Problems with
// its line and cause, and the others load. A file is read again only when it, or a file that it
// includes, may have changed. The search is bounded, even with symlinks.
//
// The package makes no decisions: package config merges agents into the configuration, rules and
// skills become text for a model, and the approval policy decides who may use them. It does not
// watch files; Set.Files lists the files to watch.
package extensions

import (
	"path/filepath"
	"slices"
	"strings"

	"github.com/seed-dec29ce4/eca/config"
)

// Set is a snapshot of all extensions. Its lists must not be changed.
type Set struct {
	Agents   []Agent   // by id, without duplicates
	Skills   []Skill   // by name, without duplicates
	Rules    []Rule    // by id
	Commands []Command // by name, without duplicates

	Problems []config.Problem // files or parts of files that are not used, by file and line
	Units    []config.Unit    // files that need trust, trusted or not; for agents, only the part outside their configuration
	Files    []string         // paths to watch: files, and folders as path/* (see package watch)

	roots []string // workspace folders, with symlinks resolved
}

// Inputs describe where to search.
type Inputs struct {
	ConfigHome string   // folder of the global files; empty: none
	Roots      []string // workspace folders, absolute
	Rules      []string // rules[].path
	Commands   []string // commands[].path
	Skills     []string // skills[].path
	Pure       bool     // pureConfig: no agents, and no global files
	Claude     bool     // include Claude Code's agents, skills and commands in .claude of the workspace folders
	ClaudeHome string   // and in this folder; may be empty
	Plugins    []Plugin // their files have the lowest precedence; the last plugin has the highest among them

	// Expand expands the dynamic strings in the text of a file in dir, which belongs to the plugin
	// in the given folder unless that is empty. It returns the files that the text refers to,
	// existing or not.
	Expand func(text, dir, plugin string) (out string, files []string, err error)

	// Trusts reports whether the user trusts a workspace file that runs commands, reads files
	// outside its folder, or leads out of it. Untrusted files are not used. If Trusts is nil,
	// all files are trusted.
	Trusts func(config.Unit) bool

	// Removed reports whether a used file that is missing now is considered deleted; some editors
	// delete a file before they write it again. If Removed is nil, every missing file is deleted.
	Removed func(path string) bool
}

// Plugin is a folder with its own agents, skills, rules and commands (eca-features.md 21).
type Plugin struct {
	Name string // prefix of the names of its skills and commands
	Dir  string // symlinks resolved; files that are reached by symlinks out of it are ignored
}

// qualify returns the full name of a plugin's skill or command: plugin:name, or only the plugin's
// name if both are the same.
func (p Plugin) qualify(name string) string {
	if p.Name == "" || strings.EqualFold(p.Name, name) {
		return name
	}
	return p.Name + ":" + name
}

// Fragments returns the agents as configuration, in merge order, all below the user's JSON
// configuration. A nil Set has no agents.
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

// AllProblems returns the Problems; nil for a nil Set.
func (s *Set) AllProblems() []config.Problem {
	if s == nil {
		return nil
	}
	return s.Problems
}

// Empty reports whether there are no extensions and no problems.
func (s *Set) Empty() bool {
	return len(s.Agents)+len(s.Skills)+len(s.Rules)+len(s.Commands)+len(s.Problems)+len(s.Units) == 0
}

// Skill returns the skill with the given name.
func (s *Set) Skill(name string) (Skill, bool) {
	return first(s.Skills, func(k Skill) bool { return k.Name == name })
}

// Refused returns why the file of a command or a skill with this name is not used; empty if there
// is no such file.
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
		return isMarkdown(base) && !slices.Contains([]string{kindAgent, kindRule}, dir) && strings.EqualFold(strings.TrimSuffix(base, filepath.Ext(base)), own)
	}
	for _, p := range s.Problems {
		if names(p.Source) {
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

// Command returns the custom command with the given name.
func (s *Set) Command(name string) (Command, bool) {
	return first(s.Commands, func(c Command) bool { return c.Name == name })
}

func first[T any](list []T, match func(T) bool) (item T, ok bool) {
	if i := slices.IndexFunc(list, match); i >= 0 {
		return list[i], true
	}
	return item, false
}
