package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/seed-dec29ce4/eca/ecp"
	"github.com/seed-dec29ce4/eca/internal/needs"
)

const ecpCassette = `
cassette: 1
turns:
  - user: read
    steps:
      - calls: [{id: r, tool: eca__read_file, arguments: {path: "${workspace}/notes.txt"}}]
      - {text: 'It says ${result:(?s)(.*)} – 😀'}
  - user: wait
    steps: [{text: "so far ", hang: true}]
  - user: write
    steps:
      - calls: [{id: w, tool: eca__write_file, arguments: {path: "${workspace}/made.txt", content: x}}]
      - {text: I could not.}
  - user: ask
    steps:
      - calls: [{id: q, tool: eca__ask_user, arguments: {question: "Which color?"}}]
      - {text: "So it is: ${result:(?s)(.*)}"}
default: {steps: [{text: hello}]}
`

// ecpAgent is a running "eca ecp" on pipes.
type ecpAgent struct {
	t      testing.TB
	cmd    *exec.Cmd
	in     io.WriteCloser
	out    *bufio.Reader
	stderr *bytes.Buffer
	lastID int
}

func startECP(t testing.TB, here place, args ...string) *ecpAgent {
	t.Helper()
	cmd := here.command(append([]string{"ecp"}, args...)...)
	a := &ecpAgent{t: t, cmd: cmd, stderr: &bytes.Buffer{}}
	cmd.Stderr = a.stderr
	in, out := startPiped(t, cmd)
	a.in, a.out = in, bufio.NewReader(out)
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	return a
}

func (a *ecpAgent) send(method string, params string) {
	a.t.Helper()
	a.lastID++
	if _, err := fmt.Fprintf(a.in, `{"jsonrpc": "2.0", "method": %q, "params": %s, "id": %d}`+"\n", method, params, a.lastID); err != nil {
		a.t.Fatal(err)
	}
}

func (a *ecpAgent) call(method string, params string) ecp.Response {
	a.t.Helper()
	a.send(method, params)
	line, err := a.out.ReadBytes('\n')
	if err != nil {
		a.t.Fatalf("%v; stderr: %s", err, a.stderr)
	}
	res, err := ecp.ParseResponse(line)
	if err != nil || !res.Answers(json.RawMessage(fmt.Sprint(a.lastID))) {
		a.t.Fatalf("%v: %s", err, line)
	}
	return res
}

func (a *ecpAgent) step(input string) ecp.StepResult {
	a.t.Helper()
	res := a.call(ecp.MethodStep, fmt.Sprintf(`{"input": %q}`, input))
	if res.Err != nil {
		a.t.Fatal(res.Err)
	}
	step, err := ecp.ParseStepResult(res.Result)
	if err != nil {
		a.t.Fatal(err)
	}
	return step
}

// A runtime starts the program, which exits when its stdin is closed.
func TestECP(t *testing.T) {
	p := newProvider(t, ecpCassette)
	here := newPlace(t, p.env()...)
	if err := os.WriteFile(filepath.Join(here.root, "notes.txt"), []byte("42"), 0o644); err != nil {
		t.Fatal(err)
	}
	a := startECP(t, here)
	if res := a.call(ecp.MethodInitialize, `{"config": {"approval": "none"}}`); res.Err != nil {
		t.Fatal(res.Err)
	}
	if step := a.step("read"); !strings.Contains(*step.PublicOutput, "42") || !strings.HasSuffix(*step.PublicOutput, " – 😀") || step.ToolCalls[0].Name != "read_file" {
		t.Errorf("%+v", step)
	}
	if step := a.step("write"); *step.PublicOutput != "I could not." || step.ToolCalls[0].Extra["refused"] == nil {
		t.Errorf("%+v", step)
	}
	if step := a.step("ask"); step.Status != ecp.Paused || *step.PublicOutput != "Which color?" {
		t.Errorf("%+v", step)
	}
	if step := a.step("blue"); step.Status != ecp.Done || !strings.Contains(*step.PublicOutput, "blue") {
		t.Errorf("%+v", step)
	}
	if res := a.call(ecp.MethodInitialize, `{"config": {"model": "nowhere/none"}}`); res.Err == nil || !strings.Contains(res.Err.Message, "nowhere/none") {
		t.Errorf("%+v", res)
	}
	_ = a.in.Close()
	if err := a.cmd.Wait(); err != nil || a.stderr.Len() > 0 {
		t.Errorf("%v, stderr: %s", err, a.stderr)
	}
}

// Calls that are piped in together are answered, and nothing else is written to stdout.
func TestECPPiped(t *testing.T) {
	p := newProvider(t, ecpCassette)
	in := `{"jsonrpc":"2.0","method":"agent/initialize","params":{"config":{}},"id":1}` + "\nnoise\n" + `{"jsonrpc":"2.0","method":"nope","id":3}`
	out, errOut, code := runProgram(t, newPlace(t, p.env()...), in, "ecp")
	if code != 0 || errOut != "" {
		t.Errorf("exit %d, stderr %s", code, errOut)
	}
	for _, want := range []string{`"id":1,"result":{"name":"eca"`, `"id":null,"error":{"code":-32700`, `"id":3,"error":{"code":-32601`} {
		if !strings.Contains(out, want) {
			t.Errorf("%s is missing in:\n%s", want, out)
		}
	}
	for line := range strings.Lines(out) {
		if _, err := ecp.ParseResponse([]byte(line)); err != nil {
			t.Errorf("%v: %s", err, line)
		}
	}
}

