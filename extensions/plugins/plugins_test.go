package plugins

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/seed-dec29ce4/eca/internal/needs"
	"github.com/seed-dec29ce4/eca/internal/proc"
	"github.com/seed-dec29ce4/eca/internal/testkit"
)

func TestMain(m *testing.M) {
	if code, ok := proc.Supervise(os.Args); ok {
		os.Exit(code)
	}
	goleak.VerifyTestMain(m)
}

// newStore returns a store with an empty cache.
func newStore(t *testing.T, limit time.Duration) *Store {
	t.Helper()
	id := 0
	s := New(Options{
		Cache: filepath.Join(t.TempDir(), "plugins"), Getenv: func(string) string { return "" }, Now: time.Now,
		NewID: func() string { id++; return fmt.Sprint(id) }, Limit: limit,
	})
	t.Cleanup(s.Close)
	return s
}

// marketplace returns the text of a marketplace: name, then what it needs.
func marketplace(plugins ...string) string {
	var list []map[string]any
	for _, p := range plugins {
		f := strings.Fields(p)
		list = append(list, map[string]any{"name": f[0], "description": "About " + f[0], "source": "./plugins/" + f[0], "dependencies": f[1:]})
	}
	raw, _ := json.Marshal(map[string]any{"plugins": list})
	return string(raw)
}

// folder makes a source with plugins, each with a rule.
func folder(t *testing.T, plugins ...string) string {
	t.Helper()
	dir := t.TempDir()
	testkit.WriteFiles(t, dir, map[string]string{marketFile: marketplace(plugins...)})
	for _, p := range plugins {
		name := strings.Fields(p)[0]
		testkit.WriteFiles(t, dir, map[string]string{"plugins/" + name + "/rules/r.md": "Rule of " + name})
	}
	return dir
}

func names(set *Set) []string {
	var out []string
	for _, p := range set.Plugins {
		out = append(out, p.ID())
	}
	return out
}

func causes(set *Set) string {
	var b strings.Builder
	for _, p := range set.Problems {
		fmt.Fprintln(&b, p)
	}
	return b.String()
}

// repo makes a folder a repository with one commit, and returns its address and the commit.
func repo(t *testing.T, dir string) (address, commit string) {
	t.Helper()
	testkit.Git(t, dir, "init", "-q")
	return "file:///" + strings.TrimPrefix(filepath.ToSlash(dir), "/"), commitAll(t, dir)
}

func commitAll(t *testing.T, dir string) string {
	t.Helper()
	testkit.Git(t, dir, "add", "-A")
	testkit.Git(t, dir, "commit", "-q", "-m", "change")
	return testkit.Git(t, dir, "rev-parse", "HEAD")
}

func TestOrder(t *testing.T) {
	a := folder(t, "top mid@b left", "left base", "base", "loop1 loop2", "loop2 loop1", "alone", "self self")
	b := folder(t, "mid base@a other", "other", "alone", "left")
	sources := []Source{{Name: "a", Location: a}, {Name: "b", Location: b}}
	for _, c := range []struct {
		name    string
		install []string
		want    []string
		wrong   string
	}{
		{"what is needed goes first, once", []string{"top"}, []string{"base@a", "other@b", "mid@b", "left@a", "top@a"}, ""},
		{"what the user installed goes last, as ordered", []string{"left@a", "base", "other"}, []string{"left@a", "base@a", "other@b"}, ""},
		{"a cycle", []string{"loop1"}, []string{"loop2@a", "loop1@a"}, ""},
		{"a cycle of one", []string{"self", "loop2", "loop1"}, []string{"self@a", "loop2@a", "loop1@a"}, ""},
		{"a plain name means every source", []string{"alone"}, []string{"alone@a", "alone@b"}, ""},
		{"one source", []string{"alone@b"}, []string{"alone@b"}, ""},
		{"twice", []string{"alone@b", "alone@b"}, []string{"alone@b"}, ""},
		{"unknown", []string{"nothing", "alone@c", "other@a", "a b", "x@", "base"}, []string{"base@a"}, `plugins.install: no source has a plugin nothing
plugins.install: alone@c: there is no source c in plugins; there are: a, b
plugins.install: other@a: the source a has no plugin other; there are: top, left, base, loop1, loop2, alone, self
plugins.install: "a b" is not a valid plugin: the name must be one word without @, : and slashes (add a folder or a URL to plugins in the configuration, as a source)
plugins.install: "x@" names no source after the @
`},
		{"none", nil, nil, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			set, changed := newStore(t, 0).Load(Inputs{Sources: sources, Install: c.install})
			if diff := cmp.Diff(c.want, names(set)); diff != "" || !changed {
				t.Error(changed, diff)
			}
			if got := causes(set); got != c.wrong {
				t.Errorf("problems:\n%swant:\n%s", got, c.wrong)
			}
		})
	}
}

