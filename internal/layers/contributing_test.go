package layers

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestContributing holds the commands in CONTRIBUTING.md and the Makefile to the tests that they
// name, and has them name every package that rewrites files with -update.
func TestContributing(t *testing.T) {
	const top = "../../"
	doc, err := os.ReadFile(filepath.FromSlash(top + "CONTRIBUTING.md"))
	if err != nil {
		t.Fatal(err)
	}
	targets, err := os.ReadFile(filepath.FromSlash(top + "Makefile"))
	if err != nil {
		t.Fatal(err)
	}
	text := string(doc) + string(targets)
	rewritten := map[string]bool{} // packages that a command with -update names
	command := regexp.MustCompile("go test ([^`\n#]+)")
	seen := 0
	for _, m := range command.FindAllStringSubmatch(text, -1) {
		var rooms []string
		for _, word := range strings.Fields(m[1]) {
			if room, ok := strings.CutPrefix(word, "./"); ok && room != "..." {
				rooms = append(rooms, room)
				rewritten[room] = rewritten[room] || strings.Contains(m[1], "-update")
			}
		}
		run := regexp.MustCompile(`-run '?([^' ]+)`).FindStringSubmatch(m[1])
		if run == nil || strings.HasPrefix(run[1], "^$") {
			continue
		}
		seen++
		for _, name := range strings.Split(strings.ReplaceAll(run[1], `\`, ""), "|") {
			name, _, _ = strings.Cut(name, "/")
			for _, room := range rooms {
				if !testsOf(t, filepath.FromSlash(top+room))[name] {
					t.Errorf("%s has no %s: %s", room, name, m[0])
				}
			}
		}
	}
	const fewest = 4
	if seen < fewest {
		t.Errorf("only %d commands with -run are seen", seen)
	}
	for _, src := range sources(t) {
		if raw, err := os.ReadFile(src.path); err != nil {
			t.Fatal(err)
		} else if src.test && strings.Contains(string(raw), `flag.Bool("update"`) && !rewritten[src.room] && src.room != "internal/layers" {
			t.Errorf("%s rewrites files with -update, and neither CONTRIBUTING.md nor the Makefile says so", src.room)
		}
	}
}
