package lineproc

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/seed-dec29ce4/eca/internal/needs"
	"github.com/seed-dec29ce4/eca/internal/proc"
)

var errLong = errors.New("too long")

// run starts a shell; lines returns its output until the conversation is over.
func run(t *testing.T, script string) (p *Process, stderr *Tail, lines func() string) {
	t.Helper()
	needs.POSIX(t)
	pool := proc.NewPool("", 0)
	t.Cleanup(pool.Close)
	stderr = &Tail{}
	var got []string
	p, err := Start(pool, proc.Spec{Path: "/bin/sh", Args: []string{"-c", script}, Stderr: stderr}, Options{
		Limit: 100, TooLong: errLong, Grace: 1,
		Line: func(_ <-chan struct{}, line []byte, cut bool) error {
			got = append(got, fmt.Sprintf("%s %v", line, cut))
			return nil
		},
		ExitError: func(exit *proc.Exit) error { return errors.New(Describe(exit)) },
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Close(true) })
	return p, stderr, func() string {
		<-p.Ended()
		return strings.Join(got, "|")
	}
}

func TestLines(t *testing.T) {
	p, stderr, lines := run(t, `read x; echo "  $x "; echo; echo why >&2; printf cut; exit 3`)
	p.Frames() <- []byte("said\n")
	if got := lines(); got != "said false|cut true" {
		t.Error(got)
	}
	if got := p.Cause().Error(); got != "ended with exit code 3" {
		t.Error(got)
	}
	if got := stderr.String(); got != "why" {
		t.Errorf("stderr: %q", got)
	}
}

// A line of a child takes no more memory than its limit.
func TestEndlessLine(t *testing.T) {
	p, _, lines := run(t, `echo ok; while :; do printf xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx; done`)
	if got := lines(); got != "ok false" || !errors.Is(p.Cause(), errLong) {
		t.Errorf("%q, %v", got, p.Cause())
	}
}

// Close ends a child that ignores signals.
func TestStubbornChild(t *testing.T) {
	p, _, _ := run(t, `trap "" TERM HUP; sleep 1000 & while :; do sleep 1000; done`)
	p.Close(false)
	if !errors.Is(p.Cause(), ErrClosed) {
		t.Error(p.Cause())
	}
	<-p.Child().Done()
	select {
	case p.Frames() <- nil:
		t.Error("the process still accepts a frame after its child has ended")
	default:
	}
}

// If the output of a child ends before Close, the reason is the exit code of the child, even if it is not
// known yet.
func TestOwnEndComesFirst(t *testing.T) {
	p, _, _ := run(t, `exec >&-; read x; exit 5`)
	<-p.eof
	reason := make(chan error)
	go func() { reason <- p.OwnEnd() }()
	_ = p.Input().Close() // so it ends
	if err := <-reason; err == nil || err.Error() != "ended with exit code 5" {
		t.Error(err)
	}
	p.Close(true)
	if got := p.Cause().Error(); got != "ended with exit code 5" {
		t.Error(got)
	}
}

// OwnEnd returns no error while the child's output is open.
func TestNoOwnEnd(t *testing.T) {
	p, _, _ := run(t, `read x`)
	if err := p.OwnEnd(); err != nil {
		t.Error(err)
	}
}

// A Tail keeps the end of the output, starting at the beginning of a line.
func TestTail(t *testing.T) {
	var tail Tail
	for i := range 10_000 {
		fmt.Fprintf(&tail, "line %d\n", i)
	}
	got := tail.String()
	if len(got) > tailSize || !strings.HasPrefix(got, "line ") || !strings.HasSuffix(got, "\nline 9999") {
		t.Errorf("%d bytes: %.20q", len(got), got)
	}
}
