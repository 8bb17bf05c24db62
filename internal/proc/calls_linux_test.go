package proc

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/seed-dec29ce4/eca/internal/sandbox"
)

// With callsArg as its first argument, this test's program makes the system calls of a table and
// prints the kernel's answers.
const callsArg = "__calls"

// With dialArg as its first argument, this test's program connects to a Unix socket and creates
// sockets of other families.
const dialArg = "__dial"

// With strikeArg as its first argument, this test's program kills a process, thread by thread.
const strikeArg = "__strike"

func childOfTest(args []string) bool {
	switch args[0] {
	case callsArg:
		makeCalls()
	case strikeArg:
		killEveryWay(args[1])
	case dialArg:
		dial(args[1])
	case escapesArg:
		playEscapes()
	case fosterArg:
		runAsEca()
	case hoardArg:
		useMemory()
	default:
		return false
	}
	return true
}

const invalid = ^uintptr(0) // no descriptor, no process, no pointer, no command

// systemCall is a system call that the sandbox refuses. Its arguments are such that, without the
// sandbox, it fails for another reason or does no harm.
type systemCall struct {
	name                string
	number              uintptr
	args                [6]uintptr
	readOnly, workspace syscall.Errno // what the filter answers; 0 if it lets the call through
}

func refusedCalls() []systemCall {
	const p, n = syscall.EPERM, syscall.ENOSYS
	other := uintptr(os.Getppid())
	list := []systemCall{
		{"TIOCSTI", unix.SYS_IOCTL, [6]uintptr{invalid, unix.TIOCSTI}, p, p},
		{"TIOCSTI with high bits", unix.SYS_IOCTL, [6]uintptr{invalid, unix.TIOCSTI | 1<<40}, p, p},
		{"TIOCLINUX", unix.SYS_IOCTL, [6]uintptr{invalid, unix.TIOCLINUX}, p, p},
		{"prlimit of another", unix.SYS_PRLIMIT64, [6]uintptr{other, invalid}, p, p},
		{"setpriority of another", unix.SYS_SETPRIORITY, [6]uintptr{99, other}, p, p},
		{"setpriority of the user", unix.SYS_SETPRIORITY, [6]uintptr{unix.PRIO_USER, 0, 0}, p, p},
		{"ioprio_set of another", unix.SYS_IOPRIO_SET, [6]uintptr{99, other}, p, p},
		{"ioprio_set of the user", unix.SYS_IOPRIO_SET, [6]uintptr{3, 0, 99 << 13}, p, p},
		{"sched_setscheduler of another", unix.SYS_SCHED_SETSCHEDULER, [6]uintptr{other, 99}, p, p},
		{"sched_setaffinity of another", unix.SYS_SCHED_SETAFFINITY, [6]uintptr{other, 8, invalid}, p, p},
		{"ptrace", unix.SYS_PTRACE, [6]uintptr{99, invalid}, p, p},
		{"process_vm_readv", unix.SYS_PROCESS_VM_READV, [6]uintptr{invalid, 0, 0, 0, 0, 99}, p, p},
		{"process_vm_writev", unix.SYS_PROCESS_VM_WRITEV, [6]uintptr{invalid, 0, 0, 0, 0, 99}, p, p},
		{"pidfd_getfd", unix.SYS_PIDFD_GETFD, [6]uintptr{invalid, invalid, 0}, p, p},
		{"kcmp", unix.SYS_KCMP, [6]uintptr{invalid, invalid, 99}, p, p},
		{"perf_event_open", unix.SYS_PERF_EVENT_OPEN, [6]uintptr{invalid}, p, p},
		{"bpf", unix.SYS_BPF, [6]uintptr{invalid, 0, 0}, p, p},
		{"userfaultfd", unix.SYS_USERFAULTFD, [6]uintptr{invalid}, p, p},
		{"io_uring_setup", unix.SYS_IO_URING_SETUP, [6]uintptr{0, 0}, n, n},
		{"keyctl", unix.SYS_KEYCTL, [6]uintptr{999}, p, p},
		{"add_key", unix.SYS_ADD_KEY, [6]uintptr{invalid}, p, p},
		{"shmget", unix.SYS_SHMGET, [6]uintptr{12345, 0, 0}, p, p},
		{"shmat", unix.SYS_SHMAT, [6]uintptr{invalid}, p, p},
		{"semget", unix.SYS_SEMGET, [6]uintptr{12345, 0, 0}, p, p},
		{"msgget", unix.SYS_MSGGET, [6]uintptr{12345, 0}, p, p},
		{"mq_open", unix.SYS_MQ_OPEN, [6]uintptr{invalid}, p, p},
		{"mount", unix.SYS_MOUNT, [6]uintptr{invalid, invalid, invalid, 0, 0}, p, p},
		{"umount", unix.SYS_UMOUNT2, [6]uintptr{invalid, 0}, p, p},
		{"pivot_root", unix.SYS_PIVOT_ROOT, [6]uintptr{invalid, invalid}, p, p},
		{"chroot", unix.SYS_CHROOT, [6]uintptr{invalid}, p, p},
		{"unshare", unix.SYS_UNSHARE, [6]uintptr{1}, p, p},
		{"setns", unix.SYS_SETNS, [6]uintptr{invalid, 0}, p, p},
		{"clone with a user namespace", unix.SYS_CLONE, [6]uintptr{unix.CLONE_NEWUSER | unix.CLONE_FS}, p, p},
		{"clone3", unix.SYS_CLONE3, [6]uintptr{0, 0}, n, n},
		{"open_by_handle_at", unix.SYS_OPEN_BY_HANDLE_AT, [6]uintptr{invalid, invalid}, p, p},
		{"reboot", unix.SYS_REBOOT, [6]uintptr{0, 0, 0}, p, p},
		{"settimeofday", unix.SYS_SETTIMEOFDAY, [6]uintptr{invalid}, p, p},
		{"fchmod", unix.SYS_FCHMOD, [6]uintptr{invalid, 0}, p, 0},
		{"fchmodat", unix.SYS_FCHMODAT, [6]uintptr{invalid, 0, 0}, p, 0},
		{"fchmodat2", unix.SYS_FCHMODAT2, [6]uintptr{invalid, 0, 0}, p, 0},
		{"fchown", unix.SYS_FCHOWN, [6]uintptr{invalid, 0, 0}, p, 0},
		{"utimensat", unix.SYS_UTIMENSAT, [6]uintptr{invalid, 0, 0}, p, 0},
		{"setxattr", unix.SYS_SETXATTR, [6]uintptr{invalid}, p, 0},
		{"fsetxattr", unix.SYS_FSETXATTR, [6]uintptr{invalid}, p, 0},
		{"removexattr", unix.SYS_REMOVEXATTR, [6]uintptr{invalid}, p, 0},
		{"inode flags", unix.SYS_IOCTL, [6]uintptr{invalid, unix.FS_IOC_SETFLAGS}, p, 0},
		{"project attributes", unix.SYS_IOCTL, [6]uintptr{invalid, 0x401c5820}, p, 0},
		{"memfd_create", unix.SYS_MEMFD_CREATE, [6]uintptr{invalid}, n, 0},
		{"socket", unix.SYS_SOCKET, [6]uintptr{999}, p, p},
	}
	return append(list, refusedLegacyCalls...)
}

