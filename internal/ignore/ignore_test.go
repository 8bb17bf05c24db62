package ignore

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// The oracle is git itself.
func TestAgainstGit(t *testing.T) {
	git, err := exec.LookPath("git")
	if err != nil {
		t.Skip("git is not installed (install it with your package manager, for example: apt-get install git); this test compares with it")
	}
	root := t.TempDir()
	run := func(args ...string) string {
		cmd := exec.Command(git, args...)
		cmd.Dir = root
		cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null", "HOME="+root)
		out, _ := cmd.Output()
		return string(out)
	}
	run("init", "-q")
	for path, text := range map[string]string{
		".gitignore":          "# comment\n*.log\n!keep.log\n/top\nbuild/\ndoc/*.txt\n**/gen\na/**/z\nspace\\ name\ntrailing   \n\\#hash\n\\!bang\n[ab]x\n[!c]y\nfoo/**\n{b,c}\n*.t?p\nx/y/\n",
		"sub/.gitignore":      "!*.log\nlocal\n/anchored\n",
		"sub/deep/.gitignore": "*.log\r\n!important.log\r\n",
	} {
		write(t, filepath.Join(root, path), text)
	}
	files := strings.Fields(`a.log keep.log top sub/top build/x sub/build/x build.txt doc/a.txt doc/sub/a.txt gen/x sub/gen a/z a/b/z a/b/c/z trailing #hash !bang
		ax bx cx ay cy foo/x foo/y/z b {b,c} c a.tmp a.tp x/y/f x/yy sub/a.log sub/local sub/q/local sub/anchored sub/q/anchored sub/deep/a.log sub/deep/important.log normal`)
	files = append(files, "space name")
	for _, f := range files {
		path := filepath.Join(root, f)
		if info, err := os.Stat(path); err == nil && info.IsDir() {
			continue
		}
		write(t, path, "")
	}
	rules := ForTree(root)
	_ = filepath.WalkDir(root, func(path string, d os.DirEntry, err error) error {
		if err != nil || path == root {
			return err
		}
		rel, _ := filepath.Rel(root, path)
		if rel == ".git" {
			return filepath.SkipDir
		}
		want := run("check-ignore", "--no-index", rel) != ""
		got := rules.Ignored(path, d.IsDir())
		if got != want {
			t.Errorf("%s: ignored is %v, git says %v", rel, got, want)
		}
		if want && d.IsDir() {
			return filepath.SkipDir
		}
		return nil
	})
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func FuzzParse(f *testing.F) {
	f.Add("a/**/b\n!c\n[x\n\\")
	f.Fuzz(func(t *testing.T, text string) {
		for _, p := range parse([]byte(text)) {
			p.match("a/b/c.txt", false)
		}
	})
}
