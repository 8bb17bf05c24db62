package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/seed-dec29ce4/eca/ecp/report"
	"github.com/seed-dec29ce4/eca/internal/needs"
	"github.com/seed-dec29ce4/eca/internal/sandbox"
)

// writeScriptAgent writes an agent that runs a shell script in its workspace at each step, and
// returns its command line. The agent answers with the script's output.
func writeScriptAgent(t *testing.T, body string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "agent.sh")
	write(t, path, `case $HOME in */ecp-agent-*/home) ;; *) echo "not in an environment" >&2; exit 77 ;; esac
cd "${ECP_WORKSPACE:?}" || exit 78
while read -r line; do
  id=${line#*\"id\":}; id=${id%%[,\}]*}
  case $line in
  *agent/initialize*) echo '{"jsonrpc":"2.0","id":'$id',"result":{"name":"sh","capabilities":{}}}' ;;
  *agent/step*)
    said=$(step 2>&1 | tr -d '"\\' | tr '\n\t' '  ')
    echo '{"jsonrpc":"2.0","id":'$id',"result":{"status":"done","public_output":"'"$said"'"}}' ;;
  esac
done
`)
	script, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	write(t, path, "step() {\n"+body+"\n}\n"+string(script))
	return "sh " + path
}

// needsSandbox skips the test on machines without the environment local. It also isolates the test
// from the machine's environment variables and configuration.
func needsSandbox(t *testing.T) {
	t.Helper()
	isolateEnvironment(t)
	if s := sandbox.Probe(); !s.Holds || runtime.GOOS != "linux" {
		t.Skip("NOT TESTED: the sandbox needs Linux 6.2 with Landlock: " + s.Without)
	}
}

// codingScenario is a scenario with an environment; setup and checks are YAML.
func codingScenario(setup, checks string) string {
	return fmt.Sprintf("  - name: task\n    steps:\n      - input: go\n        constraints:\n          scenario: {%s}\n          checks: [%s]\n", setup, checks)
}

// reasons are the reasons of the checks in a report.
func reasons(r *report.Report) (out string) {
	for _, s := range r.Scenarios {
		for _, e := range s.Errors {
			out += e.Kind + ": " + e.Message + "\n"
		}
		for _, st := range s.Steps {
			for _, c := range st.Checks {
				out += c.Reasoning + "\n"
			}
		}
	}
	return out
}

// A grader that prints its environment and searches for keys finds none; nor does an agent without
// grants.
func TestNoKeyReachesGraders(t *testing.T) {
	needsSandbox(t)
	const canary = "canary-8c1f"
	home := os.Getenv("HOME")
	write(t, filepath.Join(home, ".config", "eca", "config.json"), canary)
	write(t, filepath.Join(home, ".netrc"), canary)
	t.Setenv("OPENAI_API_KEY", canary)
	t.Setenv("AGENT_KEY", "given-"+canary)
	look := fmt.Sprintf(`(env; cat %[1]s/.config/eca/config.json %[1]s/.netrc ~/.netrc ~/.config/eca/config.json; cat /proc/*/environ; ls -a %[1]s; grep -rs 'canary[-]8c1f' /tmp) > seen.txt 2>&1; grep -ao '[A-Z_a-z=-]*canary[-]8c1f' seen.txt; echo looked; `, home)
	check := fmt.Sprintf(`{type: command, run: %q}`, look+"exit 3")
	for name, c := range map[string]struct{ setup, given string }{
		"local":                         {"workspace: {}, environment: local", ""},
		"agent's key":                   {"workspace: {}, environment: {kind: local, agent: {env: [AGENT_KEY]}}", "given-"},
		"local and an agent that looks": {"environment: local", ""},
	} {
		t.Run(name, func(t *testing.T) {
			agent := writeScriptAgent(t, look)
			out, r := evaluateManifest(t, manifest(t, agent, codingScenario(c.setup, check)))
			text := reasons(r)
			if !strings.Contains(text, "It printed 'looked'") {
				t.Errorf("exit %d: %s", out.code, text)
			}
			said := *r.Scenarios[0].Steps[0].Output
			if !strings.Contains(said, "looked") || strings.Contains(strings.ReplaceAll(said, "AGENT_KEY="+c.given+canary, ""), canary) || c.given != "" && !strings.Contains(said, c.given) {
				t.Errorf("the agent: %s", said)
			}
		})
	}
	// Without an environment, files are not protected, but variables are removed.
	_, r := evaluateManifest(t, manifest(t, agentTarget(t, "ok"), codingScenario("workspace: {}", `{type: command, run: "env | grep -o 'canary[-]8c1f'; echo home $HOME; exit 3"}`)))
	if text := reasons(r); strings.Contains(text, canary) || !strings.Contains(text, "home /") || strings.Contains(text, home) {
		t.Error(text)
	}
}

