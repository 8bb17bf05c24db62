package permission

import (
	"bytes"
	"encoding/json"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/seed-dec29ce4/eca/internal/cmdline"
	"github.com/seed-dec29ce4/eca/tools"
	"github.com/seed-dec29ce4/eca/workspace"
)

// forms are the texts of an argument that patterns are matched against.
type forms struct {
	value       string   // as the model wrote it; JSON if it is not a string
	equivalents []string // equivalent texts, each of which a deny or ask rule may match
	target      string   // resolved path or address, which an allow rule must match; empty if it does not differ
}

// arguments are the forms of a call's top-level arguments by name.
type arguments map[string]*forms

// allTexts returns the texts that deny and ask rules may match.
func (f *forms) allTexts() []string {
	if f == nil {
		return nil
	}
	out := make([]string, 0, len(f.equivalents)+2) //nolint:mnd // the value and its target
	out = append(append(out, f.value), f.equivalents...)
	if f.target != "" {
		out = append(out, f.target)
	}
	for _, text := range out { // a dot does not match a line break, so a line break could evade a rule
		if strings.Contains(text, "\n") {
			out = append(out, strings.ReplaceAll(text, "\n", " "))
		}
	}
	return out
}

// formsOf returns the forms of a call's arguments. Paths and web addresses also have their resolved
// form, and commands also each of their parts.
func (j *judgment) formsOf(call tools.Call, plan tools.Plan, printed *tools.Printed) arguments {
	list, ok := members(call.Arguments)
	if !ok {
		return nil
	}
	out := make(arguments, len(list))
	for _, member := range list {
		name, raw := member.name, member.value
		f := &forms{}
		if text, ok := plainString(raw); ok {
			f.value = text
		} else if json.Unmarshal(raw, &f.value) != nil {
			f.value = string(bytes.TrimSpace(raw))
			out[name] = f
			continue
		}
		out[name] = f
		if plan.Command != nil && f.value == plan.Command.Text {
			f.equivalents = commandTexts(plan.Command, printed.Program)
			continue
		}
		switch abs := workspace.Abs(call.Roots, f.value); {
		case slices.Contains(plan.Paths, abs):
			j.pathForms(f, abs, j.resolve(abs), call.Roots)
		case plan.Address != "" && name == "url" && f.value != plan.Address:
			f.target = plan.Address
		}
	}
	return out
}

// member is a member of a JSON object.
type member struct {
	name  string
	value json.RawMessage
}

// members returns the members of a JSON object. If a name occurs more than once, its last member counts.
func members(object json.RawMessage) (list []member, ok bool) {
	if list, ok = stringMembers(object); ok {
		return list, true
	}
	var all map[string]json.RawMessage
	if json.Unmarshal(object, &all) != nil {
		return nil, false
	}
	for name, value := range all {
		list = append(list, member{name, value})
	}
	return list, true
}

// stringMembers returns the members of a JSON object whose names and values are strings without escapes,
// as in most calls. It is faster than json.Unmarshal. ok is false for any other text.
func stringMembers(object json.RawMessage) (list []member, ok bool) {
	const space = " \t\r\n"
	rest, found := bytes.CutPrefix(bytes.Trim(object, space), []byte("{"))
	if !found {
		return nil, false
	}
	next := func(end string) (text []byte) { // cuts off a string that is followed by a byte in end
		rest = bytes.TrimLeft(rest, space)
		if len(rest) == 0 || rest[0] != '"' {
			return nil
		}
		size := bytes.IndexByte(rest[1:], '"') + 2 //nolint:mnd // with both quotes
		text, rest = rest[:size], bytes.TrimLeft(rest[size:], space)
		if len(rest) == 0 || strings.IndexByte(end, rest[0]) < 0 {
			return nil
		}
		return text
	}
	for {
		name, plain := plainString(next(":"))
		if !plain {
			return nil, false
		}
		rest = rest[1:]
		value := next(",}")
		if _, plain = plainString(value); !plain {
			return nil, false
		}
		list = append(list, member{name, value})
		last := rest[0] == '}'
		if rest = rest[1:]; last {
			return list, len(rest) == 0
		}
	}
}

// plainString returns the value of a JSON string of ASCII characters without escapes.
func plainString(raw json.RawMessage) (text string, ok bool) {
	if len(raw) < len(`""`) || raw[0] != '"' {
		return "", false
	}
	inner := raw[1 : len(raw)-1]
	for _, c := range inner {
		if c < ' ' || c >= utf8.RuneSelf || c == '\\' {
			return "", false
		}
	}
	return string(inner), true
}

