package proc

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// Killing a child that has just ended does not kill the next one of its supervisor.
func TestPoolKillsNoOther(t *testing.T) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	ours, theirs := os.NewFile(uintptr(fds[0]), "ours"), os.NewFile(uintptr(fds[1]), "theirs")
	defer theirs.Close()
	conn, err := net.FileConn(ours)
	_ = ours.Close()
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	p := NewPool("", 1)
	c := &supervisedChild{supervisor: &supervisorHandle{conn: conn.(*net.UnixConn)}, streams: &streams{}, done: make(chan struct{})} //nolint:forcetypeassert // of a unix socket
	p.idlePool.mu.Lock()                                                                                                             // from here on the supervisor is on its way to the idle ones
	go c.wait(p)
	if _, err := fmt.Fprintf(theirs, exitMessage, 7, false, false, 0); err != nil {
		t.Fatal(err)
	}
	for end, mine := time.Now().Add(time.Minute), true; mine; time.Sleep(time.Millisecond) {
		mine = false
		c.ifCurrent(func() { mine = true })
		if time.Now().After(end) {
			t.Fatal("a child that has ended still sends its signals to the supervisor")
		}
	}
	p.idlePool.mu.Unlock()
	if exit := c.Wait(); exit.Code != 7 || len(p.idlePool.idle) != 1 {
		t.Errorf("%+v, %d idle", exit, len(p.idlePool.idle))
	}
	p.idlePool.timer.Stop()
}

// A process that left its group is killed when the child ends, and when the pool's owner dies. This
// does not affect the next child of the same supervisor.
func TestPoolOrphans(t *testing.T) {
	p := newPool(t)
	const orphan = "setsid sh -c \"trap '' TERM HUP INT; while :; do sleep 1; done\" >/dev/null 2>&1 & echo $!"
	for range 3 {
		_, out, err := runInPool(t, p, orphan, 0)
		pid, scanErr := strconv.Atoi(strings.TrimSpace(out))
		if err != nil || scanErr != nil || Alive(pid) {
			t.Errorf("%q lives on: %v", out, err)
		}
	}
	if len(p.idlePool.idle) != 1 {
		t.Errorf("%d supervisors for one child at a time", len(p.idlePool.idle))
	}
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	c, err := p.Start(Spec{Path: "/bin/sh", Args: []string{"-c", orphan + "; sleep 300"}, Stdin: null, Stdout: w, Stderr: null})
	_ = w.Close()
	if err != nil {
		t.Fatal(err)
	}
	buf := make([]byte, 20)
	n, err := r.Read(buf)
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(buf[:n])))
	if err != nil || !Alive(pid) {
		t.Fatalf("%q: %v", buf[:n], err)
	}
	// As when the owner dies: no process holds the other end of the socket.
	held, ok := c.(*supervisedChild)
	if !ok {
		t.Fatalf("%T", c)
	}
	_ = held.supervisor.conn.CloseWrite()
	_ = held.supervisor.conn.CloseRead()
	<-c.Done()
	for end := time.Now().Add(time.Minute); Alive(pid); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("process %d lives on", pid)
		}
	}
}

// Killing a child that has already ended does not reach the next one of its supervisor.
func TestPoolLateKill(t *testing.T) {
	p := newPool(t)
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	defer w.Close()
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	start := func(script string) *supervisedChild {
		c, err := p.Start(Spec{Path: "/bin/sh", Args: []string{"-c", script}, Stdin: r, Stdout: null, Stderr: null})
		if err != nil {
			t.Fatal(err)
		}
		held, ok := c.(*supervisedChild)
		if !ok {
			t.Fatalf("%T", c)
		}
		return held
	}
	first := start("exit 3")
	first.Wait()
	second := start("read line; exit 7")
	if first.supervisor != second.supervisor {
		t.Fatal("the pool did not use the supervisor for the next child")
	}
	for _, order := range []string{"term", "kill"} { // as Kill does, once it has found the child alive
		first.ifCurrent(func() { _, _ = first.supervisor.conn.Write([]byte(order)) })
	}
	if _, err := w.WriteString("go on\n"); err != nil {
		t.Fatal(err)
	}
	if exit := second.Wait(); exit.Code != 7 {
		t.Errorf("the next child: %+v", exit)
	}
}

// slowWriter waits at each write.
type slowWriter struct{ got bytes.Buffer }

func (w *slowWriter) Write(p []byte) (int, error) {
	time.Sleep(2 * grace)
	return w.got.Write(p)
}

// Output is complete even if its reader is slower than the time limit for processes that keep the
// pipe open.
func TestOutputOutlastsSlowWriters(t *testing.T) {
	var out slowWriter
	exit, err := newPool(t).Run(context.Background(), Spec{Path: "sh", Args: []string{"-c", "printf one; sleep 0.1; printf two; setsid sleep 3 & "}, Stdout: &out})
	if err != nil || exit.Code != 0 || out.got.String() != "onetwo" {
		t.Errorf("%v %+v %q", err, exit, out.got.String())
	}
}
