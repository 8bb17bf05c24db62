package server_test

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/seed-dec29ce4/eca/editors/fake"
)

// A page that the user points at is given as Markdown; what the rules of the web forbid is
// not asked for.
func TestWebContext(t *testing.T) {
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
