package sandbox

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"

	llsyscall "github.com/landlock-lsm/go-landlock/landlock/syscall"
	"golang.org/x/sys/unix"
)

// minABI is the first Landlock ABI that covers truncation (Linux 6.2).
const minABI = 3

// scopedABI is the first Landlock ABI that restricts signals (Linux 6.12).
const scopedABI = 6

// Probe reports which bounds this system can enforce.
func Probe() Support {
	abi, err := llsyscall.LandlockGetABIVersion()
	switch {
	case err != nil:
		return Support{Without: fmt.Sprintf("the kernel has no Landlock, or it is not switched on: %v", err)}
	case abi < minABI:
		return Support{Without: fmt.Sprintf("the kernel's Landlock has version %d; %d is needed (Linux 6.2)", abi, minABI)}
	case nativeArch() == 0:
		return Support{Without: "eca has no filter of system calls for " + runtime.GOARCH}
	}
	return Support{Holds: true, With: fmt.Sprintf("Landlock (version %d) and seccomp", abi)}
}

// Gaps names what is not enforced on this system.
func Gaps() []string {
	out := []string{
		"with the network allowed, commands reach servers of this machine as well; commands that your rules or remembered approvals allow also reach services behind Unix sockets",
	}
	if os.Geteuid() == 0 {
		out = append(out, "as root, no limit on the number of processes")
	}
	if abi, err := llsyscall.LandlockGetABIVersion(); err == nil && abi < scopedABI {
		out = append(out, fmt.Sprintf("the kernel's Landlock has version %d; below %d (Linux 6.12), commands can send signals to your other processes", abi, scopedABI))
	}
	return out
}