// allowedCalls are system calls that must succeed at both levels.
func allowedCalls() map[string]func() error {
	raw := func(number uintptr, args ...uintptr) func() error {
		return func() error {
			a := append(args, 0, 0, 0, 0, 0, 0)
			if _, _, errno := syscall.Syscall6(number, a[0], a[1], a[2], a[3], a[4], a[5]); errno != 0 {
				return errno
			}
			return nil
		}
	}
	return map[string]func() error{
		"prlimit of its own":     raw(unix.SYS_PRLIMIT64, 0, unix.RLIMIT_NOFILE),
		"setpriority of its own": raw(unix.SYS_SETPRIORITY, unix.PRIO_PROCESS, 0, 19),
		"sched_yield":            raw(unix.SYS_SCHED_YIELD),
		"a signal to itself":     raw(unix.SYS_KILL, uintptr(os.Getpid()), 0),
		"eventfd":                raw(unix.SYS_EVENTFD2),
		"epoll":                  raw(unix.SYS_EPOLL_CREATE1),
		"inotify":                raw(unix.SYS_INOTIFY_INIT1),
		"timerfd":                raw(unix.SYS_TIMERFD_CREATE, unix.CLOCK_MONOTONIC),
		"a pidfd of itself":      raw(unix.SYS_PIDFD_OPEN, uintptr(os.Getpid())),
		"a session of its own":   raw(unix.SYS_GETSID),
		"statfs":                 func() error { return unix.Statfs("/", new(unix.Statfs_t)) },
		"a pair of sockets": func() error {
			_, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM, 0)
			return err
		},
		"its affinity": func() error {
			var set unix.CPUSet
			if err := unix.SchedGetaffinity(0, &set); err != nil {
				return err
			}
			return unix.SchedSetaffinity(0, &set)
		},
		"a pipe": func() error { return unix.Pipe2(make([]int, 2), 0) },
		"a file in its temporary folder": func() error {
			return os.WriteFile(filepath.Join(os.TempDir(), "file"), []byte("x"), 0o644)
		},
		"a FIFO": func() error {
			return unix.Mkfifo(filepath.Join(os.TempDir(), fmt.Sprintf("fifo-%d", os.Getpid())), 0o600)
		},
		"a program": func() error { _, err := os.StartProcess("/bin/true", []string{"true"}, &os.ProcAttr{}); return err },
		"a session": func() error {
			_, err := os.StartProcess("/bin/true", []string{"true"}, &os.ProcAttr{Sys: &syscall.SysProcAttr{Setsid: true}})
			return err
		},
		"a lock": func() error {
			f, err := os.Create(filepath.Join(os.TempDir(), "lock"))
			if err != nil {
				return err
			}
			defer f.Close()
			return unix.Flock(int(f.Fd()), unix.LOCK_EX)
		},
		"shared memory": func() error {
			_, err := unix.Mmap(-1, 0, 4096, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED|unix.MAP_ANONYMOUS)
			return err
		},
	}
}

