//go:build unix

package search

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/seed-dec29ce4/eca/tools"
)

// A search does not follow links out of the workspace, and pipes do not hold it up.
func TestGrepLinksAndPipes(t *testing.T) {
	root, outside := t.TempDir(), t.TempDir()
	for path, text := range map[string]string{filepath.Join(root, "a.txt"): "needle in a\n", filepath.Join(outside, "secret"): "needle in secret\n"} {
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for link, to := range map[string]string{"out": filepath.Join(outside, "secret"), "in": filepath.Join(root, "a.txt"), "folder": outside} {
		if err := os.Symlink(to, filepath.Join(root, link)); err != nil {
			t.Fatal(err)
		}
	}
	if err := syscall.Mkfifo(filepath.Join(root, "pipe"), 0o600); err != nil {
		t.Fatal(err)
	}
	raw, err := json.Marshal(map[string]string{"path": root, "pattern": "needle", "output_mode": "content"})
	if err != nil {
		t.Fatal(err)
	}
	tool, ok := tools.NewRegistry(Tools()...).Lookup("grep")
	if !ok {
		t.Fatal("no grep")
	}
	call := tools.Call{Roots: []string{root}, Arguments: raw}
	res, err := tool.Run(context.Background(), call, nil)
	if err != nil {
		t.Fatal(err)
	}
	if out := strings.Join(res.Outputs, "\n"); strings.Contains(out, "secret") || !strings.Contains(out, "a.txt:1:") || !strings.Contains(out, "in:1:") {
		t.Errorf("%s", out)
	}
	call.Places = []string{outside}
	if _, err := tool.Run(context.Background(), call, nil); err == nil {
		t.Error("grep searched a folder that leads elsewhere than when the call was judged")
	}
}
