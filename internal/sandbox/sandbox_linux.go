package sandbox

import (
	"errors"
	"fmt"
	"runtime"
	"unsafe"

	"github.com/landlock-lsm/go-landlock/landlock"
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

// Apply bounds this process and all that it starts from now on.
func Apply(p Policy) error {
	if !p.Bounds() {
		return nil
	}
	if s := Probe(); !s.Holds {
		return Error{s.Without}
	}
	devices := []string{"/dev/null", "/dev/zero", "/dev/full", "/dev/tty", "/dev/random", "/dev/urandom", "/dev/ptmx"}
	rules := []landlock.Rule{
		landlock.RODirs("/"),
		landlock.RWFiles(devices...).IgnoreIfMissing(),
		landlock.RWDirs("/dev/pts").IgnoreIfMissing(),
	}
	if dirs := p.writable(); len(dirs) > 0 {
		rules = append(rules, landlock.RWDirs(dirs...).WithRefer().IgnoreIfMissing())
	}
	if p.Level == Workspace {
		rules = append(rules, landlock.RWDirs("/dev/shm").IgnoreIfMissing())
	}
	// The third version alone: devices' ioctls are what terminals need.
	if err := landlock.V3.RestrictPaths(rules...); err != nil {
		return fmt.Errorf("sandbox: %w", err)
	}
	if err := landlock.V6.BestEffort().RestrictScoped(); err != nil {
		return fmt.Errorf("sandbox: %w", err)
	}
	if p.Network {
		return nil
	}
	return noSockets()
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

// noSockets makes socket(2) fail in all threads, whatever the family: also a Unix socket
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
	refuse := uint32(unix.SECCOMP_RET_ERRNO | uint32(unix.EPERM))
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
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("sandbox: %w", err)
	}
	r, _, errno := unix.RawSyscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, unix.SECCOMP_FILTER_FLAG_TSYNC, uintptr(unsafe.Pointer(&prog)))
	switch {
	case errno != 0:
		return fmt.Errorf("sandbox: seccomp: %w", errno)
	case r != 0:
		return errors.New("sandbox: seccomp: a thread could not be bound")
	}
	return nil
}
