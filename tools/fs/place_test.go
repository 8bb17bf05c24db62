package fs

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/seed-dec29ce4/eca/internal/needs"
	"github.com/seed-dec29ce4/eca/tools"
	"github.com/seed-dec29ce4/eca/workspace"
)

// attack plans and judges a call, lets somebody change the workspace, and runs it.
func attack(t *testing.T, name, root string, args map[string]any, meanwhile func()) (tools.Result, error) {
	t.Helper()
	raw, err := json.Marshal(args)
	if err != nil {
		t.Fatal(err)
	}
	tool, ok := tools.NewRegistry(Tools(Options{ReadMaxLines: 100})...).Lookup(name)
	if !ok {
		t.Fatal("no tool ", name)
	}
	call := tools.Call{Roots: []string{root}, Arguments: raw}
	plan, err := tool.Plan(context.Background(), call)
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range plan.Paths { // as the policy does
		call.Places = append(call.Places, workspace.Resolve(path))
	}
	meanwhile()
	return tool.Run(context.Background(), call, nil)
}

// A file tool fails if its path leads elsewhere than when the call was judged, and touches no file
// there.
func TestSwappedPaths(t *testing.T) {
	for name, args := range map[string]map[string]any{
		"write_file": {"content": "evil\n"}, "edit_file": {"original_content": "one", "new_content": "evil"}, "read_file": {},
		"multi_edit": {"edits": []any{map[string]any{"original_content": "one", "new_content": "evil"}}},
		"move_file":  {"destination": "moved"},
	} {
		for _, swap := range []string{"file", "folder"} {
			root, outside := t.TempDir(), t.TempDir()
			file, secret := filepath.Join(root, "dir", "a.txt"), filepath.Join(outside, "a.txt")
			for _, f := range []string{file, secret} {
				if err := os.MkdirAll(filepath.Dir(f), 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(f, []byte("one\n"), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			args["path"], args["source"] = file, file
			if name == "move_file" {
				args["destination"] = filepath.Join(root, "moved")
			}
			res, err := attack(t, name, root, args, func() {
				from, to := file, secret
				if swap == "folder" {
					from, to = filepath.Dir(file), outside
				}
				if err := os.RemoveAll(from); err != nil {
					t.Fatal(err)
				}
				needs.Symlink(t, to, from)
			})
			if err == nil {
				t.Errorf("%s, %s: %+v", name, swap, res)
			}
			if data, err := os.ReadFile(secret); err != nil || string(data) != "one\n" {
				t.Errorf("%s, %s: outside is %q, %v", name, swap, data, err)
			}
			if found, _ := filepath.Glob(filepath.Join(outside, ".eca-*")); len(found) > 0 {
				t.Errorf("%s, %s left %v", name, swap, found)
			}
		}
	}
}

// Writing a file that has a second name (a hard link) outside the workspace does not change what the
// second name has.
func TestHardLink(t *testing.T) {
	root, outside := t.TempDir(), t.TempDir()
	secret := filepath.Join(outside, "profile")
	if err := os.WriteFile(secret, []byte("one\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(root, "a.txt")
	if err := os.Link(secret, file); err != nil {
		t.Fatal(err)
	}
	if _, err := attack(t, "write_file", root, map[string]any{"path": file, "content": "evil\n"}, func() {}); err != nil {
		t.Fatal(err)
	}
	if data, err := os.ReadFile(secret); err != nil || string(data) != "one\n" {
		t.Errorf("outside is %q, %v", data, err)
	}
	if data, err := os.ReadFile(file); err != nil || !strings.HasPrefix(string(data), "evil") {
		t.Errorf("inside is %q, %v", data, err)
	}
}
