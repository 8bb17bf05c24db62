package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/seed-dec29ce4/eca/ecp/report"
	"github.com/seed-dec29ce4/eca/internal/needs"
	"github.com/seed-dec29ce4/eca/internal/proc"
)

// checkExited checks that the processes whose ids are in a file have ended.
func checkExited(t *testing.T, file string) {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	ids := strings.Fields(string(data))
	if len(ids) == 0 {
		t.Error("no process was started")
	}
	if len(proc.NewPool("x", 0).Gaps()) > 0 {
		t.Skip("NOT TESTED: this system does not find processes that left their group; run it on Linux")
	}
	for _, id := range ids {
		pid, err := strconv.Atoi(id)
		if err != nil {
			t.Fatal(err)
		}
		for end := time.Now().Add(time.Minute); proc.Alive(pid); time.Sleep(10 * time.Millisecond) {
			if time.Now().After(end) {
				t.Errorf("process %d still runs", pid)
				break
			}
		}
	}
}

// Each kind of misbehaviour of an agent becomes an error that names the cause, and leaves no process.
// Noise on its output and child processes do not count as errors.
func TestHostile(t *testing.T) {
	needs.Long(t)
	isolateEnvironment(t)
	for mode, want := range map[string]struct{ kind, say string }{
		"hang":         {"timeout", "no answer within the time limit"},
		"unterminated": {"timeout", "no answer within the time limit"},
		"flood":        {"", ""}, // either of two limits may be reached first
		"long":         {"exit", "64 MiB"},
		"crash":        {"exit", "exit code 9: out of memory"},
		"kill":         {"exit", "the agent"},
		"status:x":     {"protocol", "status"},
		"nan":          {"protocol", "invalid JSON"},
		"closed":       {"exit", "closed its output"},
		"stopped":      {"timeout", "no answer within the time limit"},
		"unread":       {"timeout", "no answer within the time limit"},
		"stderr-flood": {"timeout", "its stderr ends: log log"},
	} {
		t.Run(mode, func(t *testing.T) {
			pids := filepath.Join(t.TempDir(), "pids")
			target := fmt.Sprintf("echo $$ > '%s'; exec %s", pids, agentTarget(t, mode))
			m := manifest(t, target, scenario("bad", has("x"), strings.Repeat("x", 1<<20)))
			out, r := evaluateWithLimit(t, m, want.kind == "timeout" || mode == "flood", want.say)
			if out.code != exitError || len(r.Errors) != 1 || (want.kind != "" && r.Errors[0].Kind != want.kind) || !strings.Contains(r.Errors[0].Message, want.say) {
				t.Errorf("exit %d: %+v", out.code, r.Errors)
			}
			if len(out.out) > 3<<20 { // it includes the input
				t.Errorf("a report of %d bytes", len(out.out))
			}
			checkExited(t, pids)
		})
	}
	t.Run("noise", func(t *testing.T) {
		if _, r := evaluateManifest(t, manifest(t, agentTarget(t, "noise"), scenario("a", has("x"), "x"))); r.Passed != 1 || !strings.Contains(r.Scenarios[0].Notes[0], "20000") {
			t.Errorf("%+v", r.Scenarios[0])
		}
	})
	t.Run("exit", func(t *testing.T) {
		_, r := evaluateManifest(t, manifest(t, agentTarget(t, "exit"), scenario("a", has("x"), "x")))
		if len(r.Errors) != 1 || !strings.Contains(r.Errors[0].Message, "exit code 3: no config found") {
			t.Errorf("%+v", r.Errors)
		}
	})
	t.Run("missing", func(t *testing.T) {
		_, r := evaluateManifest(t, manifest(t, "/does/not/exist", scenario("a", has("x"), "x")))
		if len(r.Errors) != 1 || !strings.Contains(r.Errors[0].Message, "exit code 127") {
			t.Errorf("%+v", r.Errors)
		}
	})
	t.Run("fork", func(t *testing.T) {
		pids := filepath.Join(t.TempDir(), "pids")
		if _, r := evaluateManifest(t, manifest(t, agentTarget(t, "fork", pids), scenario("a", has("x"), "x"))); r.Passed != 1 {
			t.Errorf("%+v", r.Errors)
		}
		checkExited(t, pids)
	})
}

