package main

import (
	"bufio"
	"bytes"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/seed-dec29ce4/eca/internal/nodetest"
)

const serveTape = `cassette: 1
turns:
  - user: write
    steps:
      - calls: [{id: c1, tool: eca__write_file, arguments: {path: "${workspace}/out.txt", content: "hello"}}]
      - text: Written.
  - user: hang
    steps: [{text: "one two three four", delay: 1h}]
default: {steps: [{text: Hello.}]}
`

// serving starts `eca serve` and returns its URL. It is interrupted at the end of the test,
// and must end well.
func serving(t *testing.T, p place, token string) (url string) {
	t.Helper()
	p.env = append(p.env, serveTokenVariable+"="+token)
	cmd := p.command("serve", "--listen", "127.0.0.1:0", "--log-level", "error")
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewReader(stderr)
	line, err := lines.ReadString('\n')
	url, ok := strings.CutPrefix(strings.TrimSpace(line), "eca serve: serving ")
	if !ok {
		rest, _ := io.ReadAll(lines)
		_ = cmd.Wait()
		t.Fatalf("%q %v\n%s", line, err, rest)
	}
	t.Cleanup(func() {
		if err := cmd.Process.Signal(os.Interrupt); err != nil { // Windows has none
			_ = cmd.Process.Kill()
		}
		said, _ := io.ReadAll(lines)
		if err := cmd.Wait(); err != nil && !strings.Contains(err.Error(), "exit status 1") || len(said) > 0 {
			t.Errorf("eca serve ended with %v\n%s", err, said)
		}
	})
	return url
}

// Every face is behind the token; the card is not. Others need a token to listen for.
func TestServe(t *testing.T) {
	provider := newProvider(t, serveTape)
	p := newPlace(t, provider.env()...)
	url := serving(t, p, "s3cret")
	for _, c := range []struct {
		path, token string
		want        int
	}{
		{"/.well-known/agent-card.json", "", 200},
		{"/a2a", "", 401},
		{"/e2a", "", 401},
		{"/ecp", "", 401},
		{"/", "", 401},
		{"/a2a", "s3cret", 405},
		{"/e2a", "s3cret", 426},
		{"/ecp", "s3cret", 405},
		{"/", "s3cret", 404},
	} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url+c.path, nil)
		if err != nil {
			t.Fatal(err)
		}
		if c.token != "" {
			req.Header.Set("Authorization", "Bearer "+c.token)
		}
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		_ = res.Body.Close()
		if res.StatusCode != c.want {
			t.Errorf("GET %s with token %q: %d, want %d", c.path, c.token, res.StatusCode, c.want)
		}
	}
	p.env = append(p.env, serveTokenVariable+"=")
	out, err := p.command("serve", "--listen", "0.0.0.0:0").CombinedOutput()
	if err == nil || !strings.Contains(string(out), serveTokenVariable) {
		t.Errorf("an open address without a token: %v\n%s", err, out)
	}
}

// The client of A2A's own SDK completes send, stream, a decision and cancel.
func TestA2AClient(t *testing.T) {
	node, modules := nodetest.Tools(t, os.Getenv)
	if _, err := os.Stat(filepath.Join(modules, "@a2a-js")); err != nil {
		t.Skip("NOT TESTED: @a2a-js/sdk is not installed in ECA_NODE_TOOLS; run: cp .ci/node/package*.json DIR && npm ci --ignore-scripts --prefix DIR")
	}
	provider := newProvider(t, serveTape)
	p := newPlace(t, provider.env()...)
	url := serving(t, p, "s3cret")
	cmd := exec.CommandContext(t.Context(), node, filepath.Join("testdata", "a2a-client.cjs"), modules, url, "s3cret")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v\n%s%s", err, out, stderr.String())
	}
	want := `send TASK_STATE_COMPLETED Hello.
stream task,statusUpdate,artifactUpdate,statusUpdate Hello.
asked TASK_STATE_INPUT_REQUIRED
decided TASK_STATE_COMPLETED
cancel TASK_STATE_CANCELED
end
`
	if got := string(out); got != want {
		t.Errorf("got\n%s\nwant\n%s\n%s", got, want, stderr.String())
	}
	if text, err := os.ReadFile(filepath.Join(p.root, "out.txt")); string(text) != "hello" {
		t.Errorf("%q %v", text, err)
	}
}
