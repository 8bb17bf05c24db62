package acp

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/seed-dec29ce4/eca/internal/needs"
)

// What is asked about is in the title, as a whole: some clients show nothing else.
func TestAskedTitles(t *testing.T) {
	needs.POSIX(t)
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
	} {
		s := stage{Name: c.name, Server: c.server, Summary: c.summary, Arguments: json.RawMessage(c.arguments)}
		if got := askedTitle(s, titleOf(s, c.name), false); got != c.want {
			t.Errorf("%s: %s, want %s", c.arguments, got, c.want)
		}
	}
	s := stage{Name: "edit_file", Server: "eca", Summary: "Editing a", Arguments: json.RawMessage(`{"path":"/x/a"}`)}
	if got := askedTitle(s, titleOf(s, ""), true); got != "Editing a" {
		t.Errorf("its diff has its path: %s", got)
	}
}
