package daemon

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/seed-dec29ce4/eca/auth"
	"github.com/seed-dec29ce4/eca/internal/needs"
)

// Known secrets are removed from logs, and known credentials from results of tools, even if their values
// do not look like secrets.
func TestCleanKnowsSecrets(t *testing.T) {
	d := newDaemonWith(t, Options{Environ: func() []string {
		return []string{"MY_TOKEN=zq-environment", "DATABASE_URL=postgres://me:zq-database@localhost/db", "USER=ada-lovelace"}
	}}, `{"providers": {"acme": {"api": "openai-chat", "url": "https://u:zq-address@acme.example/v1", "key": "zq-config-key", "extraHeaders": {"X-Api-Key": "zq-header"},
		"models": {"m": {"extraPayload": {"access_token": "zq-payload"}}}}}, "network": {"clientKeyPassphrase": "zq-passphrase"}}`,
		map[string]string{"HTTPS_PROXY": "http://me:zq-proxy@127.0.0.1:1", "ACME_API_KEY": "zq-variable"})
	if err := d.current().storage.creds.Set(t.Context(), "acme", auth.Credential{Type: auth.APIKey, Key: auth.NewSecret("zq-entered")}); err != nil {
		t.Fatal(err)
	}
	d.reload()
	for _, secret := range strings.Fields("zq-environment zq-database zq-address zq-config-key zq-header zq-payload zq-passphrase zq-proxy zq-variable zq-entered") {
		if got := d.Clean("it said " + secret + " to ada-lovelace"); got != "it said [REDACTED] to ada-lovelace" {
			t.Errorf("logged: %s", got)
		}
	}
	for _, secret := range strings.Fields("zq-environment zq-database zq-config-key zq-header zq-entered") {
		if got := d.cleanOutput("it said " + secret + " to ada-lovelace"); got != "it said [REDACTED] to ada-lovelace" {
			t.Errorf("returned: %s", got)
		}
	}
}

// The credentials that an MCP server gets are removed from results of tools, also if dynamic strings
// contain them.
func TestCleanKnowsCredentialsOfServers(t *testing.T) {
	needs.POSIX(t)
	file := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(file, []byte("zq-from-file"), 0o600); err != nil {
		t.Fatal(err)
	}
	d := newDaemonWith(t, Options{}, `{"mcpServers": {
		"program": {"command": "false", "env": {"A_TOKEN": "${env:PASSED}", "FROM_FILE": "${file:`+file+`}", "FROM_COMMAND": "${cmd:echo zq-from-command}", "GREETING": "${env:WORD}"}},
		"remote": {"url": "http://127.0.0.1:1/", "headers": {"Authorization": "Bearer ${env:HEADER}"}}}}`,
		map[string]string{"PASSED": "zq-from-environment", "WORD": "good-morning", "HEADER": "zq-from-header", "PATH": os.Getenv("PATH")})
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	d.StartMCPServers(ctx)
	for _, secret := range strings.Fields("zq-from-environment zq-from-file zq-from-command zq-from-header") {
		if got := d.cleanOutput("it said " + secret + " and good-morning"); got != "it said [REDACTED] and good-morning" {
			t.Errorf("returned: %s", got)
		}
	}
}
