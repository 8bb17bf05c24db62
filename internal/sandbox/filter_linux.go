package sandbox

import (
	"fmt"
	"runtime"
	"unsafe"

	llsyscall "github.com/landlock-lsm/go-landlock/landlock/syscall"
	"golang.org/x/sys/unix"
)

// The seccomp filter covers what Landlock does not: other processes, the terminal, permissions and
// times of readable files, and kernel interfaces that bypass the bounds. It is a table of rules;
// assemble translates the table to a BPF program.

// condition is the condition under which a rule applies.
type condition int

const (
	always         condition = iota
	atReadOnly               // Level is ReadOnly
	withoutNetwork           // Network is false, and so is Loopback
	onLoopback               // Loopback is true
	onNetwork                // Network is true
	withoutUnix              // Network is true and UnixSockets is false
	unscoped                 // the kernel's Landlock does not restrict signals
)

// comparison compares the low 32 bits of an argument with a value. The kernel also ignores the high
// bits of the arguments that are compared here.
type comparison int

const (
	anyArgument comparison = iota // refused whatever the arguments
	equal                         // refused if the argument is the value
	notZero                       // refused unless the argument is zero
	hasBits                       // refused if one of the value's bits is set
	except                        // refused unless the argument is one of the values
)

// rule refuses a system call.
type rule struct {
	when  condition
	calls []uint32
	test  comparison
	arg   uint32 // index of the argument
	value uint32
	among []uint32 // the values for except
	errno unix.Errno
}

// namespaces are the flags of clone that create namespaces.
const namespaces = unix.CLONE_NEWUSER | unix.CLONE_NEWPID | unix.CLONE_NEWNS | unix.CLONE_NEWNET |
	unix.CLONE_NEWIPC | unix.CLONE_NEWUTS | unix.CLONE_NEWCGROUP

