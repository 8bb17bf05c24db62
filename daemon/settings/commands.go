package settings

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/seed-dec29ce4/eca/internal/proc"
	"github.com/seed-dec29ce4/eca/internal/redact"
)

// Commands runs ${cmd:...} of the configuration.
type Commands struct {
	Children *proc.Pool
	Getenv   func(string) string
	Mark     bool // run nothing; a mark replaces the output
}

// maxCommandOutput limits the output of a ${cmd:...}, in bytes.
const maxCommandOutput = 1 << 20

// Run runs the command of a ${cmd:...} and returns its output without trailing white space
// (eca-features.md 3.2).
func (c Commands) Run(ctx context.Context, command string) (string, error) {
	if c.Mark {
		return redact.Mark, nil
	}
	shell, args := configShell()
	stdout, stderr := proc.Head{Limit: maxCommandOutput}, proc.Head{Limit: maxCommandOutput}
	exit, err := c.Children.Run(ctx, proc.Spec{
		Path: shell, Args: append(args, command), Env: c.Environ(ctx),
		Stdout: &stdout, Stderr: &stderr,
	})
	switch {
	case err != nil:
		return "", err
	case exit.MemoryCause() != "":
		return "", errors.New(exit.MemoryCause())
	case exit.Code != 0:
		message, _, _ := strings.Cut(strings.TrimSpace(stderr.String()), "\n")
		if len(message) > 200 {
			message = message[:200]
		}
		if message == "" {
			message = "it printed nothing to stderr"
		}
		return "", fmt.Errorf("exit code %d: %s", exit.Code, strings.ToValidUTF8(message, ""))
	case stdout.Cut:
		return "", fmt.Errorf("it printed more than %d bytes", maxCommandOutput)
	}
	return strings.TrimRight(stdout.String(), " \t\r\n"), nil
}

// configShell returns the shell for commands of the configuration. It must not depend on the
// configuration.
func configShell() (path string, args []string) {
	if runtime.GOOS == "windows" {
		return "powershell.exe", []string{"-NoProfile", "-Command"}
	}
	if _, err := os.Stat("/bin/bash"); err == nil {
		return "/bin/bash", []string{"-c"}
	}
	return "sh", []string{"-c"}
}

// loginPathTime limits how long the user's shell may take to print its PATH.
const loginPathTime = 5 * time.Second

// Environ returns the variables that commands get in addition to eca's own environment: on macOS
// the PATH of the user's login shell, because programs started from the desktop do not have it.
func (c Commands) Environ(ctx context.Context) []string {
	if runtime.GOOS != "darwin" {
		return nil
	}
	path, err := loginPath(ctx, c.Getenv("SHELL"))
	if err != nil {
		home, _ := os.UserHomeDir()
		path = strings.Join([]string{"/opt/homebrew/bin", "/usr/local/bin", filepath.Join(home, ".local", "bin"), c.Getenv("PATH")}, ":")
	}
	return []string{"PATH=" + path}
}

// loginPath asks a login shell for its PATH.
func loginPath(ctx context.Context, shell string) (string, error) {
	if !slices.Contains([]string{"bash", "zsh", "sh", "dash", "ksh"}, filepath.Base(shell)) {
		return "", fmt.Errorf("%q is not a supported shell", shell)
	}
	ctx, cancel := context.WithTimeout(ctx, loginPathTime)
	defer cancel()
	const mark = "__eca_path__" // the shell may print other text
	stdout := proc.Head{Limit: maxCommandOutput}
	exit, err := proc.Run(ctx, proc.Spec{Path: shell, Args: []string{"-ilc", `printf '%s%s%s' ` + mark + ` "$PATH" ` + mark}, Stdout: &stdout})
	if err != nil {
		return "", err
	}
	parts := strings.Split(stdout.String(), mark)
	if exit.Code != 0 || len(parts) < 3 || parts[len(parts)-2] == "" {
		return "", errors.New("the shell did not print its PATH")
	}
	return parts[len(parts)-2], nil
}
