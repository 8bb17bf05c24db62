package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/seed-dec29ce4/eca/internal/needs"
	"github.com/seed-dec29ce4/eca/internal/sandbox"
)

// callCassette is a cassette that makes tool calls, each with a text before it.
func callCassette(calls ...string) string {
	out := "cassette: 1\nturns:\n  - steps:\n"
	for _, c := range calls {
		out += "      - {text: Next., calls: [" + c + "]}\n"
	}
	return out + "      - {text: Done.}\n"
}

const (
	writeCall     = `{tool: eca__write_file, arguments: {path: "${workspace}/new.txt", content: "x"}}`
	protectedCall = `{tool: eca__write_file, arguments: {path: "${workspace}/.envrc", content: "x"}}`
	outsideCall   = `{tool: eca__shell_command, arguments: {command: "touch left", outside: "it has to"}}`
)

// Refused calls are listed with the flags that would allow them, without the given flag.
func TestExecNamesFlagsThatWereNotGiven(t *testing.T) {
	needs.POSIX(t)
	p := newProvider(t, callCassette(writeCall, protectedCall))
	for flag, want := range map[string][]string{
		"ask": {"auto-edit", "workspace", "all"}, "auto-edit": {"all"}, "workspace": {"all"}, "all": nil, "none": nil,
	} {
		here := newPlace(t, p.env()...)
		_, errOut, _ := runProgram(t, here, "", "exec", "--approve", flag, "go")
		remedy := ""
		for line := range strings.Lines(errOut) {
			if strings.Contains(line, "Allow them with") {
				remedy = line
			}
		}
		for _, other := range []string{"auto-edit", "workspace", "all"} {
			if got := strings.Contains(remedy, "--approve "+other); got != slices.Contains(want, other) {
				t.Errorf("--approve %s: --approve %s is named: %v\n%s", flag, other, got, errOut)
			}
		}
		if _, err := os.Stat(filepath.Join(here.root, "new.txt")); (err == nil) != (flag != "ask" && flag != "none") {
			t.Errorf("--approve %s: the file was written: %v", flag, err == nil)
		}
	}
}

// A call that failed is shown with its command and the reason.
func TestExecShowsWhatFailed(t *testing.T) {
	needs.POSIX(t)
	p := newProvider(t, callCassette(`{tool: eca__shell_command, arguments: {command: "echo bad >&2; exit 3"}}`))
	_, errOut, _ := runProgram(t, newPlace(t, p.env()...), "", "exec", "--approve", "all", "go")
	for line := range strings.Lines(errOut) {
		if strings.Contains(line, "failed: ") && strings.Contains(line, "echo bad >&2; exit 3: ") && strings.HasSuffix(line, "; bad\n") {
			return
		}
	}
	t.Errorf("the failure is not shown: %s", errOut)
}

// Only the options that would have let a refused call run are named.
func TestExecNamesOnlyWhatWouldHaveAllowedTheCalls(t *testing.T) {
	needs.POSIX(t)
	for call, want := range map[string][]string{
		writeCall: {"--approve auto-edit", "--approve workspace", "--approve all", "toolCall.approval.allow"},
		`{tool: eca__move_file, arguments: {source: "${workspace}/a", destination: "${workspace}/b"}}`: {"--approve auto-edit", "--approve workspace", "--approve all", "toolCall.approval.allow"},
		`{tool: eca__move_file, arguments: {source: "${workspace}/a", destination: "/b"}}`:             {"--approve all"},
		`{tool: eca__write_file, arguments: {path: "${workspace}/../outside.txt", content: "x"}}`:      {"--approve all"},
		`{tool: eca__shell_command, arguments: {command: "git push https://example.org/x.git main"}}`:  {"--approve all", "toolCall.approval.allow"},
	} {
		p := newProvider(t, callCassette(call))
		_, errOut, code := runProgram(t, newPlace(t, p.env()...), "", "exec", "go")
		if code != exitRefused {
			t.Errorf("exit code %d", code)
		}
		for _, way := range []string{"--approve auto-edit", "--approve workspace", "--approve all", "toolCall.approval.allow"} {
			if got := strings.Contains(errOut, way); got != slices.Contains(want, way) {
				t.Errorf("%s: %s is named: %v\n%s", call, way, got, errOut)
			}
		}
	}
}

