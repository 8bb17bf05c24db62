package main

import (
	"encoding/json"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/seed-dec29ce4/eca/esrp"
	"github.com/seed-dec29ce4/eca/esrp/journal"
)

// Invalid settings end the program at once, with the reason.
func TestServeRefusesToStart(t *testing.T) {
	h := newHome(t, "    - {text: hi}\n", "")
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	port := taken.Addr().String()
	for _, c := range []struct {
		args string
		code int
		says string
	}{
		{"serve --listen " + port, 1, "in use"},
		{"serve --listen 127.0.0.1:0 --nats-listen " + port, 1, "in use"},
		{"serve --listen nonsense", 1, "--listen"},
		{"serve --listen 127.0.0.1:0 --nats-listen 127.0.0.1:x", 1, "x"},
		{"serve --nats nats://127.0.0.1:1 --nats-listen 127.0.0.1:0", 2, "Usage"},
		{"serve --frob", 2, "frob"},
		{"serve more", 2, "Usage"},
		{"serve --jobs 0", 2, "--jobs"},
		{"serve --rate -1", 2, "--rate"},
		{"worker", 2, "nats"},
		{"worker --nats nats://%zz", 1, "NATS"},
		{"worker --nats nats://127.0.0.1:1 --jobs 0", 2, "--jobs"},
	} {
		if code, out, errs := h.ends(strings.Fields(c.args)...); code != c.code || out != "" || !strings.Contains(errs, c.says) {
			t.Errorf("%s: %d %q %q", c.args, code, out, errs)
		}
	}
	without := *h
	without.env = append(slices.Clone(h.env), tokenVariable+"=")
	if code, _, errs := without.ends("serve", "--listen", "127.0.0.1:0"); code != 1 || !strings.Contains(errs, tokenVariable) {
		t.Errorf("without a token: %d %q", code, errs)
	}
	s := h.start("serve", "--listen", "127.0.0.1:0", "--nats-listen", "127.0.0.1:0")
	if code, _, errs := h.ends("serve", "--listen", "127.0.0.1:0"); code != 1 || !strings.Contains(errs, "another service is using") {
		t.Errorf("a second one: %d %q", code, errs)
	}
	wrong := *h
	wrong.env = append(slices.Clone(h.env), tokenVariable+"=another")
	if code, _, errs := wrong.ends("worker", "--nats", s.nats); code != 1 || !strings.Contains(strings.ToLower(errs), "authorization") {
		t.Errorf("a worker with another token: %d %q", code, errs)
	}
	if code := s.terminate(); code != 0 {
		t.Errorf("it ended with %d", code)
	}
}

