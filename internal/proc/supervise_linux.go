package proc

import (
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// The only argument of a program that calls Supervise, if it runs as a supervisor, as the second stage
// of a bounded child, or as a test child.
const (
	supervisorArg = "__warden"
	boundedArg    = "__bounded"
	nothingArg    = "__nothing" // exits immediately; used to test whether a child can start
)

// socketFD is the descriptor of the socket over which a supervisor or a second stage receives
// orders.
const socketFD = 3

// Messages between eca and a supervisor, in addition to orders.
const (
	termMessage    = "term"    // ask the child to exit
	killMessage    = "kill"    // kill the child and all its descendants
	prepareMessage = "prepare" // start a second stage for the next child

	pidMessage  = "pid %d"           // the child runs with this process ID
	exitMessage = "exit %d %t %t %d" // the exit code, whether processes were left behind, whether the child was killed for lack of memory, and the limit
)

// Supervise must be called first in main of every program that names itself as the supervisor of a
// Pool. If this process was started as a supervisor, Supervise runs it and returns true with the
// exit code.
func Supervise(args []string) (code int, ok bool) {
	switch {
	case len(args) >= 2 && args[1] == networkArg:
		return holdNetwork(args[2:]), true
	case len(args) != 2:
		return 0, false
	case args[1] == supervisorArg:
		return runSupervisor(), true
	case args[1] == boundedArg:
		return runSecondStage(), true
	case args[1] == nothingArg:
		return 0, true
	}
	return 0, false
}

// starting is the pid of a child that has not started yet.
const starting = -1

// supervisor starts one child after another, until its parent closes the socket or exits for any
// reason.
type supervisor struct {
	nextLaunch launch     // of the last bounded child; a second stage is prepared with it
	orders     chan order // an order without a path prepares a second stage

	mu          sync.Mutex   // guards the fields below
	memory      *memoryGroup // nil: no limit
	memoryTried bool         // the group was created, or cannot be created
	stage       *stage       // ready for the next bounded child; may be nil
	pid         int          // of the child; starting, or 0 without a child
	temp        string       // the child's own temporary folder
}

func runSupervisor() int {
	// The kernel kills the child when the thread that started it ends (Pdeathsig), so this thread must
	// not end.
	runtime.LockOSThread()
	ownSocket()
	markProcess()
	signal.Notify(make(chan os.Signal, 1), syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP) // only the socket stops the supervisor
	s := &supervisor{orders: make(chan order)}
	go s.listen()
	for o := range s.orders {
		if o.Path == "" {
			s.prepare()
			continue
		}
		s.supervise(o)
	}
	return 0
}

// prepare starts a second stage for the next child. It ignores errors, because starting the next
// bounded child reports them.
func (s *supervisor) prepare() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stage == nil {
		s.stage, _ = s.startStageLocked(s.nextLaunch)
	}
}

// startStageLocked starts a second stage in the supervisor's memory group, which is created for the
// first stage. If the group cannot be used, there is no memory limit.
func (s *supervisor) startStageLocked(l launch) (*stage, error) {
	if s.memory == nil && !s.memoryTried {
		s.memoryTried = true
		if groups, err := findMemoryGroups(); err == nil {
			s.memory, _ = groups.open(os.Getpid())
		}
	}
	started, err := startStage(l, s.memory)
	if err == nil || s.memory == nil {
		return started, err
	}
	s.memory.close()
	s.memory = nil
	return startStage(l, nil)
}

// supervise starts a child and waits until it and all its descendants have ended.
func (s *supervisor) supervise(o order) {
	s.setChild(starting, o.Policy.Temp)
	release, err := o.Policy.Claim()
	kills := memoryKills()
	var child startedChild
	if err == nil {
		child, err = s.start(o)
	}
	o.close()
	if err != nil {
		_ = removeTemp(o.Policy.Temp)
		release()
		s.setChild(0, "")
		s.report(err.Error())
		return
	}
	pid := child.pid
	s.setChild(pid, o.Policy.Temp)
	s.report(fmt.Sprintf(pidMessage, pid))
	code, left := child.wait()
	for hasChildren() { // the child's descendants end with it
		left = true
		killDescendants(pid)
	}
	outOfMemory, limit := s.checkMemory()
	outOfMemory = outOfMemory || killedForMemory(code, kills, memoryKills())
	_ = removeTemp(o.Policy.Temp) // the parent may have exited
	release()                     // before the parent can start the next child, which may need the same layers
	s.setChild(0, "")
	s.report(fmt.Sprintf(exitMessage, code, left, outOfMemory, limit))
}

// checkMemory reports whether the child that has ended was killed for lack of memory, and at which
// limit. The group is kept for the next child if it is empty.
func (s *supervisor) checkMemory() (killed bool, limit int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.memory == nil {
		return false, 0
	}
	if killed, limit = s.memory.checkKilled(); !s.memory.empty() {
		s.memory.close()
		s.memory, s.memoryTried = nil, false
	}
	return killed, limit
}

