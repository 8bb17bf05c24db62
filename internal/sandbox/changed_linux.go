package sandbox

import (
	"io/fs"
	"syscall"
	"time"
)

// changeTime returns the ctime of a file: when its content or metadata last changed, or when it was
// moved. Commands cannot set it.
func changeTime(info fs.FileInfo) time.Time {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return time.Unix(st.Ctim.Unix())
	}
	return info.ModTime()
}