// Dependencies in the manifest of a plugin apply as well as those in the marketplace.
func TestManifest(t *testing.T) {
	dir := folder(t, "a", "b", "c")
	testkit.WriteFiles(t, dir, map[string]string{
		"plugins/a/" + manifestFile: `{"name": "a", "dependencies": ["b"]}`,
		"plugins/b/" + manifestFile: "{\n\"dependencies\": 1}",
	})
	set, _ := newStore(t, 0).Load(Inputs{Sources: []Source{{Name: "s", Location: dir}}, Install: []string{"a"}})
	if diff := cmp.Diff([]string{"b@s", "a@s"}, names(set)); diff != "" || set.Plugins[0].NeededBy != "a@s" || set.Plugins[1].NeededBy != "" {
		t.Error(diff, set.Plugins)
	}
	if !strings.Contains(causes(set), "plugin.json:2: dependencies cannot be a JSON number") {
		t.Error(causes(set))
	}
}

// The built-in source only provides plugins that no source of the user has. It provides none while
// a source of the user cannot be used, because one of that source's plugins could then come from it
// instead.
func TestBuiltinIsLast(t *testing.T) {
	mine, builtin := folder(t, "both"), folder(t, "both", "theirs")
	in := Inputs{Sources: []Source{{Name: "eca", Location: builtin, Builtin: true}, {Name: "mine", Location: mine}}, Install: []string{"both", "theirs"}}
	set, _ := newStore(t, 0).Load(in)
	if diff := cmp.Diff([]string{"both@mine", "theirs@eca"}, names(set)); diff != "" {
		t.Error(diff)
	}
	in.Sources[1].Location = filepath.Join(mine, "gone")
	set, _ = newStore(t, 0).Load(in)
	if len(set.Plugins) > 0 || !strings.Contains(causes(set), "no usable source has a plugin theirs; mine cannot be used") {
		t.Error(names(set), causes(set))
	}
	in.Sources[1].Location = "https://example.com/x.git"
	set, _ = newStore(t, 0).Load(in)
	if len(set.Plugins) > 0 || len(set.Missing) != 1 || set.Missing[0].Name != "mine" {
		t.Error(names(set), set.Missing)
	}
}