// makeCalls makes the system calls for callsArg.
func makeCalls() {
	runtime.LockOSThread()
	for _, c := range refusedCalls() {
		_, _, errno := syscall.Syscall6(c.number, c.args[0], c.args[1], c.args[2], c.args[3], c.args[4], c.args[5])
		fmt.Printf("%s: %d\n", c.name, errno)
	}
	for name, call := range allowedCalls() {
		if err := call(); err != nil {
			fmt.Printf("allowed: %s: %v\n", name, err)
		}
	}
	fmt.Printf("size of a pointer: %d\n", unsafe.Sizeof(invalid))
}

// callsWithin returns what makeCalls prints under a policy.
func callsWithin(t *testing.T, p sandbox.Policy) string {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	exit, err := newPool(t).Run(context.Background(), Spec{Path: self, Args: []string{callsArg}, Stdout: &out, Stderr: &out, Sandbox: p})
	if err != nil || exit.Code != 0 || !strings.Contains(out.String(), "size of a pointer") {
		t.Fatalf("%v %+v: %s", err, exit, out.String())
	}
	return out.String()
}

// The system call filter refuses kinds of access that Landlock does not cover. Without the filter,
// each call fails for another reason, or succeeds.
func TestSandboxSystemCalls(t *testing.T) {
	needSandbox(t)
	t.Setenv("TMPDIR", t.TempDir())
	free := callsWithin(t, sandbox.Policy{})
	for level, out := range map[sandbox.Level]string{
		sandbox.ReadOnly:  callsWithin(t, sandbox.Policy{Level: sandbox.ReadOnly}),
		sandbox.Workspace: callsWithin(t, sandbox.Policy{Level: sandbox.Workspace, PrivateTemp: true}),
	} {
		for _, c := range refusedCalls() {
			want := c.readOnly
			if level == sandbox.Workspace {
				want = c.workspace
			}
			line := fmt.Sprintf("%s: %d\n", c.name, want)
			if want != 0 && strings.Contains(free, line) {
				t.Logf("%s: refused without bounds as well: shows nothing here", c.name)
			}
			if got := strings.Contains(out, line); want != 0 && !got {
				t.Errorf("%s: %s is not answered with %v", level, c.name, want)
			}
			if want == 0 && (strings.Contains(out, c.name+": 1\n") || strings.Contains(out, c.name+": 38\n")) {
				t.Errorf("%s: %s is refused", level, c.name)
			}
		}
		for line := range strings.Lines(out) {
			if strings.HasPrefix(line, "allowed: ") {
				t.Errorf("%s: %s", level, line)
			}
		}
	}
}

// dial connects to the socket for dialArg.
func dial(path string) {
	if c, err := net.Dial("unix", path); err == nil {
		_ = c.Close()
		fmt.Print("connected ")
	}
	for name, family := range map[string]int{"vsock": unix.AF_VSOCK, "alg": unix.AF_ALG, "packet": unix.AF_PACKET, "bluetooth": unix.AF_BLUETOOTH} {
		for _, kind := range []int{unix.SOCK_STREAM, unix.SOCK_SEQPACKET, unix.SOCK_RAW} {
			if fd, err := unix.Socket(family, kind, 0); err == nil {
				_ = unix.Close(fd)
				fmt.Print(name + " ")
			}
		}
	}
	if listener, err := net.Listen("tcp", "127.0.0.1:0"); err != nil {
		fmt.Print("no server: ", err)
	} else {
		_ = listener.Close()
	}
}

