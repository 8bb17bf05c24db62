package server_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/seed-dec29ce4/eca/internal/needs"
)

// TestMatrix plays the literal messages of each client in testdata/clients (most of them recorded),
// and checks that the client gets what it needs. Each cell M and S of matrix.txt is a section of
// the client's script, and a subtest. Lines of a script:
//
//	end newline       each body ends in a newline that is counted
//	== ROW            begins a section
//	> JSON            is sent
//	< PIECE ... PIECE waits for a message with all pieces, behind the last such one
//	~ PIECE ... PIECE waits for one that came, or comes, at any time since the section's first >
//	1 PIECE ... PIECE there is exactly one since the section's first >
//	! PIECE ... PIECE there is none since then
//
// A section that sends nothing checks the messages of the previous section. $WS is the workspace,
// $PID this process, $CHAT and $ID the chat and the id in the last message that was waited for.
func TestMatrix(t *testing.T) {
	needs.Long(t)
	needs.POSIX(t)
	dir := filepath.Join("testdata", "clients")
	rows := strings.Split(strings.TrimSpace(readFile(t, filepath.Join(dir, "matrix.txt"))), "\n")
	rows = slices.DeleteFunc(rows, func(row string) bool { return row[0] == '#' })
	clients := strings.Fields(rows[0])[1 : len(strings.Fields(rows[0]))-1]
	for i, client := range clients {
		t.Run(client, func(t *testing.T) {
			sections := playClient(t, client, readFile(t, filepath.Join(dir, client+".txt")))
			for _, row := range rows[1:] {
				cells := strings.Fields(row)
				name, need, later := cells[0], cells[i+1], strings.Join(cells[len(clients)+1:], " ")
				has := slices.Contains(sections, name)
				switch {
				case later != "" && has:
					t.Errorf("%s is there: its reason in matrix.txt is out of date", name)
				case later != "" && need != "-":
					t.Run(name, func(t *testing.T) { t.Skip("NOT TESTED by this script: " + later) })
				case !has && (need == "M" || need == "S"):
					t.Errorf("%s needs %s (%s), and the script has no such section", client, name, need)
				}
				sections = slices.DeleteFunc(sections, func(s string) bool { return s == name })
			}
			if len(sections) > 0 {
				t.Errorf("sections without a row in matrix.txt: %q", sections)
			}
		})
	}
}

const matrixTape = `
cassette: 1
title: Some title
turns:
  - {user: 'hello', steps: [{reasoning: Pondering, text: "Hello **world** 👋"}]}
  - user: 'one$'
    steps: [{calls: [{id: call_1, tool: eca__write_file, arguments: {path: "${workspace}/one.txt", content: "1\n"}}]}, {text: Written.}]
  - user: 'two$'
    steps: [{calls: [{id: call_2, tool: eca__write_file, arguments: {path: "${workspace}/two.txt", content: "2\n"}}]}, {text: Written.}]
  - user: 'shell'
    steps: [{calls: [{id: call_3, tool: eca__shell_command, arguments: {command: "echo '{\"a\": 1}'"}}]}, {text: Done.}]
  - user: 'json'
    steps: [{calls: [{id: call_7, tool: eca__read_file, arguments: {path: "${workspace}/a.json"}}]}, {text: Read.}]
  - user: 'watch$'
    steps: [{calls: [{id: call_9, tool: eca__shell_command, arguments: {command: "echo watching; sleep 300", background: "a watcher"}}]}, {text: Watching.}]
  - user: 'tasks'
    steps: [{calls: [{id: call_10, tool: eca__task, arguments: {op: plan, tasks: [{subject: Look}]}}]}, {text: Planned.}]
  - user: 'picture'
    steps: [{calls: [{id: call_11, tool: eca__read_file, arguments: {path: "${workspace}/a.gif"}}]}, {text: A picture.}]
  - user: 'delegate'
    steps: [{calls: [{id: call_8, tool: eca__spawn_agent, arguments: {agent: explorer, task: look around, activity: looking}}]}, {text: Done.}]
  - user: 'commit'
    steps: [{calls: [{id: call_12, tool: eca__git, arguments: {operation: commit, command: "git commit --all --message 'a message that is longer than thirty-five characters'"}}]}, {text: Done.}]
  - {user: 'look around', steps: [{text: nothing there}]}
  - {user: 'slow', steps: [{text: "one two", hang: true}]}
  - user: 'ask'
    steps: [{calls: [{id: call_4, tool: eca__ask_user, arguments: {question: "Which?", options: [{label: red}, {label: green}]}}]}, {text: 'It is ${result:red|green|not found}.'}]
  - user: 'diag'
    steps: [{calls: [{id: call_5, tool: eca__editor_diagnostics, arguments: {}}]}, {text: 'So: ${result:.*}.'}]
  - user: 'where'
    steps: [{calls: [{id: call_6, tool: eca__editor_definition, arguments: {path: "${workspace}/a.txt", line: 1, symbol: a}}]}, {text: 'So: ${result:.*}.'}]
  - {user: 'rewrite this', steps: [{text: "new"}]}
  - {user: 'func add', steps: [{text: "return"}]}
default:
  steps: [{text: "Default."}]
`

