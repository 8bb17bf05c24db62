package daemon

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// A command at the workspace level can write to the system's temporary folder. If the home folder is
// below it, the command gets a private temporary folder instead, and cannot write to the home folder.
func TestHomeBelowTheTemporaryFolder(t *testing.T) {
	for name, inTemp := range map[string]bool{"home below the temporary folder": true, "home elsewhere": false} {
		t.Run(name, func(t *testing.T) {
			base, temp := t.TempDir(), t.TempDir()
			if inTemp {
				base = temp
			}
			t.Setenv("TMPDIR", temp)
			home := filepath.Join(base, "home")
			root := filepath.Join(home, "project")
			kept := []string{".config/eca/config.json", ".bashrc", ".local/state/eca/approvals.json", ".ssh/authorized_keys", "other/main.go"}
			for _, name := range append(kept, "project/a.txt") {
				write(t, filepath.Join(home, name), "text\n")
			}
			d := isolatedAt(t, home)
			for _, name := range kept {
				script := "echo attack >> " + filepath.Join(home, name)
				if code, out := runInWorkspace(t, d, root, script); code == 0 {
					t.Errorf("%s: allowed: %s", script, out)
				}
				if got, _ := os.ReadFile(filepath.Join(home, name)); string(got) != "text\n" {
					t.Errorf("%s was changed to %q", name, got)
				}
			}
			if code, out := runInWorkspace(t, d, root, `f=$(mktemp) && echo x > "$f" && echo x > new.txt && echo x >> a.txt`); code != 0 {
				t.Errorf("a temporary file and files of the workspace cannot be written: %s", out)
			}
			shared := filepath.Join(temp, "shared.txt")
			if code, out := runInWorkspace(t, d, root, "echo x > "+shared); (code == 0) == inTemp {
				t.Errorf("writing to the system's temporary folder ended with %d: %s", code, out)
			}
			writable := d.bounds.Enforceable(d.Config().Config, nil).Writable
			if slices.Contains(writable, temp) == inTemp {
				t.Errorf("the policy treats these folders as writable without asking: %q", writable)
			}
		})
	}
}
