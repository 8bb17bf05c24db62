package proc

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/seed-dec29ce4/eca/internal/sandbox"
)

// eca creates control groups with memory limits in the nearest group above its own in which it can.
func TestSearchMemoryGroups(t *testing.T) {
	const gib = 1 << 30
	session := map[string]string{
		"cgroup.controllers": "cpu memory pids", "cgroup.subtree_control": "cpu memory pids",
		"user.slice/cgroup.subtree_control":                                   "memory pids",
		"user.slice/user-1.slice/cgroup.subtree_control":                      "memory pids",
		"user.slice/user-1.slice/memory.max":                                  "max",
		"user.slice/user-1.slice/user@1.service/cgroup.subtree_control":       "memory pids",
		"user.slice/user-1.slice/user@1.service/memory.max":                   strconv.Itoa(4 * gib),
		"user.slice/user-1.slice/user@1.service/app/cgroup.subtree_control":   "cpu memory",
		"user.slice/user-1.slice/user@1.service/app/a/cgroup.subtree_control": "cpu",
		"user.slice/user-1.slice/user@1.service/app/a/memory.max":             strconv.Itoa(gib), // not of what is made above
		"user.slice/user-1.slice/session-2.scope/cgroup.subtree_control":      "",
	}
	inUserService := func(path string) bool { return strings.Contains(path, "user@1.service") }
	for name, c := range map[string]struct {
		own      string
		files    map[string]string
		writable func(path string) bool
		dir      string // below the root
		limit    int64
		why      string
	}{
		"started by a user's systemd":                {"3:cpu:/x\n0::/user.slice/user-1.slice/user@1.service/app/a\n", session, inUserService, "user.slice/user-1.slice/user@1.service/app", 3 * gib, ""},
		"in a group whose children have the control": {"0::/user.slice/user-1.slice/user@1.service/app\n", session, inUserService, "user.slice/user-1.slice/user@1.service/app", 3 * gib, ""},
		"root, anywhere":                             {"0::/user.slice/user-1.slice/session-2.scope\n", session, func(string) bool { return true }, "user.slice/user-1.slice", 6 * gib, ""},
		"root, at the top":                           {"0::/\n", session, func(string) bool { return true }, "", 6 * gib, ""},
		"a login session, above which all is root's": {"0::/user.slice/user-1.slice/session-2.scope\n", session, inUserService, "", 0, "user-1.slice: permission denied; try \"systemd-run"},
		"a folder without the processes": {
			"0::/user.slice/user-1.slice/user@1.service/app/a\n", session,
			func(path string) bool { return inUserService(path) && !strings.HasSuffix(path, "cgroup.procs") }, "", 0, "app: permission denied",
		},
		"memory with cgroup v1":                    {"0::/\n", map[string]string{"cgroup.controllers": "hugetlb", "cgroup.subtree_control": ""}, inUserService, "", 0, "cgroup v1 may have it"},
		"not switched on":                          {"0::/a/b\n", map[string]string{"cgroup.controllers": "memory", "cgroup.subtree_control": "pids", "a/cgroup.subtree_control": ""}, func(string) bool { return true }, "", 0, "(/a/b) has enabled the memory controller"},
		"no cgroup v2":                             {"4:memory:/x\n", session, inUserService, "", 0, "not in a control group"},
		"outside the namespace of what is mounted": {"0::/../x\n", session, inUserService, "", 0, "not one of those mounted"},
	} {
		t.Run(name, func(t *testing.T) {
			root := t.TempDir()
			for path, text := range c.files {
				path = filepath.Join(root, path)
				if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(path, []byte(text+"\n"), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			got, err := searchMemoryGroups(root, c.own, 8*gib, 2*gib, func(path string) error {
				if c.writable(path) {
					return nil
				}
				return unix.EACCES
			})
			if c.why != "" {
				if err == nil || !strings.Contains(err.Error(), c.why) {
					t.Errorf("%+v, %v, want %q", got, err, c.why)
				}
				return
			}
			if want := (memoryGroups{filepath.Join(root, c.dir), c.limit, 3 * gib / 2}); err != nil || got != want {
				t.Errorf("%+v, %v, want %+v", got, err, want)
			}
		})
	}
}

// With hoardArg, this test's program waits for a line, and then uses memory until it is killed.
const hoardArg = "__hoard"

func useMemory() {
	own, _ := os.ReadFile("/proc/self/cgroup")
	_, path, _ := strings.Cut(strings.TrimSpace(string(own)), "0::")
	for _, file := range []string{"memory.max", "cgroup.procs", "../cgroup.procs"} {
		if f, err := os.OpenFile(filepath.Join("/sys/fs/cgroup", path, file), os.O_WRONLY, 0); err == nil {
			fmt.Println("can write to", f.Name())
		}
	}
	sooner, _ := os.ReadFile("/proc/self/oom_score_adj")
	fmt.Printf("ends sooner by %s", sooner)
	_, _ = os.Stdin.Read(make([]byte, 1))
	const chunk = 16 << 20
	for i := range 256 {
		_, _ = unix.Mmap(-1, 0, chunk, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS|unix.MAP_POPULATE)
		fmt.Println((i+1)*chunk>>20, "MiB")
	}
}

// A command that uses too much memory is killed with all its processes, and its Exit names the
// limit. The next command is not affected, and the control group is removed.
func TestMemoryLimit(t *testing.T) {
	needSandbox(t)
	pool := newPool(t)
	if _, err := pool.MemoryLimit(); err != nil {
		t.Skipf("NOT TESTED: there is no limit on memory here (%v); run it in a session of systemd: systemd-run --user --scope go test ./internal/proc", err)
	}
	groups, err := findMemoryGroups()
	if err != nil {
		t.Fatal(err)
	}
	const limit = 64 << 20
	here, ws := pool.Isolation(), t.TempDir()
	for name, policy := range map[string]sandbox.Policy{
		"with namespaces":    {Level: sandbox.Workspace, Write: []string{ws}, Isolate: here.Mounts, OwnProcesses: here.Processes},
		"without namespaces": {Level: sandbox.Workspace, Write: []string{ws}},
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			read, write, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			defer read.Close()
			defer write.Close()
			c, err := pool.Start(Spec{Path: pool.supervisor, Args: []string{hoardArg}, Dir: ws, Stdin: read, Stdout: &out, Stderr: &out, Sandbox: policy})
			if err != nil {
				t.Fatal(err)
			}
			group := &memoryGroup{dir: groupOf(t, groups, c)}
			if n, err := readNumber(filepath.Join(group.dir, "memory.max")); err != nil || n != groups.limit/4096*4096 {
				t.Errorf("the limit is %d, %v, want %d", n, err, groups.limit)
			}
			if err := group.write("memory.max", strconv.Itoa(limit)); err != nil {
				t.Fatal(err)
			}
			_ = group.write("memory.swap.max", "0")
			defer func() { _ = group.write("memory.max", strconv.FormatInt(groups.limit, 10)) }()
			_ = write.Close()
			exit := c.Wait()
			if !exit.OutOfMemory || exit.MemoryLimit != limit || exit.Code != -1 {
				t.Errorf("%+v after %s", exit, out.String())
			}
			if strings.Contains(out.String(), "can write") || !strings.Contains(out.String(), "MiB") || !strings.HasPrefix(out.String(), "ends sooner by 500\n") {
				t.Error(out.String())
			}
			again, err := pool.Run(t.Context(), Spec{Path: pool.supervisor, Args: []string{nothingArg}, Dir: ws, Sandbox: policy})
			if err != nil || again != (Exit{}) {
				t.Errorf("the next command: %+v, %v", again, err)
			}
		})
	}
	t.Run("the supervisor is killed", func(t *testing.T) {
		read, write, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		defer read.Close()
		defer write.Close()
		c, err := pool.Start(Spec{Path: pool.supervisor, Args: []string{hoardArg}, Dir: ws, Stdin: read, Sandbox: sandbox.Policy{Level: sandbox.Workspace, Write: []string{ws}}})
		if err != nil {
			t.Fatal(err)
		}
		dir := groupOf(t, groups, c)
		if err := c.(*supervisedChild).supervisor.cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		c.Wait()
		if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("the control group of the killed supervisor's command still exists: %v", err)
		}
	})
	pool.Close()
	if left, _ := filepath.Glob(filepath.Join(groups.dir, "eca-*")); len(left) > 0 {
		t.Errorf("control groups still exist after Close: %v", left)
	}
}

