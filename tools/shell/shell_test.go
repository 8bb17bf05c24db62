package shell

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/seed-dec29ce4/eca/internal/needs"
	"github.com/seed-dec29ce4/eca/internal/proc"
	"github.com/seed-dec29ce4/eca/tools"
)

func TestMain(m *testing.M) {
	if code, ok := proc.Supervise(os.Args); ok {
		os.Exit(code)
	}
	// With the race detector, each supervisor would sleep a second before it ends.
	if os.Getenv("GORACE") == "" {
		_ = os.Setenv("GORACE", "atexit_sleep_ms=0")
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

// pool starts children below supervisors.
func pool(t *testing.T) *proc.Pool {
	t.Helper()
	p := proc.NewPool(self(t), 1)
	t.Cleanup(p.Close)
	return p
}

func posix(t *testing.T) {
	t.Helper()
	needs.POSIX(t)
}

func run(t *testing.T, ctx context.Context, args map[string]any) (tools.Result, error) {
	t.Helper()
	raw, err := json.Marshal(args)
	if err != nil {
		t.Fatal(err)
	}
	jobs := NewJobs(t.TempDir(), time.Now)
	t.Cleanup(jobs.Close)
	tool := Tools(Options{Jobs: jobs, Children: pool(t)})[0]
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
		"kill -9 $$":                   "The command was killed by a signal, which eca did not send.",
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
	// Nor is it in memory while the command runs.
	c := &capture{}
	for range 10 {
		if _, err := c.Write(bytes.Repeat([]byte("x"), maxOutput)); err != nil || len(c.buf) > 2*maxOutput {
			t.Fatalf("%d bytes are kept, %v", len(c.buf), err)
		}
	}
}

// The time limit of a command is at most ten minutes, also if the model asks for more.
func TestLimit(t *testing.T) {
	for asked, want := range map[int]time.Duration{0: time.Minute, -1: time.Minute, 300: 300 * time.Millisecond, 600_000: 10 * time.Minute, 600_001: 10 * time.Minute, math.MaxInt: 10 * time.Minute} {
		if got := (shellArgs{Timeout: asked}).timeLimit(); got != want {
			t.Errorf("%d ms: %s", asked, got)
		}
	}
}

// A command that ends, times out or is stopped leaves no process, and no process of its children. Its
// output so far is kept.
func TestNothingIsLeft(t *testing.T) {
	posix(t)
	for _, how := range []string{"timeout", "stop", "end"} {
		t.Run(how, func(t *testing.T) {
			// A machine may be so busy that a command does nothing within its limit.
			for limit := 300; !leavesNothing(t, how, limit); limit *= 10 {
				if time.Duration(limit)*time.Millisecond > maxTimeout {
					t.Fatal("the command does not start")
				}
			}
		})
	}
}

// leavesNothing runs a command with three descendants that ends in one way. It returns false
// if its time, in milliseconds, was over before it had them.
func leavesNothing(t *testing.T, how string, limit int) (begun bool) {
	t.Helper()
	dir := t.TempDir()
	path := filepath.Join(dir, "pids")
	command := fmt.Sprintf("cd '%s'; trap '' TERM; sleep 300 & echo $! >>pids; (sleep 300 & echo $! >>pids); ", dir)
	want := 2
	if runtime.GOOS == "linux" { // also what leaves the group
		want++
		command += "setsid sh -c 'echo $$ >>pids; exec sleep 300' & until [ $(wc -l <pids) = 3 ]; do sleep 0.01; done; "
	}
	command += "echo started; touch started; "
	args := map[string]any{"command": command + "sleep 300"}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	switch how {
	case "timeout":
		args["timeout"] = limit
	case "stop":
		go func() {
			awaitTrue(func() bool { _, err := os.Stat(filepath.Join(dir, "started")); return err == nil })
			cancel()
		}()
	case "end":
		args["command"] = command
	}
	res, err := run(t, ctx, args)
	if _, statErr := os.Stat(filepath.Join(dir, "started")); statErr != nil && how == "timeout" {
		return false
	}
	if how == "stop" {
		if err == nil {
			t.Error("a stopped command has a result")
		}
	} else if err != nil || !strings.Contains(strings.Join(res.Outputs, "|"), "started") {
		t.Errorf("%v %v", res, err)
	}
	data, err := os.ReadFile(path)
	pids := strings.Fields(string(data))
	if err != nil || len(pids) != want {
		t.Fatalf("%q, %v", pids, err)
	}
	for _, p := range pids {
		pid, err := strconv.Atoi(p)
		if err != nil {
			t.Fatal(err)
		}
		if !awaitTrue(func() bool { return !alive(pid) }) {
			t.Errorf("process %d is left", pid)
		}
	}
	return true
}

// awaitTrue waits until something is true; only a broken test waits long.
func awaitTrue(fn func() bool) bool {
	for range 6000 {
		if fn() {
			return true
		}
		time.Sleep(10 * time.Millisecond)
	}
	return false
}

// waitForOutput makes the start of a background job last until the job has printed the texts.
func (j *Jobs) waitForOutput(texts ...string) {
	j.startupElapsed = func(b *job) <-chan time.Time {
		ch := make(chan time.Time)
		go func() {
			defer close(ch)
			awaitTrue(func() bool {
				select {
				case <-b.ended:
					return true
				default:
				}
				all := render(b.lines.all())
				return !slices.ContainsFunc(texts, func(s string) bool { return !strings.Contains(all, s) })
			})
		}()
		return ch
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
	jobs := NewJobs(t.TempDir(), time.Now)
	tool := Tools(Options{Jobs: jobs, Children: pool(t)})[0]
	call := func(command string) tools.Result {
		raw, _ := json.Marshal(map[string]any{"command": command, "background": "server"})
		res, err := tool.Run(context.Background(), tools.Call{Roots: []string{t.TempDir()}, Arguments: raw}, nil)
		if err != nil {
			t.Fatal(err)
		}
		return res
	}
	jobs.waitForOutput("nothing that it prints")
	if res := call("echo broken; exit 4"); !res.Failed || !strings.Contains(strings.Join(res.Outputs, ""), "broken") {
		t.Errorf("a command that fails at once: %+v", res)
	}
	jobs.waitForOutput("ready")
	res := call("echo ready; sleep 300")
	var pid int
	if _, err := fmt.Sscanf(res.Outputs[0][strings.Index(res.Outputs[0], "process "):], "process %d", &pid); err != nil {
		t.Fatalf("%v in %q", err, res.Outputs[0])
	}
	path, _, _ := strings.Cut(res.Outputs[0][strings.Index(res.Outputs[0], "written to ")+11:], ".log")
	path += ".log"
	if !awaitTrue(func() bool { data, _ := os.ReadFile(path); return string(data) == "ready\n" }) {
		data, err := os.ReadFile(path)
		t.Errorf("output file: %q, %v", data, err)
	}
	if !alive(pid) {
		t.Error("the command does not run")
	}
	jobs.Close()
	if alive(pid) {
		t.Error("the command outlives the daemon")
	}
}

// With bg_job, a chat reads the new output of its jobs and ends them. It gets the news of a job's end
// once, and does not see jobs of other chats.
func TestJobs(t *testing.T) {
	posix(t)
	jobs := NewJobs(t.TempDir(), time.Now)
	defer jobs.Close()
	registry := tools.NewRegistry(Tools(Options{Jobs: jobs, Children: pool(t), SummaryMax: 20})...)
	root := t.TempDir()
	call := func(chat, tool string, args map[string]any) (string, tools.Plan) {
		t.Helper()
		raw, _ := json.Marshal(args)
		c := tools.Call{ID: "call-1", ChatID: chat, Roots: []string{root}, Arguments: raw}
		b, _ := registry.Lookup(tool)
		plan, err := b.Plan(t.Context(), c)
		if err != nil {
			return err.Error(), plan
		}
		res, err := b.Run(t.Context(), c, nil)
		if err != nil {
			return err.Error(), plan
		}
		return strings.Join(res.Outputs, "|"), plan
	}
	var changes atomic.Int32
	ctx, stop := context.WithCancel(t.Context())
	watching := make(chan struct{})
	go func() {
		defer close(watching)
		jobs.Watch(ctx, func() { changes.Add(1) })
	}()
	defer func() {
		stop()
		<-watching
	}()
	jobs.waitForOutput("one", "oops")
	started, _ := call("a", "shell_command", map[string]any{"command": "echo one; echo oops >&2; until [ -e go ]; do sleep 0.05; done; printf two; exit 3", "background": "a\nserver"})
	if !strings.Contains(started, `"a server" runs in the background as job-1`) || !strings.Contains(started, "one") || !strings.Contains(started, "[stderr] oops") {
		t.Fatal(started)
	}
	for _, c := range []struct {
		chat, action, want string
	}{
		{"a", "list", "job-1: a server ($ echo one; echo oops ...), running for "},
		{"b", "list", "There are no background jobs in this chat."},
		{"a", "read_output", "job-1 is running. There is no new output."},
		{"b", "read_output", "unknown job \"job-1\""},
		{"b", "kill", "unknown job \"job-1\""},
	} {
		got, plan := call(c.chat, "bg_job", map[string]any{"action": c.action, "job_id": "job-1"})
		if !strings.HasPrefix(got, c.want) || plan.ReadOnly && c.action == "kill" {
			t.Errorf("%s of %s: %q, %+v", c.action, c.chat, got, plan)
		}
	}
	if news := jobs.News("a"); news != nil {
		t.Errorf("news of what runs: %q", news)
	}
	b, _ := jobs.find("job-1")
	if err := os.WriteFile(filepath.Join(root, "go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	<-b.ended
	if news := jobs.News("b"); news != nil {
		t.Errorf("news of another chat: %q", news)
	}
	news := strings.Join(jobs.News("a"), "")
	if !strings.HasPrefix(news, "[The background job job-1 (a server) has ended: failed, exit code 3, after ") || !strings.HasSuffix(news, "one\n[stderr] oops\ntwo") && !strings.HasSuffix(news, "[stderr] oops\none\ntwo") {
		t.Errorf("news: %q", news)
	}
	if again := jobs.News("a"); again != nil {
		t.Errorf("news twice: %q", again)
	}
	if got, _ := call("a", "bg_job", map[string]any{"action": "read_output", "job_id": "job-1"}); got != "job-1 has ended: failed, exit code 3.\ntwo" {
		t.Errorf("output at the end: %q", got)
	}
	jobs.waitForOutput()
	call("a", "shell_command", map[string]any{"command": "trap '' TERM; sleep 300 & sleep 300", "background": "b"})
	if got, plan := call("a", "bg_job", map[string]any{"action": "kill", "job_id": "job-2"}); got != "job-2 was ended." || plan.ReadOnly {
		t.Errorf("kill: %q", got)
	}
	second, _ := jobs.find("job-2")
	if info := jobs.info(second); info.Status != tools.JobKilled || alive(second.process.Pid()) || jobs.News("a") != nil || jobs.Kill("job-2") || jobs.Kill("job-9") {
		t.Errorf("after the kill: %+v", info)
	}
	if got, _ := call("a", "bg_job", map[string]any{"action": "kill"}); !strings.HasPrefix(got, "INVALID_ARGS") {
		t.Errorf("no job: %q", got)
	}
	if changes.Load() == 0 {
		t.Error("the callback for changes of jobs was not called")
	}
}

// The kept output of a job is bounded, and the number of lost lines is right.
func TestLines(t *testing.T) {
	l := &outputLines{}
	out, errs := stream{l, false}, stream{l, true}
	fmt.Fprint(out, "a")
	fmt.Fprint(errs, "x\r\ny")
	fmt.Fprint(out, "b\n\n"+strings.Repeat("z", maxLineBytes+1)+"\n")
	l.flush()
	want := "[stderr] x\nab\n\n" + strings.Repeat("z", maxLineBytes) + "\nz\n[stderr] y"
	if got := render(l.all()); got != want {
		t.Errorf("%q", got)
	}
	if list, lost := l.unread(); len(list) != 6 || lost != 0 {
		t.Errorf("%d unread, %d lost", len(list), lost)
	}
	for i := range maxLines + 10 {
		fmt.Fprintln(out, i)
	}
	list, lost := l.unread()
	if len(list) != maxLines || lost != 10 || list[maxLines-1].Text != strconv.Itoa(maxLines+9) {
		t.Errorf("%d unread, %d lost", len(list), lost)
	}
	fmt.Fprintln(out, "new")
	if list, lost = l.unread(); len(list) != 1 || lost != 0 || list[0].Text != "new" {
		t.Errorf("%v unread, %d lost", list, lost)
	}
	for range 2000 {
		fmt.Fprintln(out, strings.Repeat("w", maxLineBytes))
	}
	size := 0
	for _, line := range l.all() {
		size += len(line.Text)
	}
	if size > maxLinesSize || size < maxLinesSize/2 {
		t.Errorf("%d bytes are kept", size)
	}
}

func TestParse(t *testing.T) {
	for line, want := range map[string]string{
		"echo hi":                       "echo[hi]=echo",
		"cd /x && git status -s | wc":   "cd[/x]=cd git[status -s]=git status wc[]=wc",
		"ls 'a b' \"c d\" e\\ f":        "ls[a b c d e f]=ls",
		"go test ./... 2>&1 >/dev/null": "go[test ./...]=go test",
		"git -c core.pager=sh log":      "git[-c core.pager=sh log]=",
		"git":                           "git[]=",
		"sudo rm x":                     "rm[x]= sudo[rm x]=",
		"./script.sh":                   "./script.sh[]=",
		"find . -delete":                "find[. -delete]=",
		// Facts that the words alone do not show are not listed.
		"echo $(date)": "date[]=date echo[$(date)]=", "echo $HOME": "!", "a > file": "!", "wc <<< x": "wc[]=wc", "(ls)": "ls[]=ls", "(a)": "a[]=", "a &": "!",
		"X=1 a": "a[]=", "if ls; then pwd; fi": "ls[]=ls pwd[]=pwd", "a <(b)": "!", "f() { a; }": "!", "! ls": "ls[]=ls", "echo 'unclosed": "!", "": "!",
		"echo {a,b}": "!", "cat ~/x": "!", "cat < x": "cat[]=cat", "cat <<X\nX": "cat[]=cat", "echo $'\\x41'": "!", "a; b & c": "!",
	} {
		commands := describeCommands(Options{}.parse(line))
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

// eca only understands commands that bash or sh runs directly.
func TestForeignShell(t *testing.T) {
	for path, want := range map[string]bool{"/bin/bash": true, "/usr/bin/sh": true, "/usr/bin/fish": false, "/bin/zsh": false, "pwsh": false, "/opt/wrap": false} {
		if got := (Options{Path: path, Args: []string{"-c"}}).parse("ls").Unresolved == ""; got != want {
			t.Errorf("%s: %v", path, got)
		}
	}
	if (Options{Path: "bwrap", Args: []string{"--ro-bind", "/", "/", "bash", "-c"}}).parse("ls").Unresolved != "" {
		t.Error("parse understood a command that bash runs inside a wrapper")
	}
}

// The answer to a command that leaves a server behind says that it was ended, and how to keep it.
func TestServerLeftBehindIsNamed(t *testing.T) {
	posix(t)
	options := Options{}
	for command, want := range map[string]bool{"sleep 300 & echo started": true, "echo started": false} {
		res, err := options.run(t.Context(), tools.Call{Roots: []string{t.TempDir()}}, shellArgs{Command: command}, nil)
		if err != nil {
			t.Fatal(err)
		}
		last := res.Outputs[len(res.Outputs)-1]
		if got := strings.Contains(last, "were killed when it ended") && strings.Contains(last, "background"); got != want {
			t.Errorf("%s: %q", command, res.Outputs)
		}
	}
}
