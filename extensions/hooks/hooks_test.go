package hooks

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/seed-dec29ce4/eca/config"
	"github.com/seed-dec29ce4/eca/internal/proc"
)

// As a hook, this program copies what it reads to its output.
func TestMain(m *testing.M) {
	if code, ok := proc.Supervise(os.Args); ok {
		os.Exit(code)
	}
	if len(os.Args) > 1 && os.Args[1] == "copy" {
		raw, _ := io.ReadAll(os.Stdin)
		text, _ := json.Marshal(map[string]string{"additionalContext": string(raw), "approval": "ask"})
		os.Stdout.Write(text)
		os.Exit(0)
	}
	// The pattern matcher keeps one clock for a moment after a match with a time limit.
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("github.com/dlclark/regexp2.runClock"))
}

func options() Options {
	return Options{
		Executable: "/bin/eca", Store: func() string { return "chats.db" }, Session: func([]string) string { return "session" },
		NewID: func() string { return "id" }, Log: slog.New(slog.DiscardHandler),
	}
}

func definition(name, event, script string) Definition {
	return Definition{Name: name, Hook: config.Hook{Type: event, Actions: []config.HookAction{{Type: "shell", Shell: script}}}}
}

// A script reads the call as JSON, also a long one, on every system. It does not run without a
// workspace or after the turn was cancelled.
func TestRun(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	script := fmt.Sprintf("'%s' copy", self)
	if runtime.GOOS == "windows" {
		script = "$input | & " + script
	}
	for _, supervisor := range []string{"", self} {
		opts := options()
		opts.Children = proc.NewPool(supervisor, 1)
		defer opts.Children.Close()
		set, problems := New([]Definition{definition("h", "preToolCall", script)}, opts)
		if len(problems) > 0 {
			t.Fatal(problems)
		}
		call := Call{
			Event: PreToolCall, Roots: []string{t.TempDir()}, Fields: map[string]any{"approval": "allow"},
			Tool: &Tool{CallID: "c", Server: "eca", Name: "grep", Arguments: json.RawMessage(`{"pattern":"` + strings.Repeat("long ", 20_000) + `"}`)},
		}
		out := set.Run(t.Context(), call, nil)
		if len(out.Context) != 1 || out.Approval != "ask" {
			t.Fatalf("%+v", out)
		}
		var in map[string]any
		if err := json.Unmarshal([]byte(out.Context[0]), &in); err != nil {
			t.Fatal(err)
		}
		args, _ := in["tool_input"].(map[string]any)
		if in["eca_executable"] != "/bin/eca" || in["tool_name"] != "grep" || len(fmt.Sprint(args["pattern"])) != 100_000 {
			t.Errorf("the script read %.300s", out.Context[0])
		}
		call.Roots = nil
		if out := set.Run(t.Context(), call, nil); len(out.Context) > 0 {
			t.Error("the script ran without a workspace")
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		call.Roots = []string{t.TempDir()}
		if out := set.Run(ctx, call, nil); len(out.Context) > 0 {
			t.Error("the script ran although its context was cancelled")
		}
	}
}

func TestMatcher(t *testing.T) {
	call := Call{Event: PreToolCall, Tool: &Tool{Server: "eca", Name: "write_file", Arguments: json.RawMessage(`{"path":"/a/x.go","n":12,"o":{"k": 1}}`)}}
	for matcher, want := range map[string]bool{
		`null`: true, `""`: true, `"eca__write_file"`: true, `"eca__.*"`: true, `"write_file"`: false, `"eca__write"`: false, `"eca__(?!read).*"`: true,
		`"(x+x+)+y|eca__write_file"`: true,
		`{"eca__write_file":{}}`:     true, `{"write_file":null}`: true, `{"eca":{}}`: true, `{"read_file":{}}`: false, `{}`: true,
		`{"write_file":{"argsMatchers":{"path":[".*\\.go"]}}}`:              true,
		`{"write_file":{"argsMatchers":{"path":["\\.go"]}}}`:                false,
		`{"write_file":{"argsMatchers":{"path":["no",".*go"]}}}`:            true,
		`{"write_file":{"argsMatchers":{"path":[".*go"],"n":["1."]}}}`:      true,
		`{"write_file":{"argsMatchers":{"path":[".*go"],"n":["2."]}}}`:      false,
		`{"write_file":{"argsMatchers":{"missing":[".*"]}}}`:                false,
		`{"write_file":{"argsMatchers":{"path":[]}}}`:                       false,
		`{"write_file":{"argsMatchers":{"o":["\\{\"k\": 1\\}"]}}}`:          true,
		`{"read_file":{},"write_file":{"argsMatchers":{"path":["/a/.*"]}}}`: true,
	} {
		var v any
		if err := json.Unmarshal([]byte(matcher), &v); err != nil {
			t.Fatal(err)
		}
		m, err := newMatcher(PreToolCall, v)
		if err != nil || m.matches(call) != want {
			t.Errorf("%s: want %v (%v)", matcher, want, err)
		}
	}
	// A pattern that runs out of time may guard something.
	m, err := newMatcher(PreToolCall, `eca__(x+x+)+y`)
	slow := Call{Tool: &Tool{Server: "eca", Name: strings.Repeat("x", 5000)}}
	if err != nil || !m.matches(slow) {
		t.Error("a pattern that exceeds its time limit must count as a match", err)
	}
	for trigger, want := range map[string]bool{"manual": true, "auto": false} {
		m, err := newMatcher(PreCompact, "manual")
		if err != nil || m.matches(Call{Event: PreCompact, Trigger: trigger}) != want {
			t.Error(trigger, err)
		}
	}
}

func TestFromConfig(t *testing.T) {
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, ".eca"), 0o700); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, ".eca", "config.json")
	if err := os.WriteFile(file, []byte("{\"hooks\": {\n\"deny-tool\": {\"type\": \"preToolCall\", \"actions\": [{\"type\": \"shell\", \"shell\": \"x\", \"timeout\": 5}]}}}"), 0o600); err != nil {
		t.Fatal(err)
	}
	cfg := config.Load(config.Inputs{
		InitOptions: json.RawMessage(`{"hooks":{"my-own_hook":{"type":"postPrompt","actions":[{"type":"shell","shell":"y"}]},"slow":{"type":"preRequest","timeout":7,"actions":[{"type":"shell","shell":"y"},{"type":"shell","shell":"z","timeout":8}]}}}`),
		Getenv:      func(string) string { return "" }, Roots: []string{dir},
	})
	set, problems := New(FromConfig(cfg), options())
	if len(problems) > 0 || len(cfg.Problems) > 0 {
		t.Fatal(problems, cfg.Problems)
	}
	var got []string
	for _, i := range set.List() {
		got = append(got, fmt.Sprintf("%s %s %s", i.Name, i.Event, i.Source))
	}
	want := []string{"deny-tool preToolCall " + file + ":2", "myOwnHook postRequest initializationOptions:1", "slow preRequest initializationOptions:1"}
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	if set.list[PreToolCall][0].actions[0].limit.Milliseconds() != 5 || set.list[PostRequest][0].actions[0].limit != defaultLimit {
		t.Error("the actions do not have the configured and the default time limit")
	}
	if slow := set.list[PreRequest][0].actions; slow[0].limit.Milliseconds() != 7 || slow[1].limit.Milliseconds() != 8 {
		t.Error("an action without a time limit must have the hook's, and another its own", slow)
	}
}