// rules returns the rules of the filter. protected contains processes that the child must not signal;
// the rules for them apply where Landlock does not restrict signals.
func rules(protected []int) []rule {
	list := []rule{
		// The user's shell would run text that a child inserts into the input of the terminal.
		{calls: []uint32{unix.SYS_IOCTL}, test: equal, arg: 1, value: unix.TIOCSTI, errno: unix.EPERM},
		{calls: []uint32{unix.SYS_IOCTL}, test: equal, arg: 1, value: unix.TIOCLINUX, errno: unix.EPERM},

		// Other processes of the user.
		{calls: []uint32{unix.SYS_PRLIMIT64, unix.SYS_SCHED_SETSCHEDULER, unix.SYS_SCHED_SETPARAM, unix.SYS_SCHED_SETATTR, unix.SYS_SCHED_SETAFFINITY, unix.SYS_MIGRATE_PAGES, unix.SYS_MOVE_PAGES}, test: notZero, arg: 0, errno: unix.EPERM},
		{calls: []uint32{unix.SYS_SETPRIORITY, unix.SYS_IOPRIO_SET}, test: notZero, arg: 1, errno: unix.EPERM},
		{calls: []uint32{unix.SYS_SETPRIORITY}, test: equal, arg: 0, value: unix.PRIO_USER, errno: unix.EPERM},
		{calls: []uint32{unix.SYS_IOPRIO_SET}, test: equal, arg: 0, value: ioprioWhoUser, errno: unix.EPERM},
		{calls: []uint32{unix.SYS_PTRACE, unix.SYS_PROCESS_VM_READV, unix.SYS_PROCESS_VM_WRITEV, unix.SYS_PROCESS_MADVISE, unix.SYS_PIDFD_GETFD, unix.SYS_KCMP}, errno: unix.EPERM},

		// System V IPC, POSIX message queues and keys, which all processes of the user share.
		{calls: []uint32{
			unix.SYS_SHMGET, unix.SYS_SHMAT, unix.SYS_SHMCTL, unix.SYS_SEMGET, unix.SYS_SEMOP, unix.SYS_SEMTIMEDOP, unix.SYS_SEMCTL,
			unix.SYS_MSGGET, unix.SYS_MSGSND, unix.SYS_MSGRCV, unix.SYS_MSGCTL, unix.SYS_MQ_OPEN, unix.SYS_MQ_UNLINK,
			unix.SYS_ADD_KEY, unix.SYS_REQUEST_KEY, unix.SYS_KEYCTL,
		}, errno: unix.EPERM},

		// Interfaces that bypass the system calls filtered here, or that expose the kernel.
		{calls: []uint32{unix.SYS_IO_URING_SETUP, unix.SYS_IO_URING_ENTER, unix.SYS_IO_URING_REGISTER}, errno: unix.ENOSYS},
		{calls: []uint32{unix.SYS_BPF, unix.SYS_PERF_EVENT_OPEN, unix.SYS_USERFAULTFD, unix.SYS_FANOTIFY_INIT, unix.SYS_FANOTIFY_MARK, unix.SYS_OPEN_BY_HANDLE_AT, unix.SYS_SYSLOG}, errno: unix.EPERM},

		// Namespaces and mounts, which change the meaning of paths. The flags of clone3 are in
		// memory, which a filter cannot read; callers fall back to clone.
		{calls: []uint32{unix.SYS_CLONE}, test: hasBits, arg: 0, value: namespaces, errno: unix.EPERM},
		{calls: []uint32{unix.SYS_CLONE3}, errno: unix.ENOSYS},
		{calls: []uint32{
			unix.SYS_UNSHARE, unix.SYS_SETNS, unix.SYS_CHROOT, unix.SYS_PIVOT_ROOT, unix.SYS_MOUNT, unix.SYS_UMOUNT2,
			unix.SYS_MOUNT_SETATTR, unix.SYS_MOVE_MOUNT, unix.SYS_OPEN_TREE, unix.SYS_FSOPEN, unix.SYS_FSCONFIG, unix.SYS_FSMOUNT, unix.SYS_FSPICK,
		}, errno: unix.EPERM},

		// System administration. These calls matter if eca runs as root.
		{calls: []uint32{
			unix.SYS_REBOOT, unix.SYS_KEXEC_LOAD, unix.SYS_KEXEC_FILE_LOAD, unix.SYS_INIT_MODULE, unix.SYS_FINIT_MODULE, unix.SYS_DELETE_MODULE,
			unix.SYS_SWAPON, unix.SYS_SWAPOFF, unix.SYS_QUOTACTL, unix.SYS_QUOTACTL_FD, unix.SYS_ACCT, unix.SYS_SETTIMEOFDAY, unix.SYS_CLOCK_SETTIME,
			unix.SYS_ADJTIMEX, unix.SYS_CLOCK_ADJTIME, unix.SYS_SETHOSTNAME, unix.SYS_SETDOMAINNAME, unix.SYS_VHANGUP,
		}, errno: unix.EPERM},

		// Landlock covers the content of files, not their mode, owner, times and attributes.
		{when: atReadOnly, calls: []uint32{
			unix.SYS_FCHMOD, unix.SYS_FCHMODAT, unix.SYS_FCHMODAT2, unix.SYS_FCHOWN, unix.SYS_FCHOWNAT, unix.SYS_UTIMENSAT,
			unix.SYS_SETXATTR, unix.SYS_LSETXATTR, unix.SYS_FSETXATTR, unix.SYS_SETXATTRAT,
			unix.SYS_REMOVEXATTR, unix.SYS_LREMOVEXATTR, unix.SYS_FREMOVEXATTR, unix.SYS_REMOVEXATTRAT, unix.SYS_FILE_SETATTR,
		}, errno: unix.EPERM},
		{when: atReadOnly, calls: legacyMetadata, errno: unix.EPERM},
		{when: atReadOnly, calls: []uint32{unix.SYS_IOCTL}, test: equal, arg: 1, value: unix.FS_IOC_SETFLAGS, errno: unix.EPERM},
		{when: atReadOnly, calls: []uint32{unix.SYS_IOCTL}, test: equal, arg: 1, value: fsIocFSSetXattr, errno: unix.EPERM},
		{when: atReadOnly, calls: []uint32{unix.SYS_MEMFD_CREATE}, errno: unix.ENOSYS}, // would allow executing a program that no file rule covers

		// Sockets of any family: a Unix socket can lead to a service with network access.
		// socketpair keeps working.
		{when: withoutNetwork, calls: []uint32{unix.SYS_SOCKET}, errno: unix.EPERM},
		{when: onLoopback, calls: []uint32{unix.SYS_SOCKET}, test: except, arg: 0, among: []uint32{unix.AF_INET, unix.AF_INET6}, errno: unix.EPERM},
		{when: onLoopback, calls: []uint32{unix.SYS_SOCKET}, test: except, arg: 2, among: []uint32{0, unix.IPPROTO_TCP, unix.IPPROTO_UDP}, errno: unix.EPROTONOSUPPORT},
		{when: onNetwork, calls: []uint32{unix.SYS_SOCKET}, test: except, arg: 0, among: []uint32{unix.AF_INET, unix.AF_INET6, unix.AF_NETLINK, unix.AF_UNIX}, errno: unix.EPERM},
		{when: withoutUnix, calls: []uint32{unix.SYS_SOCKET}, test: equal, arg: 0, value: unix.AF_UNIX, errno: unix.EPERM},
		{when: onLoopback, calls: []uint32{unix.SYS_SENDTO}, test: hasBits, arg: 3, value: unix.MSG_FASTOPEN, errno: unix.EPERM},
	}
	for _, pid := range append(protected, 1) {
		for _, id := range []uint32{uint32(pid), uint32(-pid)} { // the process and its group; -1 is every process
			list = append(list, rule{
				when:  unscoped,
				calls: []uint32{unix.SYS_KILL, unix.SYS_TKILL, unix.SYS_TGKILL, unix.SYS_RT_SIGQUEUEINFO, unix.SYS_RT_TGSIGQUEUEINFO, unix.SYS_PIDFD_OPEN},
				test:  equal, arg: 0, value: id, errno: unix.EPERM,
			})
		}
	}
	return append(list, legacyRules...)
}

