package shell

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/seed-dec29ce4/eca/internal/proc"
	"github.com/seed-dec29ce4/eca/tools"
)

func TestMain(m *testing.M) {
	if code, ok := proc.Supervise(os.Args); ok {
		os.Exit(code)
	}
	goleak.VerifyTestMain(m)
}

// self is this test, which can supervise.
func self(t *testing.T) string {
	t.Helper()
	path, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

func posix(t *testing.T) {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("runs POSIX commands")
	}
}

func run(t *testing.T, ctx context.Context, args map[string]any) (tools.Result, error) {
	t.Helper()
	raw, err := json.Marshal(args)
	if err != nil {
		t.Fatal(err)
	}
	jobs := NewJobs(t.TempDir())
	t.Cleanup(jobs.Close)
	tool := Tools(Options{Jobs: jobs, Supervisor: self(t)})[0]
	call := tools.Call{Roots: []string{t.TempDir()}, Arguments: raw}
	if _, err := tool.Plan(ctx, call); err != nil {
		return tools.Result{}, err
	}
	return tool.Run(ctx, call, nil)
}

func TestOutput(t *testing.T) {
	posix(t)
	for command, want := range map[string]string{
		"echo hi":                      "Exit code: 0|Stdout:\nhi",
		"echo oops >&2; exit 3":        "Exit code: 3|Stderr:\noops",
		"true":                         "Exit code: 0",
		"printf 'a\\377b'":             "Exit code: 0|Stdout:\na�b",
		"nosuchcommand 2>/dev/null":    "Exit code: 127",
		"kill -9 $$":                   "Exit code: -1",
		"sleep 0.05; echo a; echo b":   "Exit code: 0|Stdout:\na\nb",
		"cat":                          "Exit code: 0", // stdin is empty, not the daemon's
		"echo $ECA_EXECUTABLE | wc -w": "",
	} {
		res, err := run(t, context.Background(), map[string]any{"command": command})
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(res.Outputs, "|"); want != "" && got != want {
			t.Errorf("%s: %q, want %q", command, got, want)
		}
		if res.Failed != !strings.Contains(res.Outputs[0], "code: 0") {
			t.Errorf("%s: failed is %v", command, res.Failed)
		}
	}
}

func TestHugeOutputKeepsItsEnd(t *testing.T) {
	posix(t)
	res, err := run(t, context.Background(), map[string]any{"command": "yes 0123456789 | head -c 8000000; echo END"})
	if err != nil {
		t.Fatal(err)
	}
	out := res.Outputs[1]
	if len(out) > maxOutput+200 || !strings.HasSuffix(out, "END") || !strings.Contains(out, "left out") {
		t.Errorf("%d bytes, ends with %q", len(out), out[len(out)-20:])
	}
}

// A command that times out or is stopped leaves no process, nor do its children; what
// it had printed is kept.
func TestNothingIsLeft(t *testing.T) {
	posix(t)
	for _, how := range []string{"timeout", "stop", "end"} {
		t.Run(how, func(t *testing.T) {
			pids := filepath.Join(t.TempDir(), "pids")
			command := fmt.Sprintf("trap '' TERM; sleep 300 & echo $! >>%s; (sleep 300 & echo $! >>%s); echo started; ", pids, pids)
			if runtime.GOOS == "linux" { // also what leaves the group
				command += fmt.Sprintf("setsid sh -c 'echo $$ >>%s; exec sleep 300' & sleep 0.1; ", pids)
			}
			args := map[string]any{"command": command + "sleep 300"}
			ctx, cancel := context.WithCancel(context.Background())
			defer cancel()
			switch how {
			case "timeout":
				args["timeout"] = 300
			case "stop":
				time.AfterFunc(300*time.Millisecond, cancel)
			case "end":
				args["command"] = command
			}
			start := time.Now()
			res, err := run(t, ctx, args)
			if took := time.Since(start); took > 5*time.Second {
				t.Errorf("took %s", took)
			}
			if how == "stop" {
				if err == nil {
					t.Error("a stopped command has a result")
				}
			} else if err != nil || !strings.Contains(strings.Join(res.Outputs, "|"), "started") {
				t.Errorf("%v %v", res, err)
			}
			data, err := os.ReadFile(pids)
			if err != nil {
				t.Fatal(err)
			}
			for _, p := range strings.Fields(string(data)) {
				pid, _ := strconv.Atoi(p)
				for range 100 {
					if !alive(pid) {
						break
					}
					time.Sleep(10 * time.Millisecond)
				}
				if alive(pid) {
					t.Errorf("process %d is left", pid)
				}
			}
		})
	}
}

