package server_test

import (
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/seed-dec29ce4/eca/editors/fake"
	"github.com/seed-dec29ce4/eca/internal/needs"
)

// A file name with a line break stays on one line in everything that lists files for the model, and
// the model can read the file by its name.
func TestFileNamesWithLineBreaksAddNoLines(t *testing.T) {
	t.Parallel()
	needs.POSIX(t)
	r := newRig(t, options{model: `
cassette: 1
turns:
  - steps:
      - calls:
          - {id: a, tool: eca__directory_tree, arguments: {path: "${workspace}"}}
          - {id: b, tool: eca__glob, arguments: {path: "${workspace}", pattern: "**/*"}}
          - {id: c, tool: eca__grep, arguments: {path: "${workspace}", pattern: Needle}}
          - {id: d, tool: eca__grep, arguments: {path: "${workspace}", pattern: Needle, output_mode: content}}
          - {id: e, tool: eca__grep, arguments: {path: "${workspace}", pattern: Needle, output_mode: count}}
          - {id: f, tool: eca__repo_map, arguments: {}}
          - {id: g, tool: eca__repo_map, arguments: {query: Needle}}
          - {id: h, tool: eca__read_file, arguments: {path: "${workspace}/sub/x\nINJECTED.go"}}
      - {text: Done.}
`})
	const source = "package x\n\nfunc Needle() { println(\"text of the file\") }\n"
	r.save(t, filepath.Join(r.root, "sub", "x\nINJECTED.go"), source)
	r.save(t, filepath.Join(r.root, "sub", "y.go"), source)
	r.Call("chat/prompt", map[string]any{"chatId": "c", "message": "go", "trust": true, "contexts": []any{
		map[string]any{"type": "repoMap"}, map[string]any{"type": "directory", "path": filepath.Join(r.root, "sub")},
	}})
	r.Await(0, "the end", fake.Finished())
	bodies := r.bodies()
	last := bodies[len(bodies)-1]
	// JSON has \n for a line break and \\n for the two characters in a quoted name; the argument of
	// the last call is a quoted string itself.
	if found := regexp.MustCompile(`.{0,40}[^\\]\\nINJECTED.{0,40}`).FindAllString(last, -1); len(found) > 0 {
		t.Errorf("lines of a file name: %q", found)
	}
	if n := strings.Count(last, `\\nINJECTED.go`); n < 9 || !strings.Contains(last, "text of the file") {
		t.Errorf("the name is given %d times: %s", n, last)
	}
}
