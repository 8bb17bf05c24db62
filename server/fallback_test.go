package server_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/seed-dec29ce4/eca/editors/fake"
)

// failing is a server some of whose models fail. It records the models of the requests.
type failing struct {
	failures map[string][]string // by the provider's name of the model: answers in order, the last one repeated; "" is the script's

	mu        sync.Mutex  // guards the fields below
	requested []string    // models
	times     []time.Time // of the requests to them
}

// Answers of a failing server. Each is a status and what follows it.
const (
	slowDown   = "429 retry-in-30 {\"error\":{\"message\":\"slow down\",\"type\":\"rate_limit\"}}"
	overloaded = "503 - {\"error\":{\"message\":\"overloaded\"}}"
	unknown    = "404 - {\"error\":{\"message\":\"The model does not exist\",\"code\":\"model_not_found\"}}"
	quota      = "429 - {\"error\":{\"message\":\"You exceeded your current quota\",\"code\":\"insufficient_quota\"}}"
	rejected   = "429 - {\"error\":{\"message\":\"slow down\",\"type\":\"rate_limit\"}}"
	noCredit   = "402 - {\"error\":{\"message\":\"pay first\"}}"
	badRequest = "400 - {\"error\":{\"message\":\"temperature must be a number\"}}"
	lateError  = "200 - data: {\"error\":{\"message\":\"overloaded\",\"code\":503}}\n\n"
	textThen   = "200 - data: {\"choices\":[{\"delta\":{\"content\":\"Half an \"}}]}\n\ndata: {\"error\":{\"message\":\"overloaded\",\"code\":503}}\n\n"
)

func (f *failing) wrap(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		r.Body = io.NopCloser(bytes.NewReader(body))
		var req struct{ Model string }
		_ = json.Unmarshal(body, &req)
		if strings.HasSuffix(r.URL.Path, "/api/show") { // what Ollama knows of a model
			next.ServeHTTP(w, r)
			return
		}
		f.mu.Lock()
		n := 0
		for _, name := range f.requested {
			if name == req.Model {
				n++
			}
		}
		f.requested, f.times = append(f.requested, req.Model), append(f.times, time.Now())
		f.mu.Unlock()
		list := f.failures[req.Model]
		if len(list) == 0 || list[min(n, len(list)-1)] == "" {
			next.ServeHTTP(w, r)
			return
		}
		parts := strings.SplitN(list[min(n, len(list)-1)], " ", 3)
		if wait, ok := strings.CutPrefix(parts[1], "retry-in-"); ok {
			w.Header().Set("Retry-After", wait)
		}
		w.Header().Set("Content-Type", "application/json")
		status := 0
		_, _ = fmt.Sscan(parts[0], &status)
		if status == http.StatusOK {
			w.Header().Set("Content-Type", "text/event-stream")
		}
		w.WriteHeader(status)
		_, _ = io.WriteString(w, parts[2])
	})
}

// models returns which models were asked since the last call.
func (f *failing) models() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	out := strings.Join(f.requested, " ")
	f.requested, f.times = nil, nil
	return out
}

// newFailing is a rig with the models p/a, p/b and p/c, which fail as the server says.
func newFailing(t *testing.T, f *failing, model string, config map[string]any) *rig {
	t.Helper()
	return newRig(t, options{model: model, wrap: f.wrap, config: config, providers: func(url string) map[string]any {
		facts := func() map[string]any {
			return map[string]any{"limit": map[string]any{"context": 100_000, "output": 1000}, "cost": map[string]any{"input": 100, "output": 200}}
		}
		return map[string]any{"p": map[string]any{
			"api": "openai-chat", "url": url, "key": "sk-mock", "fetchModels": false, "retry": map[string]any{"baseDelayMs": 1, "maxRetries": 1, "maxAutoContinues": 2},
			"models": map[string]any{"a": facts(), "b": facts(), "c": facts()},
		}}
	}})
}

func fallbackTo(models ...string) map[string]any {
	return map[string]any{"defaultModel": "p/a", "fallbackModels": models}
}