// The valid plugins of a source load although other entries of its marketplace are hostile. No file
// outside the source is loaded.
func TestHostile(t *testing.T) {
	outside := t.TempDir()
	testkit.WriteFiles(t, outside, map[string]string{"secret/eca.json": `{"defaultModel": "stolen/m"}`, "eca.json": `{"defaultModel": "stolen/m"}`})
	dir := folder(t, "good")
	testkit.WriteFiles(t, dir, map[string]string{
		marketFile: `{"plugins": [
			{"name": "good", "source": "plugins/good"},
			{"name": "up", "source": "../../etc"},
			{"name": "hidden-up", "path": "plugins/../../x"},
			{"name": "root", "source": "/etc"},
			{"name": "link", "source": "plugins/link"},
			{"name": "gone", "source": "plugins/gone"},
			{"name": "file", "source": "plugins/good/rules/r.md"},
			{"name": "inner", "source": "plugins/inner"},
			{"name": "a/b", "source": "plugins/good"},
			{"name": "good", "source": "plugins/other"},
			{"name": "none"}, 7, {"name": 1}, {"name": "x", "dependencies": "y"}
		]}`,
		"plugins/inner/hooks/hooks.json": "{\n  broken",
		"plugins/inner/eca.json":         strings.Repeat(" ", maxJSON) + "{}",
	})
	for link, to := range map[string]string{"plugins/link": filepath.Join(outside, "secret"), "plugins/good/eca.json": filepath.Join(outside, "eca.json")} {
		needs.Symlink(t, to, filepath.Join(dir, link))
	}
	if err := os.Mkdir(filepath.Join(dir, "plugins/inner/.mcp.json"), 0o755); err != nil {
		t.Fatal(err)
	}
	set, _ := newStore(t, 0).Load(Inputs{
		Sources: []Source{{Name: "s", Location: dir}},
		Install: []string{"good", "up", "hidden-up", "root", "link", "gone", "file", "inner"},
	})
	if diff := cmp.Diff([]string{"good@s", "inner@s"}, names(set)); diff != "" {
		t.Error(diff)
	}
	got := causes(set)
	for _, want := range []string{
		`the plugin up is not used: "../../etc" is not a path within`, `the plugin hidden-up is not used`, `the plugin root is not used: "/etc" is not a path`,
		`the plugin link is not used: "plugins/link" is a link that leads out of`, "the plugin gone is not used: there is no folder plugins/gone",
		"the plugin file is not used: plugins/good/rules/r.md is not a folder",
		`plugin 9 is ignored: its name "a/b" must be one word`, "plugin 10 is ignored: good is listed twice", "plugin 11 is ignored: none has no source",
		"plugin 12 is ignored: it must be a JSON object, not a JSON number", "plugin 13 is ignored: name cannot be a JSON number", "plugin 14 is ignored: dependencies cannot be a JSON string",
		"good/eca.json: ", "inner/eca.json: it is larger than 1048576 bytes", "inner/.mcp.json: it is not a regular file",
	} {
		if !strings.Contains(filepath.ToSlash(got), want) {
			t.Errorf("no %q in\n%s", want, got)
		}
	}
	// A file of invalid JSON is named by the configuration, with its line.
	if len(set.Layers) != 1 || !strings.HasSuffix(filepath.ToSlash(set.Layers[0].File), "inner/hooks/hooks.json") {
		t.Errorf("%+v", set.Layers)
	}
}

func TestBrokenSources(t *testing.T) {
	empty, broken := t.TempDir(), t.TempDir()
	testkit.WriteFiles(t, broken, map[string]string{marketFile: "{\n\n \"plugins\": ["})
	in := Inputs{Install: []string{"x@empty", "x@broken", "x@gone", "x@pinned", "x@badpin", "x@unset"}, Sources: []Source{
		{Name: "empty", Location: empty},
		{Name: "broken", Location: broken},
		{Name: "gone", Location: filepath.Join(empty, "gone")},
		{Name: "pinned", Location: empty, Commit: strings.Repeat("a", 40)},
		{Name: "badpin", Location: "https://example.com/x", Commit: "main"},
		{Name: "unset"},
	}}
	set, _ := newStore(t, 0).Load(in)
	got := causes(set)
	for _, want := range []string{
		"plugins.empty: the source cannot be used: ", "marketplace.json: file does not exist", "marketplace.json:3: invalid JSON",
		"plugins.gone: the source cannot be used: the folder", "plugins.pinned: the source cannot be used: only a git repository can be pinned",
		`plugins.badpin: the source cannot be used: commit must be a full commit id`, "plugins.unset: the source cannot be used: it has no source",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in\n%s", want, got)
		}
	}
}

