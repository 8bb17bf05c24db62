package server_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/seed-dec29ce4/eca/editors/fake"
)

// searchParams are the parameters of a client that requests chat/search.
func searchParams() map[string]any {
	return map[string]any{"capabilities": map[string]any{"codeAssistant": map[string]any{
		"chat": true, "chatCapabilities": map[string]any{"search": true},
	}}}
}

// found is a result of chat/search.
type found struct {
	ChatID, Title, Role, Subagent string
	Workspace                     []string
	CreatedAt                     float64
	Snippet                       []struct {
		Text  string
		Match bool
	}
	Before string
}

func (f found) text() string {
	var b strings.Builder
	for _, p := range f.Snippet {
		b.WriteString(p.Text)
	}
	return b.String()
}

func searchFor(t *testing.T, r *rig, query string) (out struct {
	Results          []found
	Problems         []string
	More, Incomplete bool
},
) {
	t.Helper()
	for {
		raw := r.Call("chat/search", map[string]any{"query": query})
		if err := json.Unmarshal(raw, &out); err != nil || out.Results == nil || out.Problems == nil {
			t.Fatalf("chat/search %.80q: %s, %v", query, raw, err)
		}
		if !out.Incomplete { // a busy machine takes longer than a search waits
			return out
		}
	}
}

// promptAndWait prompts a chat and waits for the end of the turn.
func promptAndWait(t *testing.T, r *rig, chat, text string) {
	t.Helper()
	mark := r.Mark()
	r.Call("chat/prompt", map[string]any{"chatId": chat, "message": text})
	r.Await(mark, "the end", fake.Finished())
}

const echoes = "cassette: 1\ndefault:\n  steps:\n    - {text: the ferret answers}\nturns: []\n"

func TestSearchIsNegotiated(t *testing.T) {
	t.Parallel()
	r := newRig(t, options{})
	if res, err := r.TryCall("chat/search", map[string]any{"query": "x"}); err == nil || !strings.Contains(err.Error(), "not found") {
		t.Errorf("chat/search without its capability: %s, %v", res, err)
	}
}

// Covers: chat/search
func TestSearch(t *testing.T) {
	t.Parallel()
	r := newRig(t, options{model: echoes, init: searchParams()})
	promptAndWait(t, r, "a", "Where does the Walrus sleep at night?")
	promptAndWait(t, r, "b", "the walrus and the carpenter")
	promptAndWait(t, r, "b", "something else")
	for _, c := range []struct {
		query string
		want  string // chats and roles, the newest first
	}{
		{"walrus", "b user, a user"},
		{"WALRUS sleep", "a user"},
		{"carp*", "b user"},
		{"carp", ""},
		{`"the carpenter"`, "b user"},
		{`"carpenter the"`, ""},
		{`"and the carp"*`, "b user"},
		{"ferret", "b assistant, b assistant, a assistant"},
		{"ferret role:user", ""},
		{"walrus role:user", "b user, a user"},
		{"walrus workspace:here", "b user, a user"},
		{"walrus workspace:/nowhere", ""},
		{"walrus since:1d", "b user, a user"},
		{"walrus until:2001-01-01", ""},
		{"walrus AND OR NOT NEAR", ""},
		{"walrus AND carpenter", "b user"}, // AND is a word
	} {
		var got []string
		for _, f := range searchFor(t, r, c.query).Results {
			got = append(got, f.ChatID+" "+f.Role)
		}
		if g := strings.Join(got, ", "); g != c.want {
			t.Errorf("%s: found %q, want %q", c.query, g, c.want)
		}
	}
	hit := searchFor(t, r, "carp*").Results[0]
	if hit.text() != "the walrus and the carpenter" || !hit.Snippet[len(hit.Snippet)-1].Match || hit.CreatedAt < 1e12 || len(hit.Workspace) != 1 || hit.Workspace[0] != r.root {
		t.Errorf("the result: %+v", hit)
	}
	// A window before the cursor ends with the message.
	if hit.Before == "" {
		t.Fatal("the result has no cursor")
	}
	mark := r.Mark()
	r.Call("chat/open", map[string]any{"chatId": "b", "before": hit.Before, "limit": 1})
	shown := joinMessages(r.Since(mark))
	if !strings.Contains(shown, "carpenter") || strings.Contains(shown, "something else") || strings.Contains(shown, "ferret") {
		t.Errorf("chat/open shows %s", shown)
	}
	if last := searchFor(t, r, "ferret").Results[0]; last.Before != "" {
		t.Errorf("the result for the last message has the cursor %v, want none", last.Before)
	}
}

