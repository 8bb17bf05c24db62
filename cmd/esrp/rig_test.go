package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	goruntime "runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/uuid"
	"go.uber.org/goleak"

	"github.com/seed-dec29ce4/eca/esrp"
	"github.com/seed-dec29ce4/eca/esrp/journal"
	"github.com/seed-dec29ce4/eca/internal/proc"
	"github.com/seed-dec29ce4/eca/internal/testkit"
)

// asProgram makes this executable the program, and asAgent an agent for evaluations.
const (
	asProgram = "esrp-program"
	asAgent   = "esrp-agent"
)

func TestMain(m *testing.M) {
	if code, ok := proc.Supervise(os.Args); ok {
		os.Exit(code)
	}
	if len(os.Args) > 1 && os.Args[1] == asProgram {
		os.Args = append(os.Args[:1], os.Args[2:]...)
		main()
		return
	}
	if len(os.Args) > 1 && os.Args[1] == asAgent {
		echoAgent()
		return
	}
	// With the race detector, each of our children would sleep a second before it ends.
	if os.Getenv("GORACE") == "" {
		_ = os.Setenv("GORACE", "atexit_sleep_ms=0")
	}
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("github.com/dlclark/regexp2.runClock"), testkit.IgnoreNATS())
}

// echoAgent is an agent that answers with its input.
func echoAgent() {
	in := json.NewDecoder(os.Stdin)
	for {
		var r struct {
			ID     json.RawMessage
			Method string
			Params struct{ Input string }
		}
		if in.Decode(&r) != nil {
			return
		}
		result := any(true)
		switch r.Method {
		case "agent/initialize":
			result = map[string]any{"name": "echo", "capabilities": map[string]any{}}
		case "agent/step":
			result = map[string]any{"status": "done", "public_output": "You said: " + r.Params.Input}
		}
		out, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": r.ID, "result": result})
		if err != nil {
			return
		}
		fmt.Println(string(out))
	}
}

const token = "token of the tests"

// home is a separate environment: a working folder, a configuration, a state.
type home struct {
	t         *testing.T
	dir, root string
	env       []string
}

// newHome makes a home. settings are added to the configuration of a model that plays tape.
func newHome(t *testing.T, tape, settings string) *home {
	t.Helper()
	if goruntime.GOOS == "windows" {
		t.Skip("NOT TESTED: processes are ended by signals, and tools run a POSIX shell here; run it on Linux or macOS")
	}
	dir := testkit.TempDir(t)
	h := &home{t: t, dir: dir, root: filepath.Join(dir, "ws")}
	h.write("tape.yaml", "cassette: 1\nturns:\n  - {user: '^Judge', steps: [{text: 'RESULT: PASS'}]}\ndefault:\n  steps:\n"+tape)
	h.write("config/eca/config.json", `{"providers": {"tape": {"api": "cassette", "url": "`+filepath.Join(dir, "tape.yaml")+`", "models": {"m": {}}}},
		"defaultModel": "tape/m", "chat": {"title": false}`+settings+`}`)
	h.write("cache/eca/models-dev.json", `{"acme": {"id": "acme", "models": {}}}`) // recent, so that no other is downloaded
	h.write("ws/a.txt", "hello\n")
	h.env = []string{
		"HOME=" + dir, "PATH=" + os.Getenv("PATH"), "GORACE=atexit_sleep_ms=0", tokenVariable + "=" + token,
		"XDG_CONFIG_HOME=" + filepath.Join(dir, "config"), "XDG_STATE_HOME=" + filepath.Join(dir, "state"), "XDG_CACHE_HOME=" + filepath.Join(dir, "cache"),
	}
	return h
}

func (h *home) write(name, text string) {
	h.t.Helper()
	path := filepath.Join(h.dir, name)
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o600)); err != nil {
		h.t.Fatal(err)
	}
}

// read returns a file of the folder; empty if it does not exist.
func (h *home) read(name string) string {
	data, err := os.ReadFile(filepath.Join(h.root, name))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		h.t.Fatal(err)
	}
	return string(data)
}

// program is the command with arguments, which is not started.
func (h *home) program(args ...string) *exec.Cmd {
	c := exec.Command(os.Args[0], append([]string{asProgram}, args...)...)
	c.Dir, c.Env = h.root, h.env
	return c
}

// ends runs the command until it ends.
func (h *home) ends(args ...string) (code int, stdout, stderr string) {
	h.t.Helper()
	c := h.program(args...)
	var out, errs strings.Builder
	c.Stdout, c.Stderr = &out, &errs
	err := c.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		h.t.Fatal(err)
	}
	return c.ProcessState.ExitCode(), out.String(), errs.String()
}

// running is a process that serves or works.
type running struct {
	t    *testing.T
	cmd  *exec.Cmd
	done chan struct{} // closed when the process is over
	url  string        // of serve
	nats string        // where workers connect to serve

	mu  sync.Mutex // guards log
	log strings.Builder
}

