package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	wire "github.com/mark3labs/mcp-go/mcp"

	"github.com/seed-dec29ce4/eca/config"
	"github.com/seed-dec29ce4/eca/internal/netclient"
	"github.com/seed-dec29ce4/eca/internal/testkit"
	"github.com/seed-dec29ce4/eca/tools"
)

var update = flag.Bool("update", false, "rewrite the table of docs/mcp.md")

// extension stands in for the version of scenarios that belong to no version.
const extension = "extension"

// unimplementedExtensions lists the extensions of the protocol that eca does not implement, with
// the reason. All of them are optional. The keys are prefixes of scenario names.
func unimplementedExtensions() map[string]string {
	return map[string]string{
		"auth/client-credentials-jwt":           "programs that log in with a signed token instead of a client secret",
		"auth/enterprise-managed-authorization": "logins through a company's identity provider",
		"auth/dpop":                             "tokens bound to a key",
		"auth/wif-jwt-bearer":                   "identities of cloud workloads",
		"sep-2640-client-":                      "skills that a server offers as resources",
	}
}

// suite lists the client scenarios of the suite by the version of the protocol that they need. It
// leaves out extensions that eca does not implement.
func suite(t *testing.T, node, modules string) map[string][]string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), node, program(modules), "list").Output()
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(out), "Client scenarios")
	rest, _, _ = strings.Cut(rest, "\n\n")
	all := map[string][]string{}
	for line := range strings.Lines(rest) {
		name, versions, ok := strings.Cut(strings.TrimPrefix(strings.TrimSpace(line), "- "), " [")
		if !ok {
			continue
		}
		left := false
		for beginning := range unimplementedExtensions() {
			left = left || strings.HasPrefix(name, beginning)
		}
		for version := range strings.SplitSeq(strings.TrimSuffix(versions, "]"), ",") {
			if left && version != extension {
				t.Errorf("%s is of %s, and not of an extension", name, version)
			}
			if !left {
				all[version] = append(all[version], name)
			}
		}
	}
	if len(all) < 5 || len(all["2026-07-28"]) < 30 {
		t.Fatalf("the list of scenarios is not understood:\n%s", out)
	}
	return all
}

// program is the path of the suite's program.
func program(modules string) string {
	return filepath.Join(modules, "@modelcontextprotocol", "conformance", "dist", "index.js")
}

// check is one of a scenario's results.
type check struct{ ID, Name, Status, ErrorMessage string }

func hasFailed(c check) bool { return c.Status == "FAILURE" || c.Status == "WARNING" }

// timed is how often a scenario that depends on timing may be repeated: a busy machine is not a
// defect of eca.
const timed = 4

// Runs the client scenarios of the official conformance suite against the manager that eca runs
// servers with. docs/mcp.md has the score.
func TestConformance(t *testing.T) {
	node, modules := testkit.NodeTools(t, os.Getenv)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	all := suite(t, node, modules)
	t.Run("scenarios", func(t *testing.T) {
		for version, scenarios := range all {
			for _, scenario := range scenarios {
				t.Run(version+"/"+scenario, func(t *testing.T) {
					t.Parallel()
					checks := runScenario(t, node, modules, self, version, scenario)
					for range timed {
						if scenario == "sse-retry" && slices.ContainsFunc(checks, hasFailed) {
							checks = runScenario(t, node, modules, self, version, scenario)
						}
					}
					passed := 0
					for _, c := range checks {
						switch {
						case c.Status == "SUCCESS":
							passed++
						case hasFailed(c):
							t.Errorf("%s (%s): %s", c.ID, c.Name, c.ErrorMessage)
						}
					}
					if passed == 0 {
						t.Errorf("nothing was checked: %+v", checks)
					}
				})
			}
		}
	})
	if t.Failed() {
		return
	}
	var table strings.Builder
	table.WriteString("| version | passed | scenarios |\n|---|---|---|\n")
	for _, version := range slices.Sorted(maps.Keys(all)) {
		slices.Sort(all[version])
		fmt.Fprintf(&table, "| %s | %d of %[2]d | `%s` |\n", version, len(all[version]), strings.Join(all[version], "`, `"))
	}
	table.WriteString("\neca does not run these scenarios, because it does not support their extensions: ")
	var left []string
	for _, name := range slices.Sorted(maps.Keys(unimplementedExtensions())) {
		shown := name
		if strings.HasSuffix(name, "-") {
			shown += "*"
		}
		left = append(left, "`"+shown+"` ("+unimplementedExtensions()[name]+")")
	}
	table.WriteString(strings.Join(left, ", ") + ".")
	publish(t, table.String())
}

// publish compares the table of docs/mcp.md with the results, or rewrites it.
func publish(t *testing.T, table string) {
	t.Helper()
	const file, begin, end = "../docs/mcp.md", "<!-- conformance -->\n", "\n<!-- end -->"
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(raw), begin)
	old, after, ok2 := strings.Cut(rest, end)
	if !ok || !ok2 {
		t.Fatalf("%s has no place for the score", file)
	}
	switch {
	case old == table:
	case *update:
		if err := os.WriteFile(file, []byte(before+begin+table+end+after), 0o600); err != nil {
			t.Fatal(err)
		}
	default:
		t.Errorf("docs/mcp.md says something else; -update rewrites it:\n%s", table)
	}
}

