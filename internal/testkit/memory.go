package testkit

import (
	"fmt"
	"os"
	"strings"
)

// PeakMemory returns the peak resident memory of a process in bytes. It returns 0 if the system does
// not provide the value (only Linux does), or if the process has ended.
func PeakMemory(pid int) (bytes int64) {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0
	}
	_, text, _ := strings.Cut(string(status), "VmHWM:")
	_, _ = fmt.Sscan(text, &bytes)
	return bytes << 10
}