// The model gets the reason that the run approves nothing, not that a user rejected the call.
// Scripts can read the refused calls with their reasons.
func TestExecListsWhatWasRefused(t *testing.T) {
	needs.POSIX(t)
	for flag, why := range map[string]string{"none": "--approve none", "ask": "no terminal"} {
		p := newProvider(t, callCassette(writeCall))
		out, errOut, code := runProgram(t, newPlace(t, p.env()...), "", "exec", "--json", "--approve", flag, "go")
		if got := transcriptOf(p.last(t)); code != exitRefused || !strings.Contains(got, "this run does not approve") || strings.Contains(got, "The user rejected") {
			t.Errorf("--approve %s: exit code %d, the model received: %s\n%s", flag, code, got, errOut)
		}
		lines := strings.Split(strings.TrimSpace(out), "\n")
		var result struct {
			Refused []struct{ Tool, Reason string }
		}
		if err := json.Unmarshal([]byte(lines[len(lines)-1]), &result); err != nil {
			t.Fatal(err)
		}
		if len(result.Refused) != 1 || result.Refused[0].Tool != "eca__write_file" || !strings.Contains(result.Refused[0].Reason, why) {
			t.Errorf("--approve %s: %s", flag, lines[len(lines)-1])
		}
	}
	p := newProvider(t, callCassette(writeCall))
	if out, _, _ := runProgram(t, newPlace(t, p.env()...), "", "exec", "--json", "--approve", "all", "go"); strings.Contains(out, `"refused"`) {
		t.Errorf("the result lists refused calls although none was refused: %s", out)
	}
}

