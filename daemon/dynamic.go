package daemon

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/seed-dec29ce4/eca/config"
	"github.com/seed-dec29ce4/eca/internal/proc"
	"github.com/seed-dec29ce4/eca/internal/redact"
)

// maxCommandOutput bounds what a ${cmd:...} of the configuration may print.
const maxCommandOutput = 1 << 20

// runCommand runs a ${cmd:...} of the configuration and returns what it printed, without
// the white space at its end (eca-features 3.2).
func (d *Daemon) runCommand(ctx context.Context, command string) (string, error) {
	if d.opts.NoCommands {
		return redact.Mark, nil
	}
	shell, args := configShell()
	var stdout, stderr capped
	exit, err := d.children.Run(ctx, proc.Spec{
		Path: shell, Args: append(args, command), Env: d.commandEnv(ctx),
		Stdout: &stdout, Stderr: &stderr,
	})
	switch {
	case err != nil:
		return "", err
	case exit.Code != 0:
		message, _, _ := strings.Cut(strings.TrimSpace(stderr.String()), "\n")
		if len(message) > 200 {
			message = message[:200]
		}
		return "", fmt.Errorf("exit code %d: %s", exit.Code, strings.ToValidUTF8(message, ""))
	case stdout.over:
		return "", fmt.Errorf("it printed more than %d bytes", maxCommandOutput)
	}
	return strings.TrimRight(stdout.String(), " \t\r\n"), nil
}

// configShell returns what runs commands of the configuration: it must not depend on it.
func configShell() (path string, args []string) {
	if runtime.GOOS == "windows" {
		return "powershell.exe", []string{"-NoProfile", "-Command"}
	}
	if _, err := os.Stat("/bin/bash"); err == nil {
		return "/bin/bash", []string{"-c"}
	}
	return "sh", []string{"-c"}
}

// capped keeps the beginning of what is written to it.
type capped struct {
	bytes.Buffer
	over bool
}

func (c *capped) Write(p []byte) (int, error) {
	n := len(p)
	if room := maxCommandOutput - c.Len(); len(p) > room {
		c.over = true
		p = p[:room]
	}
	_, err := c.Buffer.Write(p)
	return n, err
}

// loginPathTime is how long the user's shell may take to say where programs are.
const loginPathTime = 5 * time.Second

// commandEnv is what commands get beyond our own environment. Programs that a Mac starts
// from its desktop do not know where the user's programs are; the user's login shell does.
func (d *Daemon) commandEnv(ctx context.Context) []string {
	if runtime.GOOS != "darwin" {
		return nil
	}
	path, err := loginPath(ctx, d.opts.Getenv("SHELL"))
	if err != nil {
		home, _ := os.UserHomeDir()
		path = strings.Join([]string{"/opt/homebrew/bin", "/usr/local/bin", filepath.Join(home, ".local", "bin"), d.opts.Getenv("PATH")}, ":")
	}
	return []string{"PATH=" + path}
}

// loginPath asks a login shell for its PATH.
func loginPath(ctx context.Context, shell string) (string, error) {
	if !slices.Contains([]string{"bash", "zsh", "sh", "dash", "ksh"}, filepath.Base(shell)) {
		return "", fmt.Errorf("%q is not asked", shell)
	}
	ctx, cancel := context.WithTimeout(ctx, loginPathTime)
	defer cancel()
	const mark = "__eca_path__" // shells greet their users
	var stdout capped
	exit, err := proc.Run(ctx, proc.Spec{Path: shell, Args: []string{"-ilc", `printf '%s%s%s' ` + mark + ` "$PATH" ` + mark}, Stdout: &stdout})
	if err != nil {
		return "", err
	}
	parts := strings.Split(stdout.String(), mark)
	if exit.Code != 0 || len(parts) < 3 || parts[len(parts)-2] == "" {
		return "", errors.New("the shell did not say its PATH")
	}
	return parts[len(parts)-2], nil
}

// toolText returns the description of a native tool, for ${classpath:prompts/tools/...}.
// A tool that needs what the client can not do is not known.
func (d *Daemon) toolText(name string) (string, bool) {
	var cfg config.Config
	cfg.ToolCall.EditorNav.Enabled = true
	for _, t := range d.nativeTools(&cfg, nil, *d.client.Load()).All() {
		if spec := t.Spec(); spec.Name == name {
			return spec.Description, true
		}
	}
	return "", false
}

// patience is how long a load waits for commands of the configuration: a client waits for
// the answer to initialize. Prompts wait until they are done.
const patience = 2 * time.Second

// settle waits for commands of the configuration that still run, and takes their results.
func (d *Daemon) settle(ctx context.Context) {
	if cfg := d.Config(); cfg == nil || !cfg.Pending {
		return
	}
	d.dynamic.Wait(ctx)
	d.reload()
}