// The operations as callers see them, and their records in the journal.
func TestServeOperations(t *testing.T) {
	h := newHome(t, `    - {text: reading, calls: [{id: c1, tool: eca__read_file, arguments: {path: "${workspace}/a.txt"}}]}
    - {text: "it says ${result:hello}"}
`, `, "toolCall": {"approval": {"allow": {"eca__write_file": {}, "eca__read_file": {}, "eca__directory_tree": {}}}}`)
	s := h.start("serve", "--listen", "127.0.0.1:0")

	status, out := s.call("POST", "/v1/execute", request("eca", "chat.send", "prompt", "text/plain", "what is in it?", "sync"))
	if status != http.StatusOK || len(out.Outputs) != 2 || out.Outputs[0].Data != "it says hello" {
		t.Fatalf("chat.send: %d %+v", status, out)
	}
	chat := out.Outputs[1].Data

	file := filepath.Join(h.root, "a.txt")
	if status, out := s.call("POST", "/v1/execute", tool("eca__read_file", `{"path": "`+file+`"}`, "sync")); status != http.StatusOK || !strings.Contains(out.Outputs[0].Data, "hello") {
		t.Errorf("a tool that reads: %d %+v", status, out)
	}
	// Allowed by the configuration: it writes, and the change is recorded.
	status, out = s.call("POST", "/v1/execute", tool("eca__write_file", `{"path": "`+file+`", "content": "changed\n"}`, "sync"))
	if status != http.StatusOK || h.read("a.txt") != "changed\n" {
		t.Errorf("a tool that writes: %d %+v, %q", status, out, h.read("a.txt"))
	}
	written := "esrp-" + out.Job.ID.String()
	// Not allowed: no user can be asked.
	status, out = s.call("POST", "/v1/execute", tool("eca__shell_command", `{"command": "touch planted"}`, "sync"))
	if status != http.StatusBadRequest || out.Error.Code != esrp.InvalidInputSemantic || !strings.Contains(out.Error.Message, "refused") {
		t.Errorf("a tool that is not allowed: %d %+v", status, out)
	}
	if _, err := os.Stat(filepath.Join(h.root, "planted")); err == nil {
		t.Error("it ran")
	}
	for name, body := range map[string]string{
		"no tool": tool("eca__nothing", `{}`, "sync"), "no object": tool("eca__read_file", `[1]`, "sync"),
		"no arguments": tool("eca__read_file", ` `, "sync"), "another input": request("tool", "eca__read_file", "prompt", "text/plain", "{}", "sync"),
		"no operation": request("eca", "chat.delete", "prompt", "text/plain", "x", "sync"), "no manifest": request("ecp", "run", "manifest", "application/yaml", "name: [", "sync"),
		"a parameter of a tool": strings.Replace(tool("eca__read_file", "{}", "sync"), `"mode"`, `"params": {"path": "x"}, "mode"`, 1),
	} {
		if status, out := s.call("POST", "/v1/execute", body); status != http.StatusBadRequest || out.Error.Code != esrp.InvalidInputSemantic {
			t.Errorf("%s: %d %+v", name, status, out)
		}
	}
	manifest := "manifest_version: v1\nname: n\ntarget: \"'" + os.Args[0] + "' " + asAgent + "\"\nscenarios:\n  - name: Echo\n    steps:\n" +
		"      - input: Hello there\n        graders: [{type: text_match, field: public_output, condition: contains, value: Hello there}]\n" +
		"        constraints: {checks: [{type: llm_judge, field: public_output, model: tape/m, prompt: It repeats what it was told.}]}\n"
	status, out = s.call("POST", "/v1/execute", request("ecp", "run", "manifest", "application/yaml", manifest, "sync"))
	var report struct{ Passed, Total int }
	if status != http.StatusOK || out.Outputs[0].Name != "report" || json.Unmarshal([]byte(out.Outputs[0].Data), &report) != nil || report.Passed != 2 || report.Total != 2 {
		t.Errorf("ecp run: %d %+v %+v", status, out, out.Error)
	}
	if code := s.terminate(); code != 0 {
		t.Errorf("it ended with %d", code)
	}

	c := h.chain()
	if _, err := c.Verify(); err != nil {
		t.Fatal(err)
	}
	calls, err := c.Calls(written)
	if err != nil || len(calls) != 1 {
		t.Fatalf("%d calls of the tool are on record, %v", len(calls), err)
	}
	texts := map[string]string{}
	for _, o := range calls[0].Response.Outputs {
		data, err := c.Body(o)
		if err != nil {
			t.Fatal(err)
		}
		texts[o.Name] = string(data)
	}
	if texts["file.path"] != file || texts["file.before"] != "hello\n" || texts["file.after"] != "changed\n" || len(calls[0].Response.Artifacts) != 2 {
		t.Errorf("on record: %q, %+v", texts, calls[0].Response.Artifacts)
	}
	all, err := c.Calls("")
	if err != nil {
		t.Fatal(err)
	}
	judged := func(c journal.Call) bool {
		return c.Request.Target.Service == "llm" && c.Request.Caller.RunID == nil && c.Response != nil && c.Response.Status == esrp.Succeeded
	}
	if !slices.ContainsFunc(all, judged) {
		t.Error("what the judge was asked is not on record")
	}
	if code, out, errs := h.ends("replay", chat); code != 0 || !strings.Contains(out, "Equal: 1 turns, 2 model calls, 1 tool calls") {
		t.Errorf("replay: %d %q %q", code, out, errs)
	}
	if _, err := os.Stat(filepath.Join(h.dir, "state", "eca", "esrp", "jetstream")); err != nil {
		t.Errorf("the state is elsewhere: %v", err)
	}
}

// held is a tool call that lasts until the file go exists, and records each of its beginnings.
const held = `{"timeout": 600000, "command": "echo x >> begun; while [ ! -e go ]; do sleep 0.02; done; echo over"}`

const allowsShell = `, "toolCall": {"approval": {"allow": {"eca__shell_command": {}}}}`

// submit submits a long job, and waits until it runs.
func (h *home) submit(s *running) string {
	h.t.Helper()
	before := h.read("begun")
	status, out := s.call("POST", "/v1/jobs", tool("eca__shell_command", held, "async"))
	if status != http.StatusAccepted {
		h.t.Fatalf("%d %+v", status, out)
	}
	waitFor(h.t, "the beginning of the job", func() bool { return h.read("begun") != before })
	return out.Job.ID.String()
}

// checkFinishes lets jobs end. It checks that a job ended once, after the given number of beginnings.
func (h *home) checkFinishes(s *running, id string, begun int) {
	h.t.Helper()
	h.write("ws/go", "")
	events, out := s.await(id)
	if out.Status != esrp.Succeeded || !strings.Contains(out.Outputs[0].Data, "over") {
		h.t.Errorf("%+v", out)
	}
	if strings.Count(events, "event: job_started") != 1 || strings.Count(events, "event: job_completed") != 1 || !strings.Contains(events, "event: job_completed") {
		h.t.Errorf("%s", events)
	}
	if n := strings.Count(h.read("begun"), "x"); n != begun {
		h.t.Errorf("it began %d times, want %d", n, begun)
	}
}

