package tools_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/seed-dec29ce4/eca/internal/needs"
	"github.com/seed-dec29ce4/eca/internal/testkit"
	"github.com/seed-dec29ce4/eca/tools"
)

// A client is asked for a file by the path below its workspace root, also if that root is a link.
// It is not asked for files outside the workspace.
func TestWithBuffers(t *testing.T) {
	dir := testkit.TempDir(t)
	target, link := filepath.Join(dir, "real"), filepath.Join(dir, "link")
	if err := os.Mkdir(target, 0o755); err != nil {
		t.Fatal(err)
	}
	needs.Symlink(t, target, link)
	asked := ""
	buffers := tools.Buffers{
		Read:  func(_ context.Context, _, path string) (string, error) { asked = path; return "text", nil },
		Write: func(_ context.Context, _, path, _ string) error { asked = path; return errors.New("no") },
	}
	var call tools.Call
	tool := tools.WithBuffers(tools.Definition[struct{}]{
		Name: "look",
		Run: func(_ context.Context, c tools.Call, _ struct{}, _ tools.Sink) (tools.Result, error) {
			call = c
			return tools.Result{}, nil
		},
	}.Build(), buffers)
	if _, err := tool.Run(t.Context(), tools.Call{Roots: []string{link}, Arguments: []byte("{}")}, nil); err != nil {
		t.Fatal(err)
	}
	if text, ok := call.Unsaved(filepath.Join(target, "a", "b.txt")); !ok || text != "text" || asked != filepath.Join(link, "a", "b.txt") {
		t.Errorf("%q, %v, asked for %s", text, ok, asked)
	}
	asked = ""
	for _, elsewhere := range []string{filepath.Join(dir, "c.txt"), dir, target + "more"} {
		if _, ok := call.Unsaved(elsewhere); ok || asked != "" || call.Save(elsewhere, "x") {
			t.Errorf("%s: asked for %q", elsewhere, asked)
		}
	}
	if call.Save(filepath.Join(target, "d.txt"), "x") || asked != filepath.Join(link, "d.txt") {
		t.Errorf("Save reported success although the client failed, or asked it for the wrong path: %q", asked)
	}
}
