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
	if !c.OtherShell && !o.usesPlainShell() {
		c.ShellWrapper = o.Path
	}
	return c
}

// usesPlainShell reports whether commands run in a POSIX shell of this machine, without a wrapper.
func (o Options) usesPlainShell() bool {
	path, args := o.shell()
	return slices.Contains([]string{"bash", "sh", "dash"}, programName(path)) && !slices.ContainsFunc(args, func(a string) bool { return !strings.HasPrefix(a, "-") })
}

// prepare returns the process for the command of a call. It runs the original text if the user approved
// it, otherwise the canonical form of the text that the policy judged.
func (o Options) prepare(call tools.Call, text, dir string) (proc.Spec, error) {
	printed := call.Printed
	if call.Authorization.Approved || printed == nil || printed.Text == "" {
		return o.withSandbox(call, o.processFor(text, dir)), nil
	}
	spec := o.withSandbox(call, o.processFor(printed.Text, dir))
	withoutApproval := printed.Programs != nil
	if runtime.GOOS == "windows" || o.Path != "" && !withoutApproval {
		return spec, nil
	}
	shell, err := o.Bash.path()
	if err != nil {
		if withoutApproval {
			return proc.Spec{}, err
		}
		return spec, nil // a rule of the user allowed the command, so it may run in the usual shell
	}
	// With -p, bash ignores functions, start-up files and settings from the environment. The last
	// argument is the name with which its messages begin: the original's, not the copy's.
	spec.Path, spec.Args = shell, []string{"-p", "-c", pinPrograms(printed) + printed.Text, systemBash}
	spec.Environ = withoutShellSettings(spec.Environ) // other shells that the text starts do not have -p
	if real, err := filepath.EvalSymlinks(shell); err == nil && spec.Sandbox.Read != nil {
		spec.Sandbox.Read = append(slices.Clone(spec.Sandbox.Read), real) // the system reads what it executes
	}
	if withoutApproval {
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

// withSandbox returns a process with the sandbox and environment of a call.
func (o Options) withSandbox(call tools.Call, spec proc.Spec) proc.Spec {
	if o.setSandbox(&spec, call); spec.Sandbox.Level == sandbox.ReadOnly {
		spec.Env = append(spec.Env, cmdline.GitCeilings(call.Roots))
	}
	return spec
}

// withoutShellSettings returns an environment without the variables that bash -p ignores. nil stands for
// the environment of eca.
func withoutShellSettings(environ []string) []string {
	if environ == nil {
		environ = os.Environ()
	}
	return slices.DeleteFunc(slices.Clone(environ), func(pair string) bool {
		name, _, _ := strings.Cut(pair, "=")
		return strings.HasPrefix(name, "BASH_FUNC_") || slices.Contains([]string{"BASH_ENV", "ENV", "SHELLOPTS", "BASHOPTS", "CDPATH", "GLOBIGNORE"}, name)
	})
}

// pinPrograms returns commands (hash -p) that precede a text and make bash run exactly the programs
// that the policy judged. It returns nothing for a text with the builtins type or command, because
// these would print the pinned paths; bash then finds the same programs in PATH.
func pinPrograms(printed *tools.Printed) string {
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

const systemBash = "/bin/bash"

// Bash is a private copy of bash. Commands that run without asking can execute no other shell.
type Bash struct {
	dir string

	once sync.Once
	file string
	err  error
}

// NewBash returns a Bash whose copy is created in dir when it is first used.
func NewBash(dir string) *Bash { return &Bash{dir: dir} }

// path returns the path of the copy, or of bash itself if it cannot be copied.
func (b *Bash) path() (string, error) {
	if b == nil {
		return findBash()
	}
	b.once.Do(func() {
		if b.file, b.err = findBash(); b.err != nil {
			return
		}
		if file, err := copyProgram(b.file, b.dir); err == nil && canExecute(file) {
			b.file = file
		}
	})
	return b.file, b.err
}

func findBash() (string, error) {
	if _, err := os.Stat(systemBash); err != nil {
		return "", errors.New("commands without the user's approval run only in " + systemBash + ", which does not exist; approve the call")
	}
	return systemBash, nil
}

// copyProgram copies a program into a folder, unless another process has already made the same copy.
func copyProgram(from, dir string) (string, error) {
	real, err := filepath.EvalSymlinks(from)
	if err != nil {
		return "", err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", err
	}
	to := filepath.Join(dir, filepath.Base(from))
	if sameContent(real, to) {
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

// sameContent reports whether two files have the same content.
func sameContent(a, b string) bool {
	x, errA := os.ReadFile(a)
	y, errB := os.ReadFile(b)
	return errA == nil && errB == nil && string(x) == string(y)
}

// canExecute reports whether a program can be executed where it is (not on a noexec file system).
func canExecute(file string) bool {
	exit, err := proc.Run(context.Background(), proc.Spec{Path: file, Args: []string{"-p", "-c", "exit 7"}})
	return err == nil && exit.Code == 7
}