// The flag takes precedence over the user's configuration; settings that restrict it further are
// named.
func TestExecApproveWorkspaceWins(t *testing.T) {
	needs.Long(t)
	p := newProvider(t, callCassette(`{tool: eca__shell_command, arguments: {command: "touch made"}}`))
	if _, errOut, _ := runProgram(t, newPlace(t, p.env()...), "", "exec", "--approve", "workspace", "go"); strings.Contains(errOut, "is not available here") {
		t.Skip("NOT TESTED: no sandbox with namespaces on this machine; Linux with user namespaces has one")
	}
	for name, c := range map[string]struct {
		user, workspace string
		args            []string
		made            bool
		said            string
	}{
		"nothing":           {"{}", "", nil, true, ""},
		"the user":          {`{"toolCall": {"unasked": "off"}}`, "", nil, true, ""},
		"the user's agent":  {`{"agent": {"code": {"toolCall": {"unasked": "reads"}}}}`, "", nil, true, ""},
		"the workspace":     {"{}", `{"toolCall": {"unasked": "off"}}`, nil, false, "config.json"},
		"its agent":         {"{}", `{"agent": {"code": {"toolCall": {"unasked": "reads"}}}}`, nil, false, "toolCall.unasked is reads"},
		"a read-only agent": {"{}", "", []string{"--agent", "plan"}, false, "plan is read-only"},
		"no sandbox":        {`{"toolCall": {"sandbox": "off"}}`, "", nil, false, "toolCall.sandbox"},
	} {
		here := newPlace(t, p.env()...)
		here.env = append(here.env, "ECA_CONFIG="+c.user)
		if c.workspace != "" {
			if err := os.Mkdir(filepath.Join(here.root, ".eca"), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(here.root, ".eca", "config.json"), []byte(c.workspace), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		_, errOut, _ := runProgram(t, here, "", append([]string{"exec", "--approve", "workspace", "go"}, c.args...)...)
		if _, err := os.Stat(filepath.Join(here.root, "made")); (err == nil) != c.made {
			t.Errorf("%s: the command ran: %v\n%s", name, err == nil, errOut)
		}
		if said := strings.Contains(errOut, "--approve workspace: commands are not run without a question"); said == c.made || !strings.Contains(errOut, c.said) {
			t.Errorf("%s: the notice about --approve workspace on stderr: %v, want %v and %q:\n%s", name, said, !c.made, c.said, errOut)
		}
	}
}

// Without the sandbox, neither the hint nor --approve all pretends that there is one.
func TestApproveAllWithoutSandbox(t *testing.T) {
	p := newProvider(t, callCassette(`{tool: eca__shell_command, arguments: {command: "touch made"}}`))
	here := newPlace(t, append(p.env(), `ECA_CONFIG={"toolCall": {"sandbox": "off"}}`)...)
	const rights = "commands run with all your rights, since the sandbox is switched off (toolCall.sandbox)"
	if _, errOut, code := runProgram(t, here, "", "exec", "go"); code != exitRefused || !strings.Contains(errOut, "--approve all (everything; "+rights+")") {
		t.Errorf("exit code %d:\n%s", code, errOut)
	}
	if _, errOut, code := runProgram(t, here, "", "exec", "--approve", "all", "go"); code != 0 || !strings.Contains(errOut, "--approve all: "+rights) {
		t.Errorf("exit code %d:\n%s", code, errOut)
	}
}

// A model cannot leave the sandbox because everything is approved; the user is shown how commands
// can leave it.
func TestExecSaysHowCommandsLeaveTheSandbox(t *testing.T) {
	needs.POSIX(t)
	p := newProvider(t, callCassette(outsideCall))
	for flag, outside := range map[string]bool{"all": true, "ask": true, "none": false} {
		here := newPlace(t, p.env()...)
		_, errOut, code := runProgram(t, here, "", "exec", "--approve", flag, "go")
		if _, err := os.Stat(filepath.Join(here.root, "left")); err == nil || code != exitRefused {
			t.Errorf("--approve %s: exit code %d, it ran: %v\n%s", flag, code, err == nil, errOut)
		}
		if strings.Contains(errOut, `"toolCall": {"sandbox": "off"}`) != outside {
			t.Errorf("--approve %s:\n%s", flag, errOut)
		}
	}
	if s := sandbox.Probe(); !s.Holds {
		t.Skip("NOT TESTED: no sandbox on this machine: " + s.Without)
	}
	wd, err := os.Getwd() // not below TMPDIR, which is writable
	if err != nil {
		t.Fatal(err)
	}
	p = newProvider(t, callCassette(`{tool: eca__shell_command, arguments: {command: "echo x > `+wd+`/.testing-left"}}`))
	_, errOut, _ := runProgram(t, newPlace(t, append(p.env(), "TMPDIR="+t.TempDir())...), "", "exec", "--approve", "all", "go")
	for _, want := range []string{"sandbox: use of " + wd + "/.testing-left refused", "Commands write in " + wd + " only if", `"toolCall": {"sandbox": "off"}`} {
		if !strings.Contains(errOut, want) || strings.Contains(errOut, "toolCall.sandbox") {
			t.Errorf("%q is not said, or other settings are:\n%s", want, errOut)
		}
	}
}

// A call that --approve workspace does not cover is refused with the reason, and with the command
// that explains it.
func TestExecSaysWhyACallIsNotCovered(t *testing.T) {
	needs.POSIX(t)
	if s := sandbox.Probe(); !s.Holds {
		t.Skip("NOT TESTED: no sandbox on this machine: " + s.Without)
	}
	p := newProvider(t, callCassette(`{tool: eca__shell_command, arguments: {command: "curl http://one.example"}}`))
	for mode, want := range map[string]string{"workspace": "`eca permission explain --unasked workspace COMMAND`", "ask": "`eca permission explain COMMAND`"} {
		_, errOut, code := runProgram(t, newPlace(t, p.env()...), "", "exec", "--approve", mode, "go")
		if code != exitRefused || !strings.Contains(errOut, "(asked because: ") || !strings.Contains(errOut, "eca does not know what curl does") || !strings.Contains(errOut, want) {
			t.Errorf("--approve %s: exit code %d\n%s", mode, code, errOut)
		}
	}
	here := newPlace(t, append(p.env(), `ECA_CONFIG={"agent": {"ops": {"mode": "primary", "toolCall": {"unasked": "off"}}}}`)...)
	if _, errOut, _ := runProgram(t, here, "", "exec", "--agent", "ops", "--approve", "workspace", "go"); !strings.Contains(errOut, "`eca permission explain --agent ops --unasked workspace COMMAND`") {
		t.Errorf("stderr does not name the agent:\n%s", errOut)
	}
	p = newProvider(t, callCassette(writeCall))
	if _, errOut, _ := runProgram(t, newPlace(t, p.env()...), "", "exec", "go"); strings.Contains(errOut, "permission explain") {
		t.Errorf("stderr names `eca permission explain` for a call that is not a command:\n%s", errOut)
	}
}

// If a hook requires approval, the hook is named. Rules and --approve workspace, which do not overrule it,
// are not.
func TestExecNamesTheHookThatRequiresApproval(t *testing.T) {
	needs.POSIX(t)
	p := newProvider(t, callCassette(`{tool: eca__shell_command, arguments: {command: "ls"}}`, `{tool: eca__shell_command, arguments: {command: "touch made"}}`))
	here := newPlace(t, p.env()...)
	here.env = append(here.env, `ECA_CONFIG={"hooks": {"gate": {"type": "preToolCall", "actions": [{"type": "shell", "shell": "echo '{\"approval\": \"denied\"}'"}]}}}`)
	_, errOut, code := runProgram(t, here, "", "exec", "go")
	if code != exitRefused || strings.Count(errOut, "the hook 'gate' requires your approval)") != 2 || !strings.Contains(errOut, "Allow them with --approve all (everything; commands stay in the sandbox), or a change of the hook that requires approval.") || strings.Contains(errOut, "permission explain") {
		t.Errorf("exit code %d\n%s", code, errOut)
	}
}

// The remedies for an edit for which a hook requires approval do not include --approve auto-edit, and it does not
// overrule the hook.
func TestExecAutoEditDoesNotOverruleAHook(t *testing.T) {
	needs.POSIX(t)
	for _, approve := range []string{approveAsk, approveAutoEdit, approveWorkspace} {
		here := newPlace(t, newProvider(t, callCassette(writeCall)).env()...)
		here.env = append(here.env, `ECA_CONFIG={"hooks": {"gate": {"type": "preToolCall", "actions": [{"type": "shell", "shell": "echo '{\"approval\": \"ask\"}'"}]}}}`)
		_, errOut, code := runProgram(t, here, "", "exec", "--approve", approve, "go")
		if code != exitRefused || !strings.Contains(errOut, "Allow them with --approve all (everything; commands stay in the sandbox), or a change of the hook that requires approval.") {
			t.Errorf("%s: exit code %d\n%s", approve, code, errOut)
		}
	}
}

// Parts of the answer are separated, even if the calls between them are not shown.
func TestExecSeparatesPartsOfTheAnswer(t *testing.T) {
	p := newProvider(t, callCassette(writeCall, protectedCall))
	out, errOut, code := runProgram(t, newPlace(t, p.env()...), "", "exec", "--approve", "none", "go")
	if code != exitRefused || out != "Next.\n\nNext.\n\nDone.\n" || strings.Contains(errOut, "new.txt new.txt") {
		t.Errorf("exit code %d, %q\n%s", code, out, errOut)
	}
}

// A background job that ends with the program is named, and so is a slow command. A command that
// ran until the user stopped it is not reported as refused.
func TestExecNamesJobsAndSlowCommands(t *testing.T) {
	needs.Long(t)
	needs.POSIX(t)
	p := newProvider(t, callCassette(`{tool: eca__shell_command, arguments: {command: "sleep 500", background: "web server"}}`))
	_, errOut, code := runProgram(t, newPlace(t, p.env()...), "", "exec", "--approve", "all", "go")
	if code != 0 || !strings.Contains(errOut, "The background job web server ended with eca exec: $ sleep 500") {
		t.Errorf("exit code %d:\n%s", code, errOut)
	}

	p = newProvider(t, callCassette(`{tool: eca__shell_command, arguments: {command: "sleep 500"}}`))
	cmd := newPlace(t, p.env()...).command("exec", "--approve", "all", "go")
	detachTerminal(cmd)
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	timer := time.AfterFunc(time.Minute, func() { _ = cmd.Process.Kill() })
	defer timer.Stop()
	said := ""
	for lines := bufio.NewScanner(stderr); lines.Scan(); {
		said += lines.Text() + "\n"
		if lines.Text() == "· $ sleep 500" {
			if err := cmd.Process.Signal(os.Interrupt); err != nil {
				t.Fatal(err)
			}
		}
	}
	_ = cmd.Wait()
	if code := cmd.ProcessState.ExitCode(); code != exitInterrupted || !strings.Contains(said, "· stopped: $ sleep 500") || strings.Contains(said, "refused") {
		t.Errorf("exit code %d:\n%s", code, said)
	}

	var shown bytes.Buffer
	begin := time.Now()
	c := newExecClient(execFlags{}, t.TempDir(), &shown, &shown)
	c.calls["1"] = &callTimer{label: "$ make", started: begin, notifyAt: silentAfter}
	for _, second := range []int{4, 6, 20, 40} {
		c.reportLongCalls(begin.Add(time.Duration(second) * time.Second))
	}
	c.calls["1"].markEnded()
	c.reportLongCalls(begin.Add(time.Hour))
	if got := shown.String(); got != "⏳ Running for 6s: $ make\n⏳ Running for 40s: $ make\n" {
		t.Errorf("%q", got)
	}
}

// The question shows the command once and unchanged, and offers to remember it if that is possible.
func TestExecQuestion(t *testing.T) {
	for _, c := range []struct {
		run       string
		want, not []string
	}{
		{`{"name": "shell_command", "server": "eca", "summary": "$ go test", "arguments": {"command": "go test", "timeout": 5000}, "details": {"type": "shellCommand", "commands": [{"approvalKey": "go test"}]}}`, []string{"$ go test\n", "timeout: 5000", "remembered with s, w or g: go test\n", "[y/s/w/g/N]"}, []string{"{", "command: "}},
		{`{"name": "shell_command", "server": "eca", "summary": "$ x", "permission": {"notRemembered": "make nothing cannot be remembered"}, "details": {"type": "shellCommand", "commands": [{"approvalKey": "echo"}, {}]}}`, []string{"\nmake nothing cannot be remembered.\n", "[y/N]"}, []string{"with s, w or g"}},
		{`{"name": "shell_command", "server": "eca", "summary": "$ x", "details": {"type": "shellCommand", "commands": [{"approvalKey": "echo", "remembered": true}, {"approvalKey": "go test"}]}}`, []string{"with s, w or g: go test\n", "[y/s/w/g/N]"}, nil},
		{`{"name": "shell_command", "server": "eca", "summary": "$ go test", "arguments": {"command": "go test", "outside": "x"}, "permission": {"notRemembered": "eca asks about each call of this kind"}}`, []string{"outside: x", "asks about each call", "[y/N]"}, nil},
		{`{"name": "edit_file", "server": "eca", "summary": "Editing .envrc", "arguments": {"path": "/x/.envrc"}, "permission": {"notRemembered": "eca asks about each call of this kind"}, "details": {"type": "fileChange", "diff": "+a"}}`, []string{"+a", "[y/N]"}, []string{"path: "}},
		{`{"name": "ask", "server": "db", "summary": "db ask", "arguments": {"sql": "select 1\nfrom x", "n": {"a": [1]}}}`, []string{"  sql: select 1\n    from x\n", `n: {"a": [1]}`, "[y/s/w/g/N]"}, nil},
	} {
		var call pendingCall
		if err := json.Unmarshal([]byte(c.run), &call); err != nil {
			t.Fatal(err)
		}
		question := call.question()
		for _, part := range c.want {
			if !strings.Contains(question, part) {
				t.Errorf("%q is missing in %s", part, question)
			}
		}
		for _, part := range c.not {
			if strings.Contains(question, part) {
				t.Errorf("%q is in %s", part, question)
			}
		}
	}
}
