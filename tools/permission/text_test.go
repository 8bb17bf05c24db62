package permission

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/seed-dec29ce4/eca/config"
	"github.com/seed-dec29ce4/eca/internal/needs"
	"github.com/seed-dec29ce4/eca/tools"
	"github.com/seed-dec29ce4/eca/workspace"
)

// twoReadings lists commands that bash and eca's parser may read differently: for each cause, one or
// more commands.
func twoReadings() []string {
	return []string{
		"cat a.txt # x\\\nhead b", "cat <<E\na\\\nb\nE\n", "cat <<E\\\nF\nx\nEF\n", "cat <<\"a\\\"b\"\nx\na\\\"b\n", "cat <<E\"1\"\nx\nE1\n", "cat <<\"\"E\nx\nE\n",
	}
}

// eca asks about a command that bash may read differently, also if the pattern of an allow rule
// matches it.
func TestTwoReadingsAsk(t *testing.T) {
	dir := makeFiles(t, map[string]string{"a.txt": ""})
	for _, options := range []string{`{}`, `{"toolCall": {"approval": {"allow": {"eca__shell_command": {"argsMatchers": {"command": ["(?s)cat .*"]}}}}}}`} {
		p := policyFor(t, options, dir)
		for _, text := range twoReadings() {
			for _, agent := range []string{"code", "plan"} {
				v := judge(t, p, agent, dir, text)
				if strings.Contains(v.Printed.Why, "parsed") { // eca cannot parse it, so there is no second reading
					continue
				}
				if v.Decision != tools.Ask || !v.AlwaysAsk || v.Rule != "two readings" {
					t.Errorf("%s: %q: %+v", agent, text, v)
				}
			}
		}
	}
}

// eca asks about a command that it cannot print in canonical form, even in a chat with auto-approve.
// If the user's rules allow every command, it runs as written.
func TestTextWithoutForm(t *testing.T) {
	dir := makeFiles(t, map[string]string{"a.txt": ""})
	const text = "echo ${HOME/a/b}"
	if v := judge(t, policyFor(t, `{}`, dir), "code", dir, text); v.Decision != tools.Ask || !v.AlwaysAsk {
		t.Errorf("without a rule: %+v", v)
	}
	for _, options := range []string{
		`{"toolCall": {"approval": {"allow": {"eca__shell_command": {}}}}}`, `{"toolCall": {"approval": {"allow": {"eca__shell_command": {"argsMatchers": {"command": [".*"]}}}}}}`,
		`{"toolCall": {"approval": {"byDefault": "allow"}}}`,
	} {
		p := policyFor(t, options, dir)
		for _, text := range []string{text, "echo $((1 + 2))", "x() { ls; }; x", "unparsable (", "select x in a; do ls; done"} {
			if v := judge(t, p, "code", dir, text); v.Decision != tools.Allow {
				t.Errorf("%s: %q: %+v", options, text, v)
			}
		}
	}
}

// A file cannot become an option: what a glob matches is given as ./-x.
func TestFilesNamedLikeOptions(t *testing.T) {
	dir := makeFiles(t, map[string]string{"-rf": "", "--pre=x": "", "a.txt": ""})
	p := policyFor(t, `{}`, dir)
	for _, text := range []string{"rg x *", "grep x *", "sort *", "git grep x *", "find . -name *", "ls *", "make; ls *", "cd . && rm *"} {
		v := judge(t, p, "code", dir, text)
		if strings.Contains(v.Printed.Text, " '-rf'") || strings.Contains(v.Printed.Text, " '--pre=x'") || strings.Contains(v.Printed.Text, " *") {
			t.Errorf("%q is printed as %q", text, v.Printed.Text)
		}
	}
}

