package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestRepomap(t *testing.T) {
	here := newPlace(t)
	for name, text := range map[string]string{
		"a.go": "package a\n\nfunc Wanted() {}\n", "b/b.go": "package b\n\nfunc Caller() { a.Wanted() }\n", "c.txt": "no code",
	} {
		path := filepath.Join(here.root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	const all = "a.go\n func Wanted()\nb/b.go\n func Caller()\n"
	for _, c := range []struct {
		args []string
		out  string
		fail string // part of stderr
	}{
		{[]string{}, all, ""},
		{[]string{here.root}, all, ""},
		{[]string{"--budget", "10", "--focus", "Caller"}, "a.go\nb/b.go\n func Caller()\n", ""},
		{[]string{"--query", "wanted"}, "a.go:3: func Wanted()\n", ""},
		{[]string{"--query", "nowhere"}, "", `no definition matches "nowhere"`},
		{[]string{"--query", "Caller", "--json"}, "[\n  {\n    \"path\": \"b/b.go\",\n    \"name\": \"Caller\",\n    \"kind\": \"function\",\n    \"line\": 3,\n    \"signature\": \"func Caller()\"\n  }\n]\n", ""},
		{[]string{"b"}, "b.go\n func Caller()\n", ""},
		{[]string{"--budget", "0"}, "", "--budget must be above 0"},
		{[]string{"--budget", "1"}, "", "budget is too small"},
		{[]string{"--bugdet", "1"}, "", "unknown flag"},
		{[]string{"none"}, "", "none"},
		{[]string{"c.txt"}, "", "c.txt is not a directory"},
		{[]string{"a", "b"}, "", `too many arguments: "b"`},
	} {
		out, stderr, code := runProgram(t, here, "", append([]string{"repomap"}, c.args...)...)
		if out != c.out || (code == 0) != (c.fail == "") || !strings.Contains(stderr, c.fail) {
			t.Errorf("%v: exit %d\n%s%s", c.args, code, out, stderr)
		}
	}
	_, stderr, code := runProgram(t, here, "", "repomap", "--focus", "Caller", "--focus", "nowhere")
	if want := "eca: --focus nowhere: no file, directory or definition has this name\n"; code != 0 || stderr != want {
		t.Errorf("an unknown name: exit %d, %q, want %q", code, stderr, want)
	}
	out, _, _ := runProgram(t, here, "", "repomap", "--json")
	var got struct {
		Root  string
		Files []struct {
			Path, Language string
			Rank           float64
			Definitions    []struct {
				Name, Kind, Signature string
				Line                  int
			}
		}
	}
	if err := json.Unmarshal([]byte(out), &got); err != nil || len(got.Files) != 2 || got.Files[0].Path != "a.go" || got.Files[0].Rank <= got.Files[1].Rank {
		t.Fatalf("%v: %s", err, out)
	}
	d := got.Files[0].Definitions
	if len(d) != 1 || d[0].Name != "Wanted" || d[0].Kind != "function" || d[0].Line != 3 || d[0].Signature != "func Wanted()" {
		t.Errorf("%+v", d)
	}
}
