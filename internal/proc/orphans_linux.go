package proc

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// A killed supervisor leaves orphans: the descendants of its child. eca becomes their parent (as
// subreaper) and kills them. Other processes, such as a browser that eca opened, are also reparented
// to eca, and must continue. To distinguish them, every supervisor marks itself and its descendants
// in a way that a process cannot undo: it lowers the memory limit for POSIX message queues, which
// other programs do not depend on.

const markedLimit = unix.RLIMIT_MSGQUEUE

// markProcess marks this process, and thereby its future descendants.
func markProcess() {
	var l unix.Rlimit
	if err := unix.Getrlimit(markedLimit, &l); err != nil || l.Max == 0 {
		return // unmarked: orphans of a killed supervisor would survive
	}
	l.Max--
	l.Cur = min(l.Cur, l.Max)
	_ = unix.Setrlimit(markedLimit, &l)
}

// adoptOrphans makes this process the parent of orphaned descendants.
func adoptOrphans() { _ = unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) }

// reapDelay is the delay before an ended child is reaped as an orphan. By then, code that waits for
// its own child has reaped that child.
const reapDelay = time.Second

// reapOrphans reaps ended orphans until done is closed. It leaves children of this program to the code
// that waits for them.
func reapOrphans(done <-chan struct{}) {
	ended := make(chan os.Signal, 1)
	signal.Notify(ended, syscall.SIGCHLD)
	defer signal.Stop(ended)
	wait := func() bool {
		t := time.NewTimer(reapDelay)
		defer t.Stop()
		select {
		case <-t.C:
			return true
		case <-done:
			return false
		}
	}
	for {
		select {
		case <-ended:
		case <-done:
			return
		}
		for endedEarlier := endedChildren(); len(endedEarlier) > 0; {
			if !wait() {
				return
			}
			now := endedChildren()
			for _, pid := range now {
				if slices.Contains(endedEarlier, pid) {
					_, _ = syscall.Wait4(pid, nil, syscall.WNOHANG, nil)
				}
			}
			endedEarlier = slices.DeleteFunc(now, func(pid int) bool { return slices.Contains(endedEarlier, pid) })
		}
	}
}

// endedChildren returns the children of this process that have ended and are not reaped yet.
func endedChildren() (out []int) {
	for pid, parent := range parentsOfAll() {
		if parent != os.Getpid() {
			continue
		}
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if err == nil && bytes.HasPrefix(stat[bytes.LastIndexByte(stat, ')')+1:], []byte(" Z")) {
			out = append(out, pid)
		}
	}
	return out
}

// killOrphans kills the orphans of killed supervisors until none remain. It spares live supervisors;
// supervisor is their executable.
func killOrphans(supervisor string) {
	var own unix.Rlimit
	if err := unix.Getrlimit(markedLimit, &own); err != nil {
		return
	}
	for range 500 {
		parents, found := parentsOfAll(), false
		for pid, parent := range parents {
			if parent == os.Getpid() && isMarked(pid, own.Max) && !isSupervisor(pid, supervisor) {
				found = true
				killTree(pid, parents)
				_, _ = syscall.Wait4(pid, nil, syscall.WNOHANG, nil)
			}
		}
		if !found {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// killTree kills a process and all its descendants.
func killTree(root int, parents map[int]int) {
	for pid := range parents {
		for p, depth := pid, 0; p > 1 && depth < 1000; p, depth = parents[p], depth+1 {
			if p == root {
				_ = syscall.Kill(pid, syscall.SIGKILL)
				break
			}
		}
	}
}

// isMarked reports whether a process is a supervisor or a descendant of one.
func isMarked(pid int, limit uint64) bool {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/limits", pid))
	if err != nil {
		return false
	}
	for s := bufio.NewScanner(bytes.NewReader(data)); s.Scan(); {
		values, ok := strings.CutPrefix(s.Text(), "Max msgqueue size")
		if fields := strings.Fields(values); ok && len(fields) > 1 {
			hard, err := strconv.ParseUint(fields[1], 10, 64) // fails if the limit is "unlimited"
			return err == nil && hard < limit
		}
	}
	return false
}

// isSupervisor reports whether a process is a supervisor. It checks the executable, which cannot be
// forged, unlike the arguments.
func isSupervisor(pid int, supervisor string) bool {
	line, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	if err != nil || string(line) != "eca\x00"+supervisorArg+"\x00" {
		return false
	}
	program, err := os.Stat(fmt.Sprintf("/proc/%d/exe", pid))
	if err != nil {
		return false
	}
	for _, path := range []string{"/proc/self/exe", supervisor} {
		if info, err := os.Stat(path); err == nil && os.SameFile(info, program) {
			return true
		}
	}
	return false
}
