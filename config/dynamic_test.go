package config

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"
)

// testResolver knows a few variables, files of a folder, and commands that echo themselves.
func testResolver(dir string) *resolver {
	return &resolver{
		getenv: env(map[string]string{"A": "x", "NAME": "key", "COMMAND": "${cmd:bad}"}), dir: dir, plugin: "/plug",
		recordFile: func(string) {}, netrc: func() []string { return []string{filepath.Join(dir, "netrc")} },
		resource: func(name string) (string, error) { return resource(name, nil) },
		command: func(command string) (string, bool, error) {
			if strings.Contains(command, "bad") {
				return "", false, errors.New("exit code 1")
			}
			return "<" + command + ">", false, nil
		},
	}
}

func TestExpand(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "key.txt"), "secret\n")
	write(t, filepath.Join(dir, "netrc"), "machine m login l password p1 port 8080\nmachine m login l password p2\n")
	r := testResolver(dir)
	for in, want := range map[string]string{
		"plain": "plain", "${env:A}": "x", "a${env:A}b${env:A}": "axbx", "${env:NONE}": "", "${env:NONE:http://d:1}": "http://d:1",
		"${file:key.txt}": "secret", "${file:" + dir + "/key.txt}": "secret", "$5 ${x} {}": "$5 ${x} {}", "${HOME}": "${HOME}",
		"${cmd:echo hi}":                      "<echo hi>",
		"${cmd:awk '{print $1}' f}":           "<awk '{print $1}' f>",
		"${cmd:echo ${HOME}}":                 "<echo ${HOME}>",
		"${cmd:show ${env:A} ${env:NONE:y}}!": "<show x y>!",
		"${file:${env:NAME}.txt}":             "secret",
		"${env:NONE:${file:key.txt}}":         "secret",
		"${env:A:${cmd:bad}}":                 "x", // an unneeded default does not run
		"${env:COMMAND}":                      "${cmd:bad}",
		"${netrc:m}":                          "p2",
		"${netrc:l@m:8080}":                   "p1",
		"${plugin:root}/x":                    "/plug/x",
	} {
		if got := r.expand(in); len(got.errs) > 0 || got.text != want {
			t.Errorf("%q: %q, %v; want %q", in, got.text, got.errs, want)
		}
	}
	for in, want := range map[string]string{
		"${file:missing}":                 "cannot be read",
		"${file:" + dir + "}":             "not a regular file",
		"${cmd:bad}":                      "${cmd:...}: exit code 1",
		"${netrc:other@m}":                "there is no such entry in " + filepath.Join(dir, "netrc"),
		"${netrc:}":                       "has no machine",
		"${classpath:prompts/none.md}":    "unknown prompt; there are prompts/",
		"${classpath:logo.svg}":           "only prompts/*.md",
		"${classpath:prompts/tools/x.md}": "unknown tool x",
		"${plugin:version}":               "${plugin:root} is the plugin's folder",
	} {
		if got := r.expand(in); len(got.errs) != 1 || !strings.Contains(got.errs[0].Error(), want) || got.text != "" {
			t.Errorf("%q: %q, %v; want %q", in, got.text, got.errs, want)
		}
	}
	if got := r.expand("${env:A and ${env:A}"); got.text != "${env:A and x" || len(got.errs) != 1 {
		t.Errorf("not closed: %q, %v", got.text, got.errs)
	}
	r.plugin, r.command = "", nil
	for _, in := range []string{"${plugin:root}", "${cmd:echo}"} {
		if got := r.expand(in); len(got.errs) != 1 || got.text != "" {
			t.Errorf("%q where it has no value: %q, %v", in, got.text, got.errs)
		}
	}
}

// The names that other programs use for the built-in prompts lead to them.
func TestClasspath(t *testing.T) {
	r := testResolver("")
	for name, file := range map[string]string{
		"code_agent": "code", "agent_behavior": "code", "plan_agent": "plan", "plan_behavior": "plan", "compact": "compact", "init": "init",
		"inline_completion": "completion", "rewrite": "rewrite", "title": "title",
	} {
		want := strings.TrimSpace(string(builtin("prompts/" + file + ".md")))
		if got := r.expand("${classpath:prompts/" + name + ".md}"); got.text != want || len(got.errs) > 0 {
			t.Errorf("%s: %q %v", name, got.text, got.errs)
		}
	}
	tool := func(name string) (string, bool) { return "about " + name, name == "grep" }
	for _, name := range []string{"prompts/tools/grep.md", "prompts/tools/eca_grep.md"} {
		if got, err := resource(name, tool); got != "about grep" || err != nil {
			t.Errorf("%s: %q %v", name, got, err)
		}
	}
}

// Resolving any text ends, and a text without expressions stays unchanged.
func FuzzExpand(f *testing.F) {
	for _, seed := range []string{"${env:A}", "${env:A:${env:B:${file:x}}}", "${cmd:a {b} ${env:A}}", "${${env:}}", "${plugin:root", strings.Repeat("${env:", 20)} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		r := testResolver(t.TempDir())
		r.dir = filepath.Join(r.dir, "none")
		got := r.expand(text)
		if !strings.Contains(text, "${") && got.text != text {
			t.Errorf("%q became %q", text, got.text)
		}
		// An empty variable leaves no text; the text around it stays.
		plain := strings.NewReplacer("$", "", "{", "", "}", "").Replace(text)
		if got := r.expand(plain + "${env:NONE}" + plain); got.text != plain+plain || len(got.errs) > 0 {
			t.Errorf("around an expression: %q, %v", got.text, got.errs)
		}
		// The nodes together are the text.
		parts, _ := parseDynamic(text)
		if writeNodes(parts) != text {
			t.Errorf("%q was taken apart as %q", text, writeNodes(parts))
		}
	})
}

func writeNodes(parts []node) string {
	var b strings.Builder
	for _, p := range parts {
		if p.expr {
			b.WriteString("${" + p.text + ":" + writeNodes(p.parts) + "}")
		} else {
			b.WriteString(p.text)
		}
	}
	return b.String()
}