// The runtime's limit is kept, and the answer has the results so far.
func TestECPTimeout(t *testing.T) {
	needs.Long(t)
	p := newProvider(t, ecpCassette)
	a := startECP(t, newPlace(t, append(p.env(), ecp.TimeoutVariable+"=2")...))
	if step := a.step("wait"); step.Status != ecp.Paused || step.StopReason != ecp.StopTime {
		t.Errorf("%+v", step)
	}
	step := a.step("hello")
	for n := 0; step.StopReason == ecp.StopTime && n < 30; n++ { // the machine is busy
		step = a.step("hello")
	}
	if *step.PublicOutput != "hello" {
		t.Errorf("%+v", step)
	}
}

// An invalid limit is reported, and the agent works without a limit.
func TestECPBadTimeout(t *testing.T) {
	for _, bad := range []string{"soon", "0", "-1", "NaN", "Inf", "1e300"} {
		if _, err := rpcLimit(bad); err == nil {
			t.Errorf("%s: accepted", bad)
		}
	}
	if limit, err := rpcLimit("2.5"); err != nil || limit != 2500*time.Millisecond {
		t.Errorf("%v, %v", limit, err)
	}
	p := newProvider(t, ecpCassette)
	a := startECP(t, newPlace(t, append(p.env(), ecp.TimeoutVariable+"=soon")...))
	if step := a.step("hello"); *step.PublicOutput != "hello" {
		t.Errorf("%+v", step)
	}
	_ = a.in.Close()
	if err := a.cmd.Wait(); err != nil || !strings.Contains(a.stderr.String(), ecp.TimeoutVariable) {
		t.Errorf("%v, stderr: %s", err, a.stderr)
	}
}

// A signal ends a running step, and then the program.
func TestECPSignal(t *testing.T) {
	needs.POSIX(t)
	p := newProvider(t, ecpCassette)
	a := startECP(t, newPlace(t, p.env()...))
	a.step("hello")
	a.send(ecp.MethodStep, `{"input": "wait"}`)
	if err := a.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	// If it hangs, it dies with a dump of its goroutines, and the test run continues.
	hung := time.AfterFunc(time.Minute, func() { _ = a.cmd.Process.Signal(syscall.SIGQUIT) })
	defer hung.Stop()
	if err := a.cmd.Wait(); err != nil {
		t.Errorf("%v, stderr: %s", err, a.stderr)
	}
}

// A runtime need not read stderr, because its output is bounded.
func TestECPStderrIsBounded(t *testing.T) {
	var out bytes.Buffer
	b := &boundedWriter{w: &out, remaining: 100}
	for range 1000 {
		if n, err := b.Write([]byte("0123456789\n")); n != 11 || err != nil {
			t.Fatal(n, err)
		}
	}
	if out.Len() > 100 || out.Len() == 0 {
		t.Errorf("%d bytes", out.Len())
	}
}

// serveECP starts "eca ecp --http" and returns its URL.
func serveECP(t *testing.T, here place, args ...string) (url string, cmd *exec.Cmd) {
	t.Helper()
	cmd = here.command(append([]string{"ecp", "--http", "127.0.0.1:0"}, args...)...)
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	line, err := bufio.NewReader(stderr).ReadString('\n')
	_, url, ok := strings.Cut(strings.TrimSpace(line), "serving ")
	if err != nil || !ok {
		t.Fatalf("%q: %v", line, err)
	}
	go func() { _, _ = io.Copy(io.Discard, stderr) }()
	return url, cmd
}

// The program over HTTP.
func TestECPHTTP(t *testing.T) {
	p := newProvider(t, ecpCassette)
	url, cmd := serveECP(t, newPlace(t, append(p.env(), tokenVariable+"=abc")...))
	post := func(token string) (int, string) {
		req, err := http.NewRequest(http.MethodPost, url, strings.NewReader(`{"jsonrpc":"2.0","method":"agent/step","params":{"input":"hi"},"id":1}`))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer "+token)
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		body, err := io.ReadAll(res.Body)
		if err != nil {
			t.Fatal(err)
		}
		return res.StatusCode, string(body)
	}
	if status, _ := post("wrong"); status != http.StatusUnauthorized {
		t.Errorf("%d", status)
	}
	if status, body := post("abc"); status != http.StatusOK || !strings.Contains(body, `"public_output":"hello"`) {
		t.Errorf("%d %s", status, body)
	}
	if runtime.GOOS == "windows" {
		return
	}
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
}

