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

// firstAllowRule returns the name of the first allow rule that covers a call. If no rule covers it, but the
// pattern of one matches the text of the command, nearMiss says what that pattern leaves uncovered.
func (j *judgment) firstAllowRule(set ruleSet, spec namedSpec, plan tools.Plan, args arguments, printed *tools.Printed) (rule, nearMiss string) {
	var patterns []pattern // of all rules for the command of this call
	for _, r := range set {
		if !r.selects(spec) {
			continue
		}
		if r.args == nil {
			return r.name, ""
		}
		for arg, list := range r.args {
			f := args[arg]
			for _, whole := range list {
				if f == nil || !j.matches(whole.re, f) {
					continue
				}
				if plan.Command == nil || f.value != plan.Command.Text {
					return r.name, ""
				}
				if patterns == nil {
					patterns = set.patternsFor(spec, plan.Command, args)
				}
				if missing := j.uncovered(plan.Command, printed, whole, patterns); missing != "" {
					nearMiss = r.name + " matches the text, but " + missing
					continue
				}
				return r.name, ""
			}
		}
	}
	return "", nearMiss
}

// matches reports whether a pattern of an allow rule matches an argument. If a path or an address
// resolves to another one, the pattern must match the resolved form.
func (j *judgment) matches(re expression, f *forms) bool {
	if f.target != "" && !fullMatch(re, f.target) {
		return false
	}
	return f.target != "" || fullMatch(re, f.value) || slices.ContainsFunc(f.equivalents, func(v string) bool {
		return filepath.IsAbs(v) && fullMatch(re, v)
	})
}

// pattern is a compiled expression with its source.
type pattern struct {
	re         expression
	source     string // without backslashes
	everything bool   // meant to match everything
}