// For any output of a script, the parsed outcome has only valid values, and nothing panics.
func FuzzOutput(f *testing.F) {
	for _, s := range []string{
		``, `{}`, `null`, `[]`, `{"continue":false,"stopReason":"x"}`, `{"approval":"deny"}`, `{"approval":"no"}`, `{"updatedInput":{"a":1}}`,
		`{"updatedInput":[]}`, `{"systemMessage":null,"replacedOutput":""}`, `{"a":`, "plain text",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		o, ok := parse(s)
		if ok != (json.Valid([]byte(s)) && strings.HasPrefix(strings.TrimLeft(s, " \t\r\n"), "{")) {
			t.Fatalf("%q: %v", s, ok)
		}
		for _, e := range Events() {
			kept := o.fieldsFor(e)
			_ = kept.effects()
			out, call := Outcome{}, Call{Event: e, Fields: map[string]any{}, Tool: &Tool{Arguments: json.RawMessage(`{"a":0}`)}}
			out.apply(&call, "h", kept)
			if out.Input != nil && !json.Valid(out.Input) {
				t.Fatalf("%q makes the arguments %s", s, out.Input)
			}
			if strictness(kept.Approval) == 0 && kept.Approval != "" {
				t.Fatalf("%q: approval %q", s, kept.Approval)
			}
		}
	})
}