// The Exit of a child without its own control group, such as a hook, also says that the child was
// killed because of its memory.
func TestKilledForMemoryWithoutALimit(t *testing.T) {
	for _, c := range []struct {
		code          int
		before, after int64
		killed        bool
	}{{-1, 3, 4, true}, {137, 3, 4, true}, {137, 3, 3, false}, {1, 3, 4, false}, {0, 3, 4, false}} {
		if got := killedForMemory(c.code, c.before, c.after); got != c.killed {
			t.Errorf("%+v: %t", c, got)
		}
	}
	if n := parseCount("pgfault 7\noom_kill 12\noom_kill_x 3\n", "oom_kill"); n != 12 {
		t.Errorf("counted %d", n)
	}
	// A group of cgroup v1 stands for a machine with little memory.
	group := filepath.Join("/sys/fs/cgroup/memory", fmt.Sprintf("eca-test-%d", os.Getpid()))
	if err := os.Mkdir(group, 0o755); err != nil {
		t.Skip("NOT TESTED: no control group of cgroup v1 can be made: " + err.Error() + "; run it as root where cgroup v1 has the controller for memory")
	}
	t.Cleanup(func() { _ = os.Remove(group) })
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer read.Close()
	pool := newPool(t)
	defer pool.Close()
	c, err := pool.Start(Spec{Path: pool.supervisor, Args: []string{hoardArg}, Dir: t.TempDir(), Stdin: read})
	if err != nil {
		t.Fatal(err)
	}
	for file, value := range map[string]string{"memory.limit_in_bytes": strconv.Itoa(64 << 20), "cgroup.procs": strconv.Itoa(c.Pid())} {
		if err := os.WriteFile(filepath.Join(group, file), []byte(value), 0); err != nil {
			t.Fatal(err) // it uses up no memory yet
		}
	}
	_ = write.Close()
	exit := c.Wait()
	if want := "it was killed because the machine had no more memory"; exit.MemoryCause() != want {
		t.Errorf("%+v says %q", exit, exit.MemoryCause())
	}
	if exit, err := pool.Run(t.Context(), Spec{Path: "bash", Args: []string{"-c", "kill -9 $$"}}); err != nil || exit.MemoryCause() != "" {
		t.Errorf("a child that kills itself: %+v, %v", exit, err)
	}
}

// groupOf returns the control group that a child is in.
func groupOf(t *testing.T, groups memoryGroups, c Child) string {
	t.Helper()
	supervisor := c.(*supervisedChild).supervisor.cmd.Process.Pid
	dir := filepath.Join(groups.dir, fmt.Sprintf(groupName, supervisor))
	procs, err := os.ReadFile(filepath.Join(dir, "cgroup.procs"))
	if err != nil || !strings.Contains("\n"+string(procs), "\n"+strconv.Itoa(c.Pid())+"\n") {
		t.Fatalf("the child %d is not in the group of its supervisor: %q, %v", c.Pid(), procs, err)
	}
	return dir
}
