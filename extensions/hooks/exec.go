package hooks

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"runtime"
	"strings"
	"time"

	"github.com/seed-dec29ce4/eca/internal/proc"
)

// maxOutput is how much of a script's output is kept, in bytes. The rest is read and discarded, so
// that the script does not block.
const maxOutput = 256 << 10

// scriptRun is how a script ended.
type scriptRun struct {
	status   int
	stdout   string
	stderr   string
	complete bool   // nothing of stdout was discarded
	ran      bool   // it was started
	problem  string // why it did not run to its end; may be empty
}

// run runs a script with its input. Errors are reported as status 1 with a problem.
func (s *Set) run(ctx context.Context, a action, root string, input []byte) scriptRun {
	path, args, err := command(a, root)
	if err != nil {
		return scriptRun{status: 1, problem: err.Error()}
	}
	stdout, stderr := proc.Head{Limit: maxOutput}, proc.Head{Limit: maxOutput}
	limited, cancel := context.WithTimeout(ctx, a.limit)
	defer cancel()
	exit, err := s.opts.Children.Run(limited, proc.Spec{
		Path: path, Args: args, Dir: root, Env: []string{"ECA_EXECUTABLE=" + s.opts.Executable, "CLAUDE_PROJECT_DIR=" + root},
		Stdin: bytes.NewReader(input), Stdout: &stdout, Stderr: &stderr, Sandbox: a.policy,
	})
	r := scriptRun{status: exit.Code, stdout: text(&stdout), stderr: text(&stderr), complete: !stdout.Cut, ran: err == nil}
	switch problem := problemOf(exit, a.limit); {
	case ctx.Err() != nil:
		r.status, r.problem, r.ran = 1, "it was stopped", true
	case err != nil:
		r.status, r.problem = 1, err.Error()
	case problem != "":
		r.status, r.problem = 1, problem
	}
	return r
}

// problemOf returns why a script did not run to its end; empty if it did.
func problemOf(exit proc.Exit, limit time.Duration) string {
	switch {
	case exit.Killed:
		return fmt.Sprintf("it did not finish within %s and was killed", limit)
	case exit.MemoryCause() != "":
		return exit.MemoryCause()
	case exit.Code < 0:
		return "it was killed"
	}
	return ""
}

// command returns the program and arguments for an action: always bash, whatever shell the tools
// use (eca-features.md 18.1).
func command(a action, root string) (path string, args []string, err error) {
	path, args = "bash", []string{"-c", a.Shell}
	if runtime.GOOS == "windows" {
		path, args = "powershell.exe", []string{"-NoProfile", "-Command", a.Shell}
	}
	if a.File == "" {
		return path, args, nil
	}
	file := scriptPath(a.File, root)
	info, err := os.Stat(file)
	switch {
	case err != nil:
		return "", nil, fmt.Errorf("the file %s cannot be read: %w", file, err)
	case !info.Mode().IsRegular():
		return "", nil, fmt.Errorf("%s is not a file", file)
	case runtime.GOOS == "windows":
		return path, []string{"-NoProfile", "-File", file}, nil
	}
	return path, []string{file}, nil
}

func text(out *proc.Head) string {
	return strings.TrimSpace(strings.ToValidUTF8(out.String(), "\uFFFD"))
}
