package acp_test

import (
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/seed-dec29ce4/eca/e2a/acp"
	"github.com/seed-dec29ce4/eca/internal/testkit"
)

// ACP's own SDK, which validates the messages, completes a session with tools, permission, a
// refusal, a cancelled prompt, settings, and a reload of the session.
func TestSDK(t *testing.T) {
	node, modules := testkit.NodeTools(t, os.Getenv)
	r := newRig(t, writes)
	var met struct {
		Modes, Options               []string
		Set                          string
		Allowed, Rejected, Cancelled string
		Updates, Replayed, Asked     []object
		Listed                       []object
		Unknown                      int
	}
	sdk := filepath.Join(modules, "@agentclientprotocol", "sdk", "dist", "v1", "stable", "acp.js")
	said := runNode(t, r, node, filepath.Join("testdata", "sdk.mjs"), sdk, r.Root)
	if err := json.Unmarshal([]byte(said), &met); err != nil {
		t.Fatalf("%v\n%s", err, said)
	}
	if !slices.Contains(met.Modes, "plan") || !slices.Contains(met.Options, "model") || met.Set != "mock/n" {
		t.Errorf("modes %v, options %v, set to %q", met.Modes, met.Options, met.Set)
	}
	if met.Allowed != "end_turn" || met.Rejected != "end_turn" || met.Cancelled != "cancelled" || len(met.Asked) != 3 {
		t.Errorf("allowed: %s, rejected: %s, cancelled: %s, asked %d times", met.Allowed, met.Rejected, met.Cancelled, len(met.Asked))
	}
	if text, err := os.ReadFile(filepath.Join(r.Root, "out.txt")); string(text) != "hello\nworld\n" {
		t.Errorf("%q, %v", text, err)
	}
	if s := story(met.Updates); !strings.Contains(s, "call(in_progress) call(completed)") && !strings.Contains(s, "call_update(completed)") {
		t.Errorf("told: %s", s)
	}
	if s := story(met.Replayed); !strings.HasPrefix(s, "user_message agent_thought agent_message call(pending)") {
		t.Errorf("told again: %s", s)
	}
	if len(met.Listed) != 1 || met.Listed[0]["cwd"] != r.Root || met.Unknown != -32002 {
		t.Errorf("listed %v, an unknown session is %d", met.Listed, met.Unknown)
	}
}

// runNode runs a client on the agent's pipes and returns its stderr.
func runNode(t *testing.T, r *rig, node string, args ...string) string {
	t.Helper()
	toAgent, clientOut, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	clientIn, fromAgent, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	stderr, clientErr, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	p, err := os.StartProcess(node, append([]string{node}, args...), &os.ProcAttr{Env: os.Environ(), Files: []*os.File{clientIn, clientOut, clientErr}})
	for _, f := range []*os.File{clientIn, clientOut, clientErr} {
		_ = f.Close() // the client's
	}
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() {
		done <- acp.Serve(t.Context(), toAgent, fromAgent, acp.Options{Open: r.open, Cwd: r.Root, Version: "test"})
	}()
	said, err := io.ReadAll(stderr)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.Wait(); err != nil {
		t.Error(err)
	}
	if err := <-done; err != nil {
		t.Logf("Serve: %v", err) // the client ends when it has everything
	}
	for _, f := range []*os.File{toAgent, fromAgent, stderr} {
		_ = f.Close()
	}
	return string(said)
}
