package permission

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/seed-dec29ce4/eca/internal/cmdline"
	"github.com/seed-dec29ce4/eca/tools"
	"github.com/seed-dec29ce4/eca/workspace"
)

// allowed returns the name of the first allowing rule that covers a call, or "", and if
// one nearly did, what is missing.
func (j *judgment) allowed(set ruleSet, spec named, plan tools.Plan, args arguments) (rule, but string) {
	var patterns []pattern // of all rules for the command of this call
	for _, r := range set {
		if r.selects(spec) {
			patterns = append(patterns, r.patternsFor(plan.Command, args)...)
		}
	}
	for _, r := range set {
		if !r.selects(spec) {
			continue
		}
		if r.args == nil {
			return r.name, ""
		}
		for arg, list := range r.args {
			f := args[arg]
			for i, re := range list {
				if f == nil || !j.matches(re, f) {
					continue
				}
				if plan.Command == nil || f.value != plan.Command.Text {
					return r.name, ""
				}
				if missing := j.uncovered(plan.Command, pattern{re, r.sources[arg][i]}, patterns); missing != "" {
					but = r.name + " matches the text, but " + missing
					continue
				}
				return r.name, ""
			}
		}
	}
	return "", but
}

// matches reports whether an allowing pattern matches an argument: as it is written and, for
// a path, where it leads.
func (j *judgment) matches(re expression, f *forms) bool {
	if f.leads != "" && !fullMatch(re, f.leads) {
		return false
	}
	return f.leads != "" || fullMatch(re, f.value) || slices.ContainsFunc(f.more, func(v string) bool {
		return filepath.IsAbs(v) && fullMatch(re, v)
	})
}

// pattern is an expression with its text.
type pattern struct {
	re     expression
	source string
}

// patternsFor returns the patterns of a rule for the argument that is the command.
func (r rule) patternsFor(c *tools.Command, args arguments) []pattern {
	var out []pattern
	for arg, list := range r.args {
		if c == nil || args[arg] == nil || args[arg].value != c.Text {
			continue
		}
		for i, re := range list {
			out = append(out, pattern{re, r.sources[arg][i]})
		}
	}
	return out
}

// everything says that a pattern is there to match everything.
func (p pattern) everything() bool {
	return slices.Contains([]string{".*", ".+", "^.*$", "^.+$", "(?s).*", "(?s).+", `[\s\S]*`, `[\s\S]+`}, p.source)
}

