package proc

import (
	"io"
	"os"
	"strconv"
	"sync"
	"testing"
	"time"
)

// runInPool runs a script as a child of a pool and returns how it ended and what it printed; if
// kill is not 0, it is killed after that time.
func runInPool(t *testing.T, p *Pool, script string, kill time.Duration) (Exit, string, error) {
	t.Helper()
	null, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	c, err := p.Start(Spec{Path: "/bin/sh", Args: []string{"-c", script}, Dir: "/", Env: []string{"EXTRA=yes"}, Stdin: null, Stdout: w, Stderr: w})
	_ = w.Close()
	if err != nil {
		return Exit{}, "", err
	}
	if kill > 0 {
		time.Sleep(kill)
		c.Kill()
	}
	exit := c.Wait()
	_ = r.SetReadDeadline(time.Now().Add(time.Minute))
	out, err := io.ReadAll(r)
	if err != nil {
		t.Errorf("%s: its output is still open: %v", script, err)
	}
	return exit, string(out), nil
}

func TestPool(t *testing.T) {
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
			if exit, out, err := runInPool(t, p, script, 0); err != nil || exit.Code != want.code || exit.Killed || out != want.out {
				t.Errorf("%s: %+v, %q, %v", script, exit, out, err)
			}
		}
		for _, script := range []string{"sleep 300", "trap '' TERM; sleep 300 & wait; sleep 300"} {
			if exit, _, err := runInPool(t, p, script, 200*time.Millisecond); err != nil || !exit.Killed || exit.Code == 0 {
				t.Errorf("%s: %+v, %v", script, exit, err)
			}
		}
		var all sync.WaitGroup
		for i := range 8 {
			all.Go(func() {
				for n := range 5 {
					if exit, _, err := runInPool(t, p, "exit "+strconv.Itoa(i+n), 0); err != nil || exit.Code != i+n {
						t.Errorf("%d: %+v, %v", i+n, exit, err)
					}
				}
			})
		}
		all.Wait()
	})
}
