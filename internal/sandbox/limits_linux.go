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
	return nil
}

// endSooner has this process and what it starts end before others when memory runs out. Where
// memory is not accounted for, this is only refused.
func endSooner() {
	_ = os.WriteFile("/proc/self/oom_score_adj", fmt.Append(nil, memoryShortness), 0)
}
