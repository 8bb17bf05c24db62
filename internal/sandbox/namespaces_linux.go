package sandbox

import (
	"fmt"
	"os"
	"runtime"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// stageCapabilities are the capabilities that the second stage needs in its namespaces. The child has
// none of them.
var stageCapabilities = [...]uintptr{unix.CAP_SYS_ADMIN, unix.CAP_NET_ADMIN, unix.CAP_SETPCAP, unix.CAP_DAC_READ_SEARCH}

// foreignFileCapabilities are the capabilities with which root can change files of other users. Root needs them
// in a container if the workspace belongs to another user.
var foreignFileCapabilities = [...]uintptr{unix.CAP_CHOWN, unix.CAP_DAC_OVERRIDE, unix.CAP_FOWNER, unix.CAP_FSETID}

// Spaces are the namespaces that a process starts in.
type Spaces struct {
	Isolate, OwnProcesses, Loopback bool
}

// Spaces returns the namespaces of a policy.
func (p Policy) Spaces() Spaces {
	return Spaces{p.Isolate, p.Isolate && p.OwnProcesses, p.Isolate && p.Loopback && !p.Joined}
}

// Set configures a process that is about to be started to start in the namespaces.
func (s Spaces) Set(attr *syscall.SysProcAttr) {
	if !s.Isolate {
		return
	}
	UserNamespace(attr)
	attr.Cloneflags |= unix.CLONE_NEWNS
	if s.OwnProcesses {
		attr.Cloneflags |= unix.CLONE_NEWPID
	}
	if s.Loopback {
		attr.Cloneflags |= unix.CLONE_NEWNET
	}
}

// UserNamespace configures a process that is about to be started to start in a user namespace, with
// the same ids as outside.
func UserNamespace(attr *syscall.SysProcAttr) {
	attr.Cloneflags |= unix.CLONE_NEWUSER
	attr.AmbientCaps = stageCapabilities[:]
	uid, gid := os.Geteuid(), os.Getegid()
	attr.UidMappings, attr.GidMappings = []syscall.SysProcIDMap{{ContainerID: uid, HostID: uid, Size: 1}}, []syscall.SysProcIDMap{{ContainerID: gid, HostID: gid, Size: 1}}
	if uid != 0 || !hasCapabilities(unix.CAP_SETUID, unix.CAP_SETGID, unix.CAP_SETFCAP) {
		return
	}
	uids, gids := identityMappings("/proc/self/uid_map"), identityMappings("/proc/self/gid_map")
	if len(uids) > 0 && len(gids) > 0 {
		attr.UidMappings, attr.GidMappings, attr.GidMappingsEnableSetgroups = uids, gids, true
	}
}

// identityMappings returns the identity mapping of all ids that are mapped in this process's user namespace.
func identityMappings(file string) []syscall.SysProcIDMap {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil
	}
	var out []syscall.SysProcIDMap
	for line := range strings.Lines(string(data)) {
		var first, outside, count int
		if _, err := fmt.Sscan(line, &first, &outside, &count); err == nil {
			out = append(out, syscall.SysProcIDMap{ContainerID: first, HostID: first, Size: count})
		}
	}
	return out
}

func hasCapabilities(want ...uint) bool {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	if err := unix.Capget(&header, &data[0]); err != nil {
		return false
	}
	for _, c := range want {
		if data[c/32].Effective&(1<<(c%32)) == 0 {
			return false
		}
	}
	return true
}

// Enter sets up the mounts and the loopback interface in the namespaces of this process, which was
// started with Spaces.Set.
func Enter(p Policy) error {
	raiseOOMScore() // must come first: an unprivileged process that cannot be traced may not change its own score
	if !p.Isolate {
		return nil
	}
	if p.Spaces().Loopback {
		if err := LoopbackUp(); err != nil {
			return fmt.Errorf("sandbox: the loopback interface: %w", err)
		}
	}
	if err := p.mount(); err != nil {
		return fmt.Errorf("sandbox: mount namespace: %w", err)
	}
	return nil
}

// LoopbackUp switches on the loopback interface of a new network namespace.
func LoopbackUp() error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	lo, err := unix.NewIfreq("lo")
	if err != nil {
		return err
	}
	lo.SetUint16(unix.IFF_UP)
	return unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, lo)
}

// rootCapabilities are the capabilities that root keeps outside namespaces: those for files and users.
// Without the others it cannot raise limits, create devices or configure the machine.
var rootCapabilities = [...]uintptr{
	unix.CAP_CHOWN, unix.CAP_DAC_OVERRIDE, unix.CAP_DAC_READ_SEARCH, unix.CAP_FOWNER, unix.CAP_FSETID,
	unix.CAP_KILL, unix.CAP_SETGID, unix.CAP_SETUID, unix.CAP_NET_BIND_SERVICE,
}

// keptCapabilities returns the set of eca's capabilities that a child keeps.
func (p Policy) keptCapabilities() (keep uint64) {
	var list []uintptr
	switch {
	case !p.Isolate:
		list = rootCapabilities[:]
	case os.Geteuid() == 0 && p.foreignOwner():
		list = foreignFileCapabilities[:]
	}
	for _, c := range list {
		keep |= 1 << c
	}
	return keep
}

// dropCapabilities removes all capabilities except the kept ones from the calling thread and the
// processes that it starts. An ordinary user has no capabilities outside namespaces.
func dropCapabilities(p Policy) error {
	keep := p.keptCapabilities()
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	if err := unix.Capget(&header, &data[0]); err != nil {
		return fmt.Errorf("sandbox: capabilities: %w", err)
	}
	has := uint64(data[1].Permitted)<<32 | uint64(data[0].Permitted)
	if keep &= has; keep == has {
		return nil
	}
	for c := uintptr(0); c <= unix.CAP_LAST_CAP; c++ {
		if keep&(1<<c) != 0 {
			continue
		}
		if err := unix.Prctl(unix.PR_CAPBSET_DROP, c, 0, 0, 0); err != nil && err != unix.EINVAL { //nolint:errorlint // a bare errno; a kernel that does not know it
			return fmt.Errorf("sandbox: capabilities: %w", err)
		}
	}
	if err := unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0); err != nil {
		return fmt.Errorf("sandbox: capabilities: %w", err)
	}
	low, high := uint32(keep), uint32(keep>>32)
	data = [2]unix.CapUserData{{Effective: low, Permitted: low}, {Effective: high, Permitted: high}}
	if err := unix.Capset(&header, &data[0]); err != nil {
		return fmt.Errorf("sandbox: capabilities: %w", err)
	}
	runtime.KeepAlive(&data)
	return nil
}

// foreignOwner reports whether a writable folder belongs to another user.
func (p Policy) foreignOwner() bool {
	for _, dir := range p.Write {
		var st unix.Stat_t
		if unix.Stat(dir, &st) == nil && st.Uid != uint32(os.Geteuid()) {
			return true
		}
	}
	return false
}