// Values that package unix lacks.
const (
	fsIocFSSetXattr = 0x401c5820
	ioprioWhoUser   = 3
)

// x32 is the bit in the numbers of system calls of the x32 ABI.
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

// Instructions of the BPF language.
const (
	load = unix.BPF_LD | unix.BPF_W | unix.BPF_ABS
	jeq  = unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K
	jge  = unix.BPF_JMP | unix.BPF_JGE | unix.BPF_K
	jset = unix.BPF_JMP | unix.BPF_JSET | unix.BPF_K
	ret  = unix.BPF_RET | unix.BPF_K
)

// Offsets in struct seccomp_data, little endian.
const (
	offsetCall = 0
	offsetArch = 4
	offsetArgs = 16
)

func answer(errno unix.Errno) uint32 { return unix.SECCOMP_RET_ERRNO | uint32(errno) }

// assemble translates rules to a BPF program. Calls of another architecture or ABI are refused;
// calls that no rule names are allowed.
func assemble(list []rule) []unix.SockFilter {
	out := []unix.SockFilter{
		{Code: load, K: offsetArch},
		{Code: jeq, K: nativeArch(), Jt: 1},
		{Code: ret, K: answer(unix.EPERM)},
		{Code: load, K: offsetCall},
		{Code: jge, K: x32, Jf: 1},
		{Code: ret, K: answer(unix.EPERM)},
	}
	for _, r := range list {
		for _, call := range r.calls {
			if r.test == anyArgument {
				out = append(out, unix.SockFilter{Code: jeq, K: call, Jf: 1}, unix.SockFilter{Code: ret, K: answer(r.errno)})
				continue
			}
			if r.test == except {
				out = append(out, unix.SockFilter{Code: jeq, K: call, Jf: uint8(len(r.among)) + 3}, unix.SockFilter{Code: load, K: offsetArgs + 8*r.arg})
				for i, value := range r.among {
					out = append(out, unix.SockFilter{Code: jeq, K: value, Jt: uint8(len(r.among) - i)})
				}
				out = append(out, unix.SockFilter{Code: ret, K: answer(r.errno)}, unix.SockFilter{Code: load, K: offsetCall})
				continue
			}
			check := unix.SockFilter{Code: jeq, K: r.value, Jf: 1}
			switch r.test {
			case notZero:
				check = unix.SockFilter{Code: jeq, K: 0, Jt: 1}
			case hasBits:
				check = unix.SockFilter{Code: jset, K: r.value, Jf: 1}
			}
			out = append(out,
				unix.SockFilter{Code: jeq, K: call, Jf: 4},
				unix.SockFilter{Code: load, K: offsetArgs + 8*r.arg},
				check,
				unix.SockFilter{Code: ret, K: answer(r.errno)},
				unix.SockFilter{Code: load, K: offsetCall},
			)
		}
	}
	return append(out, unix.SockFilter{Code: ret, K: unix.SECCOMP_RET_ALLOW})
}

// filter installs the rules that apply to a policy, for the calling thread and everything that it
// starts.
func filter(p Policy) error {
	abi, err := llsyscall.LandlockGetABIVersion()
	applies := map[condition]bool{
		always: true, atReadOnly: p.Level == ReadOnly, withoutNetwork: !p.Network && !p.Loopback, onLoopback: p.Loopback, onNetwork: p.Network,
		withoutUnix: p.Network && !p.UnixSockets, unscoped: err != nil || abi < scopedABI,
	}
	var list []rule
	for _, r := range rules(p.Protect) {
		if applies[r.when] {
			list = append(list, r)
		}
	}
	program := assemble(list)
	prog := unix.SockFprog{Len: uint16(len(program)), Filter: &program[0]}
	if _, _, errno := unix.RawSyscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, 0, uintptr(unsafe.Pointer(&prog))); errno != 0 {
		return fmt.Errorf("sandbox: seccomp: %w", errno)
	}
	return nil
}
