package shell

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"

	"github.com/seed-dec29ce4/eca/internal/cmdline"
	"github.com/seed-dec29ce4/eca/internal/proc"
	"github.com/seed-dec29ce4/eca/internal/sandbox"
	"github.com/seed-dec29ce4/eca/tools"
)

// command describes a command for the policy.
func (o Options) command(text, dir string, program cmdline.Program) *tools.Command {
	c := &tools.Command{Text: text, Dir: dir, Program: program, OtherShell: !o.posix()}
	if !c.OtherShell && !o.plain() {
		c.ShellWrapper = o.Path
	}
	return c
}

// plain says that commands go to a POSIX shell of this machine as they are.
func (o Options) plain() bool {
	path, args := o.shell()
	return slices.Contains([]string{"bash", "sh", "dash"}, name(path)) && !slices.ContainsFunc(args, func(a string) bool { return !strings.HasPrefix(a, "-") })
}

// prepare says how a command of a call is run: as the user approved it, or else as it was
// printed from what was judged.
func (o Options) prepare(call tools.Call, text, dir string) (proc.Spec, error) {
	printed := call.Printed
	if call.Authorization.Approved || printed == nil || printed.Text == "" {
		return o.bound(call, o.line(text, dir)), nil
	}
	spec := o.bound(call, o.line(printed.Text, dir))
	unasked := printed.Programs != nil
	if runtime.GOOS == "windows" || o.Path != "" && !unasked {
		return spec, nil
	}
	shell, err := o.Bash.path()
	if err != nil {
		if unasked {
			return proc.Spec{}, err
		}
		return spec, nil // a rule of the user's: the shell runs as usual
	}
	// -p: no functions, start-up files and settings from the environment. The shell's messages
	// begin with its name, which is that of the original.
	spec.Path, spec.Args = shell, []string{"-p", "-c", pinned(printed) + printed.Text, originalBash}
	spec.Environ = withoutShellSettings(spec.Environ) // for shells that the text runs
	if real, err := filepath.EvalSymlinks(shell); err == nil && spec.Sandbox.Read != nil {
		spec.Sandbox.Read = append(slices.Clone(spec.Sandbox.Read), real) // the system reads what it executes
	}
	if unasked {
		spec.Env = append(spec.Env, "PATH="+printed.Path)
		if spec.Sandbox.Level == sandbox.ReadOnly {
			real, err := filepath.EvalSymlinks(shell)
			if err != nil {
				return proc.Spec{}, err
			}
			spec.Sandbox.Execute = append(slices.Clone(printed.Execute), real)
		}
	}
	return spec, nil
}

// bound bounds what a call runs.
func (o Options) bound(call tools.Call, spec proc.Spec) proc.Spec {
	if o.bind(&spec, call); spec.Sandbox.Level == sandbox.ReadOnly {
		spec.Env = append(spec.Env, cmdline.GitCeilings(call.Roots))
	}
	return spec
}

// withoutShellSettings is an environment without what bash -p ignores in it; nil is eca's own.
func withoutShellSettings(environ []string) []string {
	if environ == nil {
		environ = os.Environ()
	}
	return slices.DeleteFunc(slices.Clone(environ), func(pair string) bool {
		name, _, _ := strings.Cut(pair, "=")
		return strings.HasPrefix(name, "BASH_FUNC_") || slices.Contains([]string{"BASH_ENV", "ENV", "SHELLOPTS", "BASHOPTS", "CDPATH", "GLOBIGNORE"}, name)
	})
}

// pinned is what precedes a text, on its first line, so that names are the programs that
// were judged. Commands that tell of that are left alone: PATH says the same.
func pinned(printed *tools.Printed) string {
	if slices.ContainsFunc(printed.Program.Commands, func(c cmdline.Command) bool { return c.Name == "type" || c.Name == "command" }) {
		return ""
	}
	var b strings.Builder
	for _, p := range printed.Programs {
		fmt.Fprintf(&b, "hash -p %s %s; ", quote(p.Path), quote(p.Name))
	}
	return b.String()
}

func quote(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }

const originalBash = "/bin/bash"

// Bash is a copy of bash that only eca uses. Commands that run unasked may execute it, and no
// other shell.
type Bash struct {
	dir string

	once sync.Once
	file string
	err  error
}

// NewBash keeps the copy below dir, and makes it when it is first used.
func NewBash(dir string) *Bash { return &Bash{dir: dir} }

// path returns the copy. Where it cannot be made, bash itself has to do.
func (b *Bash) path() (string, error) {
	if b == nil {
		return existingBash()
	}
	b.once.Do(func() {
		if b.file, b.err = existingBash(); b.err != nil {
			return
		}
		if file, err := copyProgram(b.file, b.dir); err == nil && runs(file) {
			b.file = file
		}
	})
	return b.file, b.err
}

func existingBash() (string, error) {
	if _, err := os.Stat(originalBash); err != nil {
		return "", errors.New("commands that nobody approved run in " + originalBash + ", which is not here; approve the call")
	}
	return originalBash, nil
}

// copyProgram copies a program into a folder. A copy by another process stays if it is the
// same.
func copyProgram(from, dir string) (string, error) {
	real, err := filepath.EvalSymlinks(from)
	if err != nil {
		return "", err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", err
	}
	to := filepath.Join(dir, filepath.Base(from))
	if same(real, to) {
		return to, nil
	}
	in, err := os.Open(real)
	if err != nil {
		return "", err
	}
	defer in.Close()
	out, err := os.CreateTemp(dir, ".new-*")
	if err != nil {
		return "", err
	}
	defer os.Remove(out.Name())
	_, err = io.Copy(out, in)
	const executable = 0o500
	if err := errors.Join(err, out.Chmod(executable), out.Close()); err != nil {
		return "", err
	}
	return to, os.Rename(out.Name(), to)
}

// same reports whether two files have the same content.
func same(a, b string) bool {
	x, errA := os.ReadFile(a)
	y, errB := os.ReadFile(b)
	return errA == nil && errB == nil && string(x) == string(y)
}

// runs says that a program may be executed where it is.
func runs(file string) bool {
	exit, err := proc.Run(context.Background(), proc.Spec{Path: file, Args: []string{"-p", "-c", "exit 7"}})
	return err == nil && exit.Code == 7
}
