package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/seed-dec29ce4/eca/ecp/report"
	"github.com/seed-dec29ce4/eca/internal/needs"
	"github.com/seed-dec29ce4/eca/internal/proc"
	"github.com/seed-dec29ce4/eca/internal/testkit"
)

func TestMain(m *testing.M) {
	if code, ok := proc.Supervise(os.Args); ok {
		os.Exit(code)
	}
	if len(os.Args) > 2 && os.Args[1] == "agent" {
		runTestAgent(os.Args[2:])
		return
	}
	if len(os.Args) > 2 && os.Args[1] == "nats" {
		os.Exit(runNATS(os.Args[2]))
	}
	if len(os.Args) > 1 && os.Args[1] == "ecp" { // the program itself, to be killed
		os.Exit(run(context.Background(), os.Args[2:], streams{os.Stdout, os.Stderr}))
	}
	// With the race detector, each of our children would sleep a second before it ends.
	if os.Getenv("GORACE") == "" {
		_ = os.Setenv("GORACE", "atexit_sleep_ms=0")
	}
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("github.com/dlclark/regexp2.runClock"), testkit.IgnoreNATS())
}

// isolateEnvironment keeps the machine's environment variables and configuration out of the test.
func isolateEnvironment(t *testing.T) {
	t.Helper()
	needs.POSIX(t)
	for _, v := range []string{"OPENAI_API_KEY", "OPENAI_BASE_URL", "ECP_LLM_JUDGE_MODEL", "ECP_RPC_TIMEOUT", "GITHUB_ACTIONS", "GITHUB_STEP_SUMMARY", "GITHUB_WORKSPACE", "ECA_CONFIG"} {
		t.Setenv(v, "")
	}
	home := t.TempDir()
	t.Setenv("HOME", home)
	t.Setenv("XDG_CONFIG_HOME", home)
	t.Setenv("XDG_STATE_HOME", home)
	t.Setenv("XDG_CACHE_HOME", home)
}

// agentTarget is a command line for the test agent.
func agentTarget(t *testing.T, words ...string) string {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return "'" + self + "' agent '" + strings.Join(words, "' '") + "'"
}

// result is the output of a command.
type result struct {
	code     int
	out, err string
}

// invoke runs a command in this process.
func invoke(t *testing.T, args ...string) result {
	t.Helper()
	var out, errs bytes.Buffer
	code := run(t.Context(), args, streams{&out, &errs})
	return result{code, out.String(), errs.String()}
}

// manifest writes a manifest with the given target and the text below scenarios.
func manifest(t *testing.T, target, scenarios string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "manifest.yaml")
	quotedTarget, err := json.Marshal(target)
	if err != nil {
		t.Fatal(err)
	}
	write(t, path, fmt.Sprintf("manifest_version: v1\nname: test\ntarget: %s\nscenarios:\n%s", quotedTarget, scenarios))
	return path
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// scenario is a scenario with a step for each input, each with the same graders.
func scenario(name, graders string, inputs ...string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "  - name: %q\n    steps:\n", name)
	for _, in := range inputs {
		fmt.Fprintf(&b, "      - input: %q\n        graders: [%s]\n", in, graders)
	}
	return b.String()
}

// evaluateManifest runs a manifest and returns its output and report.
func evaluateManifest(t *testing.T, path string, args ...string) (result, *report.Report) {
	t.Helper()
	r := invoke(t, append([]string{"run", "--manifest", path, "--json", "--timeout", "60"}, args...)...)
	parsed, err := report.Parse([]byte(r.out))
	if err != nil {
		t.Fatalf("exit %d: %v\n%s\n%s", r.code, err, r.out, r.err)
	}
	return r, parsed
}

const contains = "{type: text_match, condition: contains, value: %q}"

func has(value string) string { return fmt.Sprintf(contains, value) }
