package mcp

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/seed-dec29ce4/eca/config"
	"github.com/seed-dec29ce4/eca/internal/proc"
	"github.com/seed-dec29ce4/eca/tools"
)

// startBlocked starts a process in its own session that ignores SIGTERM, and returns its id.
func startBlocked() string {
	self, err := os.Executable()
	if err != nil {
		return err.Error()
	}
	r, w, err := os.Pipe()
	if err != nil {
		return err.Error()
	}
	p, err := os.StartProcess(self, []string{self}, &os.ProcAttr{
		Env: []string{modeVariable + "=block"}, Files: []*os.File{nil, w, nil}, Sys: &syscall.SysProcAttr{Setsid: true},
	})
	if err != nil {
		return err.Error()
	}
	_ = w.Close()
	line, _ := bufio.NewReader(r).ReadString('\n') // from now on it ignores the signal
	if strings.TrimSpace(line) != strconv.Itoa(p.Pid) {
		return "it said " + line
	}
	return strconv.Itoa(p.Pid)
}

// playDaemon runs a server that has a child, prints the ids of both, and blocks.
func playDaemon() {
	self, _ := os.Executable()
	m := New(Deps{
		Resolve: func(context.Context, string, config.MCPServer) (Launch, error) {
			return Launch{Command: self, Env: []string{modeVariable + "=stubborn"}}, nil
		},
		Children: proc.NewPool(self, 1), Now: clock,
	})
	m.Apply(Settings{}, map[string]config.MCPServer{"s": {Command: "x"}})
	m.Begin()
	m.Settled(context.Background())
	res, err := m.servers["s"].connection(context.Background())
	if err != nil {
		fmt.Println(err)
		return
	}
	out, err := res.call(context.Background(), &Tool{name: "fork", spec: tools.Spec{Name: "fork"}}, tools.Call{}, nil)
	child := res.session.transport.(*stdio).proc.Child().Pid()
	fmt.Println(child, strings.Join(out.Outputs, ""), err)
	select {}
}

// awaitExit waits for the end of a process.
func awaitExit(t *testing.T, pid int) {
	t.Helper()
	ended, stop := proc.Watch(pid)
	defer stop()
	select {
	case <-ended:
	case <-deadline(t):
		t.Errorf("process %d is still there", pid)
	}
}

// All processes that a server started end with it.
func TestGrandchildren(t *testing.T) {
	for _, mode := range []string{"good", "stubborn"} {
		r := newRig(t, map[string]string{"s": mode})
		r.await("s", Running)
		grandchild, err := strconv.Atoi(r.text("s", "fork", `{}`))
		if err != nil {
			t.Fatal(err)
		}
		child := r.m.servers["s"].conn.session.transport.(*stdio).proc.Child().Pid()
		r.m.Close()
		awaitExit(t, child)
		awaitExit(t, grandchild)
	}
}

// Even when the daemon is killed, no process is left.
func TestKilledDaemon(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	out, stdout, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	daemon, err := os.StartProcess(self, []string{self}, &os.ProcAttr{
		Env: append(os.Environ(), modeVariable+"=daemon"), Files: []*os.File{nil, stdout, os.Stderr},
	})
	if err != nil {
		t.Fatal(err)
	}
	_ = stdout.Close()
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	var child, grandchild int
	if _, err := fmt.Sscan(line, &child, &grandchild); err != nil {
		t.Fatalf("the daemon said %q", line)
	}
	if !proc.Alive(child) || !proc.Alive(grandchild) {
		t.Fatal("the server's processes ended before the daemon was killed")
	}
	if err := daemon.Kill(); err != nil {
		t.Fatal(err)
	}
	_, _ = daemon.Wait()
	awaitExit(t, child)
	awaitExit(t, grandchild)
}
