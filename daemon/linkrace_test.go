package daemon

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/seed-dec29ce4/eca/config"
	"github.com/seed-dec29ce4/eca/internal/needs"
	"github.com/seed-dec29ce4/eca/tools"
	"github.com/seed-dec29ce4/eca/tools/fs"
	"github.com/seed-dec29ce4/eca/tools/permission"
	"github.com/seed-dec29ce4/eca/workspace"
)

// While a model writes files below a path, an attacker creates and removes a link there that leads out of
// the workspace. No allowed write reaches the target of the link.
func TestLinkThatComesAndGoes(t *testing.T) {
	needs.Long(t) // the attacker needs a processor of its own for some time
	root, outside := t.TempDir(), t.TempDir()
	needs.Symlink(t, outside, filepath.Join(root, "try"))
	link := filepath.Join(root, "link")
	stop := make(chan struct{})
	var attacker sync.WaitGroup
	attacker.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
				_ = os.Symlink(outside, link)
				_ = os.Remove(link)
			}
		}
	})
	defer attacker.Wait()
	defer close(stop)

	cfg := config.Load(config.Inputs{InitOptions: json.RawMessage(`{"toolCall": {"approval": {"allow": {"eca__write_file": {}}}}}`), Getenv: func(string) string { return "" }})
	policy, errs := permission.New(cfg.Config, permission.Options{Contains: workspace.New(root).ContainsResolved, Memory: permission.NewMemory("")})
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	tool, ok := tools.NewRegistry(fs.Tools(fs.Options{ReadMaxLines: 100})...).Lookup("write_file")
	if !ok {
		t.Fatal("there is no tool write_file")
	}
	allowed := 0
	for i := range 4000 {
		args, err := json.Marshal(map[string]string{"path": filepath.Join(link, fmt.Sprintf("f%d", i)), "content": "x"})
		if err != nil {
			t.Fatal(err)
		}
		call := tools.Call{Agent: "code", Roots: []string{root}, Arguments: args}
		plan, err := tool.Plan(context.Background(), call)
		if err != nil {
			continue
		}
		v := policy.Judge(call, tool.Spec(), plan)
		if v.Decision != tools.Allow {
			continue
		}
		allowed++
		call.Places = v.Places
		_, _ = tool.Run(context.Background(), call, nil)
		_ = os.RemoveAll(link) // the tool may have created a folder, in whose place the attacker could make no link
	}
	if allowed == 0 {
		t.Error("no write was allowed: the attack did not happen")
	}
	if found, err := os.ReadDir(outside); err != nil || len(found) > 0 {
		t.Errorf("%d of %d allowed writes are outside the workspace (%v)", len(found), allowed, err)
	}
}