// alive says whether a process runs; one that waits to be reaped does not.
func alive(pid int) bool {
	if stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid)); err == nil {
		return !strings.Contains(string(stat), ") Z ")
	}
	return proc.Alive(pid)
}

func TestBackground(t *testing.T) {
	posix(t)
	jobs := NewJobs(t.TempDir())
	tool := Tools(Options{Jobs: jobs, Supervisor: self(t)})[0]
	call := func(command string) tools.Result {
		raw, _ := json.Marshal(map[string]any{"command": command, "background": "server"})
		res, err := tool.Run(context.Background(), tools.Call{Roots: []string{t.TempDir()}, Arguments: raw}, nil)
		if err != nil {
			t.Fatal(err)
		}
		return res
	}
	if res := call("echo broken; exit 4"); !res.Failed || !strings.Contains(strings.Join(res.Outputs, ""), "broken") {
		t.Errorf("a command that fails at once: %+v", res)
	}
	res := call("echo ready; sleep 300")
	var pid int
	if _, err := fmt.Sscanf(res.Outputs[0][strings.Index(res.Outputs[0], "process "):], "process %d", &pid); err != nil {
		t.Fatalf("%v in %q", err, res.Outputs[0])
	}
	path := res.Outputs[0][strings.Index(res.Outputs[0], "written to ")+11 : strings.Index(res.Outputs[0], "; read")]
	if data, _ := os.ReadFile(path); string(data) != "ready\n" {
		t.Errorf("output file: %q", data)
	}
	if !alive(pid) {
		t.Error("the command does not run")
	}
	jobs.Close()
	if alive(pid) {
		t.Error("the command outlives the daemon")
	}
}

func TestParse(t *testing.T) {
	for line, want := range map[string]string{
		"echo hi":                       "echo[hi]=echo",
		"cd /x && git status -s | wc":   "cd[/x]=cd git[status -s]=git status wc[]=wc",
		"ls 'a b' \"c d\" e\\ f":        "ls[a b c d e f]=ls",
		"go test ./... 2>&1 >/dev/null": "go[test ./...]=go test",
		"git -c core.pager=sh log":      "git[-c core.pager=sh log]=",
		"git":                           "git[]=git",
		"sudo rm x":                     "rm[x]=rm sudo[rm x]=",
		"./script.sh":                   "./script.sh[]=",
		"find . -delete":                "find[. -delete]=",
		// What can not be told from the words alone is not listed.
		"echo $(date)": "date[]=date echo[$(date)]=", "echo $HOME": "!", "a > file": "!", "a <<< x": "a[]=a", "(a)": "a[]=a", "a &": "!",
		"X=1 a": "a[]=", "if a; then b; fi": "a[]=a b[]=b", "a <(b)": "!", "f() { a; }": "!", "! a": "a[]=a", "echo 'unclosed": "!", "": "!",
		"echo {a,b}": "!", "cat ~/x": "!", "cat < x": "cat[]=cat", "cat <<X\nX": "cat[]=cat", "echo $'\\x41'": "!", "a; b & c": "!",
	} {
		commands := describe(Options{}.parse(line))
		var parts []string
		for _, c := range commands {
			parts = append(parts, fmt.Sprintf("%s%v=%s", c.Name, c.Args, c.Key))
		}
		got := strings.Join(parts, " ")
		if len(commands) == 0 {
			got = "!"
		}
		if got != want {
			t.Errorf("%q: %s, want %s", line, got, want)
		}
	}
}

// Where another shell runs commands, nothing is known of them.
func TestForeignShell(t *testing.T) {
	for path, want := range map[string]bool{"/bin/bash": true, "/usr/bin/sh": true, "/usr/bin/fish": false, "/bin/zsh": false, "pwsh": false, "/opt/wrap": false} {
		if got := (Options{Path: path, Args: []string{"-c"}}).parse("ls").Unresolved == ""; got != want {
			t.Errorf("%s: %v", path, got)
		}
	}
	if (Options{Path: "bwrap", Args: []string{"--ro-bind", "/", "/", "bash", "-c"}}).parse("ls").Unresolved != "" {
		t.Error("bash in a wrapper is not understood")
	}
}
