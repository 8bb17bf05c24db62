package extensions

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/seed-dec29ce4/eca/config"
	"github.com/seed-dec29ce4/eca/internal/needs"
	"github.com/seed-dec29ce4/eca/internal/testkit"
)

// house is a configuration home and two workspace folders.
type house struct {
	t      *testing.T
	dir    string
	in     Inputs
	loader *Loader
	reads  []string // paths below dir
}

func newHouse(t *testing.T) *house {
	dir := testkit.TempDir(t)
	h := &house{t: t, dir: dir, loader: NewLoader(time.Now)}
	h.in = Inputs{ConfigHome: filepath.Join(dir, "home"), Roots: []string{filepath.Join(dir, "ws"), filepath.Join(dir, "two")}}
	h.loader.read = func(path string) ([]byte, error) {
		h.reads = append(h.reads, h.rel(path))
		return readFile(path)
	}
	return h
}

func (h *house) rel(path string) string {
	rel, err := filepath.Rel(h.dir, path)
	if err != nil {
		h.t.Fatal(err)
	}
	return filepath.ToSlash(rel)
}

// write writes a file with a time an hour ago. If the file exists, its time moves on by a second.
func (h *house) write(path, text string) {
	h.t.Helper()
	path = filepath.Join(h.dir, filepath.FromSlash(path))
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		h.t.Fatal(err)
	}
	modified := time.Now().Add(-time.Hour)
	if info, err := os.Stat(path); err == nil {
		modified = info.ModTime().Add(time.Second)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		h.t.Fatal(err)
	}
	if err := os.Chtimes(path, modified, modified); err != nil {
		h.t.Fatal(err)
	}
}

// describe says what is in a Set.
func (h *house) describe(s *Set) []string {
	var out []string
	for _, a := range s.Agents {
		out = append(out, fmt.Sprintf("agent %s %s", a.ID, h.rel(a.File)))
	}
	for _, k := range s.Skills {
		out = append(out, fmt.Sprintf("skill %s %s", k.Name, h.rel(k.File)))
	}
	for _, r := range s.Rules {
		root := ""
		if r.Root != "" {
			root = h.rel(r.Root)
		}
		out = append(out, fmt.Sprintf("rule %s %s %s", h.rel(r.ID), r.Scope(), root))
	}
	for _, c := range s.Commands {
		out = append(out, fmt.Sprintf("command %s %s", c.Name, h.rel(c.File)))
	}
	for _, p := range s.Problems {
		out = append(out, fmt.Sprintf("problem %s:%d %s", h.rel(p.Source), p.Line, strings.ReplaceAll(p.Cause, h.dir, "")))
	}
	return out
}

func (h *house) load() (*Set, bool) {
	h.reads = nil
	return h.loader.Load(h.in)
}

const skillText = "---\nname: %s\ndescription: what it is\n---\ntext"