// start makes this process the reaper of the child's descendants, and starts the child in its own
// process group. The supervisor itself is not bounded.
func (s *supervisor) start(o order) (startedChild, error) {
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return startedChild{}, fmt.Errorf("supervise: %w", err)
	}
	s.mu.Lock()
	ready := s.stage
	s.stage = nil
	s.mu.Unlock()
	if o.Policy.Bounds() {
		s.nextLaunch = launchFor(o.Policy)
		return startBounded(ready, o, func(l launch) (*stage, error) {
			s.mu.Lock()
			defer s.mu.Unlock()
			return s.startStageLocked(l)
		})
	}
	if ready != nil { // it would be taken for a process that the child left behind
		ready.discard()
	}
	p, err := os.StartProcess(o.Path, append([]string{o.Path}, o.Args...), &os.ProcAttr{
		Dir: o.Dir, Env: o.Env, Files: o.files,
		Sys: &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL},
	})
	if err != nil {
		return startedChild{}, err
	}
	return startedChild{pid: p.Pid}, nil
}

func (s *supervisor) setChild(pid int, temp string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pid, s.temp = pid, temp
}

func (s *supervisor) currentPid() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.pid
}

func (*supervisor) report(text string) { _ = sendPacket(socketFD, []byte(text), nil) }

// listen receives orders and messages.
func (s *supervisor) listen() {
	buf, rights := make([]byte, 4<<10), make([]byte, unix.CmsgSpace(maxStreams*4))
	for {
		n, extra, err := receivePacket(socketFD, buf, rights)
		if err != nil || n == 0 {
			s.shutDown()
		}
		switch text := string(buf[:n]); text {
		case termMessage:
			if pid := s.currentPid(); pid > 0 {
				_ = syscall.Kill(-pid, syscall.SIGTERM)
			}
		case killMessage:
			go s.kill(s.currentPid()) // must not kill the next child
		case prepareMessage:
			s.orders <- order{}
		default:
			o, err := receiveOrder(socketFD, buf[:n], rights[:extra])
			if err != nil {
				s.report(err.Error())
				continue
			}
			s.orders <- o
		}
	}
}

// kill kills a child repeatedly until it has ended; 0 does nothing.
func (s *supervisor) kill(pid int) {
	for pid > 0 && s.killIfCurrent(pid) {
		time.Sleep(10 * time.Millisecond)
	}
}

// killIfCurrent kills the processes of a child, and reports whether the child is still the current
// one. It holds mu, because a child that started meanwhile would be killed too.
func (s *supervisor) killIfCurrent(pid int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.pid != pid {
		return false
	}
	killDescendants(pid)
	return true
}

// shutDown kills the child and its descendants, and exits the supervisor when they have ended, or after
// a few seconds.
func (s *supervisor) shutDown() {
	for range 500 {
		pid := s.currentPid()
		if pid == 0 {
			break
		}
		killDescendants(pid)
		time.Sleep(10 * time.Millisecond)
	}
	s.mu.Lock() // never unlocked: nothing may start any more
	if s.stage != nil {
		s.stage.discard()
	}
	s.memory.close()
	_ = removeTemp(s.temp)
	os.Exit(0)
}

// reapUntil waits for the child and returns its exit code, -1 if a signal killed it. It also reaps other
// processes that end before the child.
func reapUntil(child int) (code int) {
	for {
		var ws syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &ws, 0, nil)
		switch {
		case errors.Is(err, syscall.EINTR):
		case err != nil:
			return -1
		case pid == child && ws.Signaled():
			return -1
		case pid == child:
			return ws.ExitStatus()
		}
	}
}

// hasChildren reaps ended processes and reports whether any remain.
func hasChildren() bool {
	for {
		var ws syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &ws, syscall.WNOHANG, nil)
		switch {
		case errors.Is(err, syscall.EINTR):
		case err != nil:
			return false
		case pid == 0:
			time.Sleep(time.Millisecond)
			return true
		}
	}
}

// killDescendants kills the child's group and all descendants of this process, including those that
// moved to their own sessions.
func killDescendants(group int) {
	if group > 0 {
		_ = syscall.Kill(-group, syscall.SIGKILL)
	}
	self, parents := os.Getpid(), parentsOfAll()
	for pid, parent := range parents {
		if parent == self {
			killTree(pid, parents)
		}
	}
}

// parentsOfAll returns the parent of every process.
func parentsOfAll() map[int]int {
	parents := map[int]int{}
	stats, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, path := range stats {
		data, err := os.ReadFile(path)
		if err != nil {
			continue
		}
		// pid (name) state ppid ...; the name may contain anything.
		_, rest, ok := strings.Cut(string(data[strings.LastIndexByte(string(data), ')')+1:]), " ")
		fields := strings.Fields(rest)
		if !ok || len(fields) < 2 {
			continue
		}
		pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(path)))
		parents[pid], _ = strconv.Atoi(fields[1])
	}
	return parents
}
