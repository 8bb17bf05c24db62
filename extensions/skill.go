package extensions

import (
	"path/filepath"
	"strings"
	"unicode"

	"github.com/seed-dec29ce4/eca/internal/shorten"
)

// skillFile marks a folder as a skill.
const skillFile = "SKILL.md"

// maxSkillDescription is the limit of agentskills.io, in characters, since all descriptions are
// part of each request. Longer ones are cut.
const maxSkillDescription = 1024

// Skill is a set of instructions that a model loads when needed (eca-features.md 15, agentskills.io).
type Skill struct {
	Name        string
	Description string
	Dir         string // paths in its text are relative to this folder
	File        string
	Root        string // the workspace folder that it belongs to; empty if it is global
	Plugin      string // the name of its plugin; empty if it belongs to none
	Body        string
}

func parseSkill(path, text string) (Skill, *fault) {
	d, flt := parseDocument(text)
	if flt != nil {
		return Skill{}, flt
	}
	s := Skill{File: path, Dir: filepath.Dir(path), Body: d.body}
	for _, k := range []struct {
		key string
		to  *string
	}{{"name", &s.Name}, {"description", &s.Description}} {
		v, flt := d.text(k.key)
		if flt != nil {
			return Skill{}, flt
		}
		if v == "" {
			return Skill{}, faultf(1, "a skill needs a name and a description in its frontmatter; it has no %s", k.key)
		}
		*k.to = v
	}
	if strings.ContainsFunc(s.Name, func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) || r == '/' }) {
		return Skill{}, faultf(d.line("name"), "the name %q must be one word without a slash", s.Name)
	}
	s.Description = shorten.Text(strings.Join(strings.Fields(s.Description), " "), maxSkillDescription)
	return s, nil
}

// Invoke returns the prompt for a skill that is used like a command. With arguments it is the
// skill's text with these filled in; without, a request to load the skill.
func (s Skill) Invoke(rest string, args []string) string {
	if len(args) == 0 {
		return "Load the skill \"" + s.Name + "\" with the tool eca__skill and do what it says."
	}
	return "Skill \"" + s.Name + "\". The files it refers to are in " + s.Dir + ".\n\n" + substitute(s.Body, rest, args)
}
