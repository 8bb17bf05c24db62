package main

import (
	"bytes"
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"
)

// The decision about a command is explained, also in JSON, and nothing runs.
func TestPermissionExplain(t *testing.T) {
	here := newPlace(t, `ECA_CONFIG={"toolCall": {"approval": {"allow": {"eca__shell_command": {"argsMatchers": {"command": ["npm test.*"]}}}, "deny": {"eca__shell_command": {"argsMatchers": {"command": ["rm .*"]}}}}}}`)
	explain := func(want int, args ...string) string {
		t.Helper()
		out, stderr, code := runProgram(t, here, "", append([]string{"permission"}, args...)...)
		if code != want {
			t.Errorf("%q: exit %d, want %d: %s%s", args, code, want, out, stderr)
		}
		return out + stderr
	}
	for command, want := range map[string]string{
		"npm test":              "allow toolCall.approval.allow.eca__shell_command unknown:npm test",
		"npm test && touch x":   "ask toolCall.approval.byDefault unknown:npm test changes:touch x",
		"ls; rm x":              "deny toolCall.approval.deny.eca__shell_command reads:ls changes:rm x",
		"echo x > .git/config":  "ask protected reads:echo x",
		"echo 'unclosed":        "ask toolCall.approval.byDefault",
		"npm test $(touch was)": "ask toolCall.approval.byDefault changes:touch was unknown:npm test $(touch was)",
	} {
		var got struct {
			Verdict, Rule, Reason string
			Commands              []struct{ Command, Effect string }
		}
		raw := explain(0, "explain", "--json", "--", command)
		if err := json.Unmarshal([]byte(raw), &got); err != nil || got.Commands == nil || got.Reason == "" {
			t.Errorf("%q: %v in %s", command, err, raw)
		}
		text := got.Verdict + " " + got.Rule
		for _, c := range got.Commands {
			text += " " + c.Effect + ":" + c.Command
		}
		if text != want {
			t.Errorf("%q:\ngot  %s\nwant %s", command, text, want)
		}
	}
	if out := explain(0, "explain", "--agent", "plan", "--", "git", "status"); !strings.HasPrefix(out, "verdict: allow\nrule:    agent.plan.readOnly\n") {
		t.Errorf("plan: %s", out)
	}
	if out := explain(0, "explain", "--agent", "plan", "--", "make"); !strings.HasPrefix(out, "verdict: ask, also with auto-approve\n") {
		t.Errorf("plan: %s", out)
	}
	for want, args := range map[string][]string{"no agent \"zork\" (agents: code, ": {"explain", "--agent", "zork", "--", "ls"}, "not remembered": {"forget", "x"}} {
		if out := explain(1, args...); !strings.Contains(out, want) {
			t.Errorf("%q: %s", args, out)
		}
	}
	for want, args := range map[string][]string{"an argument is missing": {"explain"}, "a command is missing": {}} {
		if out := explain(2, args...); !strings.Contains(out, want) {
			t.Errorf("%q: %s", args, out)
		}
	}
	if out := explain(0, "explain", "--", "echo hi > out.txt"); !strings.Contains(out, "writes: > out.txt") {
		t.Errorf("a redirection: %s", out)
	}
	if out := explain(0, "explain", "--", "if then ("); !strings.Contains(out, "not parsed: ") {
		t.Errorf("a command that cannot be parsed: %s", out)
	}
	if out := explain(0, "explain", "--", "bash -lc 'ls'"); !strings.HasPrefix(out, "verdict: allow\n") || !strings.Contains(out, "\n  reads: ls\n") || strings.Contains(out, "not parsed") {
		t.Errorf("a login shell that only reads: %s", out)
	}
	if out := explain(0, "explain", "--", "bash -lc 'touch x'"); !strings.HasPrefix(out, "verdict: ask\n") || !strings.Contains(out, "start-up files of a login shell") {
		t.Errorf("a login shell that does more: %s", out)
	}
	if out := explain(0, "explain", "--text", "--", `echo "a b" # note`); out != "'echo' 'a b'\n" {
		t.Errorf("the text that runs: %s", out)
	}
	if out := explain(0, "explain", "--agent", "plan", "--", "cat a # x\\\nhead b"); !strings.Contains(out, "rule:    two readings") {
		t.Errorf("a text with two readings: %s", out)
	}
	for mode, want := range map[string]string{"off": "ask", "reads": "allow", "workspace": "allow"} {
		if out := explain(0, "explain", "--unasked", mode, "--", "ls"); !strings.HasPrefix(out, "verdict: "+want+"\n") {
			t.Errorf("--unasked %s: %s", mode, out)
		}
	}
	if out := explain(2, "explain", "--unasked", "all", "--", "ls"); !strings.Contains(out, "off (each command asks)") {
		t.Errorf("--unasked with a wrong value: %s", out)
	}
	if out := explain(0, "list"); out != "Nothing is remembered.\n" {
		t.Errorf("list: %s", out)
	}
}

// The known files that a command reads and writes are listed.
func TestPermissionExplainFiles(t *testing.T) {
	here := newPlace(t)
	for command, want := range map[string]string{
		"cat a.txt sub/../b.txt > out.txt":    `{"reads":["$/a.txt","$/b.txt"],"writes":["$/out.txt"],"unknown":[]}`,
		"cd sub && cp x.txt ../y && npm test": `{"reads":["$/x.txt","$/sub/x.txt"],"writes":["@/y","$/y"],"unknown":["npm test"]}`,
		"ls | xargs wc -l":                    `{"reads":["$"],"writes":[],"unknown":["wc -l"]}`,
		"rm -r build; cat /etc/hosts":         `{"reads":["/etc/hosts"],"writes":["$/build"],"unknown":[]}`,
		"echo $x > $y":                        `{"reads":[],"writes":[],"unknown":["> $y"]}`,
	} {
		out, stderr, code := runProgram(t, here, "", "permission", "explain", "--files", "--json", "--", command)
		var got struct{ Files json.RawMessage }
		if err := json.Unmarshal([]byte(out), &got); err != nil || code != 0 {
			t.Fatalf("%q: %v, exit %d: %s%s", command, err, code, out, stderr)
		}
		var files bytes.Buffer
		if err := json.Compact(&files, got.Files); err != nil {
			t.Fatal(err)
		}
		if text := strings.NewReplacer(here.root, "$", filepath.Dir(here.root), "@").Replace(files.String()); text != want {
			t.Errorf("%q:\ngot  %s\nwant %s", command, text, want)
		}
	}
	if out, _, _ := runProgram(t, here, "", "permission", "explain", "--files", "--", "cat a.txt > b.txt; make"); !strings.Contains(out, "files:\n  read: ") || !strings.Contains(out, "/a.txt\n  written: ") || !strings.Contains(out, "/b.txt\n  not known: make\n") {
		t.Errorf("as text: %s", out)
	}
}