// A sandboxed child with network reaches services of this machine that act for the user (Docker,
// systemd, tmux) only if its policy allows it, wherever their sockets are.
func TestSandboxedServices(t *testing.T) {
	needSandbox(t)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	socket := filepath.Join(dir, "s")
	listener, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	for _, sockets := range []bool{false, true} {
		p := sandbox.Policy{Level: sandbox.Workspace, Write: []string{dir}, Network: true, UnixSockets: sockets}
		_, out := runBounded(t, p, dir, self+" "+dialArg+" "+socket)
		if want := map[bool]string{true: "connected "}[sockets]; out != want {
			t.Errorf("Unix sockets %v: %q, want %q", sockets, out, want)
		}
	}
}

// A sandboxed child has no terminal, not even the one in which eca was started. It cannot read
// devices, so it cannot read what the user types in a terminal.
func TestSandboxHasNoTerminal(t *testing.T) {
	needSandbox(t)
	terminal, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Skip("NOT TESTED: no pseudo terminals here: ", err)
	}
	defer terminal.Close()
	number, err := unix.IoctlGetInt(int(terminal.Fd()), unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.IoctlSetPointerInt(int(terminal.Fd()), unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	other := fmt.Sprintf("/dev/pts/%d", number)
	if f, err := os.OpenFile(other, os.O_RDONLY|unix.O_NOCTTY, 0); err != nil {
		t.Skip("NOT TESTED: it cannot be opened without a sandbox either: ", err)
	} else {
		_ = f.Close()
	}
	for _, level := range []sandbox.Level{sandbox.ReadOnly, sandbox.Workspace} {
		_, out := runBounded(t, sandbox.Policy{Level: level}, "/", `
			(exec 3<>/dev/tty) 2>/dev/null && echo "opens /dev/tty"
			[ -e '`+other+`' ] || echo "there is no other terminal"
			for f in /dev/ptmx /dev/pts/[0-9]* /dev/console /dev/tty[0-9]* /dev/input/event* /dev/loop*; do
				(exec 3<>"$f") 2>/dev/null && echo "opens $f"
				(exec 3<"$f") 2>/dev/null && echo "reads $f"
			done
			head -c 1 /dev/zero >/dev/null && : </dev/null && head -c 1 /dev/urandom >/dev/null || echo "does not read the harmless ones"
			cat <(echo x) /dev/fd/0 </etc/hostname >/dev/null || echo "has no /dev/fd"
			read -r _ _ _ _ _ session terminal _ </proc/$$/stat
			[ "$session" = $$ ] || echo "is in session $session"
			[ "$terminal" = 0 ] || echo "has terminal $terminal"`)
		if out != "" {
			t.Errorf("%s: %s", level, out)
		}
	}
}

// killEveryWay tries every way to kill a process.
func killEveryWay(process string) {
	pid, err := strconv.Atoi(process)
	if err != nil {
		panic(err)
	}
	_ = unix.Kill(-pid, unix.SIGKILL)
	threads, _ := os.ReadDir(filepath.Join("/proc", process, "task"))
	for _, thread := range threads {
		id, _ := strconv.Atoi(thread.Name())
		_ = unix.Kill(id, unix.SIGKILL)
		_ = unix.Tgkill(pid, id, unix.SIGKILL)
		_ = unix.PtraceAttach(id)
	}
	if fd, err := unix.PidfdOpen(pid, 0); err == nil {
		_ = unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0)
	}
}

// A sandboxed child cannot end its supervisor, which ends the processes that the child leaves behind.
func TestSandboxedChildCannotEndItsSupervisor(t *testing.T) {
	needSandbox(t)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, level := range []sandbox.Level{sandbox.ReadOnly, sandbox.Workspace} {
		var out bytes.Buffer
		c, err := newPool(t).Start(Spec{
			Path: "bash", Args: []string{"-c", `(setsid sleep 300 >/dev/null 2>&1 & echo $!); kill -9 $PPID; "$0" ` + strikeArg + ` $PPID`, self},
			Stdout: &out, Sandbox: sandbox.Policy{Level: level},
		})
		if err != nil {
			t.Fatal(err)
		}
		c.Wait()
		if held, ok := c.(*supervisedChild); !ok || !Alive(held.supervisor.cmd.Process.Pid) {
			t.Errorf("%s: the supervisor was killed", level)
		}
		if pid, err := strconv.Atoi(strings.TrimSpace(out.String())); err != nil || Alive(pid) {
			t.Errorf("%s: %q lives on: %v", level, out.String(), err)
		}
	}
}
