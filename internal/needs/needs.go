// Package needs says what a test needs of the machine it runs on.
//
// It owns the reasons for which a test is left out. It guarantees that such a test says so
// (NOT TESTED), with what is missing and how one gets it, and that nothing is left out
// where it cannot be missing: there the test fails. It installs nothing, and is for tests
// only; packages from npm are found by testkit.
package needs

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"
	"time"
)

// POSIX leaves a test out on Windows, because it runs a shell's commands or has paths with
// slashes.
func POSIX(t testing.TB) {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("NOT TESTED: has POSIX paths, commands or signals; run it in WSL, on Linux or on macOS")
	}
}

// Program returns the path of a program, and leaves the test out if it is not installed.
// pkg is the package that has it on Debian and its like.
func Program(t testing.TB, name, pkg string) (path string) {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		t.Skipf("NOT TESTED: %s is missing; install it, for example with: apt-get install %s", name, pkg)
	}
	return path
}

// Git returns the path of git, and leaves the test out without it.
func Git(t testing.TB) (path string) {
	t.Helper()
	return Program(t, "git", "git")
}

// Symlinks leaves a test out where symbolic links cannot be made.
func Symlinks(t testing.TB) {
	t.Helper()
	Symlink(t, "nowhere", filepath.Join(t.TempDir(), "link"))
}

// Symlink makes a symbolic link at link that leads to target, and leaves the test out where
// there can be none.
func Symlink(t testing.TB, target, link string) {
	t.Helper()
	err := os.Symlink(target, link)
	if err == nil {
		return
	}
	if runtime.GOOS == "windows" {
		t.Skipf("NOT TESTED: symbolic links need a privilege here; turn on developer mode (Settings, System, For developers): %v", err)
	}
	t.Fatal(err)
}

// NoOllama leaves a test out where Ollama runs, whose models would answer instead of the demo's.
func NoOllama(t testing.TB) {
	t.Helper()
	conn, err := net.DialTimeout("tcp", "127.0.0.1:11434", time.Second)
	if err == nil {
		_ = conn.Close()
		t.Skip("NOT TESTED: Ollama runs on this machine; stop it to test the demo model")
	}
}

// Long leaves a test out of short runs (go test -short).
func Long(t testing.TB) {
	t.Helper()
	if testing.Short() {
		t.Skip("NOT TESTED: takes long; run it without -short")
	}
}