// Load notices changes in the folder of a source. Without a change it returns the same Set.
func TestLoadAgain(t *testing.T) {
	dir := folder(t, "a", "b")
	old := time.Now().Add(-time.Hour)
	path := filepath.Join(dir, marketFile)
	if err := os.Chtimes(path, old, old); err != nil {
		t.Fatal(err)
	}
	in := Inputs{Sources: []Source{{Name: "s", Location: dir}}, Install: []string{"a"}}
	s := newStore(t, 0)
	first, _ := s.Load(in)
	if second, changed := s.Load(in); changed || second != first {
		t.Error("Load returned another Set without a change")
	}
	testkit.WriteFiles(t, dir, map[string]string{"plugins/a/eca.json": `{"defaultModel": "x/y"}`})
	if set, changed := s.Load(in); !changed || len(set.Layers) != 1 {
		t.Errorf("%v %+v", changed, set)
	}
	in.Install = nil
	if set, changed := s.Load(in); !changed || len(set.Plugins) != 0 || len(set.Files) != 0 {
		t.Errorf("%v %+v", changed, set)
	}
}

func TestGit(t *testing.T) {
	dir := folder(t, "a")
	address, first := repo(t, dir)
	s := newStore(t, 0)
	in := Inputs{Sources: []Source{{Name: "s", Location: address}}, Install: []string{"a"}}
	set, _ := s.Load(in)
	if len(set.Missing) != 1 || len(set.Plugins) != 0 || causes(set) != "" {
		t.Fatalf("before the fetch: %+v", set)
	}
	if commit, err := s.Fetch(t.Context(), in.Sources[0]); err != nil || commit != first {
		t.Fatal(commit, err)
	}
	set, changed := s.Load(in)
	if !changed || len(set.Missing) != 0 || len(set.Plugins) != 1 || !strings.Contains(set.Plugins[0].Dir, first) {
		t.Fatalf("after the fetch: %v %+v", changed, set)
	}
	if _, err := os.Stat(filepath.Join(set.Plugins[0].Dir, "..", "..", ".git")); err == nil {
		t.Error("the checkout has a .git")
	}
	// A new commit only counts after Fetch, and a pinned source stays at its commit.
	testkit.WriteFiles(t, dir, map[string]string{marketFile: marketplace("a", "b"), "plugins/b/rules/r.md": "B"})
	second := commitAll(t, dir)
	if again, _ := s.Load(in); again != set {
		t.Error("Load used a new commit without a Fetch")
	}
	if commit, err := s.Fetch(t.Context(), in.Sources[0]); err != nil || commit != second {
		t.Fatal(commit, err)
	}
	in.Install = []string{"a", "b"}
	if set, _ := s.Load(in); len(set.Plugins) != 2 {
		t.Fatalf("%+v", set)
	}
	pinned := Inputs{Sources: []Source{{Name: "s", Location: address, Commit: first}}, Install: []string{"a", "b"}}
	set, _ = s.Load(pinned)
	if len(set.Missing) != 0 || len(set.Plugins) != 1 || !strings.Contains(causes(set), "the source s has no plugin b") && !strings.Contains(causes(set), "no source has a plugin b") {
		t.Errorf("%+v", set)
	}
	// Another machine gets the pinned commit, not the newest.
	other := newStore(t, 0)
	if commit, err := other.Fetch(t.Context(), pinned.Sources[0]); err != nil || commit != first {
		t.Fatal(commit, err)
	}
	if set, _ := other.Load(pinned); len(set.Plugins) != 1 || !strings.Contains(set.Plugins[0].Dir, first) {
		t.Errorf("%+v", set)
	}
	if set, _ := other.Load(in); len(set.Missing) != 1 {
		t.Errorf("fetching a pinned commit also made it the commit of the source without a pin: %+v", set)
	}
	// Only a commit can be pinned, not a name that leads to one.
	testkit.Git(t, dir, "tag", "-a", "-m", "one", "one", first)
	tag := Source{Name: "s", Location: address, Commit: testkit.Git(t, dir, "rev-parse", "one")}
	if commit, err := other.Fetch(t.Context(), tag); err == nil || !strings.Contains(err.Error(), "it has the commit") {
		t.Errorf("Fetch accepted the id of a tag as a commit, %q: %v", commit, err)
	}
	if err := s.RemoveReplaced(in.Sources[0], nil); err != nil {
		t.Fatal(err)
	}
	if set, _ := s.Load(pinned); len(set.Missing) != 1 {
		t.Errorf("%+v", set)
	}
}

