package prose

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode"
)

var (
	keyRow   = regexp.MustCompile("(?m)^\\| `([^`]+)` \\|")
	dotted   = regexp.MustCompile(`^[a-zA-Z0-9]+(?:\.(?:[a-zA-Z0-9_-]+|<[a-z]+>|NAME))+$`)
	codeSpan = regexp.MustCompile("`([^`\n]+)`")
	flagWord = regexp.MustCompile(`(?:^|[\s\[|])(--[a-z][a-z-]+)`)
)

// Every key of the configuration that a page names in full is in the generated list of keys, and
// every flag in a command line of eca is in the generated help.
func TestDocumentedNamesExist(t *testing.T) {
	keys, firsts := configurationKeys(t)
	earlier := page(t, "config/legacy.go") // has the earlier names of keys as strings
	flags := map[string]bool{"--help": true, "--version": true}
	for _, m := range flagWord.FindAllStringSubmatch(page(t, "docs/commands.md"), -1) {
		flags[m[1]] = true
	}
	pages, err := filepath.Glob(filepath.Join(top, "docs", "*.md"))
	if err != nil {
		t.Fatal(err)
	}
	namedKeys, namedFlags := 0, 0
	for _, path := range append(pages, filepath.Join(top, "README.md")) {
		name := filepath.ToSlash(strings.TrimPrefix(path, filepath.Clean(top)+string(filepath.Separator)))
		if name == "docs/commands.md" {
			continue
		}
		for i, line := range strings.Split(page(t, name), "\n") {
			for _, m := range codeSpan.FindAllStringSubmatch(line, -1) {
				first, _, _ := strings.Cut(m[1], ".")
				if !dotted.MatchString(m[1]) || !firsts[first] || notKey(m[1]) {
					continue
				}
				namedKeys++
				if !keys.has(strings.Split(m[1], ".")) && !strings.Contains(earlier, `"`+m[1]+`"`) {
					t.Errorf("%s:%d: there is no key %s", name, i+1, m[1])
				}
			}
			for _, command := range commandsOf(line) {
				for _, m := range flagWord.FindAllStringSubmatch(command, -1) {
					namedFlags++
					if !flags[m[1]] {
						t.Errorf("%s:%d: no command of eca has the flag %s", name, i+1, m[1])
					}
				}
			}
		}
	}
	if namedKeys < 100 || namedFlags < 30 {
		t.Errorf("only %d keys and %d flags are seen", namedKeys, namedFlags)
	}
}

func page(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(top, filepath.FromSlash(name)))
	if err != nil {
		t.Fatal(err)
	}
	return strings.ReplaceAll(string(text), "\r\n", "\n")
}

// commandsOf returns the command lines of eca in a line of a page, without words for other programs.
func commandsOf(line string) []string {
	var out []string
	candidates := []string{strings.TrimPrefix(strings.TrimSpace(line), "$ ")}
	for _, m := range codeSpan.FindAllStringSubmatch(line, -1) {
		candidates = append(candidates, m[1])
	}
	for _, c := range candidates {
		if !strings.HasPrefix(c, "eca ") {
			continue
		}
		c, _, _ = strings.Cut(c, " #")
		c, _, _ = strings.Cut(c, " | ")
		c, _, _ = strings.Cut(c, " -- ")
		out = append(out, c)
	}
	return out
}

// notKey says whether a name with dots is something else than a key: a file, an identifier of Go,
// or a name in a protocol.
func notKey(name string) bool {
	switch filepath.Ext(name) {
	case ".json", ".jsonc", ".md", ".go", ".ts", ".db", ".txt":
		return true
	}
	switch name {
	case "chat.send", "chat.interrupt", "chat.approve", "chat.reject", "chat.answer", // methods of E2A
		"journal.trimmed", "journal.erased", // records of the journal
		"auth.terminal",           // a capability in ACP
		"toolCall.manualApproval": // of the reference server
		return true
	}
	_, second, _ := strings.Cut(name, ".")
	return unicode.IsUpper(rune(second[0]))
}

// keyTree has the segments of keys below each other; NAME stands for any.
type keyTree map[string]keyTree

func (k keyTree) has(path []string) bool {
	if len(path) == 0 || len(k) == 0 { // below an object without documented keys, any name is the user's
		return true
	}
	for name, below := range k {
		if (name == path[0] || name == "NAME") && below.has(path[1:]) {
			return true
		}
	}
	return false
}

func configurationKeys(t *testing.T) (keys keyTree, firsts map[string]bool) {
	t.Helper()
	keys, firsts = keyTree{}, map[string]bool{}
	_, list, _ := strings.Cut(page(t, "docs/configuration.md"), "<!-- keys:")
	list, _, _ = strings.Cut(list, "<!-- end of keys -->")
	for _, m := range keyRow.FindAllStringSubmatch(list, -1) {
		at := keys
		for i, segment := range strings.Split(strings.ReplaceAll(m[1], "[]", ""), ".") {
			if i == 0 {
				firsts[segment] = true
			}
			if at[segment] == nil {
				at[segment] = keyTree{}
			}
			at = at[segment]
		}
	}
	if len(keys) < 30 {
		t.Fatalf("only %d keys are seen", len(keys))
	}
	return keys, firsts
}
