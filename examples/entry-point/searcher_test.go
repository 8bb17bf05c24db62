package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/seed-dec29ce4/eca/ecp"
	"github.com/seed-dec29ce4/eca/ecp/report"
)

// playConversation answers the searcher's calls from results, by tool and path or pattern. It returns
// the searcher's calls and its answer.
func playConversation(t *testing.T, question string, results map[string]string, tools ...string) (calls []string, answer string) {
	t.Helper()
	var req request
	text := `{"messages": [{"role": "user", "content": ` + fmt.Sprintf("%q", question) + `}], "tools": [`
	for i, name := range tools {
		if i > 0 {
			text += ","
		}
		text += `{"function": {"name": "eca__` + name + `"}}`
	}
	if err := json.Unmarshal([]byte(text+"]}"), &req); err != nil {
		t.Fatal(err)
	}
	for range 2 * maxCalls {
		m := nextAction(&req)
		if m.tool == "" {
			return calls, m.answer
		}
		args, err := json.Marshal(m.args)
		if err != nil {
			t.Fatal(err)
		}
		key := shortName(m.tool)
		if about := argument(string(args), "pattern") + argument(string(args), "path"); about != "" {
			key += " " + about
		}
		calls = append(calls, key)
		var said message
		said.Role = "assistant"
		raw := fmt.Sprintf(`[{"id": "c%d", "function": {"name": %q, "arguments": %q}}]`, len(calls), m.tool, args)
		if err := json.Unmarshal([]byte(raw), &said.ToolCalls); err != nil {
			t.Fatal(err)
		}
		content, err := json.Marshal(results[key])
		if err != nil {
			t.Fatal(err)
		}
		req.Messages = append(req.Messages, said, message{Role: "tool", ToolCallID: fmt.Sprintf("c%d", len(calls)), Content: content})
	}
	t.Fatalf("it never answers: %v", calls)
	return nil, ""
}

func TestSearcher(t *testing.T) {
	const question = "Where are fuzzy matches ranked? Answer with paths."
	const source = "package find\n\n// rankFuzzy orders fuzzy matches.\nfunc rankFuzzy() {}\n"
	results := map[string]string{
		"repo_map":                "Makefile\nother/{a.go,b.go}\nfind/match.go\n func rankFuzzy()\n",
		"directory_tree .":        "/tmp/x\n Makefile\n find\n  match.go\n other\n  a.go\n",
		"grep (?i)match.":         "find/match.go:3:// rankFuzzy orders fuzzy matches.\n",
		"grep (?i)rank.":          "find/match.go:3:// rankFuzzy orders fuzzy matches.\n",
		"grep (?i)fuzzy.":         "find/match.go:3:// rankFuzzy orders fuzzy matches.\n",
		"read_file find/match.go": source,
	}
	calls, answer := playConversation(t, question, results, "repo_map", "directory_tree", "grep", "read_file")
	if got := strings.Join(calls, ", "); got != "repo_map, read_file find/match.go" || !strings.HasPrefix(answer, "find/match.go: func rankFuzzy()") {
		t.Errorf("with the map: %s: %s", got, answer)
	}
	calls, answer = playConversation(t, question, results, "directory_tree", "grep", "read_file")
	if calls[0] != "directory_tree ." || !strings.HasPrefix(answer, "find/match.go: func rankFuzzy()") {
		t.Errorf("without: %v: %s", calls, answer)
	}
	// It acts on its instructions, and ends when there is nothing.
	calls, answer = playConversation(t, question, nil, "directory_tree", "grep", "read_file")
	if len(calls) != 4 || answer != "I did not find it." {
		t.Errorf("nothing there: %v: %s", calls, answer)
	}
	if m := nextAction(&request{}); m.tool != "" || m.answer == "" {
		t.Errorf("without tools: %+v", m)
	}
}

func TestSameStem(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want bool
	}{
		{"matches", "match", true},
		{"ranked", "ranking", true},
		{"retry", "retries", true},
		{"web", "web", true},
		{"web", "webhook", false},
		{"request", "require", false},
		{"map", "mapper", false},
	} {
		if got := sameStem(c.a, c.b); got != c.want {
			t.Errorf("%s, %s: %v", c.a, c.b, got)
		}
	}
}

func TestTally(t *testing.T) {
	step := func(output string, calls int) []report.Step {
		return []report.Step{{Output: &output, Status: "done", ToolCalls: make([]ecp.ToolCall, calls)}}
	}
	record := map[string]string{"id": "q", "answer": `find/match\.go`}
	rows, err := tallyReport(&report.Report{Scenarios: []report.Scenario{
		{Name: "With the map: q", Record: record, Steps: step("In `find/match.go`.", 2)},
		{Name: "Without: q", Record: record, Attempts: []report.Attempt{
			{Steps: step("/work/find/match.go", 4)}, {Steps: step("refind/match.go", 9)}, {Steps: []report.Step{{Status: "error"}}},
		}},
	}})
	if err != nil || len(rows) != 1 {
		t.Fatalf("%v, %v", rows, err)
	}
	if w := rows[0].with; w.correct != 1 || w.attempts != 1 || median(w.calls) != 2 {
		t.Errorf("with: %+v", w)
	}
	if w := rows[0].without; w.correct != 1 || w.attempts != 3 || len(w.calls) != 2 || median(w.calls) != 6.5 {
		t.Errorf("without: %+v", w)
	}
	var out strings.Builder
	if err := writeTable(&out, "m", rows); err != nil || !strings.Contains(out.String(), "median") {
		t.Errorf("%v: %s", err, out.String())
	}
}