// Removed messages are not found, and are not in the index any more.
func TestSearchForgets(t *testing.T) {
	t.Parallel()
	r := newRig(t, options{model: echoes, init: searchParams()})
	promptAndWait(t, r, "kept", "the quokka of one chat")
	for _, id := range []string{"deleted", "cleared", "cut"} {
		promptAndWait(t, r, id, "a zorilla and a "+id)
	}
	promptAndWait(t, r, "cut", "another zorilla")
	if n := len(searchFor(t, r, "zorilla").Results); n != 4 {
		t.Fatalf("%d messages before", n)
	}
	r.Call("chat/delete", map[string]any{"chatId": "deleted"})
	r.Call("chat/clear", map[string]any{"chatId": "cleared", "messages": true})
	first := ""
	for _, m := range r.Since(0) {
		var p struct {
			ChatID  string
			Content struct{ Text, ContentID string }
		}
		if json.Unmarshal(m.Params, &p) == nil && p.ChatID == "cut" && strings.Contains(p.Content.Text, "another zorilla") {
			first = p.Content.ContentID
		}
	}
	r.Call("chat/rollback", map[string]any{"chatId": "cut", "contentId": first, "include": []string{"messages"}})
	if left := searchFor(t, r, "zorilla").Results; len(left) != 1 || left[0].ChatID != "cut" {
		t.Errorf("left: %+v", left)
	}
	r.Call("chat/delete", map[string]any{"chatId": "cut"})
	if left := searchFor(t, r, "zorilla").Results; len(left) != 0 {
		t.Errorf("left: %+v", left)
	}
	if left := searchFor(t, r, "quokka").Results; len(left) != 1 {
		t.Errorf("the chat that stays: %+v", left)
	}
	for _, file := range []string{"search.db", "search.db-wal"} {
		raw, err := os.ReadFile(filepath.Join(r.state, file))
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(raw), "orilla") {
			t.Errorf("%s still contains the removed text", file)
		}
	}
}

// No text causes an error as a query.
func TestSearchAcceptsAnyText(t *testing.T) {
	t.Parallel()
	r := newRig(t, options{model: echoes, init: searchParams()})
	promptAndWait(t, r, "a", "some words")
	for _, q := range []string{
		"", " ", `"`, `""`, `""""""`, `"""`, "*", "***", `"*`, `" *"`, "-", "^", "(", ")", "{}", "a:b", "body:x", "NEAR(a b)", "some NOT", "AND", "OR OR", "a + b",
		"\x00", "so\x00me", "\xff\xfe", "som\xffe", "\u200b", "role:", "role:nobody", "since:yesterday", "until:", "workspace:", `workspace:"/a b" x`,
		strings.Repeat("x", 1<<20), strings.Repeat(`"`, 1<<20), strings.Repeat("a ", 1<<19), strings.Repeat("(", 1<<20), "; DROP TABLE words", "🦭", "日本語", "e\u0301",
	} {
		searchFor(t, r, q)
	}
	if got := searchFor(t, r, "so\x00me").Results; len(got) != 0 {
		t.Errorf("so\\x00me found %+v", got)
	}
	if got := searchFor(t, r, "some:words").Results; len(got) != 1 {
		t.Errorf("some:words: %+v", got)
	}
	mark := r.Mark()
	promptAndWait(t, r, "a", `/search "*`)
	r.Await(mark, "an answer", fake.Content("text", "Nothing was found"))
	mark = r.Mark()
	promptAndWait(t, r, "a", "/search wor* role:nobody")
	r.Await(mark, "an answer", fake.Content("text", "**words**", "unknown role:nobody"))
}

// A store of an eca without an index is indexed at the first search, and a deleted index is built
// again.
func TestSearchFindsEarlierChats(t *testing.T) {
	t.Parallel()
	r := newRig(t, options{model: echoes})
	promptAndWait(t, r, "a", "an aardvark")
	again := newRig(t, options{model: echoes, state: r.state, root: r.root, init: searchParams()})
	if got := searchFor(t, again, "aardvark").Results; len(got) != 1 {
		t.Errorf("found %+v", got)
	}
	promptAndWait(t, r, "a", "another aardvark") // the other process continues
	if got := searchFor(t, again, "aardvark").Results; len(got) != 2 {
		t.Errorf("found %+v", got)
	}
}

// A message of a subagent is found in its parent's chat, at the call. Summaries are found too.
func TestSearchFindsSubagents(t *testing.T) {
	t.Parallel()
	r := newSubagentRig(t, `{text: "the pangolin hides there"}`)
	r.Await(0, "the end", fake.Contains("chat/contentReceived", `"chatId":"c"`, `"finished"`))
	s := newRig(t, options{state: r.state, root: r.root, init: searchParams()})
	var of []found
	for _, f := range searchFor(t, s, "pangolin").Results {
		if f.Subagent != "" {
			of = append(of, f)
		}
		if f.ChatID != "c" {
			t.Errorf("the message was found in the chat %s, want c", f.ChatID)
		}
	}
	if len(of) != 1 || of[0].Role != "assistant" || of[0].Before == "" {
		t.Fatalf("of the subagent: %+v", of)
	}
	mark := s.Mark()
	s.Call("chat/open", map[string]any{"chatId": "c", "before": of[0].Before, "limit": 1})
	if shown := joinMessages(s.Since(mark)); !strings.Contains(shown, "call_1") || strings.Contains(shown, "Done.") {
		t.Errorf("chat/open shows %s", shown)
	}
}
