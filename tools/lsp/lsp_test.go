package lsp

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/seed-dec29ce4/eca/config"
	"github.com/seed-dec29ce4/eca/internal/needs"
	"github.com/seed-dec29ce4/eca/internal/proc"
	"github.com/seed-dec29ce4/eca/internal/sandbox"
	"github.com/seed-dec29ce4/eca/internal/testkit"
	"github.com/seed-dec29ce4/eca/tools"
	"github.com/seed-dec29ce4/eca/tools/diagnostics"
)

func TestMain(m *testing.M) {
	if code, ok := proc.Supervise(os.Args); ok {
		os.Exit(code)
	}
	if testkit.ServeLanguage(os.Args) {
		return
	}
	goleak.VerifyTestMain(m)
}

type rig struct {
	*testing.T
	dir      string
	settings Settings
	servers  *Servers
	edit     tools.Tool
}

// newRig serves the test language, in the given modes, in a folder with files.
func newRig(t *testing.T, modes string, files map[string]string) *rig {
	dir := t.TempDir()
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	pool := proc.NewPool(os.Args[0], 0)
	t.Cleanup(pool.Close)
	r := &rig{T: t, dir: dir, servers: New(Options{Children: pool, Getenv: os.Getenv, Now: time.Now, Failed: func() {}, Log: slog.New(slog.DiscardHandler)})}
	t.Cleanup(r.servers.Close)
	r.settings = Settings{
		Config: config.LSP{Servers: map[string]config.LSPServer{"toy": {
			Command: append(config.Strings{os.Args[0], testkit.LanguageServer}, strings.Fields(modes)...), Extensions: []string{".toy"},
		}}},
		Roots: []string{dir}, Wait: 20 * time.Second, StartWait: 20 * time.Second,
		Bind: func(bool) (sandbox.Policy, []string, error) { return sandbox.Policy{}, nil, nil },
	}
	r.use()
	return r
}

// use puts the settings into effect.
func (r *rig) use() *View {
	view := r.servers.With(r.settings)
	r.edit = diagnostics.New().Watch(tools.Definition[map[string]string]{
		Name: "write_file", Description: "x",
		Run: func(_ context.Context, _ tools.Call, a map[string]string, _ tools.Sink) (tools.Result, error) {
			return tools.Text("written"), os.WriteFile(a["path"], []byte(a["text"]), 0o600)
		},
	}.Build(), view)
	return view
}

// write edits a file, and returns what is new without the header.
func (r *rig) write(name, text string) string {
	r.Helper()
	args, err := json.Marshal(map[string]string{"path": filepath.Join(r.dir, name), "text": text})
	if err != nil {
		r.Fatal(err)
	}
	res, err := r.edit.Run(r.Context(), tools.Call{Roots: []string{r.dir}, Arguments: args}, nil)
	if err != nil || res.Failed || !strings.HasPrefix(res.Outputs[0], "written") {
		r.Fatalf("%v, %v", res, err)
	}
	_, list, _ := strings.Cut(res.Outputs[0], "edit:\n")
	return strings.ReplaceAll(list, r.dir+"/", "")
}

func (r *rig) want(got, want string) {
	r.Helper()
	if got != want {
		r.Errorf("got:\n%s\nwant:\n%s", got, want)
	}
}

func TestNewErrorsAreNamed(t *testing.T) {
	needs.POSIX(t)
	for _, mode := range []string{"", "unversioned", "staged", "pull", "pull dependent"} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, mode, map[string]string{"a.toy": "ERR old\n", "b.toy": "USE f\nDEF g\n", "c.toy": "DEF f\n"})
			r.want(r.write("a.toy", "\nERR old\nWARN w\nERR new\n"), "a.toy:4:5: error: new [toy 7]\na.toy:3:6: warning: w [toy 7]")
			r.want(r.write("a.toy", "ERR old\nWARN w\nERR new\n"), "")
			r.want(r.write("new.toy", "ERR x\n"), "new.toy:1:5: error: x [toy 7]")
			r.want(r.write("plain.txt", "ERR x\n"), "")
			switch mode {
			case "pull": // it is asked about changed files only
			case "pull dependent": // and about those that are open
				r.want(r.write("c.toy", "DEF f\n\n"), "")
				r.want(r.write("b.toy", "USE f\nDEF g\n\n"), "")
				r.want(r.write("c.toy", "DEF h\n"), "b.toy:1:5: error: undefined: f [toy 7]")
				r.want(r.write("c.toy", "DEF h\n\n"), "")
			default:
				r.want(r.write("c.toy", "DEF h\n"), "b.toy:1:5: error: undefined: f [toy 7]")
				r.want(r.write("c.toy", "DEF h\n\n"), "")
			}
		})
	}
}

