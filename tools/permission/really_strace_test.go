//go:build unix

package permission

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/seed-dec29ce4/eca/internal/cmdline"
	"github.com/seed-dec29ce4/eca/internal/proc"
)

// straceWorks returns the path of strace, or "" if strace is missing or may not trace here.
func straceWorks(t *testing.T) string {
	t.Helper()
	path, err := exec.LookPath("strace")
	if err != nil || runtime.GOOS != "linux" {
		return ""
	}
	if out, err := exec.Command(path, "--seccomp-bpf", "-f", "-o", filepath.Join(t.TempDir(), "t"), "true").CombinedOutput(); err != nil {
		t.Logf("strace does not work here: %v\n%s", err, out)
		return ""
	}
	return path
}

// watchedCalls lists system calls that change files, execute programs or connect. The question
// marks are for architectures that lack some of them.
const watchedCalls = "?execve,?execveat,?open,?openat,?openat2,?creat,?unlink,?unlinkat,?rename,?renameat,?renameat2,?mkdir,?mkdirat,?rmdir,?link,?linkat,?symlink,?symlinkat," +
	"?truncate,?ftruncate,?fallocate,?chmod,?fchmod,?fchmodat,?chown,?lchown,?fchown,?fchownat,?utime,?utimes,?utimensat,?futimesat,?setxattr,?lsetxattr,?fsetxattr,?removexattr,?lremovexattr,?fremovexattr,?mknod,?mknodat," +
	"?socket,?connect,?bind,?kill,?tkill,?tgkill,?ptrace,?mount,?umount2,?setns,?unshare,?io_uring_setup,?process_vm_writev,?chdir"

// mark begins the name of the folder to which the driver changes between two programs.
const mark = "/eca-program-"

// runTraced runs programs one after another below strace, in the read-only sandbox, so that a program
// that does more than read does no harm. strace runs outside the sandbox and stops a process before
// the filter of system calls sees the call, so it also sees attempts that the sandbox refuses. The
// sandbox confines the network too.
func (w *world) runTraced(t failer, strace string, texts []string) []observation {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	temp, err := os.MkdirTemp("", "eca-really-")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(temp)
	trace := temp + ".trace" // the programs cannot write there
	defer os.Remove(trace)
	const script = `i=0; for text; do cd "$mark$i" 2>/dev/null; bash -c "$text" </dev/null >/dev/null 2>&1; i=$((i+1)); done; cd "$mark$i" 2>/dev/null; :`
	env := slices.Concat([]string{"-i"}, w.env, harmlessGit(), []string{"mark=" + mark, "TMPDIR=" + temp})
	args := slices.Concat(env,
		[]string{strace, "-f", "-qq", "-y", "-s", "300", "-o", trace, "-e", "trace=" + watchedCalls, self, bindArg, temp, "bash", "-c", script, "bash"}, texts)
	var failed bytes.Buffer
	children := proc.NewPool(self, 0)
	defer children.Close()
	exit, err := children.Run(context.Background(), proc.Spec{Path: "env", Args: args, Dir: w.dir, Stdout: &failed, Stderr: &failed})
	if err != nil || exit.Code != 0 {
		t.Fatal("strace: ", err, exit, failed.String())
	}
	out, err := os.ReadFile(trace)
	if err != nil {
		t.Fatal(err)
	}
	reports := parseTrace(string(out), temp, w.away)
	if len(reports) != len(texts) {
		t.Fatal("strace reports ", len(reports), " programs instead of ", len(texts), ": ", failed.String())
	}
	return reports
}

// harmlessGit returns what the shell tool adds to the environment of commands that only read.
func harmlessGit() []string {
	return cmdline.GitEnv(func(string) string { return "" }, cmdline.HarmlessGit()...)
}

// parseTrace splits a trace at the marks. temp is the programs' temporary folder, away one that
// they must not read.
func parseTrace(trace, temp, away string) []observation {
	var out []observation
	result := regexp.MustCompile(`= \d+<([^>]*)>`)
	call := regexp.MustCompile(`^\d+ +([a-z0-9_]+)\((.*)`)
	text := regexp.MustCompile(`"((?:[^"\\]|\\.)*)"`)
	first := false
	for line := range strings.Lines(trace) {
		m := call.FindStringSubmatch(strings.TrimSpace(line))
		if m == nil {
			continue
		}
		name, args := m[1], m[2]
		var path string
		if p := text.FindStringSubmatch(args); p != nil {
			path = p[1]
		}
		if name == "chdir" {
			if n, ok := strings.CutPrefix(path, mark); ok {
				if n == strconv.Itoa(len(out)-1) { // a shell tries twice
					continue
				}
				if n != strconv.Itoa(len(out)) {
					return nil
				}
				out = append(out, observation{})
				first = true
			}
			continue
		}
		if len(out) == 0 {
			continue
		}
		s := &out[len(out)-1]
		switch name {
		case "execve", "execveat":
			if first { // the shell that is given the program
				first = false
				continue
			}
			if strings.Contains(line, "ENOENT") || strings.Contains(line, "ENOTDIR") { // a search along PATH
				continue
			}
			s.ran = append(s.ran, path)
		case "open", "openat", "openat2", "creat":
			if to := result.FindStringSubmatch(line); to != nil && (to[1] == away || strings.HasPrefix(to[1], away+"/")) {
				s.read = append(s.read, strings.TrimSpace(line))
			}
			if name != "creat" && !strings.Contains(args, "O_WRONLY") && !strings.Contains(args, "O_RDWR") && !strings.Contains(args, "O_CREAT") && !strings.Contains(args, "O_TRUNC") {
				continue
			}
			if harmlessPlace(path, temp) {
				continue
			}
			s.changed = append(s.changed, strings.TrimSpace(line))
		case "socket":
			if !strings.Contains(args, "AF_UNIX") {
				s.opened = append(s.opened, strings.TrimSpace(line))
			}
		case "connect", "bind":
			if !strings.Contains(args, "AF_UNIX") || !strings.Contains(args, "/nscd/") && !strings.Contains(args, "/io.systemd.") { // who is who
				s.opened = append(s.opened, strings.TrimSpace(line))
			}
		case "kill", "tkill", "tgkill":
			pid, _, _ := strings.Cut(line, " ")
			if !strings.Contains(args, ", 0)") && !strings.HasPrefix(args, pid+",") { // itself: it aborts
				s.changed = append(s.changed, strings.TrimSpace(line))
			}
		default:
			if path != "" && harmlessPlace(path, temp) || path == "" && (name == "ftruncate" || name == "fchmod" || name == "fallocate") { // of what was opened, which counts
				continue
			}
			s.changed = append(s.changed, strings.TrimSpace(line))
		}
	}
	if len(out) == 0 {
		return nil
	}
	return out[:len(out)-1] // the text after the last mark is not a program
}

// harmlessPlace reports whether programs may write to a path.
func harmlessPlace(path, temp string) bool {
	return slices.Contains([]string{"/dev/null", "/dev/tty"}, path) || strings.HasPrefix(path, temp+"/")
}
