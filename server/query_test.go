package server_test

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"github.com/seed-dec29ce4/eca/editors/fake"
	"github.com/seed-dec29ce4/eca/internal/testkit"
)

// write makes files below a folder.
func write(t *testing.T, root string, files map[string]string) {
	t.Helper()
	testkit.WriteFiles(t, root, files)
}

// query renders the answer to a query: the chat's id, then types and paths below $WS.
func (r *rig) query(method string, params map[string]any) string {
	var res struct {
		ChatID          *string
		Contexts, Files []struct{ Type, Path string }
	}
	raw := r.Call(method, params)
	if err := json.Unmarshal(raw, &res); err != nil {
		r.Fatalf("%s answered %s", method, raw)
	}
	out := []string{}
	if res.ChatID != nil {
		out = append(out, *res.ChatID+":")
	}
	for _, c := range append(res.Contexts, res.Files...) {
		out = append(out, strings.TrimSpace(c.Type+" "+filepath.ToSlash(strings.Replace(c.Path, r.root, "$WS", 1))))
	}
	return strings.Join(out, ", ")
}

// The reference server's answers to the same queries about the same files (eca-recorded, queries).
//
// Covers: chat/queryContext, chat/queryFiles
func TestQueriesAsRecorded(t *testing.T) {
	t.Parallel()
	root := tempDir(t)
	write(t, root, map[string]string{"README.md": "", "a.txt": "", "src/b.py": "", ".git/HEAD": ""})
	r := newRig(t, options{root: root})
	const always = "c:, repoMap, cursor, directory $WS"
	for query, want := range map[string]string{
		"":         ", file $WS/README.md, file $WS/a.txt, file $WS/src/b.py",
		"b":        ", file $WS/src/b.py",
		"zzz":      "",
		"READ":     ", file $WS/README.md",
		"./":       ", directory $WS/.git, directory $WS/src, file $WS/a.txt, file $WS/README.md",
		"src/":     ", file $WS/src/b.py",
		root + "/": ", directory $WS/.git, directory $WS/src, file $WS/a.txt, file $WS/README.md",
		" cur ":    "",
	} {
		contexts := always + want
		if query == "b" || query == "READ" { // files that the query names come first
			contexts = "c:" + want + strings.TrimPrefix(always, "c:")
		}
		if got := r.query("chat/queryContext", map[string]any{"chatId": "c", "query": query, "contexts": []any{}}); got != contexts {
			t.Errorf("contexts for %q: %s", query, got)
		}
		if got := r.query("chat/queryFiles", map[string]any{"chatId": "c", "query": query}); got != "c:"+want {
			t.Errorf("files for %q: %s", query, got)
		}
	}
	chosen := []any{
		map[string]any{"type": "file", "path": root + "/src/b.py"},
		map[string]any{"type": "cursor", "path": root + "/a.txt"},
		map[string]any{"type": "directory", "path": root + "/"},
		map[string]any{"type": "file", "path": root + "/a.txt", "linesRange": map[string]any{"start": 1, "end": 2}},
		map[string]any{"type": "web", "url": "x"},
		7,
	}
	for _, c := range []struct {
		params map[string]any
		want   string
	}{
		{map[string]any{"query": "b", "contexts": chosen}, "repoMap"},
		{map[string]any{"query": "a.txt", "contexts": chosen}, "file $WS/a.txt, repoMap"},
		{map[string]any{"query": "b"}, "file $WS/src/b.py, repoMap, cursor, directory $WS"}, // one client sends nothing else
		{map[string]any{"query": "../" + filepath.Base(root)}, "repoMap, cursor, directory $WS, directory $WS/.git, directory $WS/src, file $WS/a.txt, file $WS/README.md"},
		{map[string]any{"contexts": map[string]any{}, "query": nil}, "repoMap, cursor, directory $WS, file $WS/README.md, file $WS/a.txt, file $WS/src/b.py"},
	} {
		if got := r.query("chat/queryContext", c.params); got != c.want {
			t.Errorf("%v: %s", c.params, got)
		}
	}
	if raw := string(r.Call("chat/queryFiles", map[string]any{"query": "zzz"})); raw != `{"chatId":null,"files":[]}` {
		t.Errorf("nothing found: %s", raw)
	}
}

// When workspace folders are added and removed, queries, new turns and the configuration follow.
//
// Covers: workspace/didChangeWorkspaceFolders
func TestWorkspaceFoldersChange(t *testing.T) {
	t.Parallel()
	first, second := tempDir(t), tempDir(t)
	write(t, first, map[string]string{"one.txt": ""})
	write(t, second, map[string]string{"two.txt": "", ".eca/config.json": `{"welcomeMessage": "second", "chat": {"title": "no"}}`})
	r := newRig(t, options{root: first, model: "cassette: 1\ndefault:\n  steps: [{text: 'in ${workspace}'}]\nturns: []\n", init: map[string]any{
		"initializationOptions": map[string]any{"defaultAgent": "plan"},
	}})
	r.Await(0, "the start", fake.Ready())
	change := func(added, removed string) int {
		mark, event := r.Mark(), map[string]any{"added": []any{}, "removed": []any{}}
		if added != "" {
			event["added"] = []any{map[string]any{"uri": "file://" + added, "name": "x"}, 7}
		}
		if removed != "" {
			event["removed"] = []any{map[string]any{"uri": "file://" + removed + "/", "name": "x"}}
		}
		r.Notify("workspace/didChangeWorkspaceFolders", map[string]any{"event": event})
		return mark
	}
	names := func(query string) string {
		return strings.ReplaceAll(r.query("chat/queryContext", map[string]any{"query": query}), second, "$2")
	}
	if got := names("txt"); got != "repoMap, cursor, directory $WS, file $WS/one.txt" {
		t.Errorf("at first: %s", got)
	}
	mark := change(second, "")
	if got := names("txt"); got != "repoMap, cursor, directory $WS, directory $2, file $WS/one.txt, file $2/two.txt" {
		t.Errorf("with both: %s", got)
	}
	r.Await(mark, "the change", fake.Contains("config/updated", `"welcomeMessage":"second"`))
	r.Await(mark, "the new problem", fake.Contains("$/showMessage", "title", filepath.Join(second, ".eca")))
	change("", first)
	if got := names(""); got != "repoMap, cursor, directory $2, file $2/two.txt" {
		t.Errorf("with the second: %s", got)
	}
	mark = r.Mark()
	r.Call("chat/prompt", map[string]any{"message": "where?"})
	r.Await(mark, "a turn in the second", fake.Content("text", second, `"role":"assistant"`))
	r.Await(mark, "its end", fake.Finished())
	mark = change(first, second)
	r.Await(mark, "the first configuration", fake.Contains("config/updated", `"welcomeMessage":`))
	for _, m := range r.Since(mark) {
		if strings.Contains(m.String(), `"selectAgent":"code"`) {
			t.Errorf("the client's options were lost: %s", m)
		}
	}
	mark = change(first, "") // adds a folder that the workspace already has
	change("", first)        // removes the last folder
	if got := names("txt"); got != "repoMap, cursor" {
		t.Errorf("with none: %s", got)
	}
	r.Call("chat/prompt", map[string]any{"message": "and now?"})
	r.Await(mark, "the answer", fake.Finished())
}
