package shell

import (
	"path/filepath"
	"slices"
	"strings"

	"github.com/seed-dec29ce4/eca/chat/event"
	"github.com/seed-dec29ce4/eca/internal/cmdline"
)

// parse parses a command if the shell that runs it has the syntax that eca knows.
func (o Options) parse(command string) cmdline.Program {
	if !o.posix() {
		return cmdline.Program{Unresolved: "eca cannot parse commands of this shell"}
	}
	if o.Parser == nil {
		return cmdline.Parse(command)
	}
	return o.Parser.Parse(command)
}

// posix reports whether commands run in bash or a POSIX shell, perhaps through a wrapper that the user
// configured (a container, a sandbox).
func (o Options) posix() bool {
	path, args := o.shell()
	known := []string{"bash", "sh", "dash"}
	return slices.Contains(known, programName(path)) || slices.ContainsFunc(args, func(a string) bool { return slices.Contains(known, programName(a)) })
}

func programName(path string) string {
	return strings.TrimSuffix(filepath.Base(filepath.FromSlash(path)), ".exe")
}

// describeCommands returns the commands of a program for clients. It returns nil if the program may run other
// commands; such a program cannot be remembered either.
func describeCommands(p cmdline.Program) []event.Command {
	if p.Unresolved != "" || p.Computed != "" || len(p.Writes) > 0 || len(p.Demands) > 0 {
		return nil
	}
	var out []event.Command
	for _, c := range p.Commands {
		if c.Name == "<" {
			continue
		}
		command := event.Command{Name: c.Name, Args: c.Args}
		if len(c.Demands) == 0 { // not the commands of wrappers, which are not remembered
			command.Key = c.Key
		}
		out = append(out, command)
	}
	return out
}

// harmlessGit returns environment variables with which git starts nothing from a repository.
func harmlessGit(getenv func(string) string) []string {
	if getenv == nil {
		getenv = func(string) string { return "" }
	}
	return cmdline.GitEnv(getenv, cmdline.HarmlessGit()...)
}
