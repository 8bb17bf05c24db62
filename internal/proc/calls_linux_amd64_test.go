package proc

import (
	"syscall"

	"golang.org/x/sys/unix"
)

var refusedLegacyCalls = []systemCall{
	{"chmod", unix.SYS_CHMOD, [6]uintptr{invalid}, syscall.EPERM, 0},
	{"chown", unix.SYS_CHOWN, [6]uintptr{invalid}, syscall.EPERM, 0},
	{"utime", unix.SYS_UTIME, [6]uintptr{invalid}, syscall.EPERM, 0},
	{"another ABI", unix.SYS_GETPID | 0x40000000, [6]uintptr{}, syscall.EPERM, syscall.EPERM},
}
