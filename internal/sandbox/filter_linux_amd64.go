package sandbox

import "golang.org/x/sys/unix"

// legacyMetadata are calls that newer architectures do not have.
var legacyMetadata = []uint32{unix.SYS_CHMOD, unix.SYS_CHOWN, unix.SYS_LCHOWN, unix.SYS_UTIME, unix.SYS_UTIMES, unix.SYS_FUTIMESAT}

// legacyRules are rules for calls that other architectures do not have.
var legacyRules = []rule{{calls: []uint32{unix.SYS_IOPL, unix.SYS_IOPERM}, errno: unix.EPERM}}
