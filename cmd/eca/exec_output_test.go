package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/seed-dec29ce4/eca/internal/jsonrpc"
)

// The result is the last line of --json, also if a title or another notification comes late.
func TestResultIsTheLastLine(t *testing.T) {
	var out strings.Builder
	c := newExecClient(execFlags{json: true}, t.TempDir(), &out, io.Discard)
	late := &jsonrpc.Request{Method: "chat/contentReceived", Params: json.RawMessage(`{"chatId":"c","role":"system","content":{"type":"metadata","title":"Late"}}`)}
	c.startWritten = true
	if err := c.writeNotification(late); err != nil || !strings.Contains(out.String(), "Late") {
		t.Fatalf("before the result: %q, %v", out.String(), err)
	}
	out.Reset()
	c.abort(errors.New("it failed"))
	result := out.String()
	if err := c.writeNotification(late); err != nil || out.String() != result || !strings.Contains(result, `"result"`) {
		t.Errorf("after the result %q: %q, %v", result, out.String(), err)
	}
}

// If stdout and stderr are the same, the message about a stream that ended early begins a new line.
func TestErrorOfACutStreamBeginsANewLine(t *testing.T) {
	provider := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet {
			_, _ = io.WriteString(w, `{"data":[{"id":"gpt-5.2"}]}`)
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, `data: {"type":"response.output_text.delta","item_id":"m","delta":"half an answ"}`+"\n\n")
	}))
	defer provider.Close()
	here := newPlace(t, "OPENAI_API_KEY=sk-test-0123456789abcdef", "OPENAI_API_URL="+provider.URL, `ECA_CONFIG={"chat": {"title": false}, "providers": {"openai": {"retry": {"maxRetries": 1, "baseDelayMs": 10}}}}`)
	cmd := here.command("exec", "--model", "openai/gpt-5.2", "hi")
	detachTerminal(cmd)
	var both bytes.Buffer
	cmd.Stdout, cmd.Stderr = &both, &both
	if err := cmd.Run(); err == nil {
		t.Error("the run ended with exit code 0")
	}
	for line := range strings.Lines(both.String()) {
		if before, after, found := strings.Cut(line, "half an answ"); found && (before != "" || after != "\n") {
			t.Errorf("%q in:\n%s", line, both.String())
		}
	}
	if !strings.Contains(both.String(), "half an answ\n") {
		t.Error(both.String())
	}
}

// Programs that read --json get each early failure as the last line, too.
func TestJSONReportsEveryEarlyFailure(t *testing.T) {
	for name, c := range map[string]struct {
		args []string
		env  []string
		code int
		want string
	}{
		"empty prompt":            {[]string{"exec", "--json", ""}, nil, 2, "the prompt is empty"},
		"no prompt":               {[]string{"exec", "--json"}, nil, 2, "the prompt is empty"},
		"two prompts":             {[]string{"exec", "--json", "a", "b"}, nil, 2, "quote it"},
		"unknown flag":            {[]string{"exec", "--json=true", "--moddel", "x", "hi"}, nil, 2, "did you mean --model?"},
		"flag before --json":      {[]string{"exec", "--moddel", "x", "--json", "hi"}, nil, 2, "did you mean --model?"},
		"empty flag":              {[]string{"exec", "--json", "-m", "", "hi"}, nil, 2, "--model is empty"},
		"flags that contradict":   {[]string{"exec", "--json", "--continue", "--ephemeral", "hi"}, nil, 2, "cannot be used together"},
		"value of a flag":         {[]string{"exec", "--json", "--approve", "al", "hi"}, nil, 2, "--approve must be"},
		"log level":               {[]string{"exec", "--json", "--log-level", "x", "hi"}, nil, 2, "--log-level must be"},
		"no such folder":          {[]string{"exec", "--json", "-C", "nowhere", "hi"}, nil, 1, "nowhere"},
		"no such image":           {[]string{"exec", "--json", "--image", "nope.png", "hi"}, nil, 1, "nope.png"},
		"no such schema":          {[]string{"exec", "--json", "--output-schema", "nope.json", "hi"}, nil, 1, "nope.json"},
		"no such configuration":   {[]string{"exec", "--json", "--config-file", "nope.json", "hi"}, nil, 1, "does not exist"},
		"relative state folder":   {[]string{"exec", "--json", "hi"}, []string{"XDG_STATE_HOME=state"}, 1, "XDG_STATE_HOME"},
		"agent that there is not": {[]string{"exec", "--json", "--agent", "paln", "hi"}, nil, 1, "did you mean plan?"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			stdout, _, code := runProgram(t, newPlace(t, c.env...), "", c.args...)
			lines := strings.Split(strings.TrimSpace(stdout), "\n")
			var result struct {
				Type, Error, ExitReason string
				ExitCode                int
			}
			err := json.Unmarshal([]byte(lines[len(lines)-1]), &result)
			if err != nil || len(lines) != 1 || code != c.code || result.ExitCode != code || result.Type != "result" || result.ExitReason != "failed" || !strings.Contains(result.Error, c.want) {
				t.Errorf("exit code %d, want %d and %q: %s", code, c.code, c.want, stdout)
			}
		})
	}
	if stdout, _, _ := runProgram(t, newPlace(t), "", "exec", "--json=false", "", "--", "--json"); stdout != "" {
		t.Errorf("without --json: %s", stdout)
	}
}