// writeHiddenTestTask writes a task whose hidden test passes if answer.txt is right.
func writeHiddenTestTask(t *testing.T, agent string) string {
	t.Helper()
	m := manifest(t, agent, codingScenario("workspace: repo, tests: hidden, environment: local", `{type: command, run: "sh tests/check.sh"}`))
	dir := filepath.Dir(m)
	write(t, filepath.Join(dir, "repo", "answer.txt"), "41\n")
	write(t, filepath.Join(dir, "repo", "tests", "seen.sh"), "true\n")
	write(t, filepath.Join(dir, "hidden", "tests", "check.sh"), "# needle-51ab\ngrep -qx 42 answer.txt\n")
	return m
}

// Hidden tests decide, and do not exist before the agent has ended.
func TestHiddenTests(t *testing.T) {
	needs.Long(t)
	needsSandbox(t)
	for name, c := range map[string]struct {
		agent  string
		passed int
	}{
		"solved":                {"echo 42 > answer.txt", 1},
		"not solved":            {"true", 0},
		"a test of its own":     {"mkdir -p tests; echo 'exit 0' > tests/check.sh; chmod 444 tests/check.sh; chmod 555 tests", 0},
		"a link for the test":   {"echo 'exit 0' > mine.sh; ln -s ../mine.sh tests/check.sh", 0},
		"a folder for it":       {"mkdir -p tests/check.sh/x", 0},
		"a pipe for it":         {"mkfifo tests/check.sh", 0},
		"a hard link":           {"echo 'exit 0' > mine.sh; ln mine.sh tests/check.sh", 0},
		"a link for the folder": {"rm -rf tests; mkdir other; ln -s other tests", 0},
		"no rights":             {"chmod 000 tests", 0},
		"a process that waits":  {`setsid sh -c 'trap "" TERM HUP; while :; do [ ! -e tests/check.sh ] || echo "exit 0" > tests/check.sh; done' >/dev/null 2>&1 & true`, 0},
		"no workspace":          {"rm -rf ./* && cd / && rmdir \"${ECP_WORKSPACE:?}\"", 0},
	} {
		t.Run(name, func(t *testing.T) {
			out, r := evaluateManifest(t, writeHiddenTestTask(t, writeScriptAgent(t, c.agent)))
			if r.Passed != c.passed || r.Total != 1 || len(r.Errors) > 0 {
				t.Errorf("exit %d: %d of %d: %s", out.code, r.Passed, r.Total, reasons(r))
			}
		})
	}
}

// An agent that searches the machine for the hidden tests does not find them.
func TestHiddenTestsAreNotFound(t *testing.T) {
	needsSandbox(t)
	m := writeHiddenTestTask(t, "")
	dir := filepath.Dir(m)
	agent := writeScriptAgent(t, fmt.Sprintf(`find / -name check.sh 2>/dev/null | sed 's/^/FOUND /'; ls -R %[1]s; cat %[1]s/hidden/tests/check.sh %[1]s/manifest.yaml; grep -rs needle- %[1]s /tmp /proc/*/cwd/; ln -s %[1]s/hidden h; cat h/tests/check.sh; ln %[1]s/hidden/tests/check.sh got; cat got; echo searched`, dir))
	data, err := os.ReadFile(m)
	if err != nil {
		t.Fatal(err)
	}
	write(t, m, strings.Replace(string(data), `target: ""`, "target: "+agent, 1))
	_, r := evaluateManifest(t, m)
	said := *r.Scenarios[0].Steps[0].Output
	if !strings.Contains(said, "searched") || strings.Contains(said, "needle") || strings.Contains(said, "FOUND") {
		t.Error(said)
	}
}

