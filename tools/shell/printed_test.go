//go:build unix

package shell

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/seed-dec29ce4/eca/internal/cmdline"
	"github.com/seed-dec29ce4/eca/internal/needs"
	"github.com/seed-dec29ce4/eca/internal/proc"
	"github.com/seed-dec29ce4/eca/tools"
)

// canonicalFormOf returns the canonical form of a command that a built-in rule allowed to run with
// these programs.
func canonicalFormOf(t *testing.T, text, dir string, programs ...tools.NamedProgram) *tools.Printed {
	t.Helper()
	canonical, program, why := cmdline.Parse(text).Canonical(cmdline.Form{Dir: dir})
	if why != "" {
		t.Fatal(why)
	}
	return &tools.Printed{Text: canonical, Program: program, Programs: append([]tools.NamedProgram{}, programs...), Path: "/usr/bin:/bin"}
}

// outputs runs a command and returns all that it printed.
func outputs(t *testing.T, o Options, spec proc.Spec) string {
	t.Helper()
	var out bytes.Buffer
	spec.Stdout, spec.Stderr = &out, &out
	if _, err := o.Children.Run(t.Context(), spec); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// A command that runs without asking has the same output as the text that the model wrote, including
// the line numbers in errors. A command that the user approved runs exactly as it was written.
func TestPrintedCommandHasSameOutput(t *testing.T) {
	needs.Program(t, "bash", "bash")
	dir := t.TempDir()
	o := Options{Bash: NewBash(t.TempDir())}
	const text = "ls nothere; nosuch\n\n# comment\necho \"a b\" \\\n  c\n\nnosuch2 x; cat <<E\nbody $HOME\nE\necho $0"
	written, err := o.prepare(tools.Call{Authorization: tools.Authorization{Approved: true}, Printed: canonicalFormOf(t, text, dir)}, text, dir)
	if err != nil || written.Args[len(written.Args)-1] != text {
		t.Fatalf("an approved command does not run as written: %q %v", written.Args, err)
	}
	programs := []tools.NamedProgram{{Name: "ls", Path: "/usr/bin/ls"}, {Name: "cat", Path: "/usr/bin/cat"}}
	printed, err := o.prepare(tools.Call{Printed: canonicalFormOf(t, text, dir, programs...)}, text, dir)
	if err != nil || printed.Path == systemBash || !strings.HasPrefix(printed.Args[2], "hash -p '/usr/bin/ls' 'ls'; ") {
		t.Fatalf("%+v %v", printed, err)
	}
	was, is := outputs(t, o, written), outputs(t, o, printed)
	if was != is || !strings.Contains(is, "line 7: nosuch2") {
		t.Errorf("written:\n%s\nprinted:\n%s", was, is)
	}
}

// The daemon's environment does not affect commands that run without asking.
func TestPrintedCommandIgnoresTheEnvironment(t *testing.T) {
	needs.Program(t, "bash", "bash")
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	evil := filepath.Join(dir, "evil")
	if err := os.WriteFile(evil, []byte("touch pwned\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, value := range map[string]string{"BASH_ENV": evil, "ENV": evil, "BASH_FUNC_ls%%": "() { touch pwned; }", "CDPATH": "/", "SHELLOPTS": "xtrace"} {
		t.Setenv(name, value)
	}
	o := Options{Bash: NewBash(t.TempDir())}
	const text = "ls; mkdir -p usr; cd usr && pwd"
	for _, text := range []string{text, "bash -c '" + text + "'", "sh -c '" + text + "'"} {
		spec, err := o.prepare(tools.Call{Printed: canonicalFormOf(t, text, dir)}, "", dir)
		if err != nil {
			t.Fatal(err)
		}
		out := outputs(t, o, spec)
		if _, err := os.Stat(filepath.Join(dir, "pwned")); err == nil || !strings.Contains(out, dir+"/usr") || strings.Contains(out, "+ ") {
			t.Errorf("%s: %s", text, out)
		}
	}
}
