package main

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/seed-dec29ce4/eca/internal/needs"
)

// A hook that was to judge a call and does not do its work is named with the cause, and eca says that
// the call was not stopped.
func TestExecNamesHooksThatFail(t *testing.T) {
	needs.POSIX(t)
	const notStopped = "The call was not stopped, because a hook that fails does not block"
	for name, c := range map[string]struct {
		hook, want string
		asks       bool
	}{
		"exit code":                {`"actions": [{"type": "shell", "shell": "echo boom >&2; exit 3"}]`, "boom", false},
		"silent":                   {`"actions": [{"type": "shell", "shell": "ls nothing-here 2>/dev/null >&2; exit 9"}]`, "exit code 9", false},
		"time limit":               {`"actions": [{"type": "shell", "shell": "sleep 60", "timeout": 100}]`, "did not finish within 100ms", false},
		"limit of all":             {`"timeout": 100, "actions": [{"type": "shell", "shell": "sleep 60"}]`, "did not finish within 100ms", false},
		"no program":               {`"actions": [{"type": "shell", "shell": "no-such-program-of-eca"}]`, "no-such-program-of-eca", false},
		"wrong approval":           {`"actions": [{"type": "shell", "shell": "echo '{\"approval\": \"dney\"}'"}]`, "must be allow, ask or deny", true},
		"invalid JSON":             {`"actions": [{"type": "shell", "shell": "echo '{\"approval\": \"deny\",}'"}]`, "invalid JSON", true},
		"a denial, then a failure": {`"actions": [{"type": "shell", "shell": "echo '{\"approval\": \"deny\"}'; exit 1"}]`, "exit code 1", true},
		"not visible":              {`"visible": false, "actions": [{"type": "shell", "shell": "exit 4"}]`, "exit code 4", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newProvider(t, callCassette(writeCall))
			here := newPlace(t, p.env()...)
			here.env = append(here.env, `ECA_CONFIG={"chat": {"title": false}, "hooks": {"guard": {"type": "preToolCall", `+c.hook+`}}}`)
			_, stderr, code := runProgram(t, here, "", "exec", "--approve", "all", "go")
			if code != 0 || strings.Count(stderr, "failed before write_file: ") != 1 || strings.Contains(stderr, "hook guard failed") || !strings.Contains(stderr, c.want) || strings.Contains(stderr, notStopped) == c.asks || strings.Contains(stderr, "The call needs your approval") != c.asks {
				t.Errorf("exit code %d, want %q: %s", code, c.want, stderr)
			}
		})
	}
}

// Stderr does not name a hook as failed that ends with exit code 0 or rejects the call.
func TestExecDoesNotNameHooksThatWork(t *testing.T) {
	needs.POSIX(t)
	for script, code := range map[string]int{"grep -q no-such-text && exit 2": 0, "exit 0": 0, "echo '{}'": 0, "echo no >&2; exit 2": exitRefused} {
		p := newProvider(t, callCassette(writeCall))
		here := newPlace(t, p.env()...)
		quoted, _ := json.Marshal(script)
		here.env = append(here.env, `ECA_CONFIG={"chat": {"title": false}, "hooks": {"guard": {"type": "preToolCall", "actions": [{"type": "shell", "shell": `+string(quoted)+`}]}}}`)
		if _, stderr, got := runProgram(t, here, "", "exec", "--approve", "all", "go"); got != code || strings.Contains(stderr, "hook guard failed") {
			t.Errorf("%s: exit code %d: %s", script, got, stderr)
		}
	}
}

// Stderr shows what a hook prints.
func TestExecShowsWhatHooksPrint(t *testing.T) {
	needs.POSIX(t)
	p := newProvider(t, answerCassette("fine"))
	here := newPlace(t, p.env()...)
	here.env = append(here.env, `ECA_CONFIG={"chat": {"title": false}, "hooks": {"guard": {"type": "preRequest", "actions": [{"type": "shell", "shell": "echo 'two lines'; echo 'of text'"}]}}}`)
	if _, stderr, code := runProgram(t, here, "", "exec", "go"); code != 0 || !strings.Contains(stderr, "· hook guard: two lines of text\n") {
		t.Errorf("exit code %d: %s", code, stderr)
	}
}