// Apply bounds the calling thread and all processes that it starts from now on. The caller must have
// locked its goroutine to the thread, which becomes the child or starts it.
func Apply(p Policy) error {
	if !p.Bounds() {
		return nil
	}
	if s := Probe(); !s.Holds {
		return Error{s.Without}
	}
	if err := limit(p); err != nil {
		return fmt.Errorf("sandbox: %w", err)
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

// deviceABI is the first Landlock ABI that covers ioctls of devices (Linux 6.10).
const deviceABI = 5

// Rights of Landlock ABI 3.
const (
	readRights           = llsyscall.AccessFSReadFile | llsyscall.AccessFSReadDir
	deviceFiles          = llsyscall.AccessFSMakeChar | llsyscall.AccessFSMakeBlock // with these, root could access disks
	readAndExecuteRights = llsyscall.AccessFSExecute | readRights
	fileRights           = llsyscall.AccessFSExecute | llsyscall.AccessFSReadFile | llsyscall.AccessFSWriteFile | llsyscall.AccessFSTruncate
	deviceRights         = llsyscall.AccessFSReadFile | llsyscall.AccessFSWriteFile | llsyscall.AccessFSTruncate
	writeRights          = llsyscall.AccessFSWriteFile | llsyscall.AccessFSRemoveDir | llsyscall.AccessFSRemoveFile |
		llsyscall.AccessFSMakeChar | llsyscall.AccessFSMakeDir | llsyscall.AccessFSMakeReg | llsyscall.AccessFSMakeSock |
		llsyscall.AccessFSMakeFifo | llsyscall.AccessFSMakeBlock | llsyscall.AccessFSMakeSym | llsyscall.AccessFSRefer | llsyscall.AccessFSTruncate
)

// restrict applies the file rules of a policy with Landlock, and keeps signals within the sandbox.
func restrict(p Policy) error {
	attr := llsyscall.RulesetAttr{HandledAccessFS: readAndExecuteRights | writeRights}
	abi, err := llsyscall.LandlockGetABIVersion()
	if err != nil {
		return err
	}
	if abi >= deviceABI {
		attr.HandledAccessFS |= llsyscall.AccessFSIoctlDev // not granted for any path
	}
	if abi >= scopedABI {
		attr.Scoped = llsyscall.ScopeSignal | llsyscall.ScopeAbstractUnixSocket
	}
	rules, err := llsyscall.LandlockCreateRuleset(&attr, 0)
	if err != nil {
		return err
	}
	defer unix.Close(rules)
	if err := allowReading(rules, p); err != nil {
		return err
	}
	// No terminals: the user's shell may run text that is written to one.
	for _, device := range []string{"/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom"} {
		if err := allow(rules, device, deviceRights); err != nil {
			return err
		}
	}
	dirs := p.writable()
	if p.Level == Workspace {
		dirs = append(dirs, "/dev/shm")
	}
	dirRights := uint64(readAndExecuteRights|writeRights) &^ deviceFiles
	if p.Execute != nil { // the child must not execute files that it wrote
		dirRights &^= llsyscall.AccessFSExecute
	}
	for _, dir := range dirs {
		if err := allow(rules, dir, dirRights); err != nil {
			return err
		}
	}
	return llsyscall.LandlockRestrictSelf(rules, 0)
}

// systemReads are the system files that programs need, except files about other processes and user
// authentication.
var systemReads = []string{
	"/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/nix/store", "/gnu/store",
	"/etc/ld.so.cache", "/etc/passwd", "/etc/group", "/etc/nsswitch.conf", "/etc/localtime", "/etc/timezone", "/etc/gitconfig", "/etc/gitattributes",
	"/etc/locale.alias", "/etc/magic", "/etc/mime.types", "/etc/alternatives", "/etc/ssl/openssl.cnf",
	"/proc/meminfo", "/proc/uptime", "/proc/loadavg", "/proc/cpuinfo", "/proc/stat", "/proc/filesystems", "/proc/version",
	"/proc/sys/kernel", "/proc/sys/vm", "/sys/devices/system/cpu",
}

// allowReading adds the rules for reading and execution.
func allowReading(rules int, p Policy) error {
	if p.Read == nil {
		if err := allowAllButDevices(rules); err != nil {
			return err
		}
	} else {
		for _, path := range systemReads {
			if err := allow(rules, path, readRights); err != nil {
				return err
			}
		}
	}
	for _, path := range p.Read {
		if err := allowResolved(rules, path, readRights); err != nil {
			return err
		}
	}
	if p.Execute == nil {
		return allow(rules, "/", llsyscall.AccessFSExecute)
	}
	for _, path := range p.Execute { // scripts must be readable as well
		if err := allowResolved(rules, path, llsyscall.AccessFSExecute|llsyscall.AccessFSReadFile); err != nil {
			return err
		}
	}
	for _, path := range loaders(p.Execute) {
		if err := allow(rules, path, llsyscall.AccessFSExecute|llsyscall.AccessFSReadFile); err != nil {
			return err
		}
	}
	return nil
}

// allowAllButDevices lets a child read everything except device files: reading a terminal returns
// the user's input, and other devices are keyboards, cameras and disks.
func allowAllButDevices(rules int) error {
	if err := allow(rules, "/", llsyscall.AccessFSReadDir); err != nil {
		return err
	}
	entries, err := os.ReadDir("/")
	if err != nil {
		return err
	}
	for _, e := range entries {
		if e.Name() == "dev" {
			continue
		}
		if err := allow(rules, "/"+e.Name(), readRights); err != nil {
			return err
		}
	}
	return nil
}

// loaders returns the dynamic loaders of programs, which the kernel executes to start them.
func loaders(programs []string) []string {
	var out []string
	for _, path := range programs {
		loader := loaderOf(path)
		if loader != "" && !slices.Contains(out, loader) {
			out = append(out, loader)
		}
	}
	return out
}

// allow adds a rule for a path and everything below it. A path that does not exist or is inaccessible
// is skipped.
func allow(rules int, path string, rights uint64) error {
	fd, err := unix.Open(path, unix.O_PATH|unix.O_CLOEXEC, 0)
	return allowOpened(rules, fd, err, path, rights)
}

// allowResolved is like allow, but for a path whose symlinks have been resolved. If the path contains
// a symlink now, no rule is added.
func allowResolved(rules int, path string, rights uint64) error {
	fd, err := unix.Openat2(unix.AT_FDCWD, path, &unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC, Resolve: unix.RESOLVE_NO_SYMLINKS})
	if errors.Is(err, unix.ELOOP) {
		return nil
	}
	return allowOpened(rules, fd, err, path, rights)
}

func allowOpened(rules, fd int, err error, path string, rights uint64) error {
	if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENOTDIR) || errors.Is(err, unix.EACCES) {
		return nil // the child could not use it either
	}
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	defer unix.Close(fd)
	var info unix.Stat_t
	if err := unix.Fstat(fd, &info); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	if info.Mode&unix.S_IFMT != unix.S_IFDIR {
		rights &= fileRights
	}
	if err := llsyscall.LandlockAddPathBeneathRule(rules, &llsyscall.PathBeneathAttr{ParentFd: fd, AllowedAccess: rights}, 0); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}
