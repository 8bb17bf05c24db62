package sandbox

import (
	"io/fs"
	"syscall"
	"time"
)

// changed returns when a file was last changed, moved or made. No command can set that.
func changed(info fs.FileInfo) time.Time {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return time.Unix(st.Ctim.Unix())
	}
	return info.ModTime()
}
