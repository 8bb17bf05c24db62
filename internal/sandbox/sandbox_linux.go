package sandbox

import (
	"errors"
	"fmt"
	"runtime"

	llsyscall "github.com/landlock-lsm/go-landlock/landlock/syscall"
	"golang.org/x/sys/unix"
)

// leastABI is the first Landlock that also knows truncation (Linux 6.2).
const leastABI = 3

// scopedABI is the first Landlock that keeps signals inside (Linux 6.12).
const scopedABI = 6

// Probe says what this system can hold.
func Probe() Support {
	abi, err := llsyscall.LandlockGetABIVersion()
	switch {
	case err != nil:
		return Support{Without: fmt.Sprintf("the kernel has no Landlock, or it is not switched on: %v", err)}
	case abi < leastABI:
		return Support{Without: fmt.Sprintf("the kernel's Landlock has version %d; %d is needed (Linux 6.2)", abi, leastABI)}
	case nativeArch() == 0:
		return Support{Without: "eca has no filter of system calls for " + runtime.GOARCH}
	}
	return Support{Holds: true, With: fmt.Sprintf("Landlock (version %d) and seccomp", abi)}
}

// Gaps names what the bounds do not hold here.
func Gaps() []string {
	out := []string{
		"with the network allowed, commands reach services of this machine as well, those behind Unix sockets included",
	}
	if abi, err := llsyscall.LandlockGetABIVersion(); err == nil && abi < scopedABI {
		out = append(out, fmt.Sprintf("the kernel's Landlock has version %d; below %d (Linux 6.12), commands can send signals to your other processes", abi, scopedABI))
	}
	return out
}

// Apply bounds the calling thread, and all that it starts from now on. The caller has
// locked its goroutine to the thread, which becomes the child.
func Apply(p Policy) error {
	if !p.Bounds() {
		return nil
	}
	if s := Probe(); !s.Holds {
		return Error{s.Without}
	}
	if err := dropCapabilities(p); err != nil {
		return err
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("sandbox: %w", err)
	}
	if err := restrict(p); err != nil {
		return fmt.Errorf("sandbox: Landlock: %w", err)
	}
	return filter(p)
}

// deviceABI is the first Landlock that knows ioctls of devices (Linux 6.10).
const deviceABI = 5

// Rights of Landlock's third version.
const (
	readRights   = llsyscall.AccessFSExecute | llsyscall.AccessFSReadFile | llsyscall.AccessFSReadDir
	deviceRights = llsyscall.AccessFSReadFile | llsyscall.AccessFSWriteFile | llsyscall.AccessFSTruncate
	writeRights  = llsyscall.AccessFSWriteFile | llsyscall.AccessFSRemoveDir | llsyscall.AccessFSRemoveFile |
		llsyscall.AccessFSMakeChar | llsyscall.AccessFSMakeDir | llsyscall.AccessFSMakeReg | llsyscall.AccessFSMakeSock |
		llsyscall.AccessFSMakeFifo | llsyscall.AccessFSMakeBlock | llsyscall.AccessFSMakeSym | llsyscall.AccessFSRefer | llsyscall.AccessFSTruncate
)

// restrict has Landlock hold what a policy says about files, and signals inside.
func restrict(p Policy) error {
	attr := llsyscall.RulesetAttr{HandledAccessFS: readRights | writeRights}
	abi, err := llsyscall.LandlockGetABIVersion()
	if err != nil {
		return err
	}
	if abi >= deviceABI {
		attr.HandledAccessFS |= llsyscall.AccessFSIoctlDev // and granted for none
	}
	if abi >= scopedABI {
		attr.Scoped = llsyscall.ScopeSignal | llsyscall.ScopeAbstractUnixSocket
	}
	rules, err := llsyscall.LandlockCreateRuleset(&attr, 0)
	if err != nil {
		return err
	}
	defer unix.Close(rules)
	if err := allow(rules, "/", readRights); err != nil {
		return err
	}
	// No terminals: what is written to one may be run by the user's shell.
	for _, device := range []string{"/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom"} {
		if err := allow(rules, device, deviceRights); err != nil {
			return err
		}
	}
	dirs := p.writable()
	if p.Level == Workspace {
		dirs = append(dirs, "/dev/shm")
	}
	for _, dir := range dirs {
		if err := allow(rules, dir, readRights|writeRights); err != nil {
			return err
		}
	}
	return llsyscall.LandlockRestrictSelf(rules, 0)
}

// allow adds a rule for what is at and below a path, if there is anything.
func allow(rules int, path string, rights uint64) error {
	fd, err := unix.Open(path, unix.O_PATH|unix.O_CLOEXEC, 0)
	if errors.Is(err, unix.ENOENT) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	defer unix.Close(fd)
	if err := llsyscall.LandlockAddPathBeneathRule(rules, &llsyscall.PathBeneathAttr{ParentFd: fd, AllowedAccess: rights}, 0); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}