// Tests that the agent could see are an error before anything runs, and so are invalid
// environments.
func TestWrongEnvironments(t *testing.T) {
	isolateEnvironment(t)
	for text, want := range map[string]string{
		"workspace: repo, tests: hidden":                                            "hidden tests need an environment",
		"workspace: repo, tests: repo/tests, environment: local":                    "the agent would see repo/tests",
		"workspace: repo, tests: ., environment: local":                             "the agent would see .",
		"tests: hidden, environment: {kind: local, agent: {read: [.]}}":             "environment.agent.read.0 has .",
		"tests: nothing, environment: local":                                        "tests:",
		"environment: {kind: local, agent: {read: [nothing]}}":                      "nothing: no such file",
		"environment: {kind: local, image: x}":                                      "only for docker and podman, not for local",
		"environment: docker":                                                       "needs an image or a dockerfile",
		"environment: {kind: docker, dockerfile: hidden/Dockerfile}, tests: hidden": "because the image has hidden;",
		"environment: vm": `"vm" must be one of local, docker, podman`,
		`environment: {kind: local, agent: {env: ["KEY=secret"]}}`:                           "is not a valid variable name",
		"environment: {kind: podman, image: x, graders: {read: [repo/tests, hidden/tests]}}": `called "tests"`,
	} {
		m := manifest(t, "true", codingScenario(text, `{type: command, run: "true"}`))
		for _, file := range []string{"repo/tests/a", "hidden/tests/b", "hidden/Dockerfile"} {
			write(t, filepath.Join(filepath.Dir(m), file), "x")
		}
		if r := invoke(t, "run", m); r.code != exitError || !strings.Contains(r.err, want) {
			t.Errorf("%s: exit %d: %s", text, r.code, r.err)
		}
	}
	m := manifest(t, "http://127.0.0.1:1/ecp", codingScenario("environment: local", `{type: command, run: "true"}`))
	if r := invoke(t, "run", m); r.code != exitError || !strings.Contains(r.err, "the agent is a server, which runs elsewhere") {
		t.Errorf("exit %d: %s", r.code, r.err)
	}
}

// Damage to the machine or the workspace by an agent ends as a result of its scenario.
func TestHostileAgentsInEnvironments(t *testing.T) {
	needs.Long(t)
	needsSandbox(t)
	outside := t.TempDir()
	write(t, filepath.Join(outside, "kept"), "x")
	for name, c := range map[string]struct{ agent, kind, say string }{
		"writes outside":    {fmt.Sprintf("echo y > %[1]s/kept; rm -f %[1]s/kept; touch /tmp/ecp-escaped /dev/shm/ecp-escaped", outside), "", "exited with 0"},
		"more than may be":  {"truncate -s 2G big", "workspace", "more than 50000 files or 1024 MiB"},
		"kills its parents": {"kill -9 $PPID; kill -9 $$", "exit", ""},
		"leaves processes":  {"for i in 1 2 3 4 5 6 7 8 9; do setsid sleep 600 >/dev/null 2>&1 & done", "", "exited with 0"},
		"floods":            {"yes | head -c 100000000 >&2", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			out, r := evaluateManifest(t, manifest(t, writeScriptAgent(t, c.agent), codingScenario("environment: local", `{type: command, run: "true"}`)+strings.Replace(codingScenario("environment: local", `{type: command, run: "true"}`), "task", "next", 1)))
			if c.kind != "" && (len(r.Errors) != 2 || r.Errors[0].Kind != c.kind) || !strings.Contains(reasons(r), c.say) || len(r.Scenarios) != 2 {
				t.Errorf("exit %d: %s", out.code, reasons(r))
			}
		})
	}
	if data, err := os.ReadFile(filepath.Join(outside, "kept")); err != nil || string(data) != "x" {
		t.Errorf("%q, %v", data, err)
	}
	for _, escaped := range []string{"/tmp/ecp-escaped", "/dev/shm/ecp-escaped"} {
		if _, err := os.Lstat(escaped); err == nil {
			t.Errorf("an agent wrote %s outside its sandbox", escaped)
		}
	}
}

