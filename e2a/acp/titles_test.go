package acp

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"github.com/seed-dec29ce4/eca/chat/event"
	"github.com/seed-dec29ce4/eca/chat/transcript"
	"github.com/seed-dec29ce4/eca/internal/needs"
	"github.com/seed-dec29ce4/eca/internal/testkit"
)

// The title of a question contains everything that the user agrees to, because some clients show
// nothing else.
func TestAskedTitles(t *testing.T) {
	needs.POSIX(t)
	t.Setenv("HOME", "/home/me")
	roots := []string{"/w", "/more"}
	long := strings.Repeat("x", maxTitle)
	for _, c := range []struct {
		name, server, summary, arguments, want string
	}{
		{"shell_command", "eca", "$ echo a; ec...", `{"command":"echo a; echo b: c"}`, "`echo a; echo b: c`"},
		{"shell_command", "eca", "$ a", `{"command":"a\n\tb\r\nc"}`, "`a ⏎  b ⏎ c`"},
		{"shell_command", "eca", "$ a", "{\"command\":\"echo `date`\"}", "`` echo `date` ``"},
		{"shell_command", "eca", "$ x", `{"command":"` + long + `y"}`, "`" + long + "` … (4097 bytes in all)"},
		{"git", "eca", "Look: git log", `{"command":"git log","summary":"Look"}`, "`git log`"},
		{"bg_job", "eca", "Killing job-1", `{"action":"kill","job_id":"job-1"}`, "Killing job-1"},
		{"shell_command", "mine", "Calling tool: mine__shell_command", `{"command":"rm"}`, "Calling tool mine__shell_command `{\"command\":\"rm\"}`"},
		{"read_file", "eca", "Reading hosts (0-9)", `{"path":"/etc/hosts"}`, "Reading hosts (0-9) `/etc/hosts`"},
		{"move_file", "eca", "Moving a to b", `{"source":"/x/a","destination":"/y/b"}`, "Moving a to b `/x/a` `/y/b`"},
		{"web_fetch", "eca", "Fetching https://a.example", `{"url":"https://a.example"}`, "Fetching https://a.example"},
		{"look", "mine", "Calling tool: mine__look", `{}`, "Calling tool mine__look"},
		{"mine", "eca", "Running tool mine", `{"n":1}`, "Running tool mine `{\"n\":1}`"},
		{"nameless", "mine", "", "", "nameless"},

		// A path that the title seems to contain may be another one.
		{"move_file", "eca", "Moving x.bak to x", `{"source":"/w/x.bak","destination":"/w/x"}`, "Moving x.bak to x `/w/x.bak` `/w/x`"},
		{"grep", "eca", "Searching: /etc", `{"pattern":"/etc","path":"/etc"}`, "Searching: /etc `/etc`"},

		// The user also agrees to the folder of a command.
		{"shell_command", "eca", "$ ls", `{"command":"ls","working_directory":"/etc"}`, "`ls` in `/etc`"},
		{"shell_command", "eca", "$ ls", `{"command":"ls","working_directory":"../o"}`, "`ls` in `/o`"},
		{"shell_command", "eca", "$ ls", `{"command":"ls","working_directory":"~"}`, "`ls` in `/home/me`"},
		{"shell_command", "eca", "$ ls", `{"command":"ls","working_directory":""}`, "`ls`"},
		{"shell_command", "eca", "$ x", `{"command":"` + long + `y","working_directory":"/etc"}`, "`" + long + "` … (4097 bytes in all) in `/etc`"},

		// Paths may be relative.
		{"read_file", "eca", "Reading id_rsa", `{"path":"~/.ssh/id_rsa"}`, "Reading id_rsa `/home/me/.ssh/id_rsa`"},
		{"read_file", "eca", "Reading passwd", `{"path":"../etc/passwd"}`, "Reading passwd `/etc/passwd`"},
		{"move_file", "eca", "Moving a to b", `{"source":"a","destination":"~/b"}`, "Moving a to b `/w/a` `/home/me/b`"},
		{"mine", "eca", "Running tool mine", `{"path":"a","x":"rm"}`, "Running tool mine `{\"path\":\"a\",\"x\":\"rm\"}`"},
		{"mine", "eca", "Running tool mine", `{"path":"/a","x":"rm"}`, "Running tool mine `{\"path\":\"/a\",\"x\":\"rm\"}`"},

		// Control characters, reversed text and invisible characters are escaped.
		{"shell_command", "eca", "$ a", "{\"command\":\"rm \\u001b[2K\\u202e\\u200b\\u2028\\u2066ls\"}", "`rm \\u001b[2K\\u202e\\u200b\\u2028\\u2066ls`"},
		{"shell_command", "eca", "$ a", "{\"command\":\"a\",\"working_directory\":\"/x\\u202e\"}", "`a` in `/x\\u202e`"},
		{"read_file", "eca", "Reading a\u202e\x1b\nb", "{\"path\":\"/x/a\\u202e\\u001b\\nb\"}", "Reading a\\u202e\\u001b ⏎ b `/x/a\\u202e\\u001b ⏎ b`"},
		{"look", "mine", "Calling tool: mine__look\u2029", "{\"a\":\"\u202e\u2029\"}", "Calling tool mine__look\\u2029 `{\"a\":\"\\u202e\\u2029\"}`"},
	} {
		s := judgedCall(c.name, c.server, c.summary, c.arguments)
		if got := permissionTitle(s, titleOf(s, c.name), false, roots); got != c.want {
			t.Errorf("%s: %s, want %s", c.arguments, got, c.want)
		}
	}
	s := judgedCall("edit_file", "eca", "Editing a", `{"path":"/x/a"}`)
	if got := permissionTitle(s, titleOf(s, ""), true, roots); got != "Editing a" {
		t.Errorf("its diff has its path: %s", got)
	}
}

// judgedCall returns a tool call that was checked but has not run.
func judgedCall(name, server, summary, arguments string) transcript.Call {
	tool := event.Tool{CallID: "c", Name: name, Server: server}
	return transcript.Call{Tool: tool, Judgment: event.ToolJudged{Tool: tool, Summary: summary, Arguments: json.RawMessage(arguments)}}
}

// Each tool in the table of docs/tools.md has a kind.
func TestEachToolHasAKind(t *testing.T) {
	for _, name := range testkit.DocumentedTools(t, filepath.Join("..", "..")) {
		if kindOf(transcript.Call{Tool: event.Tool{Name: name, Server: "eca"}}) == "other" && name != "ask_user" {
			t.Errorf("kindOf does not know %s", name)
		}
	}
}