// eca skips folders of PATH that are in the workspace or writable by everyone. It asks about scripts,
// and about links to programs of the workspace.
func TestUntrustedProgramFolders(t *testing.T) {
	needs.POSIX(t)
	dir := makeFiles(t, map[string]string{"a.txt": "", "node_modules/.bin/ls": "", "bin/head": ""})
	shared, shims := t.TempDir(), t.TempDir()
	for _, file := range []string{filepath.Join(dir, "node_modules/.bin/ls"), filepath.Join(dir, "bin/head"), filepath.Join(shared, "wc"), filepath.Join(shims, "sort")} {
		if err := os.WriteFile(file, []byte("#!/bin/sh\nexec /bin/true\n"), 0o700); err != nil { //nolint:gosec // it is a program
			t.Fatal(err)
		}
		if err := os.Chmod(file, 0o755); err != nil { //nolint:gosec // it is a program
			t.Fatal(err)
		}
	}
	if err := os.Chmod(shared, 0o777); err != nil { //nolint:gosec // that is what is tried
		t.Fatal(err)
	}
	links, linked := t.TempDir(), filepath.Join(dir, "bin/tail")                                                                         // a program of the workspace, by a link elsewhere
	if err := errors.Join(os.Chmod(links, 0o755), os.WriteFile(linked, []byte("\x7fELF"), 0o700), os.Chmod(linked, 0o755)); err != nil { //nolint:gosec // it is a program
		t.Fatal(err)
	}
	needs.Symlink(t, linked, filepath.Join(links, "tail"))
	path := strings.Join([]string{"bin", filepath.Join(dir, "node_modules/.bin"), shared, shims, links, "/usr/bin", "/bin"}, ":")
	cfg := config.Load(config.Inputs{InitOptions: json.RawMessage(`{}`), Getenv: func(string) string { return "" }})
	p, errs := New(cfg.Config, Options{Contains: workspace.New(dir).ContainsResolved, Memory: NewMemory(""), Children: testPool(t), Getenv: func(name string) string {
		return map[string]string{"PATH": path}[name]
	}})
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	for _, name := range []string{"ls", "head", "wc"} {
		v := judge(t, p, "plan", dir, name+" a.txt")
		if v.Decision != tools.Allow || len(v.Printed.Programs) != 1 || !strings.HasSuffix(filepath.Dir(v.Printed.Programs[0].Path), "/bin") || strings.HasPrefix(v.Printed.Programs[0].Path, dir) {
			t.Errorf("%s: %+v %+v", name, v, v.Printed)
		}
	}
	if v := judge(t, p, "plan", dir, "sort a.txt"); v.Decision != tools.Ask || v.Rule != "program" {
		t.Errorf("a script that starts others: %+v", v)
	}
	if v := judge(t, p, "plan", dir, "tail a.txt"); v.Decision != tools.Ask || !strings.Contains(v.Reason, "is in the workspace") {
		t.Errorf("a link to a program of the workspace: %+v", v)
	}
}

// eca reads a folder of PATH again after it has changed: it finds a program that was added, and skips
// a folder that everyone may now write to.
func TestChangedPathFoldersAreReadAgain(t *testing.T) {
	needs.POSIX(t)
	dir, first, second := makeFiles(t, map[string]string{"a.txt": ""}), t.TempDir(), t.TempDir()
	program := func(file string) string {
		t.Helper()
		if err := errors.Join(os.WriteFile(file, []byte("\x7fELF"), 0o700), os.Chmod(file, 0o755)); err != nil { //nolint:gosec // it is a program
			t.Fatal(err)
		}
		return file
	}
	inFirst, inSecond := filepath.Join(first, "wc"), program(filepath.Join(second, "wc"))
	old := time.Now().Add(-time.Hour)
	if err := errors.Join(os.Chmod(first, 0o755), os.Chmod(second, 0o755), os.Chtimes(first, old, old), os.Chtimes(second, old, old)); err != nil { //nolint:gosec // like /usr/bin
		t.Fatal(err)
	}
	cfg := config.Load(config.Inputs{InitOptions: json.RawMessage(`{}`), Getenv: func(string) string { return "" }})
	p, _ := New(cfg.Config, Options{Contains: workspace.New(dir).ContainsResolved, Memory: NewMemory(""), Getenv: func(name string) string {
		return map[string]string{"PATH": first + ":" + second}[name]
	}})
	finds := func(want string) {
		t.Helper()
		for range 2 {
			v := judge(t, p, "plan", dir, "wc a.txt")
			if v.Printed == nil || len(v.Printed.Programs) != 1 || v.Printed.Programs[0].Path != want {
				t.Errorf("%+v %+v, want %s", v, v.Printed, want)
			}
		}
	}
	finds(inSecond)
	finds(program(inFirst))
	if err := os.Chmod(first, 0o777); err != nil { //nolint:gosec // that is what is tried
		t.Fatal(err)
	}
	finds(inSecond)
}

// eca asks about or denies commands that it cannot judge, for each agent and mode.
func TestOddTextsAsk(t *testing.T) {
	dir := makeFiles(t, map[string]string{"a.txt": ""})
	for what, text := range map[string]string{
		"NUL": "ls \x00", "not UTF-8": "ls \xff", "open": "ls '", "long": strings.Repeat("ls;", 1<<20/3), "a long word": "ls " + strings.Repeat("a", 1<<20), "deep": strings.Repeat("$(", 50_000), "closed, deep": strings.Repeat("(", 50_000) + "ls" + strings.Repeat(")", 50_000),
		"wide": strings.Repeat("{a,b}", 5000), "many commands": strings.Repeat("ls; ", 10_000), "deep loops": strings.Repeat("for a in 1 2; do ", 100) + "ls" + strings.Repeat("; done", 100),
		"a value that grows": "a=x; " + strings.Repeat("a=$a$a$a$a; ", 30) + "ls $a", "many values": "for a in" + strings.Repeat(" x", 2000) + "; do ls $a; done", "values of values": strings.Repeat("for a in $b 1 2; do for b in $a 3 4; do ", 5) + "ls $a $b" + strings.Repeat("; done", 10),
	} {
		for agent, options := range map[string]string{"code": `{"toolCall": {"unasked": "workspace"}}`, "general": `{}`, "plan": `{}`} {
			began := time.Now()
			v := judge(t, policyFor(t, options, dir), agent, dir, text)
			t.Logf("%s: %s", what, time.Since(began))
			if v.Decision == tools.Allow {
				t.Errorf("%s: %s: %+v", agent, what, v.Rule)
			}
		}
	}
}
