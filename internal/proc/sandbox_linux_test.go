package proc

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/seed-dec29ce4/eca/internal/needs"
	"github.com/seed-dec29ce4/eca/internal/sandbox"
	"github.com/seed-dec29ce4/eca/internal/testkit"
)

// runBounded runs a script within a policy and returns what it printed.
func runBounded(t *testing.T, p sandbox.Policy, dir, script string) (Exit, string) {
	t.Helper()
	var out bytes.Buffer
	exit, err := newPool(t).Run(context.Background(), Spec{Path: "bash", Args: []string{"-c", script}, Dir: dir, Stdout: &out, Stderr: &out, Sandbox: p})
	if err != nil {
		t.Fatal(err)
	}
	return exit, out.String()
}

// needSandbox skips where the kernel cannot hold bounds, and says why.
func needSandbox(t *testing.T) {
	t.Helper()
	if s := sandbox.Probe(); !s.Holds {
		t.Skip("NOT TESTED: no sandbox on this machine: " + s.Without)
	}
}

// foldersOutside makes folders outside the temporary ones, which may be written to: wherever
// these tests run, those are elsewhere.
func foldersOutside(t *testing.T) string {
	t.Helper()
	dir := testkit.OutOfTemp(t)
	for _, sub := range []string{"ws/.git/hooks", "ws/.eca", "other"} {
		if err := os.MkdirAll(filepath.Join(dir, sub), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, file := range []string{"ws/a.txt", "other/b.txt"} {
		if err := os.WriteFile(filepath.Join(dir, file), []byte("text\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(filepath.Join(dir, "other"), filepath.Join(dir, "ws", "link")); err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestSandboxFiles(t *testing.T) {
	needSandbox(t)
	dir := foldersOutside(t)
	ws := filepath.Join(dir, "ws")
	for _, c := range []struct {
		script              string
		readOnly, workspace bool // whether it works
	}{
		{"cat a.txt ../other/b.txt >/dev/null", true, true},
		{"ls / >/dev/null && echo x >/dev/null", true, true},
		{"echo x | cat >/dev/null; f=$(mktemp) && echo x >$f && cat <<<x >/dev/null", true, true},
		{"sleep 100 & kill $! && wait; true", true, true},
		{"echo x > new.txt", false, true},
		{"mkdir d && mv a.txt d/ && mv d/a.txt a.txt && rmdir d", false, true},
		{"echo x > .git/hooks/pre-commit", false, true},
		{"echo x > .eca/config.json", false, true},
		{"truncate -s 0 ../other/b.txt", false, false},
		{"echo x > ../other/new.txt", false, false},
		{"echo x > link/new.txt", false, false},
		{"rm ../other/b.txt", false, false},
		{"ln ../other/b.txt hard.txt && echo x >> hard.txt", false, false},
		{"mv ../other/b.txt .", false, false},
		{"mkdir ../other/d", false, false},
		{"(setsid sh -c 'echo x > ../other/new.txt')", false, false},
		{"kill -0 $PPID && kill -0 1", false, false},
	} {
		if strings.HasPrefix(c.script, "kill -0") && strings.Contains(strings.Join(sandbox.Gaps(), " "), "signals") {
			continue // a gap that is named
		}
		for level, want := range map[sandbox.Level]bool{sandbox.ReadOnly: c.readOnly, sandbox.Workspace: c.workspace} {
			exit, out := runBounded(t, sandbox.Policy{Level: level, Write: []string{ws}, PrivateTemp: true}, ws, c.script)
			if got := exit.Code == 0; got != want {
				t.Errorf("%s: %s: exit %d: %s", level, c.script, exit.Code, out)
			}
			_ = os.RemoveAll(filepath.Join(ws, "new.txt"))
			_ = os.RemoveAll(filepath.Join(ws, "hard.txt"))
		}
		if data, err := os.ReadFile(filepath.Join(dir, "other", "b.txt")); err != nil || string(data) != "text\n" {
			t.Fatalf("%s changed a file outside: %q %v", c.script, data, err)
		}
	}
	if exit, out := runBounded(t, sandbox.Policy{}, ws, "echo x > ../other/new.txt"); exit.Code != 0 {
		t.Errorf("without bounds: %s", out)
	}
}

// A child's own temporary folder is removed when the child ends.
func TestSandboxTemp(t *testing.T) {
	needSandbox(t)
	_, out := runBounded(t, sandbox.Policy{Level: sandbox.ReadOnly}, t.TempDir(), `echo x > "$TMPDIR/x" && echo "$TMPDIR"`)
	dir := strings.TrimSpace(out)
	if _, err := os.Stat(dir); !filepath.IsAbs(dir) || !os.IsNotExist(err) {
		t.Errorf("%q: %v", out, err)
	}
}

func TestSandboxNetwork(t *testing.T) {
	needSandbox(t)
	tcp, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer tcp.Close()
	udp, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer udp.Close()
	port := func(a net.Addr) string { _, p, _ := net.SplitHostPort(a.String()); return p }
	for _, script := range []string{
		"exec 3<>/dev/tcp/127.0.0.1/" + port(tcp.Addr()),
		"echo x >/dev/udp/127.0.0.1/" + port(udp.LocalAddr()),
	} {
		for _, level := range []sandbox.Level{sandbox.ReadOnly, sandbox.Workspace} {
			if exit, out := runBounded(t, sandbox.Policy{Level: level}, "/", script); exit.Code == 0 {
				t.Errorf("%s: %s worked: %s", level, script, out)
			}
			if exit, out := runBounded(t, sandbox.Policy{Level: level, Network: true}, "/", script); exit.Code != 0 {
				t.Errorf("%s with network: %s: %s", level, script, out)
			}
		}
	}
}

// A child that cannot be bound does not start, if that is required.
func TestSandboxRequired(t *testing.T) {
	spec := Spec{Path: "true", Sandbox: sandbox.Policy{Level: sandbox.Workspace}}
	if exit, err := Run(context.Background(), spec); err != nil || exit.Code != 0 {
		t.Errorf("%v %v", exit, err)
	}
	spec.Sandbox.Required = true
	var refused sandbox.Error
	if _, err := Run(context.Background(), spec); !errors.As(err, &refused) || !strings.Contains(err.Error(), "toolCall.sandbox") {
		t.Errorf("%v", err)
	}
}

// Processes that a bounded child leaves behind are killed as well: signals reach it from outside
// its bounds.
func TestSandboxKill(t *testing.T) {
	needs.Long(t)
	needSandbox(t)
	for range 3 {
		_, out := runBounded(t, sandbox.Policy{Level: sandbox.ReadOnly}, "/", "setsid sleep 300 >/dev/null 2>&1 & echo $!")
		pid, err := strconv.Atoi(strings.TrimSpace(out))
		if err != nil || Alive(pid) {
			t.Fatalf("%q lives on: %v", out, err)
		}
		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		c, err := newPool(t).Start(Spec{Path: "bash", Args: []string{"-c", "trap '' TERM; setsid sleep 300 & echo $!; wait"}, Stdout: w, Sandbox: sandbox.Policy{Level: sandbox.Workspace}})
		if err != nil {
			t.Fatal(err)
		}
		line, err := bufio.NewReader(r).ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		c.Kill()
		_, _ = r.Close(), w.Close()
		if pid, err := strconv.Atoi(strings.TrimSpace(line)); err != nil || Alive(pid) {
			t.Fatalf("%q lives on: %v", line, err)
		}
	}
}