func TestECPWrongUsage(t *testing.T) {
	here := newPlace(t)
	for _, args := range [][]string{{"ecp", "extra"}, {"ecp", "--http", "8765"}, {"ecp", "--http", "0.0.0.0:0"}, {"ecp", "--htpp", "x"}} {
		if out, errOut, code := runProgram(t, here, "", args...); code != 2 || errOut == "" || out != "" {
			t.Errorf("%q: exit %d, stdout %q, stderr %q", args, code, out, errOut)
		}
	}
}

// referenceRuntimes returns the commands of the reference runtimes: those in ECA_ECP_RUNTIME, or the one
// that is installed for python3. The versions are 0.4, which sends no protocol version, and 0.10, which
// speaks 1.0.
func referenceRuntimes(t *testing.T) (out [][]string) {
	t.Helper()
	for _, path := range filepath.SplitList(os.Getenv("ECA_ECP_RUNTIME")) {
		out = append(out, []string{path})
	}
	if out == nil && exec.Command("python3", "-c", "import ecp_runtime").Run() == nil {
		out = append(out, []string{"python3", "-m", "ecp_runtime.cli"})
	}
	if out == nil {
		t.Skip("NOT TESTED against the reference runtimes: set ECA_ECP_RUNTIME to their commands, with a colon between them; see CONTRIBUTING.md")
	}
	return out
}

// The reference runtime finds the agent conformant on both transports, and its graders get the
// expected data.
func TestECPReference(t *testing.T) {
	for i, reference := range referenceRuntimes(t) {
		t.Run(fmt.Sprintf("reference %d", i+1), func(t *testing.T) {
			t.Log(reference)
			needs.POSIX(t)
			testECPReference(t, reference)
		})
	}
}

func testECPReference(t *testing.T, reference []string) {
	p := newProvider(t, ecpCassette)
	here := newPlace(t, p.env()...)
	if err := os.WriteFile(filepath.Join(here.root, "notes.txt"), []byte("42"), 0o644); err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	url, _ := serveECP(t, here)
	run := func(args ...string) map[string]any {
		t.Helper()
		cmd := exec.Command(reference[0], append(reference[1:], args...)...)
		cmd.Dir, cmd.Env = here.root, append(here.env, "no_proxy=127.0.0.1", "ECP_RPC_TIMEOUT=120")
		var out, errOut bytes.Buffer
		cmd.Stdout, cmd.Stderr = &out, &errOut
		err := cmd.Run()
		var failed *exec.ExitError
		if err != nil && !errors.As(err, &failed) {
			t.Fatal(err)
		}
		var report map[string]any
		if err := json.Unmarshal(out.Bytes(), &report); err != nil {
			t.Fatalf("%q: %v\n%s\n%s", args, err, out.String(), errOut.String())
		}
		if log := strings.ToLower(errOut.String()); strings.Contains(log, "legacy") || strings.Contains(log, "capabilit") {
			t.Errorf("it warns: %s", log)
		}
		return report
	}
	for name, target := range map[string]string{"stdio": "exec " + self + " ecp", "http": url} {
		t.Run(name, func(t *testing.T) {
			report := run("conformance", "--target", target, "--json")
			if report["conformant"] != true || report["passed"] != 3.0 || report["failed"] != 0.0 {
				t.Errorf("%v", report)
			}
			manifest := filepath.Join(t.TempDir(), "manifest.yaml")
			if err := os.WriteFile(manifest, fmt.Appendf(nil, ecpManifest, target), 0o644); err != nil {
				t.Fatal(err)
			}
			report = run("run", "--manifest", manifest, "--json")
			if report["passed"] != 9.0 || report["failed"] != 0.0 {
				raw, _ := json.MarshalIndent(report, "", " ")
				t.Errorf("%s", raw)
			}
			if audit, ok := report["audit"].(map[string]any); ok { // since 0.10
				agent, _ := audit["agent"].(map[string]any)
				if usage, _ := audit["usage"].(map[string]any); agent["protocol_version"] != "1.0" || usage["input_tokens"] == nil {
					t.Errorf("%v", audit)
				}
			}
		})
	}
}

// ecpManifest is a manifest that the reference can read too.
const ecpManifest = `
manifest_version: v1
name: eca
target: %q
scenarios:
  - name: a tool
    steps:
      - input: read
        graders:
          - {type: text_match, condition: contains, value: "42"}
          - {type: text_match, condition: regex, pattern: "😀$"}
          - {type: text_match, field: evaluation_context, condition: contains, value: "read_file"}
          - {type: text_match, field: private_thought, condition: contains, value: "Stop reason: end"}
          - {type: tool_usage, tool_name: read_file}
  - name: a refusal
    steps:
      - input: write
        graders:
          - {type: text_match, field: evaluation_context, condition: contains, value: "refused: "}
          - {type: text_match, condition: equals, value: "I could not."}
  - name: a question
    steps:
      - input: ask
        graders:
          - {type: text_match, condition: equals, value: "Which color?"}
      - input: blue
        graders:
          - {type: text_match, condition: contains, value: "blue"}
`
