package daemon

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/seed-dec29ce4/eca/chat"
	"github.com/seed-dec29ce4/eca/chat/event"
	"github.com/seed-dec29ce4/eca/llm/cassette"
)

// A chat of the reference server is imported once, can be continued with a history that the model
// accepts, and is not imported again after it was deleted.
func TestImportReference(t *testing.T) {
	ctx, cache, home := context.Background(), t.TempDir(), t.TempDir()
	player, err := cassette.Parse([]byte("cassette: 1\ndefault:\n  steps:\n    - {text: hello again}\nturns: []\n"))
	if err != nil {
		t.Fatal(err)
	}
	asked := make(chan []byte, 10)
	provider := httptest.NewServer(player.Handler(func(_ string, body []byte) { asked <- body }))
	defer provider.Close()
	env := map[string]string{"OPENAI_API_KEY": "k", "OPENAI_API_URL": provider.URL}
	d := New(Options{StateDir: t.TempDir(), CacheDir: cache, Getenv: func(k string) string { return env[k] }})
	defer d.Close()
	d.Configure(json.RawMessage(`{"chat": {"title": false}}`), []string{filepath.Join(home, "app")})

	if r := d.ImportReference(ctx); len(r.Imported) > 0 || len(r.Problems) > 0 {
		t.Fatalf("an import without chats of the reference server gave %+v", r)
	}
	sample := "../chat/importer/testdata/two-tools"
	folder, err := os.MkdirTemp(cache, "x")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.CopyFS(filepath.Join(folder, "chats"), os.DirFS(sample)); err != nil {
		t.Fatal(err)
	}
	if r := d.ImportReference(ctx); len(r.Imported) > 0 {
		t.Errorf("chats of another workspace: %+v", r)
	}
	if err := os.Rename(folder, folderOf(t, d, cache)); err != nil {
		t.Fatal(err)
	}
	const id = "3f4c54fb-a134-421d-96b5-62e2fb5b4782"
	if r := d.ImportReference(ctx); !slices.Equal(r.Imported, []string{id}) || len(r.Problems) > 0 {
		t.Fatalf("%+v", r)
	}
	if r := d.ImportReference(ctx); len(r.Imported) > 0 || len(r.Problems) > 0 {
		t.Errorf("again: %+v", r)
	}

	list, err := d.Engine().List(ctx, chat.ByUpdated, 0)
	if err != nil || len(list) != 1 || list[0].Messages != 7 {
		t.Errorf("the list: %+v %v", list, err)
	}
	session, isNew, err := d.Engine().Open(ctx, id)
	if err != nil || isNew || session.Meta().Title != "Some Cool Title" {
		t.Fatal(isNew, err, session.Meta())
	}
	from := session.Next()
	if _, err := session.Submit(chat.Prompt{Text: "go on", Model: "openai/gpt-5.2"}).Wait(ctx); err != nil {
		t.Fatal(err)
	}
	for e, err := range session.Events(ctx, from) {
		if err != nil {
			t.Fatal(err)
		}
		if end, ok := e.Body.(event.TurnFinished); ok {
			if end.Reason != event.FinishedDone {
				t.Errorf("%+v", end)
			}
			break
		}
	}
	if got, want := outline(t, <-asked), "user assistant function_call function_call_output function_call function_call_output assistant user"; got != want {
		t.Errorf("the model was sent\n%s\nwant\n%s", got, want)
	}

	if err := d.Engine().Delete(id)(); err != nil {
		t.Fatal(err)
	}
	if r := d.ImportReference(ctx); len(r.Imported) > 0 {
		t.Errorf("a deleted chat came back: %+v", r)
	}
}

// outline names the items of a request, and checks that each output follows its call.
func outline(t *testing.T, body []byte) string {
	t.Helper()
	var req struct {
		Input []struct {
			Role, Type string
			CallID     string `json:"call_id"`
		}
	}
	if err := json.Unmarshal(body, &req); err != nil {
		t.Fatal(err)
	}
	var out []string
	last := ""
	for _, i := range req.Input {
		if i.Type == "function_call_output" && i.CallID != last {
			t.Errorf("an output of the call %q follows the call %q", i.CallID, last)
		}
		last = i.CallID
		if i.Role != "" {
			i.Type = i.Role
		}
		out = append(out, i.Type)
	}
	return strings.Join(out, " ")
}

// folderOf returns the cache folder of the daemon's workspace.
func folderOf(t *testing.T, d *Daemon, cache string) string {
	t.Helper()
	// eca-features.md 13.5
	sum := sha256.Sum256([]byte(d.Roots()[0]))
	return filepath.Join(cache, "app_"+base64.RawURLEncoding.EncodeToString(sum[:])[:8])
}
