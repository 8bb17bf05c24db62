package daemon

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/seed-dec29ce4/eca/internal/needs"
	"github.com/seed-dec29ce4/eca/internal/sandbox"
	"github.com/seed-dec29ce4/eca/internal/testkit"
	"github.com/seed-dec29ce4/eca/tools"
)

// isolatedWith returns a daemon of an environment, whose commands are isolated.
func isolatedWith(t *testing.T, env map[string]string, o Options) *Daemon {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("HOME", env["HOME"])
	o.Getenv, o.Supervisor = func(name string) string { return env[name] }, self
	d := New(o)
	t.Cleanup(d.Close)
	d.Configure(json.RawMessage(`{"toolCall": {"sandbox": "on"}}`), nil)
	if here := d.bounds.Isolation(); !here.Mounts || !here.Processes {
		t.Skip("NOT TESTED: no mount and PID namespaces on this machine: " + here.Without)
	}
	return d
}

// makeTree writes files, by name: a text that begins with "-> " makes a link.
func makeTree(t *testing.T, root string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		target, isLink := strings.CutPrefix(text, "-> ")
		if !isLink {
			write(t, filepath.Join(root, name), text)
			continue
		}
		if err := os.MkdirAll(filepath.Dir(filepath.Join(root, name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(target, filepath.Join(root, name)); err != nil {
			t.Fatal(err)
		}
	}
}

// waysToChange are scripts that try to change a file N, or to replace it or one of the folders above it,
// up to TOP.
func waysToChange() []string {
	return []string{
		`echo evil > "$N"`, `mkdir -p "$(dirname "$N")" && echo evil > "$N"`, `echo evil >> "$N"`, `rm "$N" && echo evil > "$N"`, `echo evil > new && mv -f new "$N"`, `sed -i s/before/evil/ "$N"`, `ln "$N" new && echo evil > new`,
		`D=$N; while D=$(dirname "$D"); [ "$D" != "$TOP" ] && [ "$D" != / ]; do mv "$D" moved && mkdir -p "$(dirname "$N")" && echo evil > "$N"; done`,
		`D=$N; while D=$(dirname "$D"); [ "$D" != "$TOP" ] && [ "$D" != / ]; do rm -rf "$D" && mkdir -p "$(dirname "$N")" && echo evil > "$N"; done`,
		`D=$N; while D=$(dirname "$D"); [ "$D" != "$TOP" ] && [ "$D" != / ]; do L=$(readlink "$D") && ln -sfn elsewhere "$D" && mkdir -p elsewhere && echo evil > "$N"; done`,
		`ln -sf evil.txt "$N"`,
	}
}

// checkUnchangeable tries to change files that are reached by names in a root.
func checkUnchangeable(t *testing.T, d *Daemon, root string, names ...string) {
	t.Helper()
	write(t, filepath.Join(root, "evil.txt"), "evil\n")
	for _, name := range names {
		at, top := filepath.Join(root, name), "."
		if filepath.IsAbs(name) { // in the test's temporary folder: moving the folders above it could copy large folders
			at, top = name, filepath.Dir(os.TempDir())
		}
		before := read(t, at)
		for _, script := range waysToChange() {
			_, out := runInWorkspace(t, d, root, "N='"+name+"'; TOP='"+top+"'; "+script)
			if after := read(t, at); after != before {
				t.Fatalf("%s: %s: now %q: %s", name, script, after, out)
			}
		}
	}
	if code, out := runInWorkspace(t, d, root, "mkdir -p some/folder && echo x > some/folder/file && mv some other && rm -r other"); code != 0 {
		t.Errorf("other files: exit %d: %s", code, out)
	}
}

// If eca's own folders are in the workspace, they are read-only for commands, even if they do not exist
// yet. So are the protected files of a home folder deep in the workspace.
func TestOwnFoldersInTheWorkspace(t *testing.T) {
	needs.Long(t)
	dir := testkit.OutOfTemp(t)
	root := filepath.Join(dir, "ws")
	home := filepath.Join(root, "a", "b", "c", "d", "u")
	makeTree(t, home, map[string]string{
		".bashrc": "before\n", ".ssh/authorized_keys": "before\n", ".config/autostart/x.desktop": "before\n", ".gitconfig": "before\n", "notes.txt": "before\n",
		".local/state/eca/permissions.json": "{}\n",
	})
	d := isolatedWith(t, map[string]string{"HOME": home}, Options{})
	names := []string{".config/eca/config.json", ".local/state/eca/permissions.json", ".cache/eca/shell/bash", ".bashrc", ".ssh/authorized_keys", ".config/autostart/x.desktop", ".gitconfig"}
	for i, name := range names {
		names[i] = filepath.Join("a/b/c/d/u", name)
	}
	checkUnchangeable(t, d, root, names...)
	if code, out := runInWorkspace(t, d, root, "cd a/b/c/d/u && echo after > notes.txt && mkdir -p .config/other && echo x > .config/other/x && echo x > \"$npm_config_cache/x\""); code != 0 {
		t.Errorf("other files of the home folder: exit %d: %s", code, out)
	}
	for _, root := range []string{home, filepath.Join(home, ".config"), filepath.Join(home, ".config", "eca"), filepath.Join(home, ".local", "state", "eca", "below")} {
		if err := os.MkdirAll(root, 0o755); err != nil {
			t.Fatal(err)
		}
		for _, file := range []string{filepath.Join(home, ".config/eca/config.json"), filepath.Join(home, ".local/state/eca/permissions.json"), filepath.Join(home, ".local/state/eca/below/x")} {
			before := read(t, file)
			if _, out := runInWorkspace(t, d, root, "echo evil > '"+file+"'"); read(t, file) != before {
				t.Errorf("in %s: %s is changed: %s", root, file, out)
			}
		}
	}
}

// eca's own folders are also read-only if variables or flags name them, or if links lead to them.
func TestOwnFoldersElsewhere(t *testing.T) {
	needs.Long(t)
	dir := testkit.OutOfTemp(t)
	root := filepath.Join(dir, "ws")
	makeTree(t, dir, map[string]string{
		"ws/xdg/config/eca/config.json": "{}\n", "ws/xdg/state/eca/x": "before\n", "ws/mine.json": "{}\n", "ws/xdg/config/eca/commands": "-> ../../../said", "ws/said/rules.txt": "before\n",
		"ws/dots/cache/shell/bash": "before\n", "ws/dots/real/notes": "before\n",
		"ws/ways/cache": "-> ../dots/hop", "ws/dots/hop": "-> cache-parent", "ws/dots/cache-parent/eca": "-> ../cache", "ws/person": "-> dots/real",
	})
	d := isolatedWith(t, map[string]string{
		"HOME": filepath.Join(root, "person"), "XDG_CONFIG_HOME": filepath.Join(root, "xdg", "config"), "XDG_STATE_HOME": filepath.Join(root, "xdg", "state"), "XDG_CACHE_HOME": filepath.Join(root, "ways", "cache"),
	}, Options{ConfigFile: filepath.Join(root, "mine.json")})
	checkUnchangeable(t, d, root, "xdg/config/eca/config.json", "xdg/state/eca/x", "xdg/state/eca/permissions.json", "ways/cache/eca/shell/bash", "said/rules.txt", "dots/cache/shell/bash", "mine.json")
	for _, script := range []string{"rm person", "ln -sfn /tmp person", "mv person x", "mv dots/real x", "rm ways/cache", "ln -sfn x dots/hop", "ln -sfn ../x dots/cache-parent/eca"} {
		if code, out := runInWorkspace(t, d, root, script); code == 0 {
			t.Errorf("%s: worked: %s", script, out)
		}
	}
}

// In a workspace of dotfiles, the files that links in the home folder lead to are read-only.
func TestDotfilesInTheWorkspace(t *testing.T) {
	needs.Long(t)
	dir := testkit.OutOfTemp(t)
	root, home := filepath.Join(dir, "dotfiles"), filepath.Join(dir, "home")
	makeTree(t, root, map[string]string{"mine/settings.txt": "{}\n", "bash/rc": "before\n", "conf/fish/config.fish": "before\n", "readme": "before\n"})
	makeTree(t, home, map[string]string{".config": "-> " + filepath.Join(root, "conf"), ".bashrc": "-> ../dotfiles/bash/rc"})
	makeTree(t, root, map[string]string{"conf/eca/config.json": "-> ../../mine/settings.txt"})
	d := isolatedWith(t, map[string]string{"HOME": home}, Options{})
	checkUnchangeable(t, d, root, "mine/settings.txt", "bash/rc", "conf/fish/config.fish", "conf/eca/config.json")
	if code, out := runInWorkspace(t, d, root, "echo after > readme && echo x > bash/other"); code != 0 {
		t.Errorf("other files: exit %d: %s", code, out)
	}
}

// If a link in the temporary folder leads to the home folder, commands get a private temporary folder.
// eca's own files in the temporary folder are read-only.
func TestTemporaryFolderWithWaysToEca(t *testing.T) {
	needs.Long(t)
	dir := testkit.OutOfTemp(t)
	temp, root := os.TempDir(), filepath.Join(dir, "ws")
	makeTree(t, dir, map[string]string{"home/.config/eca/config.json": "{}\n", "ws/x": "x\n"})
	link, config := filepath.Join(temp, "home"), filepath.Join(temp, "flags", "eca.json")
	write(t, config, "{}\n")
	if err := os.Symlink(filepath.Join(dir, "home"), link); err != nil {
		t.Fatal(err)
	}
	linked := isolatedWith(t, map[string]string{"HOME": link}, Options{})
	if code, out := runInWorkspace(t, linked, root, "rm '"+link+"' || echo x > '"+temp+"/x'"); code == 0 {
		t.Errorf("a command removed the link to the home folder, or wrote to the shared temporary folder: %s", out)
	}
	d := isolatedWith(t, map[string]string{"HOME": filepath.Join(dir, "home")}, Options{ConfigFile: config, Ephemeral: true})
	if !strings.HasPrefix(d.ephemeralDir, temp+"/") {
		t.Fatalf("the folder for files of --ephemeral is %q, not in the temporary folder", d.ephemeralDir)
	}
	write(t, filepath.Join(d.ephemeralDir, "undo", "point"), "before\n")
	checkUnchangeable(t, d, root, config, filepath.Join(d.ephemeralDir, "undo", "point"), filepath.Join(d.ephemeralDir, "undo", "new"))
	if code, out := runInWorkspace(t, d, root, "echo x > '"+temp+"/x'"); code != 0 {
		t.Errorf("a command cannot write to the temporary folder: exit %d: %s", code, out)
	}
	without := d.bounds.Isolation()
	without.Mounts = false
	d.bounds.Isolation = func() sandbox.Isolation { return without }
	if code, out := run(t, d, d.bounds.Custom(d.Config(), "", tools.Call{Roots: []string{root}}), root, "echo evil > '"+d.ephemeralDir+"/undo/point'"); code == 0 {
		t.Errorf("without mount namespaces, a command changed an undo point: %s", out)
	}
	if got := fmt.Sprint(read(t, config), read(t, filepath.Join(d.ephemeralDir, "undo", "point"))); got != "{}\nbefore\n" {
		t.Errorf("the configuration and the undo point are now %q", got)
	}
}
