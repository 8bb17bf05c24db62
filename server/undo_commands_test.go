package server_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/seed-dec29ce4/eca/editors/fake"
	"github.com/seed-dec29ce4/eca/internal/needs"
	"github.com/seed-dec29ce4/eca/internal/testkit"
)

const commandModel = `
cassette: 1
turns:
  - user: change
    steps:
      - calls: [{id: c1, tool: eca__shell_command, arguments: {command: "sed -i s/old/new/ src/a.txt && rm src/b.txt"}}]
      - calls: [{id: c2, tool: eca__edit_file, arguments: {path: "${workspace}/src/a.txt", original_content: "new", new_content: "newer"}}]
      - calls: [{id: c3, tool: eca__shell_command, arguments: {command: "mv src/c.txt moved.txt; chmod 600 src/run; for f in gen/*; do echo formatted > $f; done"}}]
      - calls: [{id: c4, tool: eca__shell_command, arguments: {command: "mv src/deep deep && ln -s ${workspace}/../outside src/deep && touch new"}}]
      - {text: done}
`

// A rollback also undoes commands that ran without a question: sed, rm, mv, a formatter over 1,000
// files, a folder that became a link. The user's repository does not change.
func TestRollbackUndoesCommands(t *testing.T) {
	needs.Long(t)
	needs.POSIX(t)
	git := needs.Git(t)
	root := tempDir(t)
	r := newRig(t, options{model: commandModel, root: root})
	setup := exec.Command("sh", "-ec", `
		mkdir -p src/deep gen empty
		printf 'old\r\nline\r\n' >src/a.txt
		printf '\000\377' >src/b.txt; chmod 640 src/b.txt
		echo c >src/c.txt
		echo run >src/run; chmod 755 src/run
		echo deep >src/deep/file; chmod 700 src/deep
		ln -s c.txt src/link
		i=0; while [ $i -lt 1000 ]; do echo "  unformatted $i" >gen/$i.x; i=$((i+1)); done
		printf '* text=auto eol=crlf filter=evil\n' >.gitattributes
		"$0" init -q
		"$0" config filter.evil.clean 'touch '"$PWD"'/filter-ran; cat'
		"$0" add src/c.txt
		rm -f filter-ran
		echo changed >src/c.txt`, git)
	setup.Dir = root
	if out, err := setup.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	before := testkit.Tree(t, root)
	r.Call("chat/prompt", map[string]any{"chatId": "c", "message": "change", "trust": true})
	r.Await(0, "the end", fake.Finished())
	after := testkit.Tree(t, root)
	if after["src/b.txt"] != "" || !strings.HasSuffix(after["src/a.txt"], "newer\r\nline\r\n") || !strings.HasSuffix(after["gen/999.x"], " formatted\n") || after["moved.txt"] == "" || after["deep/file"] == "" {
		t.Fatal("the commands did not run")
	}
	r.Await(0, "that it can be undone", fake.Content("toolCallRun", "a rollback can undo it"))
	// The same after a restart.
	again := newRig(t, options{model: commandModel, state: r.state, root: root})
	var first struct {
		Contents []struct{ Content struct{ ContentID string } }
	}
	if err := json.Unmarshal(again.Call("chat/history", map[string]any{"chatId": "c"}), &first); err != nil {
		t.Fatal(err)
	}
	again.Call("chat/rollback", map[string]any{"chatId": "c", "contentId": first.Contents[0].Content.ContentID})
	if diff := cmp.Diff(before, testkit.Tree(t, root)); diff != "" {
		t.Errorf("not as before (-want +got):\n%s", diff)
	}
}

const stoppedModel = `
cassette: 1
turns:
  - user: change
    steps:
      - calls: [{id: c1, tool: eca__shell_command, arguments: {command: "rm a.txt; echo 2 >b.txt; while :; do echo begun; sleep 1; done"}}]
      - {text: done}
`

// A rollback while a command runs stops the command, and undoes its changes so far.
func TestRollbackStopsCommand(t *testing.T) {
	needs.Long(t)
	needs.POSIX(t)
	r := newRig(t, options{model: stoppedModel})
	for _, name := range []string{"a.txt", "b.txt"} {
		if err := os.WriteFile(filepath.Join(r.root, name), []byte("1\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	before := testkit.Tree(t, r.root)
	r.Call("chat/prompt", map[string]any{"chatId": "c", "message": "change", "trust": true})
	r.Await(0, "output", fake.Content("progress", "begun"))
	var first struct {
		Contents []struct{ Content struct{ ContentID string } }
	}
	if err := json.Unmarshal(r.Call("chat/history", map[string]any{"chatId": "c"}), &first); err != nil {
		t.Fatal(err)
	}
	r.Call("chat/rollback", map[string]any{"chatId": "c", "contentId": first.Contents[0].Content.ContentID})
	if diff := cmp.Diff(before, testkit.Tree(t, r.root)); diff != "" {
		t.Errorf("not as before (-want +got):\n%s", diff)
	}
}