// pathForms adds the other forms of a path; real is the path with its symlinks resolved.
func (j *judgment) pathForms(f *forms, abs, real string, roots []string) {
	if abs != f.value {
		f.equivalents = append(f.equivalents, abs)
	}
	if slash := filepath.ToSlash(abs); slash != abs {
		f.equivalents = append(f.equivalents, slash)
	}
	real = j.destination(real, roots)
	for _, root := range roots {
		f.equivalents = append(f.equivalents, relativeForms(root, real, "", "./")...)
	}
	f.equivalents = append(f.equivalents, relativeForms(expandHome("~"), real, "~/")...)
	detour := filepath.IsAbs(f.value) && filepath.Clean(f.value) != f.value || strings.Contains(f.value, "..")
	if real != abs || detour {
		f.target = real
	}
}

// relativeForms returns a path relative to a folder that contains it, after each of the prefixes.
func relativeForms(folder, path string, prefixes ...string) (out []string) {
	rel, err := filepath.Rel(folder, path)
	if err != nil || !filepath.IsLocal(rel) {
		return nil
	}
	for _, prefix := range prefixes {
		out = append(out, prefix+filepath.ToSlash(rel))
	}
	return out
}

// destination returns a resolved path, below the name by which the user opened the workspace folder.
func (j *judgment) destination(real string, roots []string) string {
	for _, root := range roots { // a workspace folder may be opened by the name of a symlink
		rel, err := filepath.Rel(j.links.Resolve(root), real)
		if err == nil && rel != ".." && !strings.HasPrefix(rel, ".."+string(filepath.Separator)) {
			return filepath.Join(root, rel)
		}
	}
	return real
}

// outsideMessage returns the message that a path is outside the workspace, with its target if it has
// symlinks.
func (j *judgment) outsideMessage(name, path string) string {
	return outsideMessageFor(name, path, j.links.Resolve(path))
}

// outsideMessageFor is like judgment.outside, but takes the resolved path, real.
func outsideMessageFor(name, path, real string) string {
	if real != filepath.Clean(path) {
		name += " leads to " + real + ", which"
	}
	return name + " is outside the workspace"
}

// Limits of destinations.
const (
	maxDestinations = 5   // symlinks of one call that are named
	maxWords        = 100 // words of a command that are checked
)

// describeTargets describes for the user the targets of symlinks in the arguments of a call, unless
// reason contains them, and the host of an address.
func (j *judgment) describeTargets(call tools.Call, plan tools.Plan, reason string) string {
	out, named := "", 0
	if u, err := url.Parse(plan.Address); err == nil && u.Host != "" {
		out = "; the host is " + u.Host + ", the address " + plan.Address
	}
	note := func(name, path string) {
		leads := j.resolve(path)
		if leads == path {
			return
		}
		real := j.destination(leads, call.Roots)
		if real == filepath.Clean(path) || strings.Contains(reason+out, " leads to "+real) || named == maxDestinations {
			return
		}
		out += "; " + name + " leads to " + real
		named++
	}
	if plan.Command == nil {
		for _, path := range plan.Paths {
			note(path, path)
		}
		return out
	}
	dirs, words := j.newWorkDirs(plan.Command.Dir), plan.Command.Program.Writes
	for _, cmd := range plan.Command.Program.Commands {
		if !dirs.enter(cmd) {
			break // the folder of the following commands is not known
		}
		words = append(words[:len(words):len(words)], cmd.Args...)
	}
	for _, word := range words[:min(len(words), maxWords)] {
		if word = afterOption(word); strings.HasPrefix(word, "-") && !strings.Contains(word, "/") {
			continue // an option
		}
		name := expandHome(word)
		for _, dir := range dirs.possible {
			note(name, joinPath(dir, name))
		}
	}
	return out
}

// commandTexts returns the texts that deny and ask rules may match for each command of a shell program: the
// command as written, without quotes, without leading assignments and the folder of its executable (rm
// for /usr/bin/rm), with the values of its variables, and with the names that its globs match. printed is
// the shell program with expanded globs.
func commandTexts(c *tools.Command, printed cmdline.Program) []string {
	var out []string
	add := func(text string) {
		if text != "" && text != c.Text && !slices.Contains(out, text) {
			out = append(out, text)
		}
	}
	for _, cmd := range c.Program.Commands {
		add(cmd.Source)
		_, file := filepath.Split(cmd.Name)
		add(strings.Join(append([]string{file}, cmd.Args...), " "))
	}
	for _, commands := range [][]cmdline.Command{c.Program.Commands, printed.Commands} {
		for _, cmd := range commands {
			add(cmd.Text)
			for _, text := range cmd.Forms {
				add(text)
			}
		}
	}
	return out
}
