package daemon

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/seed-dec29ce4/eca/tools"
)

// Commands that the user did not approve by hand get no credentials. Those that only read get only the
// variables that they need. toolCall.environment changes both sets of variables.
func TestEnvironmentOfCommands(t *testing.T) {
	root := t.TempDir()
	variables := []string{
		"HOME=/home/u", "PATH=/usr/bin", "LC_ALL=C", "EDITOR=vi", "SSH_AUTH_SOCK=/run/agent", "GOFLAGS=-mod=mod", "PWD=" + root, "HTTPS_PROXY=http://u:hunter22222@proxy:1",
		"GITHUB_TOKEN=abcdefgh12", "MY_API_KEY=x", "AWS_ACCESS_KEY_ID=AKIAIOSFODNN7EXAMPLE", "DB_PASSWORD=hunter22", "MYSQL_PWD=x", "GH_PAT=x", "npm_config__auth=x", "CLIENT_SECRET_FILE=/x",
		"PLAIN=ghp_abcdefghijklmnopqrstuvwxyz0123456789", "COPY=configured-credential", "DATABASE_URL=postgres://u:hunter33333@db/x", "BASH_ENV=/evil", "LD_PRELOAD=/evil",
	}
	secret := []string{"GITHUB_TOKEN", "MY_API_KEY", "AWS_ACCESS_KEY_ID", "DB_PASSWORD", "MYSQL_PWD", "GH_PAT", "npm_config__auth", "CLIENT_SECRET_FILE", "PLAIN", "COPY", "DATABASE_URL"}
	configure := func(environment string) *Daemon {
		d := New(Options{Getenv: func(string) string { return "" }, Environ: func() []string { return variables }, StateDir: t.TempDir(), CacheDir: t.TempDir()})
		d.Configure(json.RawMessage(`{"providers": {"openai": {"key": "configured-credential"}}, "toolCall": {"environment": `+environment+`}, "customTools": {"mine": {"description": "d", "command": "true"}}}`), []string{root})
		t.Cleanup(d.Close)
		return d
	}
	names := func(env []string) []string {
		var out []string
		for _, pair := range env {
			name, _, _ := strings.Cut(pair, "=")
			out = append(out, name)
		}
		return out
	}
	call := func(d *Daemon, g tools.Authorization) []string {
		return d.bounds.CallEnvironment(d.Config(), tools.Call{Roots: []string{root}, Authorization: g})
	}
	byUser, auto, builtIn := tools.Authorization{Rule: "toolCall.approval.byDefault", Approved: true}, tools.Authorization{Auto: true}, tools.Authorization{Rule: "agent.plan.readOnly"}

	d := configure(`{}`)
	if env := call(d, byUser); env != nil {
		t.Errorf("approved by hand: %v", env)
	}
	got := names(call(d, auto))
	for _, name := range secret {
		if slices.Contains(got, name) {
			t.Errorf("auto-approved commands get %s", name)
		}
	}
	if want := len(variables) - len(secret); len(got) != want {
		t.Errorf("auto-approved commands get %v", got)
	}
	got = names(call(d, builtIn))
	if want := []string{"HOME", "PATH", "LC_ALL", "PWD", "TERM"}; !slices.Equal(got, want) {
		t.Errorf("commands that only read get %v", got)
	}

	d = configure(`{"pass": ["GITHUB_*", "EDITOR"], "withhold": ["GOFLAGS", "lc_*", "GITHUB_X"]}`)
	if got := names(call(d, auto)); !slices.Contains(got, "GITHUB_TOKEN") || slices.Contains(got, "GOFLAGS") || slices.Contains(got, "LC_ALL") || slices.Contains(got, "MY_API_KEY") {
		t.Errorf("configured, auto-approved commands get %v", got)
	}
	if got := names(call(d, builtIn)); !slices.Equal(got, []string{"HOME", "PATH", "EDITOR", "PWD", "GITHUB_TOKEN", "TERM"}) {
		t.Errorf("configured, commands that only read get %v", got)
	}
}

// A running command or custom tool does not get the credentials of eca's environment, unless the user
// approved the call by hand.
func TestCredentialsDoNotReachCommands(t *testing.T) {
	t.Setenv("MY_SERVICE_TOKEN", "hunter2222")
	root := t.TempDir()
	d := New(Options{StateDir: t.TempDir(), CacheDir: t.TempDir()})
	t.Cleanup(d.Close)
	d.Configure(json.RawMessage(`{"customTools": {"mine": {"description": "d", "command": "echo [$MY_SERVICE_TOKEN]"}}}`), []string{root})
	if err := os.MkdirAll(filepath.Join(root, ".git"), 0o700); err != nil {
		t.Fatal(err)
	}
	for name, arguments := range map[string]string{"shell_command": `{"command": "echo [$MY_SERVICE_TOKEN]"}`, "mine": `{}`} {
		for _, g := range []tools.Authorization{{Auto: true}, {Approved: true}} {
			tool, ok := d.Tools().Lookup(name)
			if !ok {
				t.Fatal(name)
			}
			res, err := tool.Run(t.Context(), tools.Call{Roots: []string{root}, Arguments: json.RawMessage(arguments), Authorization: g}, nil)
			// Secrets that reach a command are removed from its output.
			if want := "[]"; err != nil || strings.Contains(strings.Join(res.Outputs, ""), want) == g.Approved {
				t.Errorf("%s, approved by hand: %v: %v %v", name, g.Approved, res.Outputs, err)
			}
		}
	}
}
