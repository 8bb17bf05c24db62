package server_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/seed-dec29ce4/eca/editors/fake"
	"github.com/seed-dec29ce4/eca/internal/needs"
)

// redact runs a turn in which the model reads a file with a password, with one postToolCall hook.
// It returns the requests to the model and the messages to the client.
func redact(t *testing.T, action map[string]any, files map[string]string) (model, client string) {
	t.Helper()
	needs.POSIX(t)
	root := tempDir(t)
	files["notes.txt"] = "user: ann\npassword: tulip42\n"
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(root, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	action["type"] = "shell"
	cfg := map[string]any{"hooks": map[string]any{"redact": map[string]any{"type": "postToolCall", "actions": []any{action}}}}
	r := newRig(t, options{root: root, config: cfg, model: `
cassette: 1
default:
  steps:
    - calls: [{id: tool-1, tool: eca__read_file, arguments: {path: "${workspace}/notes.txt"}}]
    - {text: The answer.}
turns: []
`})
	r.Await(0, "the start", fake.Ready())
	h := &hookRun{t: t, rig: r}
	h.prompt("hi")
	return h.model, h.client
}

// A script reads a tool's result as text and replaces it before the model sees it.
func TestHookRedactsResult(t *testing.T) {
	t.Parallel()
	needs.Program(t, "jq", "jq")
	model, client := redact(t, map[string]any{"shell": `jq '{replacedOutput: .tool_response | gsub("tulip\\d+"; "[REDACTED]")}'`}, map[string]string{})
	hookOutcome{
		model: []string{"password: [REDACTED]"}, notInModel: []string{"tulip42"},
		client: []string{"password: [REDACTED]"}, notInClient: []string{"tulip42"},
	}.check(t, model, client)
}

// A hook that replaces results only if a test succeeds leaves other results unchanged, and no
// failure is shown. If the hook prints nothing for another reason, the result is withheld.
func TestHookThatFindsNothingLeavesTheResult(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		shell  string
		passes bool
	}{
		"grep":              {`grep -q rose && echo '{"replacedOutput":"clean"}'`, true},
		"variable":          {`text=$(cat); echo "$text" | grep -q rose && echo '{"replacedOutput":"clean"}'`, true},
		"test":              {`[[ $(cat) == *rose* ]] && printf '{"replacedOutput":"clean"}'`, true},
		"a match":           {`grep -q tulip && echo '{"replacedOutput":"clean"}'`, false},
		"another program":   {`sh -c 'exit 1' && echo '{"replacedOutput":"clean"}'`, false},
		"hidden failure":    {`grep -q rose none 2>/dev/null || test -z x && echo '{"replacedOutput":"clean"}'`, false},
		"a message":         {`echo broken >&2; grep -q rose && echo '{"replacedOutput":"clean"}'`, false},
		"exit":              {`echo '{"replacedOutput":"clean"}' > out.json; exit 1`, false},
		"a program by name": {`g=false; $g && echo '{"replacedOutput":"clean"}'`, false},
	} {
		t.Run(name, func(t *testing.T) {
			model, client := redact(t, map[string]any{"shell": c.shell}, map[string]string{})
			if c.passes {
				hookOutcome{model: []string{"tulip42"}, notInModel: []string{"withheld", "failed"}, client: []string{"tulip42"}, notInClient: []string{"withheld", "failed after"}}.check(t, model, client)
				return
			}
			hookOutcome{notInModel: []string{"tulip42"}, notInClient: []string{"tulip42"}}.check(t, model, client)
		})
	}
}

// If a hook that replaces results fails, the result is withheld. The user and the model get the
// reason.
func TestFailedHookWithholdsResult(t *testing.T) {
	t.Parallel()
	const script = `echo '{"replacedOutput":"clean"}'`
	for name, c := range map[string]struct {
		action map[string]any
		files  map[string]string
		cause  string
	}{
		"exit code":              {action: map[string]any{"shell": script + "; exit 3"}, cause: "exit code 3"},
		"time limit":             {action: map[string]any{"shell": script + "; sleep 600", "timeout": 300}, cause: "did not finish within 300ms"},
		"invalid JSON":           {action: map[string]any{"shell": `echo '{"replacedOutput": '`}, cause: "invalid JSON"},
		"misspelled key":         {action: map[string]any{"shell": `echo '{"replaceOutput":"clean"}'`}, cause: "it printed the unknown key replaceOutput; did you mean replacedOutput?"},
		"key of another program": {action: map[string]any{"shell": `echo '{"updatedToolOutput":"clean"}'`}, cause: "it printed the unknown key updatedToolOutput; hooks of eca print replacedOutput"},
		"not a text":             {action: map[string]any{"shell": `echo '{"replacedOutput": ["clean"]}'`}, cause: "replacedOutput must be a string"},
		"too long":               {action: map[string]any{"shell": `: replacedOutput; head -c 400000 /dev/zero | tr '\0' x`}, cause: "too long"},
		"no such program":        {action: map[string]any{"shell": "no-such-redactor --in -"}, cause: "not found"},
		"not executable":         {action: map[string]any{"shell": "./notes.txt"}, cause: "cannot be executed"},
		"no such file":           {action: map[string]any{"file": "gone.sh"}, cause: "gone.sh"},
		"failing file":           {action: map[string]any{"file": "r.sh"}, files: map[string]string{"r.sh": script + "\nexit 1\n"}, cause: "exit code 1"},
		"script of another tool": {action: map[string]any{"shell": "sh ./filter.sh"}, files: map[string]string{"filter.sh": "echo replacedOutput; exit 9\n"}, cause: "exit code 9"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			files := map[string]string{}
			for n, text := range c.files {
				files[n] = text
			}
			model, client := redact(t, c.action, files)
			hookOutcome{
				model:       []string{"Tool output withheld: the hook 'redact' failed"},
				notInModel:  []string{"tulip42", "clean"},
				client:      []string{"Hook 'redact' failed after read_file", c.cause},
				notInClient: []string{"tulip42"},
			}.check(t, model, client)
		})
	}
}

// If a hook that replaces no results fails, the result stays, and the failure is shown.
func TestFailedHookIsNamed(t *testing.T) {
	t.Parallel()
	model, client := redact(t, map[string]any{"shell": "echo no disk >&2; exit 4"}, map[string]string{})
	hookOutcome{
		model:      []string{"tulip42", "Hook 'redact' failed after read_file: exit code 4. "},
		notInModel: []string{"no disk"},
		client:     []string{"tulip42", "Hook 'redact' failed after read_file: exit code 4: no disk. "},
	}.check(t, model, client)
}