// A provider outage is retryable, and is not stored as the answer to its payload.
func TestServeProviderOutage(t *testing.T) {
	h := newHome(t, "    - {text: back again, error: {status: 503, message: down for a moment, times: 2}}\n", "")
	h.write("config/eca/config.json", `{"providers": {"tape": {"api": "cassette", "url": "`+filepath.Join(h.dir, "tape.yaml")+`", "models": {"m": {}},
		"retry": {"baseDelayMs": 1, "maxRetries": 1}}}, "defaultModel": "tape/m", "chat": {"title": false}}`)
	s := h.start("serve", "--listen", "127.0.0.1:0")
	body := request("eca", "chat.send", "prompt", "text/plain", "are you there?", "sync")
	status, out := s.call("POST", "/v1/execute", body)
	if status != http.StatusBadGateway || out.Error.Code != esrp.BackendUnavailable || !out.Error.Retryable || out.Error.RetryAfterMS == nil {
		t.Errorf("%d %+v", status, out.Error)
	}
	if status, out := s.call("POST", "/v1/execute", body); status != http.StatusOK || out.Outputs[0].Data != "back again" {
		t.Errorf("%d %+v", status, out.Error)
	}
	if code := s.terminate(); code != 0 {
		t.Errorf("it ended with %d", code)
	}
}

// A worker that is terminated in the middle of a job returns it, and another worker runs it.
func TestWorkerEnds(t *testing.T) {
	h := newHome(t, "    - {text: hi}\n", allowsShell)
	s := h.start("serve", "--listen", "127.0.0.1:0", "--nats-listen", "127.0.0.1:0", "--no-worker")
	first := h.start("worker", "--nats", s.nats)
	id := h.submit(s)
	if code := first.terminate(); code != 0 {
		t.Errorf("the worker ended with %d", code)
	}
	second := h.start("worker", "--nats", s.nats, "--jobs", "1")
	waitFor(t, "the second beginning", func() bool { return h.read("begun") == "x\nx\n" })
	h.checkFinishes(s, id, 2)
	for _, r := range []*running{second, s} {
		if code := r.terminate(); code != 0 {
			t.Errorf("it ended with %d", code)
		}
	}
}

// A server that is terminated in the middle of a job notifies the waiting callers, ends, and
// continues the job when it is started again.
func TestServeEnds(t *testing.T) {
	h := newHome(t, "    - {text: hi}\n", allowsShell)
	s := h.start("serve", "--listen", "127.0.0.1:0")
	waiting := make(chan string, 1)
	go func() {
		status, out, err := s.try("POST", "/v1/execute", tool("eca__shell_command", held, "sync"))
		switch {
		case err != nil:
			waiting <- err.Error()
		case status != http.StatusBadGateway || out.Error == nil || !out.Error.Retryable:
			waiting <- "it is not told to ask again: " + string(out.Status)
		default:
			waiting <- ""
		}
	}()
	waitFor(t, "the beginning", func() bool { return h.read("begun") == "x\n" })
	if code := s.terminate(); code != 0 {
		t.Errorf("it ended with %d", code)
	}
	if wrong := <-waiting; wrong != "" {
		t.Error(wrong)
	}
	again := h.start("serve", "--listen", "127.0.0.1:0")
	waitFor(t, "the second beginning", func() bool { return h.read("begun") == "x\nx\n" })
	// A caller that repeats its request gets the same job.
	_, out := again.call("POST", "/v1/jobs", tool("eca__shell_command", held, "async"))
	h.checkFinishes(again, out.Job.ID.String(), 2)
}

// A server that is killed with running and waiting jobs finishes them when it is started again, and
// the journal is valid.
func TestServeIsKilled(t *testing.T) {
	h := newHome(t, "    - {text: hi}\n", allowsShell)
	s := h.start("serve", "--listen", "127.0.0.1:0", "--jobs", "1")
	id := h.submit(s)
	var queued []string
	for _, name := range []string{"one", "two"} {
		status, out := s.call("POST", "/v1/jobs", tool("eca__shell_command", `{"command": "echo `+name+` >> done"}`, "async"))
		if status != http.StatusAccepted {
			t.Fatalf("%d %+v", status, out)
		}
		queued = append(queued, out.Job.ID.String())
	}
	s.kill()
	again := h.start("serve", "--listen", "127.0.0.1:0", "--jobs", "1")
	waitFor(t, "the second beginning", func() bool { return h.read("begun") == "x\nx\n" })
	h.checkFinishes(again, id, 2)
	for _, id := range queued {
		if _, out := again.await(id); out.Status != esrp.Succeeded {
			t.Errorf("%+v", out)
		}
	}
	if done := h.read("done"); len(strings.Fields(done)) != 2 || !strings.Contains(done, "one") || !strings.Contains(done, "two") {
		t.Errorf("done: %q", done)
	}
	if code := again.terminate(); code != 0 {
		t.Errorf("it ended with %d", code)
	}
	if code, out, errs := h.ends("journal", "verify"); code != 0 {
		t.Errorf("%d %q %q", code, out, errs)
	}
}

