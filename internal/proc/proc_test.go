package proc

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/seed-dec29ce4/eca/internal/needs"
	"github.com/seed-dec29ce4/eca/internal/sandbox"
)

func TestMain(m *testing.M) {
	if code, ok := Supervise(os.Args); ok {
		os.Exit(code)
	}
	if len(os.Args) > 1 && childOfTest(os.Args[1:]) {
		return
	}
	// With the race detector, each supervisor would sleep a second before it ends.
	if os.Getenv("GORACE") == "" {
		_ = os.Setenv("GORACE", "atexit_sleep_ms=0")
	}
	goleak.VerifyTestMain(m)
}

// withAndWithoutSupervisor runs a test with and without a supervisor.
func withAndWithoutSupervisor(t *testing.T, fn func(t *testing.T, p *Pool)) {
	t.Helper()
	needs.POSIX(t)
	t.Run("bare", func(t *testing.T) { fn(t, nil) })
	t.Run("supervised", func(t *testing.T) { fn(t, newPool(t)) })
}

// newPool returns a pool whose supervisors are this test's program.
func newPool(t testing.TB) *Pool {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	p := NewPool(self, 1)
	t.Cleanup(p.Close)
	return p
}

func TestRun(t *testing.T) {
	withAndWithoutSupervisor(t, func(t *testing.T, p *Pool) {
		for script, want := range map[string]struct {
			code int
			out  string
		}{
			"echo out; echo err >&2": {0, "out\nerr\n"},
			"exit 7":                 {7, ""},
			"kill -KILL $$":          {-1, ""},
			"cat":                    {0, ""},
			"echo $EXTRA; pwd":       {0, "yes\n/\n"},
		} {
			var out bytes.Buffer
			exit, err := p.Run(context.Background(), Spec{
				Path: "/bin/sh", Args: []string{"-c", script}, Dir: "/", Env: []string{"EXTRA=yes"}, Stdout: &out, Stderr: &out,
			})
			if err != nil || exit.Code != want.code || exit.Killed || out.String() != want.out {
				t.Errorf("%s: %+v, %q, %v", script, exit, out.String(), err)
			}
		}
		if _, err := p.Run(context.Background(), Spec{Path: "/does/not/exist"}); err == nil || !strings.Contains(err.Error(), "/does/not/exist") {
			t.Errorf("a program that does not exist: %v", err)
		}
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		if _, err := p.Run(ctx, Spec{Path: "/bin/true"}); err == nil {
			t.Error("started although cancelled")
		}
	})
}

// A child gets its whole input. A child that does not read its input ends nevertheless.
func TestStdin(t *testing.T) {
	withAndWithoutSupervisor(t, func(t *testing.T, p *Pool) {
		input := strings.Repeat("0123456789abcdef", 1<<16)
		for script, want := range map[string]string{"wc -c | tr -d ' '": "1048576\n", "echo done": "done\n"} {
			var out bytes.Buffer
			exit, err := p.Run(context.Background(), Spec{
				Path: "/bin/sh", Args: []string{"-c", script}, Stdin: strings.NewReader(input), Stdout: &out,
			})
			if err != nil || exit.Code != 0 || out.String() != want {
				t.Errorf("%s: %+v, %q, %v", script, exit, out.String(), err)
			}
		}
	})
}

func TestKill(t *testing.T) {
	withAndWithoutSupervisor(t, func(t *testing.T, p *Pool) {
		for _, script := range []string{"echo; sleep 300", "trap '' TERM; echo; sleep 300 & wait; sleep 300"} {
			ctx, cancel := context.WithCancel(context.Background())
			begun := writer(func() { cancel() }) // the script prints when it is ready to be killed
			exit, err := p.Run(ctx, Spec{Path: "/bin/sh", Args: []string{"-c", script}, Stdout: begun})
			cancel()
			if err != nil || !exit.Killed || exit.Code == 0 {
				t.Errorf("%s: %+v, %v", script, exit, err)
			}
		}
	})
}

// A child that is killed immediately after its start ends, with the processes that it started.
func TestKillAtOnce(t *testing.T) {
	needs.Long(t)
	withAndWithoutSupervisor(t, func(t *testing.T, p *Pool) {
		for range 20 {
			c, err := p.Start(Spec{Path: "/bin/sh", Args: []string{"-c", "trap '' TERM; sleep 300 & wait; sleep 300"}})
			if err != nil {
				t.Fatal(err)
			}
			c.Kill()
			if exit := c.Wait(); !exit.Killed || Alive(c.Pid()) {
				t.Fatalf("%+v, its process lives on: %v", exit, Alive(c.Pid()))
			}
		}
	})
}

// writer is called at each write.
type writer func()

func (w writer) Write(p []byte) (int, error) {
	w()
	return len(p), nil
}

func TestWatch(t *testing.T) {
	needs.POSIX(t)
	cmd := exec.Command("sleep", "300")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	gone, stop := Watch(cmd.Process.Pid)
	defer stop()
	select {
	case <-gone:
		t.Fatal("Watch reported the end of a process that still runs")
	case <-time.After(50 * time.Millisecond):
	}
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	select {
	case <-gone:
	case <-time.After(time.Minute):
		t.Fatal("Watch did not report the end of a process")
	}
	again, stopAgain := Watch(cmd.Process.Pid)
	defer stopAgain()
	<-again
	unused, stopUnused := Watch(os.Getpid())
	stopUnused() // must end the goroutine that waits
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	defer w.Close()
	stopUnused() // must not close a file that has got the same descriptor since
	if _, err := w.WriteString("x"); err != nil {
		t.Errorf("a second stop: %v", err)
	}
	select {
	case <-unused:
		t.Error("Watch reported the end of this process")
	default:
	}
}

// The Exit of a child says whether the child left processes behind. It does not if the child waited
// for them, or started none.
func TestProcessesLeftBehindAreReported(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("NOT TESTED: needs a POSIX shell")
	}
	withAndWithoutSupervisor(t, func(t *testing.T, p *Pool) {
		policies := []sandbox.Policy{{}}
		if p.Bounds().Holds {
			policies = append(policies, sandbox.Policy{Level: sandbox.Workspace, Write: []string{t.TempDir()}})
			if here := p.Isolation(); here.Mounts && here.Processes {
				policies = append(policies, sandbox.Policy{Level: sandbox.Workspace, Write: []string{t.TempDir()}, Isolate: true, OwnProcesses: true})
			}
		}
		for _, policy := range policies {
			for script, want := range map[string]bool{"sleep 300 & exit 3": true, "sleep 0.01 & wait; exit 3": false, "seq 1 1000 | head -n 1; exit 3": false} {
				exit, err := p.Run(t.Context(), Spec{Path: "sh", Args: []string{"-c", script}, Sandbox: policy})
				if err != nil || exit.Code != 3 || exit.Left != want {
					t.Errorf("%s: %+v, %v", script, exit, err)
				}
			}
		}
	})
}