// evaluateWithLimit evaluates a manifest with a time limit; met says whether the test expects that
// the limit is reached. If so, the limit is short, and longer ones follow only while the error does
// not contain say, because the machine may have been too busy.
func evaluateWithLimit(t *testing.T, manifest string, met bool, say string) (result, *report.Report) {
	t.Helper()
	if !met {
		return evaluateManifest(t, manifest, "--timeout", "120")
	}
	for _, limit := range []string{"2", "20"} {
		out, r := evaluateManifest(t, manifest, "--timeout", limit)
		if len(r.Errors) == 1 && strings.Contains(r.Errors[0].Message, say) {
			return out, r
		}
	}
	return evaluateManifest(t, manifest, "--timeout", "120")
}

// An answer with another id than the call's is an error at once, over each transport, and not only
// when the time is over. The next scenario runs.
func TestWrongAndStringifiedIDsAreErrorsAtOnce(t *testing.T) {
	isolateEnvironment(t)
	for form, say := range map[string]string{
		`"{}"`: `the answer has the id "`, `{}.0`: "the answer has the id", `{}0`: "the answer has the id", `-1`: "the answer has the id -1",
		`null`: "the answer has the id null", `"x"`: `the answer has the id "x"`, `[{}]`: "the answer has the id", `none`: "the answer has no id",
	} {
		for _, transport := range []string{"stdio", "json", "events"} {
			t.Run(transport+" "+form, func(t *testing.T) {
				target := agentTarget(t, "id:"+form)
				if transport != "stdio" {
					target = newWrongIDServer(t, form, transport == "events")
				}
				_, r := evaluateManifest(t, manifest(t, target, scenario("a", has("x"), "x")+scenario("b", has("x"), "x")), "--timeout", "20")
				if len(r.Errors) != 2 || r.Errors[0].Kind != "protocol" || !strings.Contains(r.Errors[0].Message, say) || r.Errors[1].Scenario != "b" {
					t.Errorf("%+v", r.Errors)
				}
			})
		}
	}
}

// newWrongIDServer starts a server that answers steps with another id than the request's. Its streams
// stay open.
func newWrongIDServer(t *testing.T, form string, events bool) (url string) {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var call agentRequest
		body, _ := io.ReadAll(r.Body)
		_ = json.Unmarshal(body, &call)
		answer := withID(form, string(call.ID))
		switch call.Method {
		case "agent/initialize":
			answer = fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{"name":"a","capabilities":{}}}`, call.ID)
		case "agent/reset":
			answer = fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":true}`, call.ID)
		}
		if !events {
			fmt.Fprint(w, answer)
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprintf(w, "data: %s\n\n", answer)
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	}))
	t.Cleanup(server.Close)
	return server.URL + "/ecp"
}

// A killed run leaves no agent.
func TestKilled(t *testing.T) {
	isolateEnvironment(t)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	pids := filepath.Join(t.TempDir(), "pids")
	cmd := exec.Command(self, "ecp", "run", "--manifest", manifest(t, agentTarget(t, "deaf", pids)+" & "+agentTarget(t, "hang"), scenario("a", has("x"), "x")))
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		if data, err := os.ReadFile(pids); err == nil && len(data) > 0 {
			break
		}
		if time.Now().After(end) {
			t.Fatal("the agent did not start")
		}
	}
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	checkExited(t, pids)
}

