package daemon

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"
)

// eca and the doctor report an invalid url without sending a request. The models of its provider can
// still be selected, as in the reference server.
func TestURLThatCannotBeAsked(t *testing.T) {
	for _, address := range []string{"localhost:12", "htp://x", "x"} {
		d := New(Options{StateDir: t.TempDir(), CacheDir: t.TempDir(), Getenv: func(string) string { return "" }})
		t.Cleanup(d.Close)
		d.Configure(json.RawMessage(`{"defaultModel": "mine/m", "providers": {"mine": {"api": "openai-chat", "url": "`+address+`", "key": "k", "models": {"m": {}}}}, "mcpServers": {"s": {"url": "`+address+`"}, "t": {}}}`), []string{t.TempDir()})
		if ids, standard := d.Choice(); !slices.Contains(ids, "mine/m") || standard != "mine/m" {
			t.Errorf("%s: the default model is %s of %q", address, standard, ids)
		}
		if _, err := d.CheckModel(context.Background(), "mine/m"); err == nil || !strings.Contains(err.Error(), "a url like https://HOST or http://HOST:PORT") {
			t.Errorf("%s: %v", address, err)
		}
		report := d.Doctor(context.Background(), true).Markdown()
		for _, want := range []string{"providers.mine.url must be like https://HOST or http://HOST:PORT", "mcpServers.s.url: ", "mcpServers.t: an MCP server needs a command or a url"} {
			if !strings.Contains(report, want) {
				t.Errorf("%s: no %q in %s", address, want, report)
			}
		}
	}
}