// A fetch that fails is one problem of its source, and the earlier checkout stays.
func TestGitFails(t *testing.T) {
	dir := folder(t, "a")
	address, _ := repo(t, dir)
	s := newStore(t, 0)
	in := Inputs{Sources: []Source{{Name: "s", Location: address}}, Install: []string{"a"}}
	if _, err := s.Fetch(t.Context(), in.Sources[0]); err != nil {
		t.Fatal(err)
	}
	before, _ := s.Load(in)
	if err := os.Rename(filepath.Join(dir, ".git"), filepath.Join(dir, "gone")); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Fetch(t.Context(), in.Sources[0]); err == nil || !strings.Contains(err.Error(), "cannot be fetched") {
		t.Fatal(err)
	}
	if after, _ := s.Load(in); !slices.Equal(names(after), names(before)) {
		t.Errorf("%+v", after)
	}
	secret := Source{Name: "t", Location: "https://user:s3cret@127.0.0.1:1/x.git"}
	if said := (git{location: secret.Location}).cause("fatal: no access with s3cret", 128); strings.Contains(said, "s3cret") {
		t.Error(said)
	}
	in = Inputs{Sources: []Source{secret}, Install: []string{"a"}}
	if _, err := s.Fetch(t.Context(), secret); err == nil || strings.Contains(err.Error(), "s3cret") {
		t.Fatal(err)
	}
	set, _ := s.Load(in)
	if len(set.Missing) != 0 || !strings.Contains(causes(set), "https://127.0.0.1:1/x.git cannot be fetched") || strings.Contains(causes(set), "s3cret") {
		t.Errorf("%+v", set)
	}
	entries, err := os.ReadDir(s.opts.Cache)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		left, _ := filepath.Glob(filepath.Join(s.opts.Cache, e.Name(), tempPrefix+"*"))
		if len(left) > 0 || strings.Contains(e.Name(), "s3cret") {
			t.Errorf("%s: left behind: %v", e.Name(), left)
		}
	}
}

// A fetch has its time limit, and each waiting caller has its own.
func TestGitLimit(t *testing.T) {
	address, _ := repo(t, folder(t, "a"))
	src := Source{Name: "s", Location: address}
	if _, err := newStore(t, time.Nanosecond).Fetch(t.Context(), src); err == nil || !strings.Contains(err.Error(), "it took longer than 1ns") {
		t.Error(err)
	}
	s := newStore(t, 0)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.Fetch(ctx, src); err != nil && !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if _, err := s.Fetch(t.Context(), src); err != nil { // joins the first one, or is another
		t.Error(err)
	}
	s.Close()
	if _, err := s.Fetch(t.Context(), src); err == nil {
		t.Error("Fetch of a closed store returned no error")
	}
}