// The workspace's diff is stored and shown: added, changed and removed files, links, modes and
// binary files. git can apply it.
func TestWorkspaceDiff(t *testing.T) {
	needsSandbox(t)
	agent := writeScriptAgent(t, `printf 'one\nTWO\nthree' > text.txt; rm gone.txt; chmod +x run.sh; ln -sf other link; ln -s /etc/passwd new-link; printf 'a\000b' > image.bin; rm turned; ln -s text.txt turned; mkdir -p 'a b'; echo '<b>new</b>' > 'a b/new.txt'; rm -rf .git; mkdir .git; echo x > .git/config; mkfifo pipe; rm pipe`)
	for _, setup := range []string{"workspace: repo, environment: local", "workspace: {copy: repo, git: true}, environment: local"} {
		m := manifest(t, agent, codingScenario(setup, `{type: command, run: "echo 1 > by-grader; cp /dev/null text.txt"}, {type: changes, includes: [text.txt]}`))
		repo := filepath.Join(filepath.Dir(m), "repo")
		for name, text := range map[string]string{"text.txt": "one\ntwo\nthree\n", "gone.txt": "gone\n", "run.sh": "true\n", "turned": "a file\n"} {
			write(t, filepath.Join(repo, name), text)
		}
		if err := os.Symlink("text.txt", filepath.Join(repo, "link")); err != nil {
			t.Fatal(err)
		}
		kept, html := filepath.Join(t.TempDir(), "kept"), filepath.Join(t.TempDir(), "r.html")
		_, r := evaluateManifest(t, m, "--artifacts", kept, "--report", html)
		s := r.Scenarios[0]
		for _, want := range []string{
			"-two\n", "+TWO\n", "\\ No newline at end of file", "deleted file mode 100644\n--- a/gone.txt\n+++ /dev/null", "diff --git a/run.sh b/run.sh\nold mode 100644\nnew mode 100755\n",
			"-text.txt\n\\ No newline at end of file\n+other\n", "new file mode 120000\n--- /dev/null\n+++ b/new-link\n", "+/etc/passwd", "Binary files /dev/null and b/image.bin differ", "+<b>new</b>",
		} {
			if !strings.Contains(s.Diff, want) {
				t.Errorf("%s: no %q in\n%s", setup, want, s.Diff)
			}
		}
		if strings.Contains(s.Diff, "by-grader") || strings.Contains(s.Diff, ".git/") || strings.Contains(s.Diff, "root:") {
			t.Errorf("%s:\n%s", setup, s.Diff)
		}
		data, err := os.ReadFile(s.DiffFile)
		if err != nil || string(data) != s.Diff || filepath.Dir(s.DiffFile) != kept {
			t.Errorf("%s: %v", s.DiffFile, err)
		}
		page, err := os.ReadFile(html)
		if err != nil || !strings.Contains(string(page), "&#43;&lt;b&gt;new&lt;/b&gt;") || !strings.Contains(string(page), "new mode 100755") {
			t.Errorf("the page does not show the diff: %v", err)
		}
		text := strings.ReplaceAll(s.Diff, "diff --git a/image.bin b/image.bin\nnew file mode 100644\nBinary files /dev/null and b/image.bin differ\n", "")
		cmd := exec.Command("git", "apply", "--check", "-")
		cmd.Dir, cmd.Stdin = repo, strings.NewReader(text)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%v: %s\n%s", err, out, text)
		}
	}
}

