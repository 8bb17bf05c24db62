package shell

import (
	"path/filepath"
	"slices"
	"strings"

	"github.com/seed-dec29ce4/eca/chat/event"
	"github.com/seed-dec29ce4/eca/internal/cmdline"
)

// parse parses a command if eca reads it in the same way as the shell that will run it.
func (o Options) parse(command string) cmdline.Program {
	if !o.posix() {
		return cmdline.Program{Unresolved: "it is for a shell whose programs cannot be judged here"}
	}
	return cmdline.Parse(command)
}

// posix reports whether commands go to bash or a POSIX shell, maybe through a wrapper that
// the user configured (a container, a sandbox).
func (o Options) posix() bool {
	path, args := o.shell()
	known := []string{"bash", "sh", "dash"}
	return slices.Contains(known, name(path)) || slices.ContainsFunc(args, func(a string) bool { return slices.Contains(known, name(a)) })
}

func name(path string) string {
	return strings.TrimSuffix(filepath.Base(filepath.FromSlash(path)), ".exe")
}

// describe lists the commands of a program for clients. It returns nil if the program may do
// more than these commands say; such a program cannot be remembered either.
func describe(p cmdline.Program) []event.Command {
	if p.Unresolved != "" || p.Computed != "" || len(p.Writes) > 0 || len(p.Demands) > 0 {
		return nil
	}
	var out []event.Command
	for _, c := range p.Commands {
		if c.Name == "<" {
			continue
		}
		command := event.Command{Name: c.Name, Args: c.Args}
		if len(c.Demands) == 0 { // commands of wrappers are not remembered
			command.Key = c.Key
		}
		out = append(out, command)
	}
	return out
}

// harmlessGit is the environment with which git starts nothing that a repository
// contains.
func harmlessGit(getenv func(string) string) []string {
	if getenv == nil {
		getenv = func(string) string { return "" }
	}
	return cmdline.GitEnv(getenv, cmdline.HarmlessGit()...)
}
