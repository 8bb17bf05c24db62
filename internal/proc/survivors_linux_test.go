package proc

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/seed-dec29ce4/eca/internal/needs"
	"github.com/seed-dec29ce4/eca/internal/sandbox"
)

// Arguments with which this test's program stands for eca.
const (
	escapesArg = "__escapes" // play every escape and print what lives on
	fosterArg  = "__foster"  // start a child that escapes, print its process and wait
)

// escapes are ways in which a command tries to leave something running. Each prints the id of
// that process.
var escapes = []struct{ name, script string }{
	{"a session of its own", "setsid sleep 300 >/dev/null 2>&1 & echo $!"},
	{"a double fork", "(setsid sh -c 'sh -c \"echo \\$\\$; exec sleep 300 >/dev/null 2>&1\" &') 2>/dev/null; sleep 0.1"},
	{"one that ignores signals", "setsid sh -c \"trap '' TERM HUP INT; while :; do sleep 1; done\" >/dev/null 2>&1 & echo $!"},
	{"killing the supervisor", "(setsid sleep 300 >/dev/null 2>&1 & echo $!); kill -9 $PPID; sleep 300"},
	{"killing the supervisor's group", "(setsid sleep 300 >/dev/null 2>&1 & echo $!); kill -9 -$PPID; sleep 300"},
	{"killing everything", "(setsid sleep 300 >/dev/null 2>&1 & echo $!); [ $(id -u) = 0 ] || kill -9 -1; sleep 300"},
}

var levels = []sandbox.Level{sandbox.None, sandbox.ReadOnly, sandbox.Workspace}

// playEscapes prints what lives on of each escape, at each level and with the supervisor killed
// from outside.
func playEscapes() {
	self, err := os.Executable()
	if err != nil {
		panic(err)
	}
	p := NewPool(self, 1)
	defer p.Close()
	for _, level := range levels {
		for _, e := range escapes {
			if level == sandbox.None && e.name == "killing everything" {
				continue // it may
			}
			if out := playEscape(p, level, e.script, false); out != "" {
				fmt.Printf("%q: %s: %s\n", level, e.name, out)
			}
			if out := playEscape(p, level, e.script, true); out != "" {
				fmt.Printf("%q: %s, the supervisor killed from outside: %s\n", level, e.name, out)
			}
		}
	}
}

func playEscape(p *Pool, level sandbox.Level, script string, kill bool) string {
	r, w, err := os.Pipe()
	if err != nil {
		return err.Error()
	}
	defer r.Close()
	if kill {
		script += "; sleep 300"
	}
	spec := Spec{Path: "bash", Args: []string{"-c", script}, Dir: "/", Stdout: w, Sandbox: sandbox.Policy{Level: level}}
	c, err := p.Start(spec)
	for tries := 1; err != nil && tries < 10; tries++ { // the script may kill the supervisor before it reports the start
		c, err = p.Start(spec)
	}
	_ = w.Close()
	if err != nil {
		return err.Error()
	}
	line, err := bufio.NewReader(r).ReadString('\n')
	pid, scanErr := strconv.Atoi(strings.TrimSpace(line))
	if err != nil || scanErr != nil {
		c.Kill()
		return fmt.Sprintf("it did not say what it left: %q", line)
	}
	if held, ok := c.(*supervisedChild); kill && ok {
		held.ifCurrent(func() { _ = held.supervisor.cmd.Process.Kill() })
	}
	if !kill && Within(c.Done(), 300*time.Millisecond) || kill && Within(c.Done(), time.Minute) {
	} else { // it waits for its end
		c.Kill()
	}
	if Alive(pid) {
		_ = syscall.Kill(pid, syscall.SIGKILL)
		return fmt.Sprintf("process %d lives on", pid)
	}
	return ""
}

// runAsEca runs this program in place of eca until it is killed.
func runAsEca() {
	self, err := os.Executable()
	if err != nil {
		panic(err)
	}
	p := NewPool(self, 1)
	for _, level := range levels {
		_, err := p.Start(Spec{
			Path: "bash", Args: []string{"-c", `mkdir -p "$TMPDIR"; (setsid sleep 300 >/dev/null 2>&1 & echo $!); trap '' TERM HUP; while :; do sleep 1; done`},
			Stdout: os.Stdout, Env: []string{"TMPDIR=" + os.TempDir()}, Sandbox: sandbox.Policy{Level: level},
		})
		if err != nil {
			fmt.Println(err)
		}
	}
	select {}
}