// A fixture that is too large is refused at once, without reading it.
func TestHugeFixture(t *testing.T) {
	needs.POSIX(t) // Windows would fill the disk
	isolateEnvironment(t)
	m := manifest(t, agentTarget(t, "ok"), `
  - name: one
    steps:
      - {input: hi, graders: [{type: text_match, condition: contains, value: x}], constraints: {scenario: {workspace: fixture}}}
`)
	huge := filepath.Join(filepath.Dir(m), "fixture", "huge")
	write(t, huge, "")
	if err := os.Truncate(huge, 1<<40); err != nil { // reading it would take longer than any test
		t.Fatal(err)
	}
	run, r := evaluateManifest(t, m)
	if text := reasons(r); run.code != exitError || !strings.Contains(text, "it has more than 50000 files or 1024 MiB") {
		t.Errorf("exit %d: %s", run.code, text)
	}
}

// These variables, and no others, reach a command of a grader. (The shell adds PWD, SHLVL and others
// itself.)
func TestVariablesOfGraders(t *testing.T) {
	needsSandbox(t)
	t.Setenv("EVERYONES_VARIABLE", "x")
	for setup, want := range map[string]string{
		"workspace: {}":                     "HOME LANG PATH TMPDIR TZ",
		"workspace: {}, environment: local": "ECP_WORKSPACE HOME LANG PATH TMPDIR TZ",
		"workspace: {}, environment: {kind: local, graders: {env: [EVERYONES_VARIABLE]}}": "ECP_WORKSPACE EVERYONES_VARIABLE HOME LANG PATH TMPDIR TZ",
	} {
		_, r := evaluateManifest(t, manifest(t, agentTarget(t, "ok"), codingScenario(setup, `{type: command, run: "exec env | sed 's/=.*//' | grep -vx 'PWD\\|OLDPWD\\|SHLVL\\|_' | LC_ALL=C sort | tr '\\n' ' '; exit 3"}`)))
		if text := reasons(r); !strings.Contains(text, "'"+want+"'") && !strings.Contains(text, "'"+want+" '") {
			t.Errorf("%s: %s", setup, text)
		}
	}
}

// An agent leaves shell start files, a program for each folder of PATH, and a conftest.py: none of
// them changes the verdict.
func TestAgentCannotInfluenceGraders(t *testing.T) {
	needs.Long(t)
	needsSandbox(t)
	agent := writeScriptAgent(t, `for f in .profile .bash_profile .bash_login .bashrc .zshenv; do echo 'exit 0' > "$HOME/$f"; done
printf '#!/bin/sh\nexit 0\n' > run-the-tests; chmod +x run-the-tests
(IFS=:; for d in $PATH "$HOME" "$HOME/bin" "$HOME/.local/bin" /usr/local/bin; do mkdir -p "$d"; cp run-the-tests "$d/"; done)
echo agent > conftest.py; echo agent > reward.txt
echo left`)
	m := manifest(t, agent, codingScenario("workspace: repo, tests: hidden, environment: local", `{type: command, run: "bash -lc 'grep -qx 42 answer.txt'"}, {type: command, run: "bash -ic 'grep -qx 42 answer.txt'"}, {type: command, run: run-the-tests}, {type: command, run: "grep -q agent conftest.py"}, {type: command, run: "grep -q ours conftest.py"}`))
	dir := filepath.Dir(m)
	write(t, filepath.Join(dir, "repo", "answer.txt"), "41\n")
	write(t, filepath.Join(dir, "hidden", "conftest.py"), "ours\n")
	_, r := evaluateManifest(t, m)
	if said := *r.Scenarios[0].Steps[0].Output; !strings.Contains(said, "left") {
		t.Fatal(said)
	}
	if got, want := verdicts(r), []bool{false, false, false, false, true}; !slices.Equal(got, want) {
		t.Errorf("%v: %s", got, reasons(r))
	}
}
