package sandbox

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// Limits of bounded children. They stop runaway commands and are far above what large builds need.
const (
	maxProcesses = 8192     // per user, threads included, as the kernel counts
	maxFile      = 16 << 30 // bytes, at level Workspace
	maxTemporary = 1 << 30  // bytes, at level ReadOnly
	oomScoreAdj  = 500      // of bounded children: the kernel kills them first
)

// limit lowers the resource limits of this process.
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
	return nil
}

// raiseOOMScore makes the kernel kill this process and its descendants before others when memory runs
// out. It ignores errors.
func raiseOOMScore() {
	_ = os.WriteFile("/proc/self/oom_score_adj", fmt.Append(nil, oomScoreAdj), 0)
}
