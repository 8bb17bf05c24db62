package proc

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
)

// Memory returns the resident memory of the processes of a group, in bytes. ok is false if it is
// unknown.
func Memory(group int) (size int64, ok bool) {
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		return 0, false
	}
	for _, path := range stats {
		data, err := os.ReadFile(path)
		if err != nil {
			continue // it has ended
		}
		// The name, in parentheses, may contain any characters; the fields after it are numbers.
		fields := bytes.Fields(data[bytes.LastIndexByte(data, ')')+1:])
		const groupField, pagesField = 2, 21
		if len(fields) <= pagesField || string(fields[groupField]) != strconv.Itoa(group) {
			continue
		}
		pages, err := strconv.ParseInt(string(fields[pagesField]), 10, 64)
		if err == nil {
			size, ok = size+pages*int64(os.Getpagesize()), true
		}
	}
	return size, ok
}