func TestLoad(t *testing.T) {
	h := newHouse(t)
	h.write("home/agents/a.md", "global")
	h.write("home/agents/b.md", "global")
	h.write("home/agents/deep/c.md", "agents are not looked for in folders")
	h.write("ws/.eca/agents/a.md", "local")
	h.write("ws/.eca/agents/other.md", "---\nname: A\n---\nthe same name")
	h.write("ws/.eca/agents/notes.txt", "no agent")
	h.write("ws/.eca/agents/broken.md", "---\nname: x\nsteps: [\n---\n")
	h.write("home/skills/one/SKILL.md", fmt.Sprintf(skillText, "one"))
	h.write("ws/.eca/skills/group/two/SKILL.md", fmt.Sprintf(skillText, "two"))
	h.write("ws/.agents/skills/one/SKILL.md", fmt.Sprintf(skillText, "one"))
	h.write("ws/.agents/skills/one/nested/SKILL.md", fmt.Sprintf(skillText, "nested"))
	h.write("two/.agents/skills/three/SKILL.md", fmt.Sprintf(skillText, "three"))
	h.write("ws/.eca/skills/bad/SKILL.md", "no frontmatter")
	h.write("extra/four/SKILL.md", fmt.Sprintf(skillText, "four"))
	h.write("home/rules/style.md", "Be brief.")
	h.write("home/rules/.hidden", "no rule")
	h.write("home/rules/empty.md", "  \n")
	h.write("ws/.eca/rules/go/errors.txt", "---\npaths: '**.go'\n---\nWrap errors.")
	h.write("ws/docs/RULES", "Write docs.")
	h.write("ws/.eca/rules/data.bin", "a\x00b")
	h.write("home/commands/Fix.md", "Fix $1")
	h.write("ws/.eca/commands/git/commit.md", "Commit {{what}}")
	h.write("extra/fix.md", "another")
	h.write("extra/five.md", "Five")
	h.in.Skills = []string{filepath.Join(h.dir, "extra")}
	h.in.Rules = []string{"docs/RULES", "missing"}
	h.in.Commands = []string{filepath.Join(h.dir, "extra")}
	set, changed := h.load()
	want := []string{
		"agent a ws/.eca/agents/a.md",
		"agent b home/agents/b.md",
		"skill four extra/four/SKILL.md",
		"skill one ws/.agents/skills/one/SKILL.md",
		"skill three two/.agents/skills/three/SKILL.md",
		"skill two ws/.eca/skills/group/two/SKILL.md",
		"rule home/rules/style.md global ",
		"rule ws/.eca/rules/go/errors.txt project ws",
		"rule ws/docs/RULES project ws",
		"command commit ws/.eca/commands/git/commit.md",
		"command five extra/five.md",
		"command fix home/commands/Fix.md",
		"command skill extra/four/SKILL.md",
		"problem extra/fix.md:0 the command fix is not used: /home/commands/Fix.md has the same name",
		"problem ws/.eca/agents/broken.md:3 a [ has no matching ]: add it, or put the value in quotes",
		"problem ws/.eca/agents/other.md:0 the agent a is not used: /ws/.eca/agents/a.md has the same name",
		"problem ws/.eca/rules/data.bin:0 it is not text",
		"problem ws/.eca/skills/bad/SKILL.md:1 a skill needs a name and a description in its frontmatter; it has no name",
	}
	if diff := cmp.Diff(want, h.describe(set)); diff != "" || !changed {
		t.Errorf("changed %v\n%s", changed, diff)
	}

	h.in.Pure = true
	pure, _ := h.load()
	for _, s := range h.describe(pure) {
		if strings.HasPrefix(s, "agent") || strings.Contains(s, " home/") {
			t.Errorf("with pureConfig there is %s", s)
		}
	}
}