func newPattern(re expression, source string) pattern {
	return pattern{
		re, strings.ReplaceAll(source, `\`, ""),
		slices.Contains([]string{".*", ".+", "^.*$", "^.+$", "(?s).*", "(?s).+", `[\s\S]*`, `[\s\S]+`}, source),
	}
}

// patternsFor returns the patterns of all rules for the argument that holds the command.
func (s ruleSet) patternsFor(spec namedSpec, c *tools.Command, args arguments) []pattern {
	var out []pattern
	for _, r := range s {
		if !r.selects(spec) {
			continue
		}
		for arg, list := range r.args {
			if args[arg] != nil && args[arg].value == c.Text {
				out = append(out, list...)
			}
		}
	}
	return out
}

// mentions reports whether the source of a pattern contains all of demands.
func (p pattern) mentions(demands []string) bool {
	return !slices.ContainsFunc(demands, func(d string) bool { return !strings.Contains(p.source, d) })
}

// uncovered explains which part of a command no pattern covers; it returns an empty text if all parts
// are covered. whole is the pattern that matches the text. Each simple command must also match a
// pattern, or only read in the workspace. A pattern for a program does not cover constructs that change
// what it does, unless it mentions them: options that run or write something, assignments,
// redirections, wrapped commands.
func (j *judgment) uncovered(c *tools.Command, printed *tools.Printed, whole pattern, patterns []pattern) string {
	if whole.everything {
		return ""
	}
	program := c.Program
	switch {
	case program.Unresolved != "":
		return program.Unresolved
	case !whole.mentions(program.Demands):
		return "does not name its redirections, loops or variables"
	}
	single := len(program.Commands) == 1
	dirs, known := j.newWorkDirs(c.Dir), true
	for _, cmd := range program.Commands {
		known = known && j.enter(dirs, cmd)
		if cmd.Effect == cmdline.Reads && !cmd.Git && known && j.pathOutside(cmd, dirs) == "" {
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
		if !matched && cmd.Effect == cmdline.Reads && cmd.Git && known && j.pathOutside(cmd, dirs) == "" {
			if ok, _ := (repositories{j}).gitReads(cmd, dirs); ok {
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
	return hiddenOption(c, printed, patterns)
}

// hiddenOption explains which option of a command no pattern names because its text does not show it:
// the option appears when the shell expands a word, or a computed word may become one. It is empty if
// there is no such option.
func hiddenOption(c *tools.Command, printed *tools.Printed, patterns []pattern) string {
	var shown []string
	for _, cmd := range c.Program.Commands {
		shown = append(shown, cmd.Demands...)
	}
	program := c.Program
	if printed.Text != "" { // braces, globs and escapes are expanded
		program = printed.Program
	}
	for _, cmd := range program.Commands {
		if cmd.HiddenOption {
			return "an argument of " + cmd.Name + " is computed, and may become an option that the pattern must name"
		}
		for _, option := range cmd.Demands {
			if !slices.Contains(shown, option) && !slices.ContainsFunc(patterns, func(p pattern) bool { return p.mentions([]string{option}) && fullMatch(p.re, cmd.Text) }) {
				return "no pattern for `" + cmd.Text + "` names " + option
			}
		}
	}
	return ""
}

// reasonNamesUnknown is the reason given when eca asks because a rule may apply to files that the command
// reads.
const reasonNamesUnknown = "one of your rules may apply to files that it reads, and their names are known only when it runs"

// commandOnlyReads reports whether a command only reads, and only in the workspace. If not, why is the reason.
func (j *judgment) commandOnlyReads(r rules, spec namedSpec, c *tools.Command, printed *tools.Printed) (ok bool, why string) {
	program := c.Program
	if printed.Text != "" { // the canonical form, in which globs are expanded
		program = printed.Program
	}
	if ok, why := program.Reads(); !ok {
		return false, why
	}
	if program.Data && r.mayRestrict(spec) {
		return false, reasonNamesUnknown
	}
	if why := j.globOutside(c); why != "" {
		return false, why
	}
	dirs := j.newWorkDirs(c.Dir)
	for _, cmd := range program.Commands {
		if !j.enter(dirs, cmd) {
			return false, "eca does not know its working directory"
		}
		if j.sandbox.ReadsConfined {
			cmd = withoutUnknownPaths(cmd)
		}
		if why := j.pathOutside(cmd, dirs); why != "" {
			return false, why
		}
		if cmd.Git {
			if ok, why := (repositories{j}).gitReads(cmd, dirs); !ok {
				return false, why
			}
		}
	}
	return true, ""
}

// withoutUnknownPaths returns a command without the paths that stand for unknown names.
func withoutUnknownPaths(c cmdline.Command) cmdline.Command {
	anywhere := func(path cmdline.Path) bool { return path.Anywhere }
	if slices.ContainsFunc(c.Paths, anywhere) {
		c.Paths = slices.DeleteFunc(slices.Clone(c.Paths), anywhere)
	}
	return c
}

// globOutside returns why a glob of a command leads out of the workspace; empty if none does. Even a
// command that reads no file, such as echo, would show the names that the glob matches.
func (j *judgment) globOutside(c *tools.Command) (why string) {
	dirs := j.newWorkDirs(c.Dir)
	for _, cmd := range c.Program.Commands {
		if !j.enter(dirs, cmd) {
			return "eca does not know its working directory"
		}
		if !slices.ContainsFunc(cmd.Paths, func(path cmdline.Path) bool { return path.Glob }) {
			continue
		}
		cmd.Paths = slices.DeleteFunc(slices.Clone(cmd.Paths), func(path cmdline.Path) bool { return !path.Glob })
		if why := j.pathOutside(cmd, dirs); why != "" {
			return why
		}
	}
	return ""
}

// workDirs are the possible working directories of a command, which depend on earlier cd commands.
type workDirs struct {
	possible []string
	links    *workspace.Resolver
}

func (j *judgment) newWorkDirs(dir string) *workDirs {
	if len(j.workDir) == 0 || j.workDir[0] != dir {
		j.workDir = []string{dir}
	}
	return &workDirs{possible: j.workDir, links: j.links}
}

const maxWorkDirs = 8

// enter applies a cd. Since the cd might not run (`a || cd x`), the folders before it stay possible, and
// each cd can double their number. enter returns false if there are too many, or if the target is not
// known.
func (l *workDirs) enter(c cmdline.Command) bool {
	switch {
	case len(l.possible) > maxWorkDirs, c.Name == "pushd", c.Name == "popd":
		return false
	case c.Name != "cd":
		return true
	case c.Effect != cmdline.Reads || len(c.Paths) != 1 || c.Paths[0].Name == "-" || c.Paths[0].Top:
		return false
	}
	for _, d := range slices.Clone(l.possible) {
		to := []string{joinPath(d, c.Paths[0].Name)}
		if c.Paths[0].Glob {
			found, ok := expandGlob(to[0])
			if !ok {
				return false
			}
			to = append(to, found...)
		}
		for _, dir := range to {
			l.add(dir)
		}
	}
	return len(l.possible) <= maxWorkDirs
}

// add adds a folder. By default, a shell removes .. before it follows symlinks; with an option, it
// resolves .. as the kernel does. Both results count.
func (l *workDirs) add(dir string) {
	clean := filepath.Clean(dir)
	if !slices.Contains(l.possible, clean) {
		l.possible = append(l.possible, clean)
	}
	if !strings.Contains(dir, "..") {
		return
	}
	if real := l.links.Resolve(dir); real != l.links.Resolve(clean) && !slices.Contains(l.possible, real) {
		l.possible = append(l.possible, real)
	}
}

// joinPath returns the absolute path of a name in a folder. It keeps .., because its meaning depends on
// symlinks, which the caller resolves.
func joinPath(dir, name string) string {
	if filepath.IsAbs(name) {
		return name
	}
	return strings.TrimSuffix(dir, string(filepath.Separator)) + string(filepath.Separator) + name
}

// pathOutside returns why a path of a command leads out of the workspace; empty if none does.
func (j *judgment) pathOutside(c cmdline.Command, l *workDirs) string {
	return j.pathNotIn(c, l, j.inside)
}

// pathNotIn is pathOutside with another definition of inside.
func (j *judgment) pathNotIn(c cmdline.Command, l *workDirs, inside func(string) bool) string {
	for _, dir := range l.possible {
		for _, path := range c.Paths {
			if path.Top {
				continue // judged by enter and gitReads
			}
			full := joinPath(dir, path.Name)
			if full == os.DevNull {
				continue
			}
			if !path.Glob {
				if !inside(full) {
					return j.outsideMessage(path.Name, full)
				}
				if path.Follows && isFolder(full) {
					return c.Name + " follows the links in the folder " + path.Name
				}
				continue
			}
			if !inside(fixedFolder(full)) {
				return j.outsideMessage(path.Name, fixedFolder(full))
			}
			found, ok := expandGlob(full)
			if !ok {
				return j.outsideMessage(path.Name, full)
			}
			for _, f := range found {
				switch {
				case strings.HasPrefix(f, joinPath(dir, "-")):
					return "the file " + f + " would be taken for an option"
				case !inside(f):
					return j.outsideMessage(f, f)
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

// fixedFolder returns the folder of a glob that precedes its first wildcard. It is empty if no slash
// precedes the wildcard, as in `--fi*=a/b`.
func fixedFolder(glob string) string {
	if i := strings.IndexAny(glob, "*?"); i >= 0 {
		glob = glob[:i]
	}
	dir, _ := filepath.Split(glob)
	return dir
}
