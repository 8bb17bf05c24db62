package sandbox

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// Limits of bounded children. They end what runs away; builds of large projects stay far below.
const (
	maxProcesses    = 8192     // of the user, threads included, as the kernel counts
	maxFile         = 16 << 30 // bytes; at the workspace level
	maxTemporary    = 1 << 30  // bytes; at the read-only level
	memoryShortness = 500      // how much sooner than others they end when memory runs out
)

// limit lowers the limits of this process.
func limit(p Policy) error {
	file := uint64(maxFile)
	if p.Level == ReadOnly {
		file = maxTemporary
	}
	for what, most := range map[int]uint64{unix.RLIMIT_CORE: 0, unix.RLIMIT_NPROC: maxProcesses, unix.RLIMIT_FSIZE: file} {
		var l unix.Rlimit
		if err := unix.Getrlimit(what, &l); err != nil {
			return fmt.Errorf("limits: %w", err)
		}
		l.Cur, l.Max = min(l.Cur, most), min(l.Max, most)
		if err := unix.Setrlimit(what, &l); err != nil {
			return fmt.Errorf("limits: %w", err)
		}
	}
	// Where memory is not accounted for, this is only refused.
	_ = os.WriteFile("/proc/self/oom_score_adj", fmt.Append(nil, memoryShortness), 0)
	return nil
}

// keptCapabilities are those of root that a bounded child keeps: they are about files and users.
// Without the others it cannot raise limits, make devices or configure the machine.
func keptCapabilities() []uintptr {
	return []uintptr{
		unix.CAP_CHOWN, unix.CAP_DAC_OVERRIDE, unix.CAP_DAC_READ_SEARCH, unix.CAP_FOWNER, unix.CAP_FSETID,
		unix.CAP_KILL, unix.CAP_SETGID, unix.CAP_SETUID, unix.CAP_NET_BIND_SERVICE,
	}
}

// dropCapabilities takes the other capabilities from this thread, and from what it executes.
func dropCapabilities() error {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var has [2]unix.CapUserData
	if err := unix.Capget(&header, &has[0]); err != nil {
		return fmt.Errorf("capabilities: %w", err)
	}
	var keep [2]uint32
	for _, c := range keptCapabilities() {
		keep[c/32] |= 1 << (c % 32)
	}
	if has[0].Permitted&^keep[0] == 0 && has[1].Permitted&^keep[1] == 0 {
		return nil // an ordinary user has none
	}
	for c := uintptr(0); c < 64; c++ {
		if keep[c/32]&(1<<(c%32)) != 0 {
			continue
		}
		// A kernel that does not know it says so; without the right to drop it, exec cannot
		// give it back either, since the child gains no rights.
		_ = unix.Prctl(unix.PR_CAPBSET_DROP, c, 0, 0, 0)
	}
	_ = unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0)
	for i := range has {
		has[i].Permitted &= keep[i]
		has[i].Effective &= keep[i]
		has[i].Inheritable = 0
	}
	if err := unix.Capset(&header, &has[0]); err != nil {
		return fmt.Errorf("capabilities: %w", err)
	}
	return nil
}
