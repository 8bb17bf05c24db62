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

// The argument that makes a program that calls Supervise a supervisor, or the second stage of a bounded
// child. It is the only one.
const (
	wardenArg  = "__warden"
	boundedArg = "__bounded"
	nothingArg = "__nothing" // does nothing; for trying whether a child can start
)

// socketFD is where a supervisor or a second stage has its end of the socket over which it
// gets orders.
const socketFD = 3

// Messages between eca and a supervisor, besides orders.
const (
	termMessage    = "term"    // ask the child to end
	killMessage    = "kill"    // end the child and all that descends from it
	prepareMessage = "prepare" // have a second stage ready for the next child

	pidMessage  = "pid %d"           // the child runs
	exitMessage = "exit %d %t %t %d" // how the child ended, whether it left processes behind, and whether it was killed for memory, at which limit
)

// Supervise must be called first in main of every program that names itself as the supervisor
// of a Pool. If this process was started to supervise, it does so and returns true with the
// code to exit with.
func Supervise(args []string) (code int, ok bool) {
	switch {
	case len(args) >= 2 && args[1] == networkArg:
		return holdNetwork(args[2:]), true
	case len(args) != 2:
		return 0, false
	case args[1] == wardenArg:
		return runSupervisor(), true
	case args[1] == boundedArg:
		return becomeBounded(), true
	case args[1] == nothingArg:
		return 0, true
	}
	return 0, false
}

// starting stands for a child that has no id yet.
const starting = -1

// supervisor starts one child after the other, until its parent closes the socket or dies,
// however it dies.
type supervisor struct {
	next   launch     // how second stages are prepared: as the last one was started
	orders chan order // one without a path prepares a second stage

	mu          sync.Mutex   // guards what follows
	memory      *memoryGroup // nil: no limit
	memoryTried bool         // memory was made, or cannot be
	stage       *stage       // ready for the next bounded child
	pid         int          // of the child; 0 before it has started
	temp        string       // the child's own temporary folder
}

func runSupervisor() int {
	// The child dies with the thread that started it; this one stays.
	runtime.LockOSThread()
	ownSocket()
	mark()
	signal.Notify(make(chan os.Signal, 1), syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP) // only the socket ends it
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

// prepare has a second stage ready, if that is possible: a bounded child says why it is not.
func (s *supervisor) prepare() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stage == nil {
		s.stage, _ = s.startStageLocked(s.next)
	}
}

// startStageLocked starts a second stage in the supervisor's group, which is made for the first
// one. Where it cannot be used, there is no limit on memory.
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

// supervise starts a child and waits until nothing is left of it.
func (s *supervisor) supervise(o order) {
	s.set(starting, o.Policy.Temp)
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
		s.set(0, "")
		s.tell(err.Error())
		return
	}
	pid := child.pid
	s.set(pid, o.Policy.Temp)
	s.tell(fmt.Sprintf(pidMessage, pid))
	code, left := child.wait()
	for hasChildren() { // what the child left behind ends with it
		left = true
		killDescendants(pid)
	}
	outOfMemory, limit := s.endMemory()
	outOfMemory = outOfMemory || killedForMemory(code, kills, memoryKills())
	_ = removeTemp(o.Policy.Temp) // the parent may be gone
	release()                     // before the next child of the parent can want it
	s.set(0, "")
	s.tell(fmt.Sprintf(exitMessage, code, left, outOfMemory, limit))
}

// endMemory says whether the child that has ended was killed for memory, and at which limit. The
// group is for the next child as well, if there is nothing in it.
func (s *supervisor) endMemory() (killed bool, limit int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.memory == nil {
		return false, 0
	}
	if killed, limit = s.memory.ended(); !s.memory.empty() {
		s.memory.close()
		s.memory, s.memoryTried = nil, false
	}
	return killed, limit
}

// start becomes the reaper of all that descends from the child, and starts it in a group of its
// own. The supervisor itself stays outside of the child's bounds.
func (s *supervisor) start(o order) (startedChild, error) {
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return startedChild{}, fmt.Errorf("supervise: %w", err)
	}
	s.mu.Lock()
	ready := s.stage
	s.stage = nil
	s.mu.Unlock()
	if o.Policy.Bounds() {
		s.next = launchFor(o.Policy)
		return startBounded(ready, o, func(l launch) (*stage, error) {
			s.mu.Lock()
			defer s.mu.Unlock()
			return s.startStageLocked(l)
		})
	}
	if ready != nil { // it would be taken for something that the child leaves behind
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

func (s *supervisor) set(pid int, temp string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pid, s.temp = pid, temp
}

func (s *supervisor) current() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.pid
}

func (*supervisor) tell(text string) { _ = sendPacket(socketFD, []byte(text), nil) }

// listen takes orders.
func (s *supervisor) listen() {
	buf, rights := make([]byte, 4<<10), make([]byte, unix.CmsgSpace(maxStreams*4))
	for {
		n, extra, err := receivePacket(socketFD, buf, rights)
		if err != nil || n == 0 {
			s.leave()
		}
		switch text := string(buf[:n]); text {
		case termMessage:
			if pid := s.current(); pid > 0 {
				_ = syscall.Kill(-pid, syscall.SIGTERM)
			}
		case killMessage:
			go s.kill(s.current()) // not of what is started next
		case prepareMessage:
			s.orders <- order{}
		default:
			o, err := receiveOrder(socketFD, buf[:n], rights[:extra])
			if err != nil {
				s.tell(err.Error())
				continue
			}
			s.orders <- o
		}
	}
}

// kill kills until a child has ended; 0 means no signal.
func (s *supervisor) kill(pid int) {
	for pid > 0 && s.strike(pid) {
		time.Sleep(10 * time.Millisecond)
	}
}

// strike kills what there is of a child, and says whether it is still the one that is
// supervised. No other child begins meanwhile: it would be killed too.
func (s *supervisor) strike(pid int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.pid != pid {
		return false
	}
	killDescendants(pid)
	return true
}

// leave ends the supervisor, when all it supervises is dead.
func (s *supervisor) leave() {
	for range 500 {
		pid := s.current()
		if pid == 0 {
			break
		}
		killDescendants(pid)
		time.Sleep(10 * time.Millisecond)
	}
	s.mu.Lock() // for good: nothing is started any more
	if s.stage != nil {
		s.stage.discard()
	}
	s.memory.close()
	_ = removeTemp(s.temp)
	os.Exit(0)
}

// reap waits for the child, and for whatever else ends before it.
func reap(child int) (code int) {
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

// hasChildren reaps what has ended and says whether something is left.
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

// killDescendants kills the child's group and every process that descends from this
// one, also those that moved to sessions of their own.
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