// Load reads only the files that have changed since the last Load.
func TestLoadIncrementally(t *testing.T) {
	h := newHouse(t)
	for i := range 50 {
		h.write(fmt.Sprintf("ws/.eca/rules/%d.md", i), "rule")
		h.write(fmt.Sprintf("home/commands/c%d.md", i), "command")
	}
	h.write("ws/inc.txt", "one")
	h.write("ws/.eca/rules/including.md", "${file:../../inc.txt}")
	h.in.Expand = func(text, dir, _ string) (string, []string, error) {
		name, ok := strings.CutPrefix(text, "${file:")
		if !ok {
			return text, nil, nil
		}
		path := filepath.Join(dir, strings.TrimSuffix(name, "}"))
		data, err := os.ReadFile(path)
		return string(data), []string{path}, err
	}
	first, _ := h.load()
	if len(h.reads) != 101 || len(first.Rules) != 51 {
		t.Fatalf("%d reads, %d rules", len(h.reads), len(first.Rules))
	}
	step := func(what string, wantChanged bool, reads ...string) *Set {
		t.Helper()
		s, changed := h.load()
		if changed != wantChanged || !slices.Equal(h.reads, reads) {
			t.Errorf("%s: changed %v, read %v", what, changed, h.reads)
		}
		return s
	}
	if again := step("nothing", false); again != first {
		t.Error("another Set")
	}
	h.write("ws/.eca/rules/7.md", "changed")
	step("a change", true, "ws/.eca/rules/7.md")
	h.write("ws/.eca/rules/7.md", "changed")
	step("a touch", false, "ws/.eca/rules/7.md")
	h.write("ws/.eca/rules/sub/new.md", "new")
	step("a new file", true, "ws/.eca/rules/sub/new.md")
	h.write("ws/inc.txt", "two")
	s := step("an included file", true, "ws/.eca/rules/including.md")
	if !slices.ContainsFunc(s.Rules, func(r Rule) bool { return r.Text == "two" }) {
		t.Error("the rule does not have the new text of the included file")
	}
	if err := os.Remove(filepath.Join(h.dir, "ws/.eca/rules/8.md")); err != nil {
		t.Fatal(err)
	}
	if s := step("a file less", true); len(s.Rules) != 51 {
		t.Errorf("%d rules", len(s.Rules))
	}
	h.write("ws/.eca/rules/9.md", "---\nagent: {}\n---\nx")
	s = step("a broken file", true, "ws/.eca/rules/9.md")
	if len(s.Rules) != 51 || len(s.Problems) != 1 || s.Problems[0].Line != 2 || !strings.Contains(s.Problems[0].Cause, "stays in effect") {
		t.Errorf("%d rules, %v", len(s.Rules), s.Problems)
	}
	h.write("ws/.eca/rules/9.md", "good")
	if s := step("a good file again", true, "ws/.eca/rules/9.md"); len(s.Problems) != 0 {
		t.Errorf("%v", s.Problems)
	}
	// A file that was saved a moment ago may be saved again with the same time and size.
	path := filepath.Join(h.dir, "ws", ".eca", "rules", "10.md")
	if err := os.WriteFile(path, []byte("new1"), 0o600); err != nil {
		t.Fatal(err)
	}
	step("a fresh file", true, "ws/.eca/rules/10.md")
	step("a fresh file that is the same", false, "ws/.eca/rules/10.md")
}