// mentions reports whether a pattern names all of demands, whatever else it matches.
func (p pattern) mentions(demands []string) bool {
	source := strings.ReplaceAll(p.source, `\`, "")
	return !slices.ContainsFunc(demands, func(d string) bool { return !strings.Contains(source, d) })
}

// uncovered returns what of a command no pattern is for, or "". whole is the pattern that
// matches the text; each simple command must be matched by a pattern too, or only read in
// the workspace, and a pattern for a program does not cover anything that turns it into another command:
// options that run or write, assignments, redirections, what it wraps.
func (j *judgment) uncovered(c *tools.Command, whole pattern, patterns []pattern) string {
	if whole.everything() {
		return ""
	}
	program := c.Program
	switch {
	case program.Unresolved != "":
		return program.Unresolved
	case !whole.mentions(program.Demands):
		return "names neither its redirections to files nor its loops and variables"
	}
	single := len(program.Commands) == 1
	places, known := j.newPlaces(c.Dir), true
	for _, cmd := range program.Commands {
		known = known && j.enter(places, cmd)
		if cmd.Effect == cmdline.Reads && known && j.pathsInside(cmd, places) == "" && !cmd.Git {
			continue
		}
		matched := slices.ContainsFunc(patterns, func(pt pattern) bool {
			return pt.mentions(cmd.Demands) && (single && pt.re == whole.re || fullMatch(pt.re, cmd.Text) || fullMatch(pt.re, cmd.Source))
		})
		// A wrapped command is covered by a pattern for the wrapper that names it.
		if !matched && len(cmd.Demands) > 0 && whole.mentions(cmd.Demands) {
			matched = slices.ContainsFunc(program.Commands, func(outer cmdline.Command) bool {
				return outer.Text != cmd.Text && strings.Contains(outer.Text, cmd.Text) && fullMatch(whole.re, outer.Source)
			})
		}
		if !matched && cmd.Effect == cmdline.Reads && cmd.Git && known {
			if ok, _ := (repositories{j}).gitReads(cmd, places); ok {
				continue
			}
		}
		if !matched {
			if len(cmd.Demands) > 0 {
				return "no pattern for `" + cmd.Text + "` names " + strings.Join(cmd.Demands, ", ")
			}
			return "no pattern matches `" + cmd.Text + "` alone"
		}
	}
	return ""
}

// namesUnknown is why a command asks that no rule is known to match.
const namesUnknown = "a rule may be meant for files that it reads, whose names are known only when it runs"

// reads reports whether a command only reads, in the workspace; if not, why is a reason.
func (j *judgment) reads(r rules, spec named, c *tools.Command, printed *tools.Printed) (ok bool, why string) {
	program := c.Program
	if printed.Text != "" { // globs are names there
		program = printed.Program
	}
	if ok, why := program.Reads(); !ok {
		return false, why
	}
	if program.Data && r.restrict(spec) {
		return false, namesUnknown
	}
	if why := j.globsInside(c); why != "" {
		return false, why
	}
	places := j.newPlaces(c.Dir)
	for _, cmd := range program.Commands {
		if !j.enter(places, cmd) {
			return false, "where it runs is not known"
		}
		if j.sandbox.ReadsHeld {
			cmd = withoutAnywhere(cmd)
		}
		if why := j.pathsInside(cmd, places); why != "" {
			return false, why
		}
		if cmd.Git {
			if ok, why := (repositories{j}).gitReads(cmd, places); !ok {
				return false, why
			}
		}
	}
	return true, ""
}

// withoutAnywhere leaves out the paths that stand for names which are not known.
func withoutAnywhere(c cmdline.Command) cmdline.Command {
	anywhere := func(path cmdline.Path) bool { return path.Anywhere }
	if slices.ContainsFunc(c.Paths, anywhere) {
		c.Paths = slices.DeleteFunc(slices.Clone(c.Paths), anywhere)
	}
	return c
}

// globsInside says which glob of a command leads out of the workspace, if one does. The names
// that it matches tell something even where no file is read, as by echo.
func (j *judgment) globsInside(c *tools.Command) (why string) {
	places := j.newPlaces(c.Dir)
	for _, cmd := range c.Program.Commands {
		if !j.enter(places, cmd) {
			return "where it runs is not known"
		}
		if !slices.ContainsFunc(cmd.Paths, func(path cmdline.Path) bool { return path.Glob }) {
			continue
		}
		cmd.Paths = slices.DeleteFunc(slices.Clone(cmd.Paths), func(path cmdline.Path) bool { return !path.Glob })
		if why := j.pathsInside(cmd, places); why != "" {
			return why
		}
	}
	return ""
}

// places are the folders in which a command may run, after preceding cds.
type places struct {
	dirs  []string
	links *workspace.Resolver
}

func (j *judgment) newPlaces(dir string) *places { return &places{[]string{dir}, j.links} }

const maxPlaces = 8

// enter follows a cd. It may not have happened (`a || cd x`), so where the program was
// before counts too: each can double the places. It returns false when there are too many, or
// where one leads is not known, and follows no further.
func (l *places) enter(c cmdline.Command) bool {
	switch {
	case len(l.dirs) > maxPlaces, c.Name == "pushd", c.Name == "popd":
		return false
	case c.Name != "cd":
		return true
	case c.Effect != cmdline.Reads || len(c.Paths) != 1 || c.Paths[0].Name == "-" || c.Paths[0].Top:
		return false
	}
	for _, d := range slices.Clone(l.dirs) {
		to := []string{under(d, c.Paths[0].Name)}
		if c.Paths[0].Glob {
			found, ok := expand(to[0])
			if !ok {
				return false
			}
			to = append(to, found...)
		}
		for _, dir := range to {
			l.add(dir)
		}
	}
	return len(l.dirs) <= maxPlaces
}

// add notes a folder. A shell takes .. away before it follows links, unless an option has it
// do as the system does: both count.
func (l *places) add(dir string) {
	clean := filepath.Clean(dir)
	if !slices.Contains(l.dirs, clean) {
		l.dirs = append(l.dirs, clean)
	}
	if !strings.Contains(dir, "..") {
		return
	}
	if real := l.links.Resolve(dir); real != l.links.Resolve(clean) && !slices.Contains(l.dirs, real) {
		l.dirs = append(l.dirs, real)
	}
}

// under returns the absolute path of a name in a folder. The caller, which follows
// the links, interprets .. in it.
func under(dir, name string) string {
	if filepath.IsAbs(name) {
		return name
	}
	return strings.TrimSuffix(dir, string(filepath.Separator)) + string(filepath.Separator) + name
}

// pathsInside says of the first path of a command that leads out of the workspace that it
// does; or "".
func (j *judgment) pathsInside(c cmdline.Command, l *places) string {
	return j.pathsWithin(c, l, j.inside)
}

// pathsWithin is pathsInside for what else counts as inside.
func (j *judgment) pathsWithin(c cmdline.Command, l *places, inside func(string) bool) string {
	for _, dir := range l.dirs {
		for _, path := range c.Paths {
			if path.Top {
				continue // where git says that it is
			}
			full := under(dir, path.Name)
			if full == os.DevNull {
				continue
			}
			if !path.Glob {
				if !inside(full) {
					return j.outside(path.Name, full)
				}
				if path.Follows && isFolder(full) {
					return c.Name + " follows the links in the folder " + path.Name
				}
				continue
			}
			if !inside(fixed(full)) {
				return j.outside(path.Name, fixed(full))
			}
			found, ok := expand(full)
			if !ok {
				return j.outside(path.Name, full)
			}
			for _, f := range found {
				switch {
				case strings.HasPrefix(f, under(dir, "-")):
					return "the file " + f + " would be taken for an option"
				case !inside(f):
					return j.outside(f, f)
				case path.Follows && isFolder(f):
					return c.Name + " follows the links in the folder " + f
				}
			}
		}
	}
	return ""
}

func isFolder(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// fixed is the folder of a glob before its first wildcard. There may be none: it can
// precede the = of an option whose value the path is.
func fixed(glob string) string {
	if i := strings.IndexAny(glob, "*?"); i >= 0 {
		glob = glob[:i]
	}
	dir, _ := filepath.Split(glob)
	return dir
}