// playClient plays a script, each section a subtest, and returns the sections' names.
func playClient(t *testing.T, client, script string) (sections []string) {
	root := tempDir(t)
	write(t, root, map[string]string{"a.txt": "a\n", "a.json": "{\"a\": 1}\n", "a.gif": "GIF89a of a cat\n", "src/b.go": "package b\n"})
	h := newHost(t, options{model: matrixTape, root: root, config: map[string]any{
		"hooks": map[string]any{"note": map[string]any{"type": "postToolCall", "matcher": "eca__task", "actions": []any{map[string]any{"type": "shell", "shell": "exit 0"}}}},
		"chat":  map[string]any{"title": true}, "disabledTools": 7, // which is shown to the user
		"mcpServers": map[string]any{"files": map[string]any{"command": "eca-no-such-server", "args": []any{"-y"}}},
		"toolCall":   map[string]any{"approval": map[string]any{"allow": map[string]any{"eca__shell_command": map[string]any{}}}},
		"providers": map[string]any{
			"acme": map[string]any{"api": "openai-chat", "url": "http://127.0.0.1:9", "requiresAuth": true, "fetchModels": false, "models": map[string]any{"m": map[string]any{}}},
			"mock": map[string]any{"models": manyModels(client)},
		},
	}})
	settings, rest, _ := strings.Cut("\n"+script, "\n== ")
	p := &player{vars: map[string]string{"$WS": root, "$PID": fmt.Sprint(os.Getpid())}}
	end := ""
	if strings.Contains(settings, "end newline") {
		end = "\n"
	}
	p.wire = newWire(t, h.daemon, end)
	for section := range strings.SplitSeq(rest, "\n== ") {
		name, lines, _ := strings.Cut(section, "\n")
		sections = append(sections, name)
		ok := t.Run(name, func(t *testing.T) {
			p.wire.t = t // so that errors fail the waiting section
			p.at = p.begin
			sent, steps := false, 0
			for line := range strings.Lines(lines) {
				if line = strings.TrimSpace(line); line == "" || line[0] == '#' {
					continue
				}
				if line[0] == '>' && !sent {
					sent = true
					p.begin = p.wire.mark()
					p.at = p.begin
				}
				p.step(t, line)
				steps++
			}
			if steps == 0 {
				t.Error("an empty section")
			}
		})
		if !ok {
			t.Fatalf("the rest makes no sense without %s", name)
		}
	}
	p.wire.awaitEnd() // each script ends with exit
	return sections
}

// manyModels lists more models than Neovim can receive in one message
// (eca-protocol.md 11).
func manyModels(client string) map[string]any {
	models := map[string]any{"v": map[string]any{
		"variants": map[string]any{"low": map[string]any{"top_p": 0}, "high": map[string]any{"top_p": 1}},
		"limit":    map[string]any{"context": 1000, "output": 100}, "cost": map[string]any{"input": 1, "output": 2},
	}}
	for i := range 5000 {
		if client == "nvim" {
			models[fmt.Sprintf("model-with-a-long-name-%d", i)] = map[string]any{}
		}
	}
	return models
}

// player plays a script over a wire.
type player struct {
	wire  *wire
	vars  map[string]string
	begin int // number of messages before the exchange
	at    int // number of messages already waited for
}

var (
	chatInMessage = regexp.MustCompile(`"chatId":"([^"]+)"`)
	idOfRequest   = regexp.MustCompile(`"id":([0-9]{10})`)
)

func (p *player) step(t *testing.T, line string) {
	t.Helper()
	verb, rest, _ := strings.Cut(line, " ")
	for name, value := range p.vars {
		rest = strings.ReplaceAll(rest, name, value)
	}
	pieces := strings.Split(rest, " ... ")
	switch verb {
	case ">":
		p.wire.send(rest)
	case "<":
		var body string
		body, p.at = p.wire.await(p.at, pieces...)
		for name, find := range map[string]*regexp.Regexp{"$CHAT": chatInMessage, "$ID": idOfRequest} {
			if m := find.FindStringSubmatch(body); m != nil {
				p.vars[name] = m[1]
			}
		}
	case "~":
		p.wire.await(p.begin, pieces...)
	case "1", "!":
		want := map[string]int{"1": 1}[verb]
		if got := p.wire.messagesSince(p.begin, pieces...); len(got) != want {
			t.Errorf("%d messages with %q, want %d:\n%s", len(got), pieces, want, strings.Join(got, "\n"))
		}
	default:
		t.Fatalf("unknown step %q", line)
	}
}
