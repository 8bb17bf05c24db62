package permission

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/seed-dec29ce4/eca/internal/cmdline"
	"github.com/seed-dec29ce4/eca/internal/needs"
	"github.com/seed-dec29ce4/eca/tools"
)

// Files below the temporary folder may be deleted without a further question, but not a home
// folder there, its contents, or a folder that contains it.
func TestTemporaryHomeIsIrreplaceable(t *testing.T) {
	dir := makeFiles(t, map[string]string{"a.go": ""})
	temp := t.TempDir()
	home := filepath.Join(temp, "users", "ada")
	if err := os.MkdirAll(filepath.Join(home, "x"), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("HOME", home)
	t.Setenv("USERPROFILE", home)
	p := policyFor(t, `{}`, dir)
	for path, insists := range map[string]bool{
		home: true, filepath.Join(home, "x"): true, filepath.Dir(home): true, temp: true, "~/x": true,
		filepath.Join(temp, "build"): false, filepath.Join(temp, "users", "bob"): false,
	} {
		if v := judge(t, p, "code", dir, "rm -rf "+path); v.AlwaysAsk != insists {
			t.Errorf("rm -rf %s: %+v", path, v)
		}
	}
}

// eca asks before a command that destroys something irreversibly, also with auto-approve, and does
// not remember the answer. It does not ask this about build results, or if the user has a rule that
// allows the command.
func TestIrreversible(t *testing.T) {
	outside := makeFiles(t, map[string]string{"build/x": ""})
	dir := makeFiles(t, map[string]string{
		".gitignore": "node_modules/\n/build\n*.log\n", ".git/HEAD": "ref: refs/heads/main\n", ".git/objects/x": "", ".git/refs/x": "",
		"src/a.go": "", "src/build/b.go": "", "node_modules/m/x": "", "build/sub/x": "", "a.log/x": "", "b.log/x": "", "node_modules/vendored/.git/x": "",
	})
	for link, to := range map[string]string{"build/out": filepath.Join(dir, "src"), "linked": filepath.Join(dir, "build"), "build/up": filepath.Join(dir, "src", "build")} {
		needs.Symlink(t, to, filepath.Join(dir, filepath.FromSlash(link)))
	}
	home := filepath.Join(filepath.VolumeName(dir)+string(filepath.Separator), "home", "ada") // is not, wherever tests run
	t.Setenv("HOME", home)
	t.Setenv("USERPROFILE", home)
	temp := t.TempDir() // is below the temporary folder, and no workspace
	for _, c := range []struct {
		command string
		insists bool
	}{
		{"git reset --hard", true},
		{"git status; git clean -fdx", true},
		{"git push --force", true},
		{"git checkout src", true},
		{"git checkout main", false},
		{"git commit -m x", false},
		{"git push", false},
		{"rm a", false},
		{"rm -rf src", true},
		{"rm -rf .", true},
		{"rm -rf *", true},
		{"rm -rf " + dir, true},
		{"rm -rf " + filepath.Dir(dir), true},
		{"rm -rf /", true},
		{"rm -rf ~/", true},
		{"rm -rf $X", true},
		{"rm -rf build/$X", true},
		{"rm -rf src/build", true},
		{"rm -rf build src", true},
		{"rm -rf ../" + filepath.Base(dir) + "/src", true},
		{"rm -rf node_modules build", false},
		{"rm -rf build/sub", false},
		{"rm -rf ./build/*", false},
		{"rm -rf *.log", false},
		{"rm -rf build/out", false}, // the link goes, not what it leads to
		{"rm -rf build/out/", true},
		{"rm -rf linked", true},            // is in no ignored folder
		{"rm -rf build/up/../build", true}, // is src/build
		{"cd src && rm -rf build", true},
		{"cd $X && rm -rf build", true},
		{"rm -rf " + temp, false},
		{"rm -rf " + outside + "/build", false},
		{"rm -rf /etc/x", true},
		{"rm -rf " + os.TempDir(), true},
		{"find build -delete", false},
		{"find src -name '*.go' -delete", true},
		{"find . -name x -exec rm -rf {} +", true},
		{"ls | xargs rm -rf", true},
		{"sudo rm -rf src", true},
		// A text that is sent to a shell is judged like a command. If eca does not know the text, it asks.
		{"echo 'rm -rf src' | sh", true},
		{"echo 'rm -rf build' | sh", false},
		{"printf 'rm -rf %s\\n' build src | sudo bash -s", true},
		{"cat <<'E' | bash\ngit clean -fdx\nE", true},
		{"bash -s <<E\ncd src\nrm -rf build\nE", true},
		{"env -S 'rm -rf src'", true},
		{"su -c 'rm -rf src'", true},
		{"parallel 'rm -rf {}' ::: a b", true},
		{"echo 'rm -rf src' | xargs -I% sh -c %", true},
		{"docker exec c sh -c 'rm -rf src'", true},
		{"bash -c \"$(cat x)\"", true},
		{"cat x | sh", true},
		{"cat x | sh -s src", true},
		{"git $s", true},
		{"bash x", false},
		{"cat x | bash y", false},
	} {
		p := policyFor(t, `{}`, dir)
		v := judge(t, p, "code", dir, c.command)
		if v.Decision != tools.Ask || v.AlwaysAsk != c.insists || c.insists != (v.Rule == "irreversible") {
			t.Errorf("%q: %+v", c.command, v)
		}
		if !c.insists {
			continue
		}
		plan := tools.Plan{Command: &tools.Command{Text: c.command, Dir: dir, Program: cmdline.Parse(c.command)}}
		call := tools.Call{Agent: "code", Roots: []string{dir}, Arguments: json.RawMessage(`{}`)}
		if err := p.Remember(call, spec("eca__shell_command"), plan, tools.ForSession); err != nil {
			t.Fatal(err)
		}
		if v := judge(t, p, "code", dir, c.command); v.Decision != tools.Ask {
			t.Errorf("%q is remembered: %+v", c.command, v)
		}
	}
	for _, rule := range []string{`"allow": {"eca__shell_command": {"argsMatchers": {"command": ["git (clean|reset).*"]}}}`, `"byDefault": "allow"`} {
		p := policyFor(t, `{"toolCall": {"approval": {`+rule+`}}}`, dir)
		if v := judge(t, p, "code", dir, "git reset --hard"); v.Decision != tools.Allow {
			t.Errorf("%s: %+v", rule, v)
		}
	}
}