// Programs of a repository do not run, and links out of it do not count.
func TestGitHostile(t *testing.T) {
	dir := folder(t, "a")
	mark := filepath.Join(t.TempDir(), "ran")
	testkit.WriteFiles(t, dir, map[string]string{".gitattributes": "* filter=evil\n", "plugins/a/eca.json": "{}", ".githooks/post-checkout": "#!/bin/sh\ntouch " + mark + "\n"})
	if err := os.Chmod(filepath.Join(dir, ".githooks", "post-checkout"), 0o755); err != nil { //nolint:gosec // a hook has to be executable
		t.Fatal(err)
	}
	needs.Symlink(t, "/etc", filepath.Join(dir, "plugins", "a", "skills"))
	address, _ := repo(t, dir)
	hook := filepath.Join(dir, ".git", "hooks", "post-checkout")
	testkit.WriteFiles(t, dir, map[string]string{".git/hooks/post-checkout": "#!/bin/sh\ntouch " + mark + "\n"})
	if err := os.Chmod(hook, 0o755); err != nil { //nolint:gosec // a hook has to be executable
		t.Fatal(err)
	}
	// Some users have git take the hooks that repositories keep among their files.
	own := filepath.Join(t.TempDir(), "gitconfig")
	if err := os.WriteFile(own, []byte("[core]\n\thooksPath = .githooks\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("GIT_CONFIG_GLOBAL", own)
	s := newStore(t, 0)
	for _, location := range []string{"file://--upload-pack=touch " + mark, address} {
		_, err := s.Fetch(t.Context(), Source{Name: "s", Location: location})
		if location == address && err != nil {
			t.Fatal(err)
		}
	}
	if _, err := os.Stat(mark); err == nil {
		t.Error("a command of the repository or of its address ran")
	}
	for _, location := range []string{"ext::sh -c touch% " + mark, "-u", "-u@host:x", "--upload-pack=x", "fd::1"} {
		if IsGit(location) {
			t.Errorf("%s counts as a repository", location)
		}
	}
	// Not even where the user lets git use such a protocol.
	if err := os.WriteFile(own, []byte("[protocol \"ext\"]\n\tallow = always\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := s.checkout(t.Context(), repository{location: "ext::sh -c touch% " + mark}); err == nil {
		t.Error("checkout accepted a command as a repository")
	}
	if _, err := os.Stat(mark); err == nil {
		t.Error("git ran the command of an ext:: address")
	}
}

func TestIsGit(t *testing.T) {
	for location, want := range map[string]bool{
		"https://github.com/o/r.git": true, "http://h/r": true, "git@github.com:o/r.git": true, "ssh://git@h:22/r": true,
		"file:///srv/r": true, "/srv/r": false, "./r": false, "~/r": false, `C:\r`: false, "r@x": false, "": false,
	} {
		if got := IsGit(location); got != want {
			t.Errorf("IsGit(%q) = %v", location, got)
		}
	}
	a, b := Source{Location: "https://u:p@h/r.git?token=x"}, Source{Location: "git@github.com:o/r.git"}
	if a.Shown() != "https://h/r.git" || b.Shown() != b.Location {
		t.Error(a.Shown(), b.Shown())
	}
}

// FuzzSource reads marketplaces and manifests of any content.
func FuzzSource(f *testing.F) {
	f.Add([]byte(`{"plugins": [{"name": "a", "source": ".", "dependencies": ["a@s", "b"]}]}`), []byte(`{"dependencies": ["a"]}`))
	f.Add([]byte(`{"plugins": [{"name": "a", "path": "../x"}, {"name": "a", "source": "/"}]}`), []byte(`[]`))
	f.Add([]byte("\xef\xbb\xbf{\"plugins\": null}"), []byte(`{`))
	f.Fuzz(func(t *testing.T, market, manifest []byte) {
		dir := testkit.TempDir(t)
		testkit.WriteFiles(t, dir, map[string]string{marketFile: string(market), manifestFile: string(manifest), "sub/eca.json": "{}"})
		set, _ := newStore(t, 0).Load(Inputs{Sources: []Source{{Name: "s", Location: dir}}, Install: []string{"a", "b@s"}})
		for _, p := range set.Plugins {
			if below, err := filepath.Rel(dir, p.Dir); err != nil || !filepath.IsLocal(below) || !validName(p.Name) {
				t.Errorf("%+v", p)
			}
		}
	})
}
