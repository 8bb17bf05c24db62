package proc

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/seed-dec29ce4/eca/internal/needs"
	"github.com/seed-dec29ce4/eca/internal/sandbox"
)

// isolation returns the namespaces that this machine supports. It skips the test without mount and
// PID namespaces.
func isolation(t *testing.T) sandbox.Isolation {
	t.Helper()
	needSandbox(t)
	i := newPool(t).Isolation()
	if !i.Mounts || !i.Processes {
		t.Skip("NOT TESTED: no mount and PID namespaces on this machine: " + i.Without)
	}
	return i
}

// isolatedPolicy returns a policy with namespaces.
func isolatedPolicy(level sandbox.Level, write ...string) sandbox.Policy {
	return sandbox.Policy{Level: level, Write: write, Isolate: true, OwnProcesses: true}
}

// A sandboxed command has the same permissions in namespaces as without, with two exceptions: it
// cannot change the mode of files outside, and a reader cannot execute files from folders that it
// may read.
func TestIsolatedFiles(t *testing.T) {
	needs.Long(t)
	isolation(t)
	dir := foldersOutside(t)
	ws := filepath.Join(dir, "ws")
	if err := os.WriteFile(filepath.Join(ws, "run.sh"), []byte("#!/bin/sh\necho ran\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	copied, err := os.ReadFile("/bin/true")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(ws, "true"), copied, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		script              string
		readOnly, workspace bool // whether it works
	}{
		{"cat a.txt ../other/b.txt >/dev/null", true, true},
		{"ls / >/dev/null && echo x >/dev/null", true, true},
		{"echo x | cat >/dev/null; f=$(mktemp) && echo x >$f && cat <<<x >/dev/null", true, true},
		{"sleep 100 & kill $! && wait; true", true, true},
		{"echo x > new.txt && chmod 600 new.txt && mkdir d && mv new.txt d/ && rm -r d", false, true},
		{`[ "$(pwd)" = "$(/bin/pwd -P)" ] && [ "$(ls /proc/self/cwd/)" = "$(ls)" ]`, true, true},
		{"./run.sh", false, true},
		{"./true", false, true},
		{"$(ls /lib64/ld-linux*.so.2 /lib/ld-linux-aarch64.so.1 2>/dev/null | head -1) ./true", false, true},
		{"(echo x > /dev/shm/x && cat /dev/shm/x >/dev/null)", false, true},
		{"truncate -s 0 ../other/b.txt", false, false},
		{"echo x > link/new.txt", false, false},
		{"rm ../other/b.txt", false, false},
		{"ln ../other/b.txt hard.txt", false, false},
		{"chmod 777 ../other/b.txt", false, false},
		{"touch ../other/b.txt", false, false},
		{"chmod 777 ../other", false, false},
		{"mount -o remount,rw /", false, false},
		{"mount -o remount,bind,rw /", false, false},
		{"umount -l .", false, false},
		{"kill -9 $PPID; kill -0 1", false, false},
		{"grep -q 'CapEff:.*[1-9a-f]' /proc/self/status", false, false},
		{"echo x > /proc/1/mem", false, false},
		{"readlink /proc/1/fd/3", false, false},
		{"cat /proc/1/environ", false, false},
	} {
		for level, want := range map[sandbox.Level]bool{sandbox.ReadOnly: c.readOnly, sandbox.Workspace: c.workspace} {
			policy := isolatedPolicy(level, ws)
			policy.PrivateTemp = true
			exit, out := runBounded(t, policy, ws, c.script)
			if got := exit.Code == 0; got != want {
				t.Errorf("%s: %s: exit %d: %s", level, c.script, exit.Code, out)
			}
		}
		if data, err := os.ReadFile(filepath.Join(dir, "other", "b.txt")); err != nil || string(data) != "text\n" {
			t.Fatalf("%s changed a file outside: %q %v", c.script, data, err)
		}
	}
}

// A command in a PID namespace ends in the same way as one outside.
func TestIsolatedExits(t *testing.T) {
	needs.Long(t)
	isolation(t)
	for script, want := range map[string]int{
		"exit 7":                           7,
		"exit 255":                         255,
		"kill -KILL $$":                    -1,
		"kill -TERM $$":                    -1,
		"bash -c 'kill -KILL $$'; exit $?": 137,
		"no-such-program":                  127,
		"/etc/passwd":                      126,
		"trap 'exit 3' TERM; kill $$":      3,
		"(exit 5) & wait $!":               5,
	} {
		for _, level := range []sandbox.Level{sandbox.ReadOnly, sandbox.Workspace} {
			if exit, out := runBounded(t, isolatedPolicy(level), "/", script); exit.Code != want || exit.Killed {
				t.Errorf("%s: %s: %+v, want %d: %s", level, script, exit, want, out)
			}
		}
	}
	if _, err := newPool(t).Run(context.Background(), Spec{Path: "/no/such/program", Sandbox: isolatedPolicy(sandbox.Workspace)}); err == nil || !strings.Contains(err.Error(), "no such file") {
		t.Errorf("a program that does not exist: %v", err)
	}
}

// A command that gets SIGTERM can handle it before it ends.
func TestIsolatedCommandIsAskedToEnd(t *testing.T) {
	isolation(t)
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	var out bytes.Buffer
	p, err := newPool(t).Start(Spec{Path: "bash", Args: []string{"-c", "trap 'echo bye; exit 4' TERM; echo >&2; while :; do sleep 0.01; done"}, Stdout: &out, Stderr: w, Sandbox: isolatedPolicy(sandbox.Workspace)})
	_ = w.Close()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.Read(make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	p.Kill()
	if exit := p.Wait(); exit.Code != 4 || out.String() != "bye\n" {
		t.Errorf("%+v, %q", exit, out.String())
	}
}

// When a command in a PID namespace ends, or its supervisor is killed, all of its processes end,
// including those that left its session.
func TestIsolatedSurvivors(t *testing.T) {
	needs.Long(t)
	isolation(t)
	mark := "300." + strconv.Itoa(os.Getpid())
	alive := func() string {
		out, _ := exec.Command("pgrep", "-f", "sleep "+mark).Output()
		return string(out)
	}
	for _, script := range []string{
		"(setsid sleep " + mark + " &) ; kill -9 $PPID; true",
		"setsid sleep " + mark + " >/dev/null 2>&1 & true",
		"(setsid bash -c 'setsid sleep " + mark + " & disown' &) ; kill -9 1 -1; true",
	} {
		runBounded(t, isolatedPolicy(sandbox.Workspace), "/", script)
		if left := alive(); left != "" {
			t.Errorf("%s: process %s still runs", script, left)
		}
	}
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	p, err := newPool(t).Start(Spec{Path: "bash", Args: []string{"-c", "setsid sleep " + mark + " & echo; wait"}, Stdout: w, Sandbox: isolatedPolicy(sandbox.Workspace)})
	_ = w.Close()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.Read(make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	// This process does not take the orphans for those of its supervisors, so that the namespace
	// alone ends them.
	var own unix.Rlimit
	if err := unix.Getrlimit(markedLimit, &own); err != nil {
		t.Fatal(err)
	}
	lower := unix.Rlimit{Cur: min(own.Cur, own.Max-1), Max: own.Max - 1}
	if err := unix.Setrlimit(markedLimit, &lower); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Setrlimit(markedLimit, &own) }) // only root may
	if err := syscall.Kill(parentsOfAll()[p.Pid()], syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	p.Wait()
	for end := time.Now().Add(time.Minute); alive() != ""; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("process %s outlives its supervisor", alive())
		}
	}
}