// The output of a slash command is the answer of chat.send. A command that asks questions is refused.
func TestServeChatSendCommands(t *testing.T) {
	h := newHome(t, "    - {text: a summary}\n", "")
	s := h.start("serve", "--listen", "127.0.0.1:0")
	for command, says := range map[string]string{"/help": "`/compact", "/costs": "No model has answered"} {
		status, out := s.call("POST", "/v1/execute", request("eca", "chat.send", "prompt", "text/plain", command, "sync"))
		if status != http.StatusOK || !strings.Contains(out.Outputs[0].Data, says) {
			t.Errorf("%s: %d %+v", command, status, out)
		}
	}
	status, out := s.call("POST", "/v1/execute", request("eca", "chat.send", "prompt", "text/plain", "/login openai", "sync"))
	if status != http.StatusBadRequest || !strings.Contains(out.Error.Message, "interactive chat") {
		t.Errorf("%d %+v", status, out.Error)
	}
}

// The result of chat.send lists the refused calls of the turn and of its subagents, and says that there
// is no user to ask. A request for an unknown agent, or for a subagent, is refused.
func TestServeChatSendNamesRefusedCalls(t *testing.T) {
	h := newHome(t, "    - {text: unused}\n", "")
	h.write("tape.yaml", `cassette: 1
turns:
  - user: '^plant$'
    steps:
      - {calls: [{id: s1, tool: eca__shell_command, arguments: {command: "touch planted"}}]}
      - {text: could not}
  - user: begin
    steps:
      - {calls: [{id: c1, tool: eca__shell_command, arguments: {command: "touch planted"}}]}
      - text: the model is told something else
        cases: [{if: nobody can be asked, calls: [{id: c2, tool: eca__spawn_agent, arguments: {agent: general, task: plant, activity: planting}}]}]
      - {text: the end}
`)
	s := h.start("serve", "--listen", "127.0.0.1:0")
	status, out := s.call("POST", "/v1/execute", request("eca", "chat.send", "prompt", "text/plain", "begin", "sync"))
	if status != http.StatusOK || len(out.Outputs) != 3 || out.Outputs[0].Data != "the end" || out.Outputs[2].Name != "refused" {
		t.Fatalf("%d %+v %+v", status, out, out.Error)
	}
	var refused []struct{ Tool, Reason string }
	if err := json.Unmarshal([]byte(out.Outputs[2].Data), &refused); err != nil || len(refused) != 2 {
		t.Fatalf("%s: %v", out.Outputs[2].Data, err)
	}
	for _, r := range refused {
		if r.Tool != "eca__shell_command" || !strings.Contains(r.Reason, "there is no user to ask") {
			t.Errorf("%+v", r)
		}
	}
	for params, says := range map[string]string{
		`{"agent": "nobody"}`: `there is no agent "nobody"`, `{"agent": "explorer"}`: "subagent",
		`{"agnet": "code"}`: `unknown parameter "agnet"; the parameters of chat.send are model, agent, variant, chat_id; did you mean agent?`,
	} {
		body := strings.Replace(request("eca", "chat.send", "prompt", "text/plain", "begin", "sync"), `"mode"`, `"params": `+params+`, "mode"`, 1)
		if status, out := s.call("POST", "/v1/execute", body); status != http.StatusBadRequest || out.Error.Code != esrp.InvalidInputSemantic || !strings.Contains(out.Error.Message, says) {
			t.Errorf("%s: %d %+v", params, status, out.Error)
		}
	}
}

// The request that docs/esrp.md shows works as it is.
func TestServeExampleOfDocs(t *testing.T) {
	h := newHome(t, "    - {text: It is an example.}\n", "")
	doc, err := os.ReadFile("../../docs/esrp.md")
	if err != nil {
		t.Fatal(err)
	}
	_, body, _ := strings.Cut(string(doc), "-d '")
	body, _, _ = strings.Cut(body, "'\n")
	s := h.start("serve", "--listen", "127.0.0.1:0")
	if status, out := s.call("POST", "/v1/execute", body); status != http.StatusOK || out.Outputs[0].Data != "It is an example." {
		t.Errorf("%d %+v", status, out.Error)
	}
}