// If a model cannot be used, the turn continues with the next model, and the chat says so once for each
// model that takes over. The next prompt tries the first model first.
func TestFallback(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name     string
		failures map[string][]string
		asked    string // in the first turn
		says     []string
		notices  int
	}{
		{"a rate limit for longer than users wait", map[string][]string{"a": {slowDown}}, "a b", []string{"p/a cannot be used: ", "slow down", "p/b continues this turn; the next prompt asks p/a first.", "Answered."}, 1},
		{"a failure that lasts for all retries", map[string][]string{"a": {overloaded}}, "a a b", []string{"p/b continues", "Answered."}, 1},
		{"a failure that passes", map[string][]string{"a": {overloaded, ""}}, "a a", []string{"Answered."}, 0},
		{"a model that the provider does not have", map[string][]string{"a": {unknown}}, "a b", []string{"p/b continues", "Answered."}, 1},
		{"an account without credit", map[string][]string{"a": {noCredit}}, "a b", []string{"p/b continues", "Answered."}, 1},
		{"a quota that is used up", map[string][]string{"a": {quota}}, "a b", []string{"You exceeded your current quota", "p/b continues", "Answered."}, 1},
		{"an error in place of an answer", map[string][]string{"a": {lateError}}, "a a b", []string{"p/b continues", "Answered."}, 1},
		{"an answer that breaks off for good", map[string][]string{"a": {textThen}}, "a a b", []string{"Half an ", "p/b continues", "Answered."}, 1},
		{"an answer that breaks off, and then a failure", map[string][]string{"a": {textThen, overloaded}}, "a a a b", []string{"Half an ", "p/b continues", "Answered."}, 1},
		{"two models", map[string][]string{"a": {unknown}, "b": {slowDown}}, "a b c", []string{"p/b continues", "p/c continues this turn; the next prompt asks p/a first.", "Answered."}, 2},
		{"all models", map[string][]string{"a": {unknown}, "b": {slowDown}, "c": {overloaded}}, "a b c c", []string{"p/b continues", "p/c continues", "overloaded"}, 2},
		{"a request that every model would refuse", map[string][]string{"a": {badRequest}}, "a", []string{"temperature"}, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			f := &failing{failures: c.failures}
			r := newFailing(t, f, "cassette: 1\ndefault: {steps: [{text: Answered.}]}\nturns: []\n", fallbackTo("p/b", "p/c"))
			text := ask(t, r, "c", "hello")
			if got := f.models(); got != c.asked {
				t.Errorf("asked: %s, want %s\n%s", got, c.asked, text)
			}
			expect(t, text, c.says...)
			if n := strings.Count(text, "continues this turn"); n != c.notices {
				t.Errorf("%d notices, want %d: %s", n, c.notices, text)
			}
			for _, body := range r.bodies() {
				if err := validRequest("openai-chat", body); err != nil {
					t.Error(err)
				}
			}
			ask(t, r, "c", "again")
			if got := f.models(); !strings.HasPrefix(got, "a") {
				t.Errorf("the next prompt sent requests to the models %s, want a first", got)
			}
		})
	}
}

// With the usual pauses between retries, too, the next model is asked within five seconds.
func TestFallbackIsFast(t *testing.T) {
	t.Parallel()
	for name, failure := range map[string]string{"rate limit": rejected, "overload": overloaded} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := &failing{failures: map[string][]string{"a": {failure}}}
			config := fallbackTo("p/b")
			config["providers"] = map[string]any{"p": map[string]any{"retry": nil}}
			r := newFailing(t, f, "cassette: 1\ndefault: {steps: [{text: Answered.}]}\nturns: []\n", config)
			expect(t, ask(t, r, "c", "hello"), "p/b continues", "Answered.")
			f.mu.Lock()
			defer f.mu.Unlock()
			first, last := f.times[0], f.times[len(f.times)-1]
			took := last.Sub(first)
			t.Logf("the next model was asked %s after the first one", took)
			if took > 5*time.Second || f.requested[len(f.requested)-1] != "b" {
				t.Errorf("asked %v within %s", f.requested, took)
			}
			if len(f.requested) < 3 {
				t.Errorf("requests to the models %v: there was no retry with the first model", f.requested)
			}
		})
	}
}

// A failure between tool calls moves the conversation to an API of another provider: reasoning,
// signatures and ids of calls become what that API accepts, and the notice says what is left out.
func TestFallbackToAnotherAPI(t *testing.T) {
	t.Parallel()
	for from, name := range wireAPIs() {
		if from == "google" || from == "bedrock" { // their addresses have the model's name, not their bodies
			continue
		}
		for to := range wireAPIs() {
			if to == from {
				continue
			}
			t.Run(from+" to "+to, func(t *testing.T) {
				t.Parallel()
				f := &failing{failures: map[string][]string{name: {"", overloaded}}}
				r := newRig(t, options{
					model: fullConversation, root: fullWorkspace(t), wrap: f.wrap, providers: allAPIs(nil),
					config: map[string]any{"defaultModel": from + "/m", "fallbackModels": []string{to + "/m"}},
				})
				r.Await(0, "the start", fake.Ready())
				text := ask(t, r, "c", "first")
				expect(t, text, to+"/m continues this turn", "is not sent the reasoning of the models before it", "A text and a picture.")
				bodies := r.bodies()
				last := bodies[len(bodies)-1]
				if err := validRequest(to, last); err != nil {
					t.Errorf("%v\n%s", err, last)
				}
				if strings.Contains(last, "Two at once.") || strings.Contains(last, "sealed-") || strings.Contains(last, "signed-") {
					t.Errorf("reasoning of another API: %s", last)
				}
				expect(t, last, "hello there", "Looking at both. ")
			})
		}
	}
}

