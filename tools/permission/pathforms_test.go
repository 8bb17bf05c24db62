package permission

import (
	"encoding/json"
	"path/filepath"
	"testing"

	"github.com/seed-dec29ce4/eca/internal/needs"
	"github.com/seed-dec29ce4/eca/tools"
	"github.com/seed-dec29ce4/eca/workspace"
)

// A deny rule with a path relative to the workspace or the home folder applies however the model
// writes the path.
func TestRelativePathsInDenyRules(t *testing.T) {
	home := makeFiles(t, map[string]string{".ssh/id": ""})
	t.Setenv("HOME", home)
	t.Setenv("USERPROFILE", home)
	dir := makeFiles(t, map[string]string{"secrets/a": "", "a.txt": "", "b.txt": ""})
	needs.Symlink(t, filepath.Join(dir, "secrets"), filepath.Join(dir, "link"))
	p := policyFor(t, `{"toolCall": {"approval": {"byDefault": "allow", "deny": {"eca__write_file": {"argsMatchers": {"path": ["secrets/.*", "~/\\.ssh/.*", "./a\\.txt"]}}}}}}`, dir)
	for path, denied := range map[string]bool{
		"secrets/a": true, "./secrets/new": true, dir + "/secrets/a": true, "link/a": true, "b.txt/../secrets/a": true,
		home + "/.ssh/id": true, "~/.ssh/id": true, "a.txt": true, dir + "/a.txt": true,
		"b.txt": false, "sub/secrets/a": false,
	} {
		args, err := json.Marshal(map[string]string{"path": path})
		if err != nil {
			t.Fatal(err)
		}
		plan := tools.Plan{Paths: []string{workspace.Abs([]string{dir}, path)}}
		if v := p.Judge(tools.Call{Agent: "code", Arguments: args, Roots: []string{dir}}, spec("eca__write_file"), plan); (v.Decision == tools.Deny) != denied {
			t.Errorf("%s: %+v", path, v)
		}
	}
}
