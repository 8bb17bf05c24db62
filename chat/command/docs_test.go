package command

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// docs/chat-commands.md has a row for each command, and no others.
func TestChatCommandsDoc(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "chat-commands.md"))
	if err != nil {
		t.Fatal(err)
	}
	known, documented := map[string]bool{}, map[string]bool{}
	for _, d := range definitions() {
		known[d.Name] = true
	}
	for _, row := range regexp.MustCompile("(?m)^\\| (`/.*?) \\|").FindAllStringSubmatch(string(page), -1) {
		for _, m := range regexp.MustCompile("`/([a-z-]+)").FindAllStringSubmatch(row[1], -1) {
			documented[m[1]] = true
			if !known[m[1]] {
				t.Errorf("there is no command /%s", m[1])
			}
		}
	}
	for name := range known {
		if !documented[name] {
			t.Errorf("/%s is not in docs/chat-commands.md", name)
		}
	}
	if len(known) < 20 || strings.Count(string(page), "\n## ") < 2 {
		t.Errorf("%d commands, %d headings: the test or the page is broken", len(known), strings.Count(string(page), "\n## "))
	}
}
