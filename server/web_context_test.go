package server_test

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/seed-dec29ce4/eca/editors/fake"
)

// A turn that waits for a slow page shows that, and can be stopped. A later prompt does not wait
// for the page either.
func TestStopWhileAPageIsFetched(t *testing.T) {
	t.Parallel()
	came, gone := make(chan struct{}, 2), make(chan struct{}, 2)
	site := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, req *http.Request) {
		came <- struct{}{}
		<-req.Context().Done() // for as long as the client waits
		gone <- struct{}{}
	}))
	defer site.Close()
	address, err := url.Parse(site.URL)
	if err != nil {
		t.Fatal(err)
	}
	r := newRig(t, options{
		model:  "cassette: 1\ndefault:\n  steps: [{text: Done.}]\nturns: []\n",
		config: map[string]any{"toolCall": map[string]any{"webFetch": map[string]any{"privateHosts": []string{address.Hostname()}}}},
	})
	r.Await(0, "the start", fake.Ready())
	page := []any{map[string]any{"type": "web", "url": site.URL + "/page"}}
	slow := func(what, message string, end func(mark int)) {
		mark := r.Mark()
		r.Begin("chat/prompt", map[string]any{"chatId": "chat-1", "message": message, "contexts": page})
		r.Await(mark, what+": a word about the wait", fake.Content("progress", "Fetching from "+address.Host+" (at most 10s)"))
		<-came
		end(mark)
		<-gone
	}
	slow("stop", "first", func(mark int) {
		r.Notify("chat/promptStop", map[string]any{"chatId": "chat-1"})
		r.Await(mark, "the end", fake.Content("progress", `"finished"`, `"stopped"`))
	})
	slow("another prompt", "second", func(int) {
		r.turn(t, map[string]any{"chatId": "chat-1", "message": "third"})
	})
	body := strings.Join(r.bodies(), "\n")
	if n := len(r.bodies()); n != 1 || !strings.Contains(body, "third") || strings.Contains(body, "Left out of the context") {
		t.Errorf("the model was asked %d times: %s", n, body)
	}
}

// A page that the user refers to is given as Markdown. Pages that the rules forbid are not
// requested.
func TestWebContext(t *testing.T) {
	t.Parallel()
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if req.URL.Path != "/page" {
			http.NotFound(w, req)
			return
		}
		w.Header().Set("Content-Type", "text/html; charset=iso-8859-1")
		_, _ = w.Write([]byte("<html><body><h1>Gr\xfc\xdfe</h1><p>A <b>word</b>.</p></body></html>"))
	}))
	defer site.Close()
	address, err := url.Parse(site.URL)
	if err != nil {
		t.Fatal(err)
	}
	const model = "cassette: 1\ndefault:\n  steps: [{text: Done.}]\nturns: []\n"
	for name, allowed := range map[string]bool{"allowed": true, "not allowed": false} {
		t.Run(name, func(t *testing.T) {
			config := map[string]any{}
			if allowed {
				config = map[string]any{"toolCall": map[string]any{"webFetch": map[string]any{"privateHosts": []string{address.Hostname()}}}}
			}
			r := newRig(t, options{model: model, config: config})
			r.Await(0, "the start", fake.Ready())
			r.turn(t, map[string]any{"chatId": "chat-1", "message": "read", "contexts": []any{
				map[string]any{"type": "web", "url": site.URL + "/page"}, map[string]any{"type": "web", "url": site.URL + "/none"},
			}})
			body := strings.Join(r.bodies(), "\n")
			if got := strings.Contains(body, `# Grüße\n\nA **word**.`); got != allowed {
				t.Errorf("the model was sent %s", body)
			}
		})
	}
}
