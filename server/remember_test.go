package server_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/seed-dec29ce4/eca/editors/fake"
	"github.com/seed-dec29ce4/eca/internal/needs"
)

// callsAskedAbout runs a turn in which every call is approved, with the scopes in save, and returns
// the calls that the user was asked about.
func callsAskedAbout(t *testing.T, r *rig, chat string, ids []string, save map[string]string) string {
	t.Helper()
	mark := r.Mark()
	r.Call("chat/prompt", map[string]any{"chatId": chat, "message": "go"})
	var out []string
	for _, id := range ids {
		run := fmt.Sprintf(`"id":%q`, id)
		r.Await(mark, "the call "+id, fake.Content("toolCallRun", run))
		for _, m := range r.Since(mark) {
			text := string(m.Params)
			if strings.Contains(text, run) && strings.Contains(text, `"toolCallRun"`) && strings.Contains(text, `"manualApproval":true`) {
				out = append(out, id)
				params := map[string]any{"chatId": chat, "toolCallId": id}
				if save[id] != "" {
					params["save"] = save[id]
				}
				r.Notify("chat/toolCallApprove", params)
				break
			}
		}
	}
	r.Await(mark, "the end", fake.Finished())
	return strings.Join(out, " ")
}

// A remembered approval has the scope that the user chose: this run of eca, this workspace, or
// everywhere.
func TestRememberScopes(t *testing.T) {
	t.Parallel()
	needs.POSIX(t)
	ids := []string{"once", "session", "workspace", "global", "odd"}
	model := "cassette: 1\nturns:\n"
	for range 2 {
		model += "  - steps:\n"
		for i, command := range []string{"pwd", "id -u", "uname", "echo x", "nproc"} {
			model += fmt.Sprintf("      - calls: [{id: %s, tool: eca__shell_command, arguments: {command: %q}}]\n", ids[i], command)
		}
		model += "      - {text: Done.}\n"
	}
	save := map[string]string{"session": "session", "workspace": "workspace", "global": "global", "odd": "for ever"}
	here := newRig(t, options{model: model})
	if got := callsAskedAbout(t, here, "one", ids, save); got != "once session workspace global odd" {
		t.Errorf("at first: %s", got)
	}
	if got := callsAskedAbout(t, here, "two", ids, nil); got != "once odd" {
		t.Errorf("in another chat: %s", got)
	}
	again := newRig(t, options{model: model, state: here.state, root: here.root})
	if got := callsAskedAbout(t, again, "three", ids, nil); got != "once session odd" {
		t.Errorf("after a restart: %s", got)
	}
	elsewhere := newRig(t, options{model: model, state: here.state})
	if got := callsAskedAbout(t, elsewhere, "four", ids, nil); got != "once session workspace odd" {
		t.Errorf("in another workspace: %s", got)
	}
}

// Approvals of pages are remembered by host, and a page of one host does not redirect to another
// without a question.
func TestWebFetchIsRememberedByHost(t *testing.T) {
	t.Parallel()
	var other string // the same server under another name
	var exfiltrated atomic.Bool
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/away":
			http.Redirect(w, r, other+"/exfiltrated", http.StatusFound)
		case "/near":
			http.Redirect(w, r, "/here", http.StatusFound)
		case "/exfiltrated":
			exfiltrated.Store(true)
		}
	}))
	defer site.Close()
	other = strings.Replace(site.URL, "127.0.0.1", "localhost", 1)
	model := "cassette: 1\nturns:\n  - steps:\n"
	ids := []string{"first", "same", "near", "away", "port", "name"}
	for i, address := range []string{site.URL + "/a", site.URL + "/b", site.URL + "/near", site.URL + "/away", "http://127.0.0.1:1/", other + "/c"} {
		model += fmt.Sprintf("      - calls: [{id: %s, tool: eca__web_fetch, arguments: {url: %q}}]\n", ids[i], address)
	}
	model += "      - {text: Done.}\n"
	r := newRig(t, options{model: model, config: map[string]any{"toolCall": map[string]any{"webFetch": map[string]any{"privateHosts": []string{"127.0.0.1", "localhost", "::1"}}}}})
	if got := callsAskedAbout(t, r, "c", ids, map[string]string{"first": "session"}); got != "first port name" {
		t.Errorf("asked about: %s", got)
	}
	r.Await(0, "the refusal", fake.Content("toolCalled", `"id":"away"`, `"error":true`, "which is another host"))
	r.Await(0, "the redirect in place", fake.Content("toolCalled", `"id":"near"`, `"error":false`, "/here"))
	if exfiltrated.Load() {
		t.Error("the redirect reached the other host without approval")
	}
}