// runScenario lets the suite run this test binary as the client and returns the suite's verdicts.
func runScenario(t *testing.T, node, modules, self, version, scenario string) []check {
	t.Helper()
	out := t.TempDir()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	args := []string{program(modules), "client", "--command", self, "--scenario", scenario, "--timeout", "120000", "-o", out}
	if version != extension {
		args = append(args, "--spec-version", version)
	}
	cmd := exec.CommandContext(ctx, node, args...)
	cmd.Env = append(os.Environ(), modeVariable+"=conformance")
	said, err := cmd.CombinedOutput() // its exit code says less than the checks do
	files, _ := filepath.Glob(filepath.Join(out, "*", "checks.json"))
	nested, _ := filepath.Glob(filepath.Join(out, "*", "*", "checks.json")) // of auth/...
	files = append(files, nested...)
	if len(files) != 1 {
		t.Fatalf("no results (%v):\n%s", err, said)
	}
	raw, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	var checks []check
	if err := json.Unmarshal(raw, &checks); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("%s", said)
		}
	})
	return checks
}

// playClient is the client that the suite starts: it connects to the server and uses everything
// that the server offers.
func playClient() error {
	url := os.Args[len(os.Args)-1]
	ctx, cancel := context.WithTimeout(context.Background(), 100*time.Second)
	defer cancel()
	network := netclient.New(func(string) string { return "" })
	defer network.Close()
	user, err := newConformingUser(network, url)
	if err != nil {
		return err
	}
	defer user.close()
	m := New(Deps{
		Resolve: func(_ context.Context, _ string, c config.MCPServer) (Launch, error) {
			return Launch{URL: c.URL, Login: user.account}, nil
		},
		HTTP:    func() *http.Client { return network.Client(netclient.Options{}) },
		Version: "1", Now: clock, Log: slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelDebug})),
		Handlers: map[string]Handler{string(wire.MethodElicitationCreate): acceptDefaults},
	})
	defer m.Close()
	m.Apply(Settings{}, map[string]config.MCPServer{"s": {URL: url}})
	m.Begin()
	m.Settled(ctx)
	if err := user.loginAsNeeded(ctx, m); err != nil {
		return err
	}
	status, _ := m.Status("s")
	if status.State != Running {
		return fmt.Errorf("the server is %s: %s", status.State, status.Reason)
	}
	if err := useTools(ctx, m, user); err != nil {
		return err
	}
	return useRest(ctx, m)
}

// useTools makes the calls that the scenario lists, or calls each tool with suitable arguments.
func useTools(ctx context.Context, m *Manager, user *conformingUser) error {
	var given struct {
		Calls []struct {
			Name      string          `json:"name"`
			Arguments json.RawMessage `json:"arguments"`
		} `json:"toolCalls"`
	}
	if text := os.Getenv("MCP_CONFORMANCE_CONTEXT"); text != "" {
		if err := json.Unmarshal([]byte(text), &given); err != nil {
			return err
		}
	}
	var failed []error
	list := m.Tools()
	for _, tool := range list {
		arguments := sample(tool.Spec().Schema)
		for _, call := range given.Calls {
			if call.Name == tool.Spec().Name {
				arguments = call.Arguments
			}
		}
		if tool.Spec().Name == "json_schema_echo" {
			arguments, _ = json.Marshal(map[string]any{"schema": list[0].Spec().Schema})
		}
		res, err := tool.Run(ctx, tools.Call{ID: "c", Arguments: arguments}, nil)
		fmt.Fprintln(os.Stderr, tool.Spec().Name, string(arguments), res.Outputs, err)
		if errors.Is(err, errUnauthorized) {
			_, _ = m.servers["s"].connection(ctx) // by then the supervisor has noticed, too
			if err = user.loginAsNeeded(ctx, m); err == nil {
				_, err = tool.Run(ctx, tools.Call{ID: "c", Arguments: arguments}, nil)
			}
		}
		failed = append(failed, err)
	}
	return errors.Join(failed...)
}

// sample returns arguments for a schema.
func sample(schema json.RawMessage) json.RawMessage {
	var s struct {
		Properties map[string]struct {
			Type string `json:"type"`
		} `json:"properties"`
	}
	_ = json.Unmarshal(schema, &s)
	out := map[string]any{}
	for name, p := range s.Properties {
		switch p.Type {
		case "number", "integer":
			out[name] = 3
		case "boolean":
			out[name] = true
		case "string":
			out[name] = "text"
		}
	}
	raw, _ := json.Marshal(out)
	return raw
}

// useRest reads the resources and gets the prompts.
func useRest(ctx context.Context, m *Manager) error {
	conn, err := m.servers["s"].connection(ctx)
	if err != nil {
		return err
	}
	var resources struct{ Resources []struct{ URI string } }
	var prompts struct{ Prompts []struct{ Name string } }
	if conn.capabilities.Resources != nil {
		if err := conn.session.call(ctx, "resources/list", nil, &resources); err != nil {
			return err
		}
	}
	for _, r := range resources.Resources {
		if err := conn.session.call(ctx, "resources/read", map[string]string{"uri": r.URI}, nil); err != nil {
			return err
		}
	}
	if conn.capabilities.Prompts != nil {
		if err := conn.session.call(ctx, "prompts/list", nil, &prompts); err != nil {
			return err
		}
	}
	for _, p := range prompts.Prompts {
		if err := conn.session.call(ctx, "prompts/get", map[string]string{"name": p.Name}, nil); err != nil {
			return err
		}
	}
	return nil
}

// acceptDefaults answers a question of the server like a user who accepts all defaults.
func acceptDefaults(_ context.Context, r ServerRequest) (any, error) {
	var p struct {
		Schema struct {
			Properties map[string]struct {
				Default json.RawMessage `json:"default"`
			} `json:"properties"`
		} `json:"requestedSchema"`
	}
	if err := json.NewDecoder(bytes.NewReader(r.Params)).Decode(&p); err != nil {
		return nil, err
	}
	content := map[string]json.RawMessage{}
	for name, field := range p.Schema.Properties {
		if len(field.Default) > 0 {
			content[name] = field.Default
		}
	}
	return map[string]any{"action": "accept", "content": content}, nil
}
