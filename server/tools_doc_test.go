package server_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/seed-dec29ce4/eca/tools"
)

const (
	tableBegins = "<!-- Made by: go test ./server -run TestToolsDoc -update -->\n"
	tableEnds   = "<!-- end -->\n"
)

// TestToolsDoc compares the table of docs/tools.md with the existing tools, and requires that the
// page describes each tool.
func TestToolsDoc(t *testing.T) {
	t.Parallel()
	r := newRig(t, options{closed: true, config: map[string]any{
		"lsp": map[string]any{"any": map[string]any{"command": os.Args[0], "extensions": []string{".any"}}}, // symbols needs one
	}})
	r.add(t, "rules/r.md", "---\npaths: 'c.txt'\n---\nRule.")
	r.add(t, "skills/s/SKILL.md", "---\nname: s\ndescription: d\n---\nSkill.")
	r.Open(r.root, map[string]any{"capabilities": json.RawMessage(everything)})
	r.Call("chat/prompt", map[string]any{"chatId": "c", "message": "hi"}) // users' files are read by now
	var table strings.Builder
	table.WriteString("| tool | arguments (`*`: needed) | code | plan |\n|---|---|---|---|\n")
	cfg := r.daemon.Config().Config
	says := func(agent string, spec tools.Spec) string {
		a := cfg.Agents[agent]
		approval := a.ToolCall.Approval
		if approval == nil {
			approval = cfg.ToolCall.Approval
		}
		rule, named := approval.Allow[spec.FullName()]
		switch {
		case slices.Contains(a.DisabledTools, spec.Name):
			return ""
		case named && rule.ArgsMatchers != nil:
			return "runs or asks"
		case named:
			return "runs"
		}
		return "asks"
	}
	page := filepath.Join("..", "docs", "tools.md")
	text := readFile(t, page)
	before, rest, ok1 := strings.Cut(text, tableBegins)
	_, after, ok2 := strings.Cut(rest, tableEnds)
	if !ok1 || !ok2 {
		t.Fatalf("%s has no place for the table", page)
	}
	for _, tool := range r.daemon.Tools().All() {
		spec := tool.Spec()
		var schema struct {
			Properties map[string]any
			Required   []string
		}
		if err := json.Unmarshal(spec.Schema, &schema); err != nil {
			t.Fatal(err)
		}
		var args []string
		for name := range schema.Properties {
			if slices.Contains(schema.Required, name) {
				name += "*"
			}
			args = append(args, "`"+name+"`")
		}
		slices.SortFunc(args, func(a, b string) int {
			if x, y := strings.HasSuffix(a, "*`"), strings.HasSuffix(b, "*`"); x != y {
				return map[bool]int{true: -1, false: 1}[x]
			}
			return strings.Compare(a, b)
		})
		fmt.Fprintf(&table, "| `%s` | %s | %s | %s |\n", spec.Name, strings.Join(args, ", "), says("code", spec), says("plan", spec))
		if !strings.Contains(before+after, "`"+spec.Name+"`") {
			t.Errorf("%s says nothing about %s", page, spec.Name)
		}
	}
	want := before + tableBegins + table.String() + tableEnds + after
	if *update {
		if err := os.WriteFile(page, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if readFile(t, page) != want {
		t.Errorf("%s is out of date: go test ./server -run TestToolsDoc -update", page)
	}
}
