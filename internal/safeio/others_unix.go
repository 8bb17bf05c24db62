//go:build unix

package safeio

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// The permissions of the group and of all others.
const (
	othersWrite  = 0o022
	othersRead   = 0o044
	othersSearch = 0o011
)

// CheckOthers returns an error if users other than the owner and root can write to a file or to a
// folder above it. The error names the remedy. Like OpenSSH, CheckOthers accepts write permission for
// a group whose number is that of the owner: such a group has only one member.
func CheckOthers(path string) error {
	paths := []string{path}
	if target, err := filepath.EvalSymlinks(path); err == nil && target != path {
		paths = append(paths, target)
	}
	for _, file := range paths {
		for at, last := file, ""; at != last; at, last = filepath.Dir(at), at {
			info, err := os.Stat(at)
			if err != nil || at == file && !info.Mode().IsRegular() || at != file && info.Mode()&fs.ModeSticky != 0 {
				continue
			}
			if mode := info.Mode().Perm(); mode&othersMask(info)&othersWrite != 0 {
				return fmt.Errorf("other users can change it, because they can write to %s (mode %04o): run `chmod go-w %s`", at, mode, at)
			}
		}
	}
	return nil
}

// OthersRead reports whether users other than the owner and root can read a file.
func OthersRead(path string) bool {
	path, err := filepath.EvalSymlinks(path)
	if err != nil {
		return false
	}
	info, err := os.Stat(path)
	if err != nil || !info.Mode().IsRegular() {
		return false
	}
	readers := info.Mode().Perm() & othersMask(info) & othersRead >> 2 // shifted to the bits of othersSearch
	for at, last := filepath.Dir(path), path; at != last && readers != 0; at, last = filepath.Dir(at), at {
		if info, err = os.Stat(at); err != nil {
			return false
		}
		search := info.Mode().Perm() & othersSearch
		if search&0o001 != 0 {
			search = othersSearch // a group is part of all
		}
		readers &= search
	}
	return readers != 0
}

// othersMask returns the permission bits that apply to users other than the owner and root.
func othersMask(info fs.FileInfo) fs.FileMode {
	if stat, ok := info.Sys().(*syscall.Stat_t); ok && (stat.Gid == 0 || stat.Gid == stat.Uid) {
		return 0o007
	}
	return 0o077
}