// Load follows links, each folder once, and reports links that lead to nothing.
func TestLinks(t *testing.T) {
	needs.Symlinks(t)
	h := newHouse(t)
	h.write("shared/s/SKILL.md", fmt.Sprintf(skillText, "linked"))
	h.write("ws/.eca/skills/own/SKILL.md", fmt.Sprintf(skillText, "own"))
	link := func(target, name string) {
		if err := os.Symlink(filepath.Join(h.dir, target), filepath.Join(h.dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	link("shared", "ws/.eca/skills/link")
	link("ws/.eca/skills", "ws/.eca/skills/circle")
	link("nowhere", "ws/.eca/skills/dangling")
	link("nowhere", "ws/.eca/rules")
	link("nowhere", "ws/.eca/skills/.#lock") // as editors mark a file that is being edited
	set, _ := h.load()
	want := []string{
		"skill linked ws/.eca/skills/link/s/SKILL.md", "skill own ws/.eca/skills/own/SKILL.md",
		"problem ws/.eca/rules:0 rules: the link leads to nothing", "problem ws/.eca/skills:0 skills: the link /ws/.eca/skills/dangling leads to nothing",
	}
	if diff := cmp.Diff(want, h.describe(set)); diff != "" {
		t.Error(diff)
	}
	// Folders outside that lead to each other are looked through once.
	for _, dir := range []string{"round/a", "round/b"} {
		if err := os.MkdirAll(filepath.Join(h.dir, dir), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for _, dangling := range []string{"rules", "skills/dangling"} {
		if err := os.Remove(filepath.Join(h.dir, "ws/.eca", dangling)); err != nil {
			t.Fatal(err)
		}
	}
	link("round/b", "round/a/b")
	link("round/a", "round/b/a")
	link("round/a", "ws/.eca/skills/round")
	if set, _ = h.load(); len(set.Skills) != 2 || len(set.Problems) > 0 {
		t.Errorf("%v %v", h.describe(set), set.Problems)
	}
	for i := range maxFolders + 10 {
		h.write(fmt.Sprintf("shared/many/%d/x", i), "")
	}
	set, _ = h.load()
	if len(set.Skills) != 2 || len(set.Problems) != 1 || !strings.Contains(set.Problems[0].Cause, "the rest is ignored") {
		t.Errorf("%v", h.describe(set))
	}
}

func TestRulesFor(t *testing.T) {
	h := newHouse(t)
	h.write("home/rules/all.md", "static")
	h.write("home/rules/go.md", "---\npaths: ['**.go']\nagent: code\n---\nglobal")
	h.write("ws/.eca/rules/src.md", "---\npaths: src/*\nmodel: [gpt, 'claude-(?!3)']\nenforce: read\n---\nproject")
	h.write("two/.eca/rules/src.md", "---\npaths: src/*\n---\nother project")
	h.write("two/.eca/rules/deep.md", "---\npaths: [./lib/, ./one.txt, /etc/*]\n---\nwritten otherwise")
	set, _ := h.load()
	for _, c := range []struct{ agent, model, path, want string }{
		{"code", "openai/gpt-5", "ws/src/a.go", "home/rules/go.md ws/.eca/rules/src.md"},
		{"plan", "openai/gpt-5", "ws/src/a.go", "ws/.eca/rules/src.md"},
		{"plan", "anthropic/claude-4", "ws/src/a.go", "ws/.eca/rules/src.md"},
		{"plan", "anthropic/claude-3", "ws/src/a.go", ""},
		{"plan", "x/y", "two/src/missing/../b", "two/.eca/rules/src.md"},
		{"code", "x/y", "outside/a.go", ""},
		{"code", "x/y", "two/deep/er/a.go", "home/rules/go.md"},
		{"plan", "x/y", "two/lib/er/a", "two/.eca/rules/deep.md"},
		{"plan", "x/y", "two/one.txt", "two/.eca/rules/deep.md"},
	} {
		var got []string
		for _, r := range set.RulesFor(Reader{c.agent, c.model}, filepath.Join(h.dir, filepath.FromSlash(c.path))) {
			got = append(got, h.rel(r.ID))
		}
		if strings.Join(got, " ") != c.want {
			t.Errorf("%+v: %v", c, got)
		}
	}
	if problems := set.RuleProblems(nil); !slices.ContainsFunc(problems, func(p config.Problem) bool { return strings.Contains(p.String(), `"/etc/*" matches no file`) }) {
		t.Errorf("an absolute path is not reported: %v", problems)
	}
	if !set.Scoped() {
		t.Error("Scoped is false although the set has path-scoped rules")
	}
	if _, ok := set.Rule(Reader{"plan", "x"}, filepath.Join(h.dir, "home", "rules", "go.md")); ok {
		t.Error("the agent plan gets a rule that is only for code")
	}
}

// BenchmarkUnchanged measures Load with 200 files that have not changed, as before each turn. The
// floor is the time of os.Lstat for the same files.
func BenchmarkUnchanged(b *testing.B) {
	dir := b.TempDir()
	var paths []string
	for i := range 50 {
		for _, name := range []string{"agents/a%d.md", "skills/s%d/SKILL.md", "rules/r%d.md", "commands/c%d.md"} {
			path := filepath.Join(dir, ".eca", filepath.FromSlash(fmt.Sprintf(name, i)))
			at := time.Now().Add(-time.Hour)
			for _, err := range []error{os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, fmt.Appendf(nil, "---\nname: s%d\ndescription: x\n---\nx", i), 0o600), os.Chtimes(path, at, at)} {
				if err != nil {
					b.Fatal(err)
				}
			}
			paths = append(paths, path)
		}
	}
	l, in := NewLoader(time.Now), Inputs{Roots: []string{dir}}
	if set, _ := l.Load(in); len(set.Agents)+len(set.Skills)+len(set.Rules)+len(set.Commands) != 200 {
		b.Fatalf("%+v", set.Problems)
	}
	var floor time.Duration
	for b.Loop() {
		start := time.Now()
		for _, path := range paths {
			if _, err := os.Lstat(path); err != nil {
				b.Fatal(err)
			}
		}
		floor += time.Since(start)
		if _, changed := l.Load(in); changed {
			b.Fatal("changed")
		}
	}
	b.ReportMetric(float64(floor.Microseconds())/float64(b.N), "floor-us/op")
}
