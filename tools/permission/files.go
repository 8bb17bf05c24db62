package permission

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/seed-dec29ce4/eca/internal/cmdline"
	"github.com/seed-dec29ce4/eca/tools"
)

// Files are the absolute, resolved paths of the files and folders that a command reads and writes.
type Files struct {
	Reads, Writes []string
	Unknown       []string // commands, as written, whose files are not known
}

// Files returns the files that a command names, for the programs that eca knows.
func (p *Policy) Files(c *tools.Command) Files {
	j := p.judgment([]string{c.Dir})
	f := Files{Reads: []string{}, Writes: []string{}, Unknown: []string{}}
	dirs := j.newWorkDirs(c.Dir)
	add := func(list *[]string, names ...string) {
		for _, name := range names {
			for _, dir := range dirs.possible {
				path := j.links.Resolve(joinPath(dir, expandHome(name)))
				if name != os.DevNull && !slices.Contains(*list, path) {
					*list = append(*list, path)
				}
			}
		}
	}
	for _, cmd := range c.Program.Commands {
		known := j.enter(dirs, cmd)
		if known && cmd.Name == "cd" {
			continue
		}
		reads, writes, ok := j.filesOf(cmd, dirs)
		if !known || !ok {
			f.Unknown = append(f.Unknown, cmd.Source)
			continue
		}
		add(&f.Reads, reads...)
		add(&f.Writes, writes...)
	}
	for _, name := range c.Program.Writes {
		if strings.ContainsAny(expandHome(name), "$`") {
			f.Unknown = append(f.Unknown, "> "+name)
		} else {
			add(&f.Writes, name)
		}
	}
	if why := c.Program.Unresolved; why != "" {
		f.Unknown = append(f.Unknown, why)
	}
	return f
}

// filesOf returns the names of the files that one command uses. ok is false if they are not known.
func (j *judgment) filesOf(c cmdline.Command, l *workDirs) (reads, writes []string, ok bool) {
	if c.Effect == cmdline.Reads {
		return j.filesRead(c, l), nil, !slices.ContainsFunc(c.Paths, func(p cmdline.Path) bool { return p.Anywhere })
	}
	var operands []string
	for _, word := range c.Args {
		switch {
		case strings.HasPrefix(word, "-") && word != "-":
		case strings.ContainsAny(word, "$`{}[*?"):
			return nil, nil, false
		default:
			operands = append(operands, word)
		}
	}
	switch last := len(operands) - 1; c.Name {
	case "rm", "rmdir", "mkdir", "touch", "unlink", "tee", "shred", "truncate", "mv":
		return nil, operands, true
	case "cp", "ln", "install":
		if last < 1 || strings.Contains(c.Text, " -t") || strings.Contains(c.Text, " --t") {
			return nil, nil, false
		}
		return operands[:last], operands[last:], true
	}
	return nil, nil, false
}

// filesRead returns the names of the files that a reading command reads.
func (j *judgment) filesRead(c cmdline.Command, l *workDirs) (names []string) {
	for _, path := range c.Paths {
		if !path.Glob {
			if !path.Top && !path.Anywhere {
				names = append(names, path.Name)
			}
			continue
		}
		for _, dir := range l.possible {
			found, _ := expandGlob(joinPath(dir, path.Name))
			names = append(names, found...)
		}
	}
	if c.Git {
		for _, dir := range l.possible {
			if r, err := (repositories{j}).repository(j.links.Resolve(joinPath(dir, filepath.Clean(c.Dir)))); err == nil && r.dir != "" {
				names = append(names, r.top, r.dir)
			}
		}
	}
	if len(names) == 0 && slices.Contains([]string{"ls", "find", "tree", "du", "rg"}, c.Name) {
		names = append(names, ".")
	}
	return names
}