// A hook that was killed for memory says so, as commands do.
func TestProblemOfAHook(t *testing.T) {
	for exit, want := range map[proc.Exit]string{
		{}:                             "",
		{Code: 3}:                      "",
		{Code: -1}:                     "it was killed",
		{Code: -1, Killed: true}:       "it did not finish within 2s and was killed",
		{Code: 137, OutOfMemory: true}: "it was killed because the machine had no more memory",
		{Code: -1, OutOfMemory: true, MemoryLimit: 64 << 20}: "it used more memory than a sandboxed command may (64 MiB) and was killed",
	} {
		if got := problemOf(exit, 2*time.Second); got != want {
			t.Errorf("%+v: %q", exit, got)
		}
	}
}

// A misspelled event is named, with the one that was probably meant.
func TestMisspelledEvent(t *testing.T) {
	for typo, meant := range map[string]string{"preToolCal": "preToolCall", "postToolcall": "postToolCall", "sessionstart": "sessionStart", "PreCompact": "preCompact"} {
		_, wrong := compile(Definition{Name: "h", Hook: config.Hook{Type: typo}})
		if len(wrong) != 1 || !strings.Contains(wrong[0].Cause, "did you mean "+meant+"?") {
			t.Errorf("%s: %+v", typo, wrong)
		}
	}
}

// Output that looks like an answer must be one; other text is only shown.
func TestLooksLikeAnswer(t *testing.T) {
	for stdout, want := range map[string]string{
		"": "", "checked 12 files": "", "[guard] fine": "", "12": "", "null": "", "do not block the door": "",
		`{"a": 1`: "all", "log\n{\"a\": 1}": "affected", `"deny"`: "affected", "[1]": "affected", "false": "affected",
		"log\ndeny": "preToolCall", "Approval = deny": "preToolCall", "x\n{\n  \"updatedInput\": {}\n}": "preToolCall",
		"replacedPrompt: x": "preRequest", "x {'followUp': 'y'}": "postRequest", "x replacedOutput: y": "postToolCall", "no approval needed": "", `x "continue": false`: "affected",
	} {
		for _, e := range Events() {
			affected := !slices.Contains([]Event{SessionStart, SessionEnd, ChatEnd, ChatStatusChanged}, e)
			expected := want == "all" || want == "affected" && affected || want == string(e) || want == "postRequest" && e == SubagentPostRequest
			if got := (hook{event: e}).looksLikeAnswer(stdout); got != expected {
				t.Errorf("%s: %q: %v", e, stdout, got)
			}
		}
	}
	claude := hook{event: PreRequest, Definition: Definition{Claude: true}}
	if claude.looksLikeAnswer("additionalContext") || !claude.looksLikeAnswer(`{"decision":`) {
		t.Error("the plain text of Claude Code's hooks is for the model, broken JSON is not")
	}
}