// Any misbehaviour of a server ends as an error that names the cause, without further waiting.
func TestHostileServers(t *testing.T) {
	needs.Long(t)
	isolateEnvironment(t)
	garbage, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer garbage.Close()
	go func() {
		for {
			c, err := garbage.Accept()
			if err != nil {
				return
			}
			_, _ = c.Read(make([]byte, 1<<10)) // a server that speaks first does not read the request
			_, _ = c.Write([]byte("SSH-2.0-OpenSSH\r\n"))
			go func() { // without reading, closing would cause a reset, which can overtake the text
				defer c.Close()
				_ = c.(*net.TCPConn).CloseWrite() //nolint:forcetypeassert // of a TCP listener
				_, _ = io.Copy(io.Discard, c)
			}()
		}
	}()
	flush := func(w http.ResponseWriter) { w.(http.Flusher).Flush() }
	for name, c := range map[string]struct {
		serve     func(w http.ResponseWriter, r *http.Request)
		url       string // instead of a server
		kind, say string
	}{
		"stalls":               {serve: func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }, kind: "timeout", say: "no answer within the time limit"},
		"stalls after headers": {serve: func(w http.ResponseWriter, r *http.Request) { flush(w); <-r.Context().Done() }, kind: "timeout", say: "no answer within the time limit"},
		"events without end": {serve: func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			for r.Context().Err() == nil {
				fmt.Fprint(w, "data: {\"jsonrpc\":\"2.0\",\"method\":\"progress\"}\n\n")
			}
		}, kind: "timeout", say: "JSON that answers nothing"},
		"a body without end": {serve: func(w http.ResponseWriter, r *http.Request) {
			for r.Context().Err() == nil {
				_, _ = w.Write(make([]byte, 1<<20))
			}
		}, say: "agent/initialize"}, // either of two limits may be reached first
		"breaks off": {serve: func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "100")
			fmt.Fprint(w, "{")
			flush(w)
			panic(http.ErrAbortHandler)
		}, kind: "http", say: "the answer was interrupted"},
		"redirects": {serve: func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, r.URL.String(), http.StatusMovedPermanently)
		}, kind: "http", say: "redirects (301)"},
		"an error page": {serve: func(w http.ResponseWriter, _ *http.Request) {
			http.Error(w, strings.Repeat("down ", 1<<20), http.StatusBadGateway)
		}, kind: "http", say: "502"},
		"no HTTP": {url: "http://" + garbage.Addr().String(), kind: "http", say: "malformed"},
		"nobody":  {url: "http://127.0.0.1:1/ecp", kind: "http", say: "refused"},
	} {
		t.Run(name, func(t *testing.T) {
			target := c.url
			if c.serve != nil {
				server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					_, _ = io.Copy(io.Discard, r.Body) // before that, a server does not notice that the client disconnected
					c.serve(w, r)
				}))
				defer server.Close()
				target = server.URL + "/ecp"
			}
			out, r := evaluateWithLimit(t, manifest(t, target, scenario("bad", has("x"), "x")), c.kind != "http", c.say)
			if out.code != exitError || len(r.Errors) != 1 || c.kind != "" && r.Errors[0].Kind != c.kind || !strings.Contains(r.Errors[0].Message, c.say) || len(out.out) > 1<<16 {
				t.Errorf("exit %d, %d bytes: %+v", out.code, len(out.out), r.Errors)
			}
		})
	}
}

// An agent that uses up its memory is one error, and the other attempts continue.
func TestMemoryIsUsedUp(t *testing.T) {
	isolateEnvironment(t)
	t.Setenv("MY_KEY", "x")
	agent := shellAgent(t, "case $line in *hoard*) ulimit -v 100000; a=xxxxxxxxxxxxxxxx; while :; do a=$a$a; done ;; esac")
	_, r := evaluateManifest(t, manifest(t, "sh "+agent, scenario("a", has("x"), "x")+scenario("b", has("x"), "hoard")+scenario("c", has("x"), "x")+scenario("d", has("x"), "x")), "-j", "2")
	if r.Counts.Passed != 3 || r.Counts.Error != 1 || len(r.Errors) != 1 || r.Errors[0].Scenario != "b" || !strings.Contains(r.Errors[0].Message, "the agent ended") {
		t.Errorf("%+v: %s", r.Counts, reasons(r))
	}
}
