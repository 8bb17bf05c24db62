package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/seed-dec29ce4/eca/editors/fake"
	"github.com/seed-dec29ce4/eca/internal/needs"
	"github.com/seed-dec29ce4/eca/internal/testkit"
	"github.com/seed-dec29ce4/eca/llm/cassette"
)

// asProgram makes the test binary behave as eca itself.
const asProgram = "ECA_TEST_AS_PROGRAM"

func TestMain(m *testing.M) {
	if testkit.ServeLanguage(os.Args) {
		return
	}
	if os.Getenv(asProgram) == "1" || len(os.Args) > 1 && strings.HasPrefix(os.Args[1], "__") { // a stage of package proc
		main()
		return
	}
	os.Exit(m.Run())
}

// provider is a scripted model behind HTTP that records its requests.
type provider struct {
	*httptest.Server

	mu     sync.Mutex // guards bodies
	bodies []string
}

// hello is a cassette whose answer is always the same.
const hello = "cassette: 1\ndefault:\n  steps:\n    - {text: Hello.}\nturns: []\n"

func newProvider(t testing.TB, tape string) *provider {
	t.Helper()
	player, err := cassette.Parse([]byte(tape))
	if err != nil {
		t.Fatal(err)
	}
	p := &provider{}
	p.Server = httptest.NewServer(player.Handler(func(_ string, body []byte) {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.bodies = append(p.bodies, string(body))
	}))
	t.Cleanup(p.Close)
	return p
}

// last returns the input of the last request.
func (p *provider) last(t testing.TB) []map[string]any {
	t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	var body struct{ Input []map[string]any }
	if err := json.Unmarshal([]byte(p.bodies[len(p.bodies)-1]), &body); err != nil {
		t.Fatal(err)
	}
	return body.Input
}

// catalogue is the catalogue of models.dev in the tests.
const catalogue = `{"acme": {"models": {"known": {"tool_call": true, "limit": {"context": 5000, "output": 500}, "cost": {"input": 1.5, "output": 2.25}}}}}`

// place is the environment of a program under test: its folders and variables.
type place struct {
	root string // workspace and working directory
	env  []string
}

func newPlace(t testing.TB, env ...string) place {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	root := filepath.Join(dir, "ws")
	cache := filepath.Join(dir, "cache", "eca")
	if err := errors.Join(os.Mkdir(root, 0o755), os.MkdirAll(cache, 0o755)); err != nil {
		t.Fatal(err)
	}
	// A recent catalogue, so that tests do not download another one.
	if err := os.WriteFile(filepath.Join(cache, "models-dev.json"), []byte(catalogue), 0o600); err != nil {
		t.Fatal(err)
	}
	// By default, a race-built program sleeps for a second when it ends.
	return place{root: root, env: append([]string{
		asProgram + "=1", "GORACE=atexit_sleep_ms=0", "OLLAMA_API_URL=http://127.0.0.1:1", "HOME=" + dir, "PATH=" + os.Getenv("PATH"),
		"XDG_CONFIG_HOME=" + filepath.Join(dir, "config"), "XDG_STATE_HOME=" + filepath.Join(dir, "state"), "XDG_CACHE_HOME=" + filepath.Join(dir, "cache"),
	}, env...)}
}

// unconfiguredPlace returns a place where nothing is configured, so that the demo model answers.
func unconfiguredPlace(t testing.TB) place {
	t.Helper()
	needs.NoOllama(t)
	return newPlace(t, "OLLAMA_API_URL=")
}

// env configures a provider of the OpenAI kind, as a user would.
func (p *provider) env() []string {
	return []string{"OPENAI_API_KEY=sk-test-0123456789abcdef", "OPENAI_API_URL=" + p.URL, `ECA_CONFIG={"chat":{"title":false}}`}
}

func (p place) command(args ...string) *exec.Cmd {
	self, err := os.Executable()
	if err != nil {
		panic(err)
	}
	cmd := exec.Command(self, args...)
	cmd.Dir, cmd.Env = p.root, p.env
	return cmd
}

// process is a running `eca server` with a fake editor on its pipes.
type process struct {
	*fake.Editor
	cmd    *exec.Cmd
	stdin  io.Closer
	stderr *bytes.Buffer
}

func (p place) serve(t testing.TB, args ...string) *process {
	t.Helper()
	return connect(t, p.command(append([]string{"server"}, args...)...))
}

// startPiped starts a program with pipes for its input and output.
func startPiped(t testing.TB, cmd *exec.Cmd) (stdin io.WriteCloser, stdout io.Reader) {
	t.Helper()
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err = cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return stdin, stdout
}

// connect starts a server and attaches a fake editor to its pipes.
func connect(t testing.TB, cmd *exec.Cmd) *process {
	t.Helper()
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	stdin, stdout := startPiped(t, cmd)
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	return &process{Editor: fake.Connect(t, stdout, stdin), cmd: cmd, stdin: stdin, stderr: &stderr}
}

// wait waits for the process to end and returns its exit code.
func (p *process) wait(t testing.TB) int {
	t.Helper()
	done := make(chan struct{})
	go func() {
		_ = p.cmd.Wait()
		close(done)
	}()
	select {
	case <-done:
	case <-time.After(2 * time.Minute):
		_ = p.cmd.Process.Signal(syscall.SIGQUIT) // it prints its goroutines
		time.AfterFunc(time.Minute, func() { _ = p.cmd.Process.Kill() })
		<-done
		t.Fatalf("the program does not end:\n%s", p.stderr)
	}
	return p.cmd.ProcessState.ExitCode()
}

// kill9 kills the process without warning.
func (p *process) kill9(t testing.TB) {
	t.Helper()
	if err := p.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = p.cmd.Wait()
}

// runProgram runs the program to its end.
func runProgram(t testing.TB, p place, stdin string, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	return runCommand(t, p.command(args...), stdin)
}

// runScript runs a shell script at a place.
func runScript(t testing.TB, p place, script string, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	cmd := exec.Command("sh", append([]string{script}, args...)...)
	cmd.Dir, cmd.Env = p.root, p.env
	return runCommand(t, cmd, "")
}

func runCommand(t testing.TB, cmd *exec.Cmd, stdin string) (stdout, stderr string, code int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	cmd.Stdin = strings.NewReader(stdin)
	detachTerminal(cmd) // no user can be asked
	var out, errOut bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errOut
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		_ = cmd.Wait()
		close(done)
	}()
	select {
	case <-done:
	case <-ctx.Done():
		_ = cmd.Process.Kill()
		<-done
		t.Fatalf("%v does not end\nstdout: %s\nstderr: %s", cmd.Args, out.String(), errOut.String())
	}
	return out.String(), errOut.String(), cmd.ProcessState.ExitCode()
}

// hookOf is a configuration with a hook for tool calls that has the given matcher.
func hookOf(matcher string) string {
	return `{"hooks": {"guard": {"type": "preToolCall", "matcher": ` + matcher + `, "actions": [{"type": "shell", "shell": "exit 2"}]}}}`
}