// testUsers are root and an ordinary user, or only who runs this test. path is this test's program
// where both can run it.
func testUsers(t *testing.T) (path string, attrs map[string]*syscall.SysProcAttr) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	attrs = map[string]*syscall.SysProcAttr{"who runs the test": nil}
	if os.Getuid() != 0 {
		t.Log("NOT TESTED as an ordinary user and as root: only as who runs the test")
		return self, attrs
	}
	attrs["an ordinary user"] = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	dir, err := os.MkdirTemp("/tmp", "survivors-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	data, err := os.ReadFile(self)
	if err == nil {
		path = filepath.Join(dir, "eca")
		err = os.WriteFile(path, data, 0o755)
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	return path, attrs
}

// No escape leaves a process: neither when the command ends, nor when its supervisor is killed by the
// command or from outside.
func TestNothingSurvives(t *testing.T) {
	needs.Long(t)
	needSandbox(t)
	path, attrs := testUsers(t)
	for who, attr := range attrs {
		cmd := exec.Command(path, escapesArg)
		cmd.Dir, cmd.SysProcAttr, cmd.Env = "/", attr, append(os.Environ(), "TMPDIR=/tmp", "HOME=/")
		out, err := cmd.CombinedOutput()
		if err != nil || len(out) > 0 {
			t.Errorf("%s: %v\n%s", who, err, out)
		}
	}
}

// If eca is killed while commands run, no processes and no folders of these are left.
func TestNothingSurvivesKilledDaemon(t *testing.T) {
	needSandbox(t)
	path, attrs := testUsers(t)
	for who, attr := range attrs {
		temp, err := os.MkdirTemp("/tmp", "survivors-temp-")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = os.RemoveAll(temp) })
		if err := os.Chmod(temp, 0o777); err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command(path, fosterArg)
		cmd.Dir, cmd.SysProcAttr, cmd.Env = "/", attr, append(os.Environ(), "TMPDIR="+temp)
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewReader(out)
		var left []int
		for range levels {
			line, err := lines.ReadString('\n')
			pid, scanErr := strconv.Atoi(strings.TrimSpace(line))
			if err != nil || scanErr != nil {
				t.Fatalf("%s: %q", who, line)
			}
			left = append(left, pid)
		}
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		for _, pid := range left {
			gone, stop := Watch(pid)
			if !Within(gone, time.Minute) {
				t.Errorf("%s: process %d lives on", who, pid)
			}
			stop()
		}
		waitUntilFine(t, func() string {
			entries, _ := os.ReadDir(temp)
			if len(entries) > 0 {
				return fmt.Sprintf("%s: %v is left", who, entries)
			}
			return ""
		})
	}
}

// waitUntilFine waits until nothing is wrong any more.
func waitUntilFine(t *testing.T, wrong func() string) {
	t.Helper()
	for end := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		text := wrong()
		if text == "" {
			return
		}
		if time.Now().After(end) {
			t.Fatal(text)
		}
	}
}

// Processes of a killed supervisor end; those of eca's other children, and those that others
// wait for, go on.
func TestOrphansOfOthersGoOn(t *testing.T) {
	p := newPool(t)
	adoptOrphans()
	other := exec.Command("sleep", "300")
	if err := other.Start(); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	leaving, err := Start(Spec{Path: "sh", Args: []string{"-c", "setsid sleep 300 >/dev/null 2>&1 & echo $!"}, Stdout: &out, Leaves: true})
	if err != nil {
		t.Fatal(err)
	}
	leaving.Wait()
	left, err := strconv.Atoi(strings.TrimSpace(out.String()))
	if err != nil {
		t.Fatal(err)
	}
	second := NewPool(p.supervisor, 1)
	defer second.Close()
	running, err := second.Start(Spec{Path: "sleep", Args: []string{"300"}})
	if err != nil {
		t.Fatal(err)
	}
	if wrong := playEscape(p, sandbox.None, escapes[0].script, true); wrong != "" {
		t.Error(wrong)
	}
	for name, pid := range map[string]int{"a child that others wait for": other.Process.Pid, "what a program left that leaves": left, "a child of another pool": running.Pid()} {
		if !Alive(pid) {
			t.Errorf("%s was killed", name)
		}
	}
	running.Kill()
	_ = syscall.Kill(left, syscall.SIGKILL)
	_, _ = syscall.Wait4(left, nil, 0, nil)
	_ = other.Process.Kill()
	if err := other.Wait(); err == nil || strings.Contains(err.Error(), "no child") {
		t.Errorf("a child that others wait for: %v", err)
	}
}