// The budget of a turn counts all of its models.
func TestFallbackCountsForTheBudget(t *testing.T) {
	t.Parallel()
	f := &failing{failures: map[string][]string{"a": {"", unknown}}}
	const script = "cassette: 1\nturns:\n  - steps:\n" +
		"      - {calls: [{tool: eca__glob, arguments: {pattern: x}}], usage: {input: 200, output: 100}}\n" +
		"      - {calls: [{tool: eca__glob, arguments: {pattern: y}}], usage: {input: 200, output: 100}}\n      - {text: Too late.}\n"
	config := fallbackTo("p/b")
	merge(config, budgetConfig("turn", "$0.07"))
	r := newFailing(t, f, script, config)
	text := ask(t, r, "c", "work")
	expect(t, text, "p/b continues", "This turn's budget is used up: $0.0800 of $0.0700.")
	if got := f.models(); got != "a a b" {
		t.Errorf("requests to the models %s, want a a b", got)
	}
	expect(t, ask(t, r, "c", "/costs"), "| today | p/a | 1 |", "| today | p/b | 1 |")
}

// The list of a model replaces that of its agent, which replaces the general list. An empty list turns
// fallback models off. eca uses only the list of the first model, so two models can name each other.
func TestFallbackLists(t *testing.T) {
	t.Parallel()
	of := func(models ...string) map[string]any {
		return map[string]any{"fallbackModels": append([]string{}, models...)}
	}
	models := func(m map[string]any) map[string]any {
		return map[string]any{"providers": map[string]any{"p": map[string]any{"models": m}}}
	}
	for name, c := range map[string]struct {
		config map[string]any
		asked  string
	}{
		"agent":         {map[string]any{"agent": map[string]any{"code": of("p/c")}}, "a c"},
		"model":         {models(map[string]any{"a": of("p/c")}), "a c"},
		"none":          {models(map[string]any{"a": of()}), "a"},
		"each other":    {models(map[string]any{"a": of("p/c"), "c": of("p/a")}), "a c"},
		"itself":        {map[string]any{"fallbackModels": []string{"p/a"}}, "a"},
		"itself, twice": {map[string]any{"fallbackModels": []string{"p/a", "p/c", "p/a", "p/c"}}, "a c"},
		"nothing":       {map[string]any{"fallbackModels": []string{"", "nobody/x", "p/c"}}, "a c"},
		"not listed":    {map[string]any{"fallbackModels": []string{"p/nope", "b", "p/c"}}, "a c"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := &failing{failures: map[string][]string{"a": {unknown}, "b": {unknown}, "c": {unknown}}}
			config := fallbackTo("p/b")
			merge(config, c.config)
			r := newFailing(t, f, "", config)
			text := ask(t, r, "c", "hello")
			if got := f.models(); got != c.asked {
				t.Errorf("asked: %s, want %s\n%s", got, c.asked, text)
			}
			notices := map[string][]string{
				"nothing":    {"the model nobody/x cannot be used: there is no provider nobody"},
				"not listed": {"provider p has no nope; it has a, b, c", "b does not name its provider"},
			}[name]
			for _, notice := range notices {
				expect(t, text, "A fallback model is skipped: "+notice)
			}
			if skipped := strings.Count(text, "A fallback model is skipped"); skipped != len(notices) {
				t.Errorf("%d notices, want %d: %s", skipped, len(notices), text)
			}
		})
	}
}

// eca uses the model that the configuration names for a role, otherwise the chat's model.
func TestRoles(t *testing.T) {
	t.Parallel()
	const script = "cassette: 1\ntitle: A title\nturns:\n  - user: delegate\n    steps:\n      - calls: [{tool: eca__spawn_agent, arguments: {agent: general, task: look, activity: looking}}]\n      - text: Done.\ndefault: {steps: [{text: Answered.}]}\n"
	for name, c := range map[string]struct{ roles, want map[string]any }{
		"unset": {nil, map[string]any{"delegate": "a", "title": "a", "compact": "a"}},
		"set":   {map[string]any{"title": "p/b", "subagent": "p/c", "compact": "p/b"}, map[string]any{"delegate": "c", "title": "b", "compact": "b"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := &failing{}
			r := newFailing(t, f, script, map[string]any{"defaultModel": "p/a", "models": c.roles, "chat": map[string]any{"title": true}})
			mark := r.Mark()
			ask(t, r, "c", "hello")
			r.Await(mark, "a title", fake.Content("metadata"))
			if got := strings.Fields(f.models()); !slices.Contains(got, "a") || !slices.Contains(got, c.want["title"].(string)) {
				t.Errorf("title: asked %v", got)
			}
			ask(t, r, "c", "/compact")
			if got := f.models(); got != c.want["compact"] {
				t.Errorf("compact: asked %s", got)
			}
			ask(t, r, "d", "delegate")
			if got := strings.Fields(f.models()); !slices.Contains(got, c.want["delegate"].(string)) {
				t.Errorf("subagent: asked %v", got)
			}
		})
	}
}
