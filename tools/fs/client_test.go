package fs

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/seed-dec29ce4/eca/tools"
)

// editor is a client that has a file open.
type editor struct {
	read  func(disk string) string               // returns the text that the client sends to eca
	write func(disk, text string) (saved string) // returns what the client stores when eca sends text
}

// vim stores a text like CodeCompanion in a buffer of Neovim: it splits the text at line feeds, and
// ends each line with the line end of the file.
func vim(eol string) func(disk, text string) string {
	return func(_, text string) string {
		return strings.Join(strings.Split(text, "\n"), eol) + eol
	}
}

// An edit keeps the line ends of the file, also if the client converts them when it reads or saves.
func TestEditInClients(t *testing.T) {
	same := func(disk string) string { return disk }
	literal := func(_, text string) string { return text }
	keepsEOL := func(disk, text string) string { // an editor whose documents have line feeds
		if strings.Contains(disk, "\r\n") {
			return toCRLF(toLF(text))
		}
		return toLF(text)
	}
	for name, e := range map[string]editor{
		"literal":         {same, literal},
		"a file of Vim":   {toLF, literal},
		"a buffer of Vim": {toLF, nil},
		"documents":       {toLF, keepsEOL},
		"literal to read": {same, keepsEOL},
	} {
		for _, eol := range []string{"\n", "\r\n"} {
			root := t.TempDir()
			path := writeTestFile(t, root, "a.txt", "one"+eol+"two"+eol+"three"+eol)
			write := e.write
			if write == nil {
				write = vim(eol)
			}
			editIn(t, root, editor{e.read, write})
			if got, want := readTestFile(t, path), "one"+eol+"TWO"+eol+"2b"+eol+"three"+eol; got != want {
				t.Errorf("%s: %q, want %q", name, got, want)
			}
		}
	}
}

// An edit starts from the client's unsaved text and gets the line ends of the file on disk. If the
// client then stores another text, the tool sends the edit once more only to remove one line end
// too many.
func TestEditOfUnsavedInClients(t *testing.T) {
	for name, c := range map[string]struct{ disk, unsaved, said, saved, want string }{
		"unsaved lines": {
			disk: "one\r\ntwo\r\n", unsaved: "zero\none\ntwo\n", said: "zero\none\nTWO\n2b\n",
			saved: "zero\r\none\r\nTWO\r\n2b\r\n", want: "zero\r\none\r\nTWO\r\n2b\r\n",
		},
		"both line ends": {
			disk: "one\r\ntwo\nthree\n", unsaved: "one\ntwo\nthree\n", said: "one\r\nTWO\r\n2b\nthree\n",
			saved: "as it likes", want: "as it likes",
		},
		"not saved":            {disk: "two\n\n", unsaved: "two\n", said: "TWO\n2b\n", saved: "two\n\n", want: "two\n\n"},
		"an empty line more":   {disk: "two\n", unsaved: "two\n", said: "TWO\n2b\n", saved: "TWO\n2b\n\n\n", want: "TWO\n2b\n\n\n"},
		"formatted when saved": {disk: "two\n", unsaved: "two\n", said: "TWO\n2b\n", saved: "Two\n2b\n\n", want: "Two\n2b\n\n"},
		"nothing at the end":   {disk: "two", unsaved: "two", said: "TWO\n2b", saved: "TWO\n2b\n", want: "TWO\n2b\n"},
		"not heard again":      {disk: "two\n", unsaved: "two\n", said: "TWO\n2b\n", saved: "TWO\n2b\n\n", want: "TWO\n2b\n\n"},
	} {
		t.Run(name, func(t *testing.T) {
			root := t.TempDir()
			path := writeTestFile(t, root, "a.txt", c.disk)
			var said []string
			editIn(t, root, editor{
				read: func(string) string { return c.unsaved },
				write: func(disk, text string) string {
					if said = append(said, text); len(said) > 1 {
						return disk
					}
					return c.saved
				},
			})
			if said[0] != c.said {
				t.Errorf("said %q, want %q", said[0], c.said)
			}
			if got := readTestFile(t, path); got != c.want {
				t.Errorf("%q, want %q", got, c.want)
			}
			if again := name == "not heard again"; again != (len(said) > 1) {
				t.Errorf("said %q", said)
			}
		})
	}
}

// editIn edits a.txt below root in an editor.
func editIn(t *testing.T, root string, e editor) {
	t.Helper()
	path := root + "/a.txt"
	raw, err := json.Marshal(map[string]any{"path": path, "original_content": "two", "new_content": "TWO\n2b"})
	if err != nil {
		t.Fatal(err)
	}
	tool, _ := tools.NewRegistry(Tools(Options{})...).Lookup("edit_file")
	call := tools.Call{ID: "c", Roots: []string{root}, Arguments: raw}
	call.Unsaved = func(string) (string, bool) { return e.read(readTestFile(t, path)), true }
	call.Save = func(_, text string) bool {
		return os.WriteFile(path, []byte(e.write(readTestFile(t, path), text)), 0o644) == nil
	}
	res, err := tool.Run(t.Context(), call, nil)
	if err != nil || res.Failed {
		t.Fatal(err, res.Outputs)
	}
}