// Many commands, one after the other and at once, leave nothing behind.
func TestNothingIsLeft(t *testing.T) {
	needs.Long(t)
	needSandbox(t)
	temp := t.TempDir()
	t.Setenv("TMPDIR", temp)
	state := func() string {
		runtime.GC() // files without references
		fds, _ := os.ReadDir("/proc/self/fd")
		mounts, _ := os.ReadFile("/proc/self/mountinfo")
		folders, _ := os.ReadDir(temp)
		children := 0
		for _, parent := range parentsOfAll() {
			if parent == os.Getpid() {
				children++
			}
		}
		return fmt.Sprintf("%d descriptors, %d mounts, folders %v, %d children", len(fds), bytes.Count(mounts, []byte("\n")), folders, children)
	}
	warm := newPool(t) // the first use of a socket opens the poller's descriptors
	if _, err := warm.Run(context.Background(), Spec{Path: "true"}); err != nil {
		t.Fatal(err)
	}
	warm.Close()
	before := state()
	p := newPool(t)
	run := func(level sandbox.Level) {
		var out bytes.Buffer
		exit, err := p.Run(context.Background(), Spec{Path: "bash", Args: []string{"-c", `echo x; [ -z "$TMPDIR" ] || mktemp -d >/dev/null`}, Stdin: strings.NewReader("input"), Stdout: &out, Sandbox: sandbox.Policy{Level: level}})
		if err != nil || exit.Code != 0 || out.String() != "x\n" {
			t.Errorf("%v %+v %q", err, exit, out.String())
		}
	}
	for range 1000 {
		run(sandbox.ReadOnly)
	}
	var all sync.WaitGroup
	for i := range 50 {
		all.Go(func() { run([]sandbox.Level{sandbox.None, sandbox.ReadOnly}[i%2]) })
	}
	all.Wait()
	p.Close()
	_, _ = os.ReadDir(temp)
	removeUnboundedFiles(temp)
	if after := state(); after != before {
		t.Errorf("%s before, %s after", before, after)
	}
}

// removeUnboundedFiles removes the temporary files that unbounded commands created.
func removeUnboundedFiles(dir string) {
	made, _ := filepath.Glob(filepath.Join(dir, "tmp.*"))
	for _, path := range made {
		_ = os.Remove(path)
	}
}

// Idle supervisors end when the pool has rested for a time.
func TestStockEnds(t *testing.T) {
	p := newPool(t)
	p.idlePool.maxIdle = 50 * time.Millisecond
	if _, err := p.Run(context.Background(), Spec{Path: "true"}); err != nil {
		t.Fatal(err)
	}
	waitUntilFine(t, func() string {
		p.idlePool.mu.Lock()
		defer p.idlePool.mu.Unlock()
		if len(p.idlePool.idle) > 0 {
			return "a supervisor is still idle"
		}
		return ""
	})
}