// start starts serve or worker and waits until it is ready.
func (h *home) start(args ...string) *running {
	h.t.Helper()
	r := &running{t: h.t, cmd: h.program(args...), done: make(chan struct{})}
	errs, err := r.cmd.StderrPipe()
	if err == nil {
		err = r.cmd.Start()
	}
	if err != nil {
		h.t.Fatal(err)
	}
	ready := make(chan struct{})
	go func() {
		defer close(r.done)
		in := bufio.NewScanner(errs)
		for in.Scan() {
			r.mu.Lock()
			r.log.WriteString(in.Text() + "\n")
			r.mu.Unlock()
			if at, ok := strings.CutPrefix(in.Text(), "esrp serve: workers at "); ok {
				r.nats = at
			}
			if at, ok := strings.CutPrefix(in.Text(), "esrp serve: serving "); ok {
				r.url = at
				close(ready)
			}
			if strings.HasPrefix(in.Text(), "esrp worker: taking jobs") {
				close(ready)
			}
		}
		_ = r.cmd.Wait()
	}()
	h.t.Cleanup(func() {
		_ = r.cmd.Process.Kill()
		<-r.done
		if h.t.Failed() {
			h.t.Logf("%s said:\n%s", strings.Join(args, " "), r.logText())
		}
		http.DefaultClient.CloseIdleConnections()
	})
	select {
	case <-ready:
	case <-r.done:
		h.t.Fatalf("%s ended: %s", strings.Join(args, " "), r.logText())
	}
	return r
}

func (r *running) logText() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.log.String()
}

// terminate ends the process like a service manager, and returns its exit code.
func (r *running) terminate() int {
	r.t.Helper()
	if err := r.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		r.t.Fatal(err)
	}
	<-r.done
	return r.cmd.ProcessState.ExitCode()
}

// kill kills the process.
func (r *running) kill() {
	r.t.Helper()
	if err := r.cmd.Process.Kill(); err != nil {
		r.t.Fatal(err)
	}
	<-r.done
}

// request writes a request.
func request(service, operation, input, contentType, data, mode string) string {
	text := func(s string) string {
		out, _ := json.Marshal(s) // a string always encodes
		return string(out)
	}
	return `{"esrp_version": "1.0", "request_id": "` + uuid.NewString() + `", "timestamp": "2026-11-22T06:00:00Z", "caller": {"system": "test"},
		"target": {"service": "` + service + `", "operation": "` + operation + `"}, "mode": {"type": "` + mode + `", "timeout_ms": 600000},
		"inputs": [{"name": "` + input + `", "content_type": "` + contentType + `", "data": ` + text(data) + `, "encoding": "utf-8"}]}`
}

// tool writes a request for a call of a tool.
func tool(name, arguments, mode string) string {
	return request("tool", name, "arguments", "application/json", arguments, mode)
}

// call sends a request to the service; the answer must be a valid response.
func (r *running) call(method, path, body string) (int, esrp.Response) {
	r.t.Helper()
	status, out, err := r.try(method, path, body)
	if err != nil {
		r.t.Fatal(err)
	}
	return status, out
}

func (r *running) try(method, path, body string) (int, esrp.Response, error) {
	q, err := http.NewRequestWithContext(r.t.Context(), method, r.url+path, strings.NewReader(body))
	if err != nil {
		return 0, esrp.Response{}, err
	}
	q.Header.Set("Authorization", "Bearer "+token)
	res, err := http.DefaultClient.Do(q)
	if err != nil {
		return 0, esrp.Response{}, err
	}
	defer res.Body.Close()
	doc, err := io.ReadAll(res.Body)
	if err != nil {
		return 0, esrp.Response{}, err
	}
	out, err := esrp.DecodeResponse(doc)
	if err == nil {
		err = out.ValidateStrictly()
	}
	if err != nil {
		err = fmt.Errorf("%d %s: %w", res.StatusCode, doc, err)
	}
	return res.StatusCode, out, err
}

// await reads all of a job's events and returns them with its response.
func (r *running) await(id string) (events string, out esrp.Response) {
	r.t.Helper()
	q, err := http.NewRequestWithContext(r.t.Context(), http.MethodGet, r.url+"/v1/jobs/"+id+"/events", nil)
	if err != nil {
		r.t.Fatal(err)
	}
	q.Header.Set("Authorization", "Bearer "+token)
	res, err := http.DefaultClient.Do(q)
	if err != nil {
		r.t.Fatal(err)
	}
	defer res.Body.Close()
	all, err := io.ReadAll(res.Body)
	if err != nil {
		r.t.Fatal(err)
	}
	_, out = r.call(http.MethodGet, "/v1/jobs/"+id, "")
	return string(all), out
}

// waitFor waits for a condition that another process causes.
func waitFor(t *testing.T, what string, is func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	for !is() {
		select {
		case <-time.After(10 * time.Millisecond):
		case <-ctx.Done():
			t.Fatal("waited in vain for ", what)
		}
	}
}

// chain is the journal.
func (h *home) chain() *journal.Chain {
	c := journal.At(filepath.Join(h.dir, "state", "eca"))
	h.t.Cleanup(c.Close)
	return c
}
