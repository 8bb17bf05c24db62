package sandbox

import (
	"errors"
	"fmt"
	"runtime"
	"unsafe"

	llsyscall "github.com/landlock-lsm/go-landlock/landlock/syscall"
	"golang.org/x/sys/unix"
)

// leastABI is the first Landlock that also knows truncation (Linux 6.2).
const leastABI = 3

// scopedABI is the first Landlock that keeps signals inside (Linux 6.12).
const scopedABI = 6

// Probe says what this system can hold.
func Probe() Support {
	abi, err := llsyscall.LandlockGetABIVersion()
	switch {
	case err != nil:
		return Support{Without: fmt.Sprintf("the kernel has no Landlock, or it is not switched on: %v", err)}
	case abi < leastABI:
		return Support{Without: fmt.Sprintf("the kernel's Landlock has version %d; %d is needed (Linux 6.2)", abi, leastABI)}
	case nativeArch() == 0:
		return Support{Without: "there is no filter for sockets on " + runtime.GOARCH}
	}
	return Support{Holds: true, With: fmt.Sprintf("Landlock (version %d) and seccomp", abi)}
}

// Gaps names what the bounds do not hold here.
func Gaps() []string {
	out := []string{
		"at the workspace level, commands may write to .git and .eca of the workspace too: Landlock knows no exception within a folder",
		"with the network allowed, commands reach services of this machine as well, those behind Unix sockets included",
	}
	if abi, err := llsyscall.LandlockGetABIVersion(); err == nil && abi < scopedABI {
		out = append(out, fmt.Sprintf("the kernel's Landlock has version %d; below %d (Linux 6.12), commands can send signals to your other processes", abi, scopedABI))
	}
	return out
}

// Apply bounds the calling thread, and all that it starts from now on. The caller has
// locked its goroutine to the thread, and keeps it so. Other threads stay free: they have
// to be able to kill what this one starts, and signals do not leave the bounds.
func Apply(p Policy) error {
	if !p.Bounds() {
		return nil
	}
	if s := Probe(); !s.Holds {
		return Error{s.Without}
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("sandbox: %w", err)
	}
	if err := restrict(p); err != nil {
		return fmt.Errorf("sandbox: Landlock: %w", err)
	}
	if p.Network {
		return nil
	}
	return noSockets()
}

// Rights of Landlock's third version. Newer ones would keep ioctls from terminals.
const (
	readRights   = llsyscall.AccessFSExecute | llsyscall.AccessFSReadFile | llsyscall.AccessFSReadDir
	deviceRights = llsyscall.AccessFSReadFile | llsyscall.AccessFSWriteFile | llsyscall.AccessFSTruncate
	writeRights  = llsyscall.AccessFSWriteFile | llsyscall.AccessFSRemoveDir | llsyscall.AccessFSRemoveFile |
		llsyscall.AccessFSMakeChar | llsyscall.AccessFSMakeDir | llsyscall.AccessFSMakeReg | llsyscall.AccessFSMakeSock |
		llsyscall.AccessFSMakeFifo | llsyscall.AccessFSMakeBlock | llsyscall.AccessFSMakeSym | llsyscall.AccessFSRefer | llsyscall.AccessFSTruncate
)

// restrict has Landlock hold what a policy says about files, and signals inside.
func restrict(p Policy) error {
	attr := llsyscall.RulesetAttr{HandledAccessFS: readRights | writeRights}
	if abi, err := llsyscall.LandlockGetABIVersion(); err == nil && abi >= scopedABI {
		attr.Scoped = llsyscall.ScopeSignal | llsyscall.ScopeAbstractUnixSocket
	}
	rules, err := llsyscall.LandlockCreateRuleset(&attr, 0)
	if err != nil {
		return err
	}
	defer unix.Close(rules)
	if err := allow(rules, "/", readRights); err != nil {
		return err
	}
	for _, device := range []string{"/dev/null", "/dev/zero", "/dev/full", "/dev/tty", "/dev/random", "/dev/urandom", "/dev/ptmx"} {
		if err := allow(rules, device, deviceRights); err != nil {
			return err
		}
	}
	dirs := append(p.writable(), "/dev/pts")
	if p.Level == Workspace {
		dirs = append(dirs, "/dev/shm")
	}
	for _, dir := range dirs {
		if err := allow(rules, dir, readRights|writeRights); err != nil {
			return err
		}
	}
	return llsyscall.LandlockRestrictSelf(rules, 0)
}

// allow adds a rule for what is at and below a path, if there is anything.
func allow(rules int, path string, rights uint64) error {
	fd, err := unix.Open(path, unix.O_PATH|unix.O_CLOEXEC, 0)
	if errors.Is(err, unix.ENOENT) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	defer unix.Close(fd)
	if err := llsyscall.LandlockAddPathBeneathRule(rules, &llsyscall.PathBeneathAttr{ParentFd: fd, AllowedAccess: rights}, 0); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}

// x32 marks the system calls of another ABI of the same processor.
const x32 = 0x40000000

func nativeArch() uint32 {
	switch runtime.GOARCH {
	case "amd64":
		return unix.AUDIT_ARCH_X86_64
	case "arm64":
		return unix.AUDIT_ARCH_AARCH64
	}
	return 0
}

// noSockets makes socket(2) fail, whatever the family: also a Unix socket
// can lead to somebody who has the network. Pairs of sockets go on to work. io_uring could
// make sockets without asking, so it is not there; nor are other ABIs, whose calls have
// other numbers.
func noSockets() error {
	const (
		load = unix.BPF_LD | unix.BPF_W | unix.BPF_ABS
		eq   = unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K
		ge   = unix.BPF_JMP | unix.BPF_JGE | unix.BPF_K
		ret  = unix.BPF_RET | unix.BPF_K

		nr, arch = 0, 4 // offsets in seccomp_data
	)
	refuse := unix.SECCOMP_RET_ERRNO | uint32(unix.EPERM)
	filter := []unix.SockFilter{
		{Code: load, K: arch},
		{Code: eq, K: nativeArch(), Jt: 1},
		{Code: ret, K: refuse},
		{Code: load, K: nr},
		{Code: ge, K: x32, Jt: 2},
		{Code: eq, K: unix.SYS_SOCKET, Jt: 1},
		{Code: eq, K: unix.SYS_IO_URING_SETUP, Jf: 1},
		{Code: ret, K: refuse},
		{Code: ret, K: unix.SECCOMP_RET_ALLOW},
	}
	prog := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	if _, _, errno := unix.RawSyscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, 0, uintptr(unsafe.Pointer(&prog))); errno != 0 {
		return fmt.Errorf("sandbox: seccomp: %w", errno)
	}
	return nil
}