// While a hook runs, eca waits for that hook, and not for the model.
func TestWaitingForAHook(t *testing.T) {
	begin := time.Now()
	var w modelSilence
	w.observe(execContent{Type: "progress", State: "running", Text: "Generating"}, begin)
	w.observe(execContent{Type: "hookActionStarted", ID: "1", Name: "guard"}, begin)
	if silent, _ := w.due(begin.Add(time.Minute)); silent != 0 {
		t.Errorf("eca reports that the model has been silent for %s", silent)
	}
	w.observe(execContent{Type: "hookActionFinished", ID: "1"}, begin.Add(time.Minute))
	if silent, _ := w.due(begin.Add(time.Minute + silentAfter)); silent != silentAfter {
		t.Errorf("after the hook: %s", silent)
	}
}

// A short run waits for the title that the model was asked for.
func TestExecKeepsTheTitle(t *testing.T) {
	answer := make(chan struct{}) // the answer has been sent
	provider := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		switch {
		case err != nil:
		case !strings.Contains(string(body), "The conversation:"):
			answerWithText("fine")(w, r)
			if r.Method != http.MethodGet {
				close(answer)
			}
		default:
			<-answer
			time.Sleep(300 * time.Millisecond) // a title that takes longer than the answer
			answerWithText("Greetings")(w, r)
		}
	}))
	defer provider.Close()
	here := newPlace(t, "OPENAI_API_KEY=sk-test-0123456789abcdef", "OPENAI_API_URL="+provider.URL)
	if _, stderr, code := runProgram(t, here, "", "exec", "hi"); code != 0 {
		t.Fatal(stderr)
	}
	if list, stderr, _ := runProgram(t, here, "", "chats", "list"); !strings.Contains(list, "Greetings") {
		t.Errorf("%q %s", list, stderr)
	}
}

// The answer to a hook's follow-up is a part of its own, and the final answer.
func TestExecSeparatesAnswersToAFollowUp(t *testing.T) {
	needs.POSIX(t)
	p := newProvider(t, "cassette: 1\nturns:\n  - steps: [{text: First.}]\n  - steps: [{text: Second.}]\n")
	here := newPlace(t, p.env()...)
	here.env = append(here.env, `ECA_CONFIG={"chat": {"title": false}, "hooks": {"more": {"type": "postRequest", "actions": [{"type": "shell", "shell": "grep -q 'follow_up_active\":true' || { echo And then? >&2; exit 2; }"}]}}}`)
	out, stderr, code := runProgram(t, here, "", "exec", "go", "-o", "answer.txt")
	said, err := os.ReadFile(filepath.Join(here.root, "answer.txt"))
	if code != 0 || out != "First.\n\nSecond.\n" || err != nil || string(said) != "Second.\n" {
		t.Errorf("exit code %d, %q, the file: %q (%v): %s", code, out, said, err, stderr)
	}
}

// A hook of the session's end that does not end in time is named, and so is one that fails.
func TestExecNamesHooksOfTheEndThatFail(t *testing.T) {
	needs.POSIX(t)
	needs.Long(t)
	for script, want := range map[string]string{"sleep 60": "hook was stopped because eca is shutting down", "echo boom >&2; exit 3": "boom"} {
		p := newProvider(t, answerCassette("fine"))
		here := newPlace(t, p.env()...)
		here.env = append(here.env, `ECA_CONFIG={"chat": {"title": false}, "hooks": {"bye": {"type": "sessionEnd", "actions": [{"type": "shell", "shell": "`+script+`"}]}}}`)
		out, stderr, code := runProgram(t, here, "", "exec", "go")
		if code != 0 || out != "fine\n" || !strings.Contains(stderr, want) || !strings.Contains(stderr, "hook=bye") {
			t.Errorf("%s: exit code %d, %q: %s", script, code, out, stderr)
		}
	}
}