// eca tells the server of changes that others made on the disk before it checks the next edit.
// Errors from those changes are not reported as errors of the edit.
func TestChangesOfOthers(t *testing.T) {
	needs.POSIX(t)
	r := newRig(t, "", map[string]string{"a.toy": "\n"})
	r.want(r.write("a.toy", "DEF a\n"), "")
	for name, text := range map[string]string{"a.toy": "DEF a\nERR theirs\n", "b.toy": "DEF b\n"} {
		if err := os.WriteFile(filepath.Join(r.dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	r.want(r.write("a.toy", "DEF a\nERR theirs\nUSE b\nERR ours\n"), "a.toy:4:5: error: ours [toy 7]")
}

// A server that misbehaves delays edits for a bounded time.
func TestHostileServers(t *testing.T) {
	needs.POSIX(t)
	for _, c := range []struct {
		mode, first string
		edits       time.Duration // five of them
	}{
		{"mute", "", 10 * time.Second},
		{"stuck", "", 10 * time.Second},
		{"deaf", "", 10 * time.Second},
		{"crash", "", 10 * time.Second},
		{"crash-start", "", 10 * time.Second},
		{"flood", "", 60 * time.Second},
		{"others", "a.toy:1:5: error: new [toy 7]", 60 * time.Second},
		{"many", "", 60 * time.Second},
	} {
		t.Run(c.mode, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, c.mode, map[string]string{"a.toy": "DEF a\n"})
			r.settings.Wait, r.settings.StartWait = time.Second, 3*time.Second
			switch {
			case c.mode == "many": // its reports may come too late: reading them takes seconds with the race detector
				r.settings.Wait, r.settings.StartWait = 3*time.Second, 10*time.Second
			case c.edits > 10*time.Second: // it answers, as fast as the machine lets it
				r.settings.Wait, r.settings.StartWait = 10*time.Second, 20*time.Second
			}
			r.use()
			start := time.Now()
			got := r.write("a.toy", "ERR new\n")
			if c.mode != "flood" { // it may be ended before or after the answer
				r.want(got, c.first)
			}
			for _, text := range []string{"1\n", "2\n", "3\n", "4\n"} {
				r.write("a.toy", text)
			}
			if took := time.Since(start); took > c.edits {
				t.Errorf("five edits took %s", took)
			}
		})
	}
}

// A server that fails is started again after a pause, which doubles.
func TestPauses(t *testing.T) {
	needs.POSIX(t)
	r := newRig(t, "crash-start", map[string]string{"a.toy": "DEF a\n"})
	now := time.Now()
	r.servers.opts.Now = func() time.Time { return now }
	path := filepath.Join(r.dir, "a.toy")
	for i, pause := range []time.Duration{time.Second, 2 * time.Second, 4 * time.Second} {
		view := r.use()
		s, err := view.runningFor(path)
		if err != nil {
			t.Fatalf("start %d: %v", i, err)
		}
		if err := s.awaitReady(t.Context()); err == nil || !strings.Contains(err.Error(), "exit code 3: cannot start") {
			t.Fatalf("start %d: %v", i, err)
		}
		r.servers.work.Wait()
		now = now.Add(pause - time.Millisecond)
		if _, err := view.runningFor(path); err == nil || !strings.Contains(err.Error(), "cannot start") {
			t.Fatalf("it was started before its pause of %s was over: %v", pause, err)
		}
		now = now.Add(time.Millisecond)
	}
}

func TestServersEnd(t *testing.T) {
	needs.POSIX(t)
	r := newRig(t, "", map[string]string{"a.toy": "DEF a\n"})
	r.want(r.write("a.toy", "ERR x\n"), "a.toy:1:5: error: x [toy 7]")
	denied := errors.New("not trusted")
	r.settings.Bind = func(bool) (sandbox.Policy, []string, error) { return sandbox.Policy{}, nil, denied }
	view := r.use()
	if _, err := view.runningFor(filepath.Join(r.dir, "a.toy")); !errors.Is(err, denied) {
		t.Errorf("%v", err)
	}
	r.servers.work.Wait() // the server that ran was ended
	r.want(r.write("a.toy", "ERR x\nERR y\n"), "")
}

func TestNavigation(t *testing.T) {
	needs.POSIX(t)
	r := newRig(t, "", map[string]string{"a.toy": "DEF f\nDEF g\n", "b.toy": "\nUSE f\n"})
	view := r.use()
	a, b := filepath.Join(r.dir, "a.toy"), filepath.Join(r.dir, "b.toy")
	found, err := view.Definition(t.Context(), tools.Position{Path: b, Line: 2, Character: 5})
	if err != nil || len(found) != 1 || found[0] != (tools.Position{Path: a, Line: 1, Character: 5}) {
		t.Errorf("definition: %v, %v", found, err)
	}
	found, err = view.References(t.Context(), tools.Position{Path: a, Line: 1, Character: 5}, false)
	if err != nil || len(found) != 1 || found[0] != (tools.Position{Path: b, Line: 2, Character: 5}) {
		t.Errorf("references: %v, %v", found, err)
	}
	if _, err := view.Definition(t.Context(), tools.Position{Path: filepath.Join(r.dir, "x.txt"), Line: 1, Character: 1}); !errors.Is(err, ErrNone) {
		t.Errorf("%v", err)
	}
	for args, want := range map[string]string{
		`{"path":"` + a + `"}`:             "a.toy:1:5: function f\na.toy:2:5: function g",
		`{"path":"` + a + `","query":"G"}`: "a.toy:2:5: function g",
		`{"query":"f"}`:                    "a.toy:1:5: function f\na.toy:2:5: function g",
		`{"path":"` + b + `"}`:             "No symbols were found.",
	} {
		res, err := view.SymbolsTool(0).Run(t.Context(), tools.Call{Roots: []string{r.dir}, Arguments: json.RawMessage(args)}, nil)
		if err != nil || strings.ReplaceAll(res.Outputs[0], r.dir+"/", "") != want {
			t.Errorf("%s: %v, %v", args, res.Outputs, err)
		}
	}
}

func TestDefinitions(t *testing.T) {
	programs := func(d definition) (out []string) {
		for _, p := range d.programs {
			out = append(out, strings.TrimSpace(p.name+" "+strings.Join(p.args, " ")))
		}
		return out
	}
	find := func(c map[string]config.LSPServer, ext string) string {
		defs, problems := definitions(c)
		for name, problem := range problems {
			return name + ": " + problem
		}
		for _, d := range defs {
			if d.files[ext] != "" {
				return strings.Join(programs(d), ", ")
			}
		}
		return ""
	}
	for name, c := range map[string]struct {
		config    map[string]config.LSPServer
		ext, want string
	}{
		"nothing":                              {nil, ".go", "gopls"},
		"of Crush, by language":                {map[string]config.LSPServer{"go": {Command: config.Strings{"my-gopls"}, Args: []string{"-v"}}}, ".go", "my-gopls -v"},
		"of opencode, by server":               {map[string]config.LSPServer{"gopls": {Command: config.Strings{"my-gopls", "-v"}}}, ".go", "my-gopls -v"},
		"one program of several":               {map[string]config.LSPServer{"pyright": {}}, ".py", "pyright-langserver --stdio"},
		"a disabled language":                  {map[string]config.LSPServer{"go": {Disabled: true}}, ".go", ""},
		"a language with programs of its name": {map[string]config.LSPServer{"typescript": {Disabled: true}}, ".ts", ""},
		"a disabled compiler":                  {map[string]config.LSPServer{"tsc": {Disabled: true}}, ".ts", "typescript-language-server --stdio, vtsls --stdio"},
		"a disabled program":                   {map[string]config.LSPServer{"basedpyright": {Disabled: true}}, ".py", "pyright-langserver --stdio, pylsp"},
		"other arguments":                      {map[string]config.LSPServer{"rust": {Args: []string{"--x"}}}, ".rs", "rust-analyzer --x"},
		"another language":                     {map[string]config.LSPServer{"x": {Command: config.Strings{"xls"}, Extensions: []string{"x"}}}, ".x", "xls"},
		"by filetype":                          {map[string]config.LSPServer{"x": {Command: config.Strings{"xls"}, Filetypes: []string{"typescript"}}}, ".mts", "xls"},
		"no command":                           {map[string]config.LSPServer{"x": {Extensions: []string{"x"}}}, ".x", "x: it has no command, and is not a known language server"},
		"no files":                             {map[string]config.LSPServer{"x": {Command: config.Strings{"xls"}}}, ".x", "x: it has neither extensions nor filetypes, and is not a known language server"},
	} {
		if got := find(c.config, c.ext); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}

// The numbers of kept diagnostics and of files with diagnostics have limits.
func TestReportsAreBounded(t *testing.T) {
	r := newReports()
	list := make([]tools.Diagnostic, maxPerFile)
	for i := range 3 * maxFiles {
		r.put(r.pushed, string(rune(i)), list)
	}
	if r.count != maxKept || len(r.pushed) > maxFiles {
		t.Errorf("%d diagnostics of %d files", r.count, len(r.pushed))
	}
	for path := range r.pushed {
		r.drop(path)
	}
	if r.count != 0 {
		t.Errorf("%d diagnostics are left", r.count)
	}
}

// TypeScript's compiler is a language server since version 7: that of the project comes first.
func TestCompilersThatAreServers(t *testing.T) {
	needs.POSIX(t)
	program := func(t *testing.T, path string) {
		t.Helper()
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte("#!/bin/sh\n"), 0o700); err != nil { //nolint:gosec // a program
			t.Fatal(err)
		}
	}
	pack := func(t *testing.T, dir, version string) {
		t.Helper()
		program(t, filepath.Join(dir, "bin", "tsc"))
		if err := os.WriteFile(filepath.Join(dir, "package.json"), []byte(`{"name": "typescript", "version": "`+version+`"}`), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	link := func(t *testing.T, dir string) { // as npm does
		t.Helper()
		if err := os.MkdirAll(filepath.Join(dir, ".bin"), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink("../typescript/bin/tsc", filepath.Join(dir, ".bin", "tsc")); err != nil {
			t.Fatal(err)
		}
	}
	for name, c := range map[string]struct {
		build func(t *testing.T, modules, path string)
		want  string // the program, after the workspace or PATH
	}{
		"the project's": {func(t *testing.T, modules, _ string) { pack(t, modules+"/typescript", "7.0.2"); link(t, modules) }, "workspace/node_modules/.bin/tsc"},
		"a script of the project's": {func(t *testing.T, modules, _ string) {
			pack(t, modules+"/typescript", "10.1.0-beta")
			program(t, modules+"/.bin/tsc")
		}, "workspace/node_modules/.bin/tsc"},
		"an older one of the project, a newer one of PATH": {func(t *testing.T, modules, path string) {
			pack(t, modules+"/typescript", "5.9.3")
			link(t, modules)
			pack(t, path+"/node_modules/typescript", "7.0.2")
			program(t, path+"/tsc")
		}, "path/typescript-language-server"},
		"one of PATH": {func(t *testing.T, _, path string) {
			pack(t, path+"/node_modules/typescript", "7.0.2")
			program(t, path+"/tsc")
		}, "path/tsc"},
		"another program with its name":   {func(t *testing.T, _, path string) { program(t, path+"/tsc") }, "path/typescript-language-server"},
		"a package that cannot be parsed": {func(t *testing.T, modules, _ string) { pack(t, modules+"/typescript", `"`); link(t, modules) }, "path/typescript-language-server"},
		"none":                            {func(*testing.T, string, string) {}, "path/typescript-language-server"},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, "", nil)
			path := t.TempDir()
			program(t, path+"/typescript-language-server")
			c.build(t, r.dir+"/node_modules", path)
			r.servers.opts.Getenv = func(string) string { return path }
			r.settings.Config = config.LSP{}
			f, _ := r.use().installedFor(filepath.Join(r.dir, "a.ts"))
			if got := strings.NewReplacer(r.dir, "workspace", path, "path").Replace(f.path); got != c.want {
				t.Errorf("%s, want %s", got, c.want)
			}
		})
	}
}

// Only the first failure of a server is reported.
func TestFailuresAreToldOnce(t *testing.T) {
	needs.POSIX(t)
	r := newRig(t, "crash-start", map[string]string{"a.toy": "DEF a\n"})
	now, reported := time.Now(), 0
	r.servers.opts.Now, r.servers.opts.Failed = func() time.Time { return now }, func() { reported++ }
	for range 3 {
		if _, err := r.use().runningFor(filepath.Join(r.dir, "a.toy")); err != nil {
			t.Fatal(err)
		}
		r.servers.work.Wait()
		now = now.Add(longestPause)
	}
	if list := r.servers.Failures(); reported != 1 || len(list) != 1 || !strings.Contains(list[0], "exit code 3: cannot start") {
		t.Errorf("the failure was reported %d times, want once: %q", reported, list)
	}
}
