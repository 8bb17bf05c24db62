// Package needs skips tests whose requirements a machine does not meet.
//
// The message of a skipped test begins with NOT TESTED, and names what is missing and how to
// install it. Where a requirement cannot be missing, the test fails instead. The package installs
// nothing, and is for tests only; packages from npm are found by testkit.
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

// POSIX skips a test on Windows, because it runs shell commands or uses paths with slashes.
func POSIX(t testing.TB) {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("NOT TESTED: has POSIX paths, commands or signals; run it in WSL, on Linux or on macOS")
	}
}

// Program returns the path of a program, and skips the test if it is not installed. pkg is its
// package on Debian-based systems.
func Program(t testing.TB, name, pkg string) (path string) {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		t.Skipf("NOT TESTED: %s is missing; install it, for example with: apt-get install %s", name, pkg)
	}
	return path
}

// Git returns the path of git, and skips the test without it.
func Git(t testing.TB) (path string) {
	t.Helper()
	return Program(t, "git", "git")
}

// Symlinks skips a test if symlinks cannot be created.
func Symlinks(t testing.TB) {
	t.Helper()
	Symlink(t, "nowhere", filepath.Join(t.TempDir(), "link"))
}

// Symlink creates a symlink at link with the given target, and skips the test if that is not
// possible.
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

// NoOllama skips a test if Ollama is running, whose models would be used instead of the demo's.
func NoOllama(t testing.TB) {
	t.Helper()
	conn, err := net.DialTimeout("tcp", "127.0.0.1:11434", time.Second)
	if err == nil {
		_ = conn.Close()
		t.Skip("NOT TESTED: Ollama runs on this machine; stop it to test the demo model")
	}
}

// Long skips a test with go test -short.
func Long(t testing.TB) {
	t.Helper()
	if testing.Short() {
		t.Skip("NOT TESTED: takes long; run it without -short")
	}
}
