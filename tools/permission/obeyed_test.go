package permission

import (
	"encoding/json"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/seed-dec29ce4/eca/config"
	"github.com/seed-dec29ce4/eca/internal/sandbox"
	"github.com/seed-dec29ce4/eca/tools"
	"github.com/seed-dec29ce4/eca/workspace"
)

// obeyedFiles lists files that programs run or obey.
func obeyedFiles(t *testing.T) (list []string) {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", "obeyed.txt"))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(data)) {
		if line = strings.TrimSpace(line); !strings.HasPrefix(line, "#") {
			list = append(list, line)
		}
	}
	return list
}

// eca asks before file tools and commands write a file that programs obey. The sandbox protects files
// with the same names.
func TestObeyedFilesAreProtected(t *testing.T) {
	dir := makeFiles(t, map[string]string{"a.txt": ""})
	cfg := config.Load(config.Inputs{InitOptions: json.RawMessage(`{"toolCall": {"approval": {"byDefault": "allow"}}}`), Getenv: func(string) string { return "" }})
	p, _ := New(cfg.Config, Options{Contains: workspace.New(dir).ContainsResolved, Memory: NewMemory("")})
	call := tools.Call{Agent: "code", Roots: []string{dir}, Arguments: json.RawMessage(`{}`)}
	for _, name := range obeyedFiles(t) {
		for _, file := range []string{name, "sub/" + name, strings.ToUpper(name)} {
			if v := p.Judge(call, spec("eca__write_file"), tools.Plan{Paths: []string{filepath.Join(dir, file)}}); v.Decision != tools.Ask || !v.AlwaysAsk || v.Rule != "protected" {
				t.Errorf("writing %s: %+v", file, v)
			}
			if !matchesName(ProtectedNames(), path.Join(dir, file)) {
				t.Errorf("the sandbox does not protect %s", file)
			}
		}
		if v := judge(t, p, "code", dir, "cp a.txt '"+name+"'"); v.Decision != tools.Ask || !v.AlwaysAsk || v.Rule != "protected" {
			t.Errorf("cp a.txt %s: %+v", name, v)
		}
	}
}

// For each protected name, testdata/obeyed.txt has a file that no other name protects.
func TestEachProtectedNameIsTested(t *testing.T) {
	list := obeyedFiles(t)
	all := func(n sandbox.Names) bool {
		return !slices.ContainsFunc(list, func(name string) bool { return !matchesName(n, "/w/"+name) })
	}
	names := ProtectedNames()
	for _, part := range []*[]string{&names.Folders, &names.Files, &names.Patterns} {
		whole := *part
		for i, name := range whole {
			if *part = slices.Delete(slices.Clone(whole), i, i+1); all(names) {
				t.Errorf("no file in testdata/obeyed.txt needs %q", name)
			}
		}
		*part = whole
	}
}

// matchesName says whether a path, or a folder that it is in, has one of the names.
func matchesName(n sandbox.Names, at string) bool {
	for ; at != "/"; at = path.Dir(at) {
		if n.Match(at) {
			return true
		}
	}
	return false
}