// If a second stage or a supervisor is killed while it is idle, the next command still succeeds.
func TestStockIsKilled(t *testing.T) {
	needSandbox(t)
	p := newPool(t)
	spec := Spec{Path: "true", Sandbox: sandbox.Policy{Level: sandbox.ReadOnly}}
	for range 3 {
		if exit, err := p.Run(context.Background(), spec); err != nil || exit.Code != 0 {
			t.Fatal(err, exit)
		}
		p.idlePool.mu.Lock()
		supervisor := p.idlePool.idle[0].cmd.Process.Pid
		p.idlePool.mu.Unlock()
		waitUntilFine(t, func() string {
			for pid, parent := range parentsOfAll() {
				if parent == supervisor {
					_ = syscall.Kill(pid, syscall.SIGKILL)
					return ""
				}
			}
			return "no second stage is ready"
		})
		if exit, err := p.Run(context.Background(), spec); err != nil || exit.Code != 0 {
			t.Fatal("after the second stage was killed: ", err, exit)
		}
		p.idlePool.mu.Lock()
		_ = p.idlePool.idle[0].cmd.Process.Kill()
		p.idlePool.mu.Unlock()
		if exit, err := p.Run(context.Background(), spec); err != nil || exit.Code != 0 {
			t.Fatal("after the supervisor was killed: ", err, exit)
		}
	}
}

// The arguments of eca's own processes do not contain the command. The command has no open
// descriptors except its streams, also if eca has inheritable ones.
func TestOrderIsPrivate(t *testing.T) {
	needSandbox(t)
	p := newPool(t)
	leaked, err := os.Open("/")
	if err != nil {
		t.Fatal(err)
	}
	defer leaked.Close()
	if _, err := unix.FcntlInt(leaked.Fd(), unix.F_SETFD, 0); err != nil { // inherited by all that we start
		t.Fatal(err)
	}
	var out bytes.Buffer
	_, err = p.Run(context.Background(), Spec{
		Path: "bash", Args: []string{"-c", `echo /proc/self/fd/*; tr '\0' ' ' </proc/$PPID/cmdline`},
		Stdin: strings.NewReader(""), Stdout: &out, Sandbox: sandbox.Policy{Level: sandbox.Workspace},
	})
	// The shell opens the folder itself to list it.
	if err != nil || !strings.HasPrefix(out.String(), "/proc/self/fd/0 /proc/self/fd/1 /proc/self/fd/2 /proc/self/fd/3\n") || !strings.HasSuffix(out.String(), "eca "+supervisorArg+" ") {
		t.Errorf("%v: %q", err, out.String())
	}
}

// A command and an environment of megabytes reach the child whole.
func TestLongOrder(t *testing.T) {
	needSandbox(t)
	p := newPool(t)
	long := strings.Repeat("x", 120<<10)
	args := []string{"-c", `echo $#`}
	for range 10 {
		args = append(args, long)
	}
	for _, level := range levels {
		var out bytes.Buffer
		_, err := p.Run(context.Background(), Spec{Path: "bash", Args: args, Stdout: &out, Sandbox: sandbox.Policy{Level: level}})
		if err != nil || out.String() != "9\n" {
			t.Errorf("%q: %v %q", level, err, out.String())
		}
	}
	_, err := p.Run(context.Background(), Spec{Path: "bash", Args: []string{"-c", strings.Repeat("x", 200<<10)}, Stdout: io.Discard, Sandbox: sandbox.Policy{Level: sandbox.ReadOnly}})
	if err == nil || !strings.Contains(err.Error(), "too long") {
		t.Errorf("longer than the system allows: %v", err)
	}
}

// eca reaps orphans that become its children and end. The exit codes of its own children still
// reach the code that started them.
func TestOrphansAreReaped(t *testing.T) {
	needs.Long(t)
	p := newPool(t)
	if _, err := p.Run(t.Context(), Spec{Path: "true"}); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	cmd := exec.Command("sh", "-c", "sleep 0.1 >/dev/null 2>&1 & echo $!")
	cmd.Stdout = &out
	if err := cmd.Run(); err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(out.String()))
	if err != nil {
		t.Fatal(err)
	}
	var runs sync.WaitGroup
	for i := range 20 {
		runs.Go(func() {
			start := p.Run
			if i%2 == 0 {
				start = Run
			}
			if exit, err := start(t.Context(), Spec{Path: "sh", Args: []string{"-c", fmt.Sprintf("sleep 0.%d; exit %d", i%10, i+1)}}); err != nil || exit.Code != i+1 {
				t.Errorf("%d: %+v, %v", i, exit, err)
			}
		})
	}
	runs.Wait()
	for end := time.Now().Add(time.Minute); Alive(pid); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("process %d is not reaped", pid)
		}
	}
}
