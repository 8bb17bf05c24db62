package proc

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Bounded children have a memory limit if eca can create control groups (cgroup v2). Each supervisor
// creates a group, in which its second stages start. The supervisor itself is not in the group. A
// supervisor has one child at a time, so a group never contains processes of two commands.

// groupName is the format of the name of a supervisor's group, with the process ID of the supervisor.
const groupName = "eca-%d"

// commandShare returns how much of the machine's memory one command may use.
func commandShare(bytes int64) int64 { return bytes / 4 * 3 }

// memoryGroups is a control group in which eca can create groups, and the limits of each of these.
type memoryGroups struct {
	dir         string
	limit, swap int64 // bytes
}

// findMemoryGroups finds the control group in which eca can create groups. The error is the reason why
// there is no such group.
func findMemoryGroups() (memoryGroups, error) {
	var root string
	for _, dir := range []string{"/sys/fs/cgroup", "/sys/fs/cgroup/unified"} {
		var st unix.Statfs_t
		if unix.Statfs(dir, &st) == nil && st.Type == unix.CGROUP2_SUPER_MAGIC {
			root = dir
		}
	}
	own, err := os.ReadFile("/proc/self/cgroup")
	if root == "" || err != nil {
		return memoryGroups{}, errors.New("cgroup v2 is not mounted on /sys/fs/cgroup")
	}
	var info unix.Sysinfo_t
	if err := unix.Sysinfo(&info); err != nil {
		return memoryGroups{}, fmt.Errorf("cannot read the size of the memory: %w", err)
	}
	unit := int64(info.Unit)
	return searchMemoryGroups(root, string(own), int64(info.Totalram)*unit, int64(info.Totalswap)*unit, func(path string) error { return unix.Access(path, unix.W_OK) })
}

// searchMemoryGroups searches upwards from eca's own control group for the nearest one in which eca
// may create groups with memory limits. root is the mount point of cgroup v2, own the content of
// /proc/self/cgroup; memory and swap are the sizes of the machine's memory, in bytes. writable returns
// an error for a path that eca cannot write to.
func searchMemoryGroups(root, own string, memory, swap int64, writable func(path string) error) (memoryGroups, error) {
	path, ok := "", false
	for line := range strings.Lines(own) {
		if path, ok = strings.CutPrefix(strings.TrimSuffix(line, "\n"), "0::"); ok {
			break
		}
	}
	switch {
	case !ok:
		return memoryGroups{}, errors.New("eca is not in a control group of cgroup v2")
	case path == "/.." || strings.HasPrefix(path, "/../"):
		return memoryGroups{}, errors.New("eca's control group is not one of those mounted on " + root)
	case !listContains(filepath.Join(root, "cgroup.controllers"), "memory"):
		return memoryGroups{}, errors.New("cgroup v2 has no memory controller here; cgroup v1 may have it")
	}
	found, refused := "", error(nil)
	for dir := filepath.Join(root, path); ; dir = filepath.Dir(dir) {
		if found == "" && listContains(filepath.Join(dir, "cgroup.subtree_control"), "memory") {
			// Moving a process between two groups requires write permission to their common
			// ancestor.
			if err := cmp.Or(writable(dir), writable(filepath.Join(dir, "cgroup.procs"))); err == nil {
				found = dir
			} else if refused == nil {
				refused = fmt.Errorf("eca cannot create control groups in %s: %w; try \"systemd-run --user --scope eca ...\"", dir, err)
			}
		}
		if limit, err := readNumber(filepath.Join(dir, "memory.max")); err == nil && found != "" {
			memory = min(memory, limit)
		}
		if dir == root {
			break
		}
	}
	switch {
	case found != "":
		return memoryGroups{found, commandShare(memory), commandShare(swap)}, nil
	case refused != nil:
		return memoryGroups{}, refused
	}
	return memoryGroups{}, fmt.Errorf("no control group above eca's (%s) has enabled the memory controller for its subgroups", path)
}

// listContains reports whether a file with a space-separated list contains an entry.
func listContains(path, word string) bool {
	data, err := os.ReadFile(path)
	if err != nil {
		return false
	}
	return slices.Contains(strings.Fields(string(data)), word)
}

// readNumber reads a file with one number. It returns an error for "max".
func readNumber(path string) (int64, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return 0, err
	}
	return strconv.ParseInt(strings.TrimSpace(string(data)), 10, 64)
}

// memoryGroup is a control group with a memory limit.
type memoryGroup struct {
	dir        string
	folder     *os.File
	lastEvents memoryEvents
}

// memoryEvents counts the memory events of a group's processes.
type memoryEvents struct {
	limit int64 // how often the group reached its limit and no memory could be freed
	kills int64 // how many processes were killed for lack of memory, at any limit
}

// open creates or reopens the group of a supervisor. The caller must call close.
func (g memoryGroups) open(supervisor int) (*memoryGroup, error) {
	dir := filepath.Join(g.dir, fmt.Sprintf(groupName, supervisor))
	if err := os.Mkdir(dir, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, err
	}
	m := &memoryGroup{dir: dir}
	for _, set := range []struct{ file, value string }{
		{"memory.max", strconv.FormatInt(g.limit, 10)},
		{"memory.swap.max", strconv.FormatInt(g.swap, 10)}, // missing if swap is not accounted for
		{"memory.oom.group", "1"},                          // kill all processes of the command, not only one
	} {
		if err := m.write(set.file, set.value); err != nil && (set.file == "memory.max" || !errors.Is(err, fs.ErrNotExist)) {
			m.close()
			return nil, err
		}
	}
	folder, err := os.Open(dir)
	if err != nil {
		m.close()
		return nil, err
	}
	m.folder, m.lastEvents = folder, m.events()
	return m, nil
}

// write writes to an existing file of the group. It does not create files.
func (m *memoryGroup) write(file, value string) error {
	f, err := os.OpenFile(filepath.Join(m.dir, file), os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = f.WriteString(value)
	return err
}

func (m *memoryGroup) events() (e memoryEvents) {
	data, err := os.ReadFile(filepath.Join(m.dir, "memory.events"))
	if err != nil {
		return e
	}
	return memoryEvents{limit: parseCount(string(data), "oom"), kills: parseCount(string(data), "oom_kill")}
}

// checkKilled reports whether a child that has ended was killed for lack of memory, and at which limit in
// bytes: 0 means the limit of the machine or of a parent group.
func (m *memoryGroup) checkKilled() (killed bool, limit int64) {
	before := m.lastEvents
	m.lastEvents = m.events()
	killed = m.lastEvents.kills > before.kills
	if killed && m.lastEvents.limit > before.limit {
		limit, _ = readNumber(filepath.Join(m.dir, "memory.max"))
	}
	return killed, limit
}

// memoryKills counts the processes that the kernel has killed for lack of memory since the machine
// started; 0 if the count is unknown.
func memoryKills() int64 {
	data, err := os.ReadFile("/proc/vmstat")
	if err != nil {
		return 0
	}
	return parseCount(string(data), "oom_kill")
}

// parseCount returns the number of a name in list, which has a name and a number on each line. It returns
// 0 for an unknown name.
func parseCount(list, name string) int64 {
	for line := range strings.Lines(list) {
		if key, value, _ := strings.Cut(strings.TrimSpace(line), " "); key == name {
			n, _ := strconv.ParseInt(value, 10, 64)
			return n
		}
	}
	return 0
}

// killedForMemory reports whether a child without its own group was probably killed for lack of
// memory. This is assumed if the child, or the last program that a shell ran, was killed, and the
// kernel killed any process for lack of memory while the child ran.
func killedForMemory(code int, before, after int64) bool {
	const killedInShell = 128 + int(unix.SIGKILL)
	return (code < 0 || code == killedInShell) && after > before
}

// empty reports whether there are no processes in the group.
func (m *memoryGroup) empty() bool {
	procs, err := os.ReadFile(filepath.Join(m.dir, "cgroup.procs"))
	return err == nil && len(procs) == 0
}

// close kills the processes of the group and removes it. The group cannot be reused: after
// cgroup.kill, the kernel (at least 6.12) also kills each process that starts in the group.
func (m *memoryGroup) close() {
	if m == nil {
		return
	}
	if m.folder != nil {
		_ = m.folder.Close()
	}
	_ = m.write("cgroup.kill", "1") // missing before Linux 5.14
	for range 50 {                  // killed processes take a moment to end
		if err := unix.Rmdir(m.dir); !errors.Is(err, unix.EBUSY) {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// closeMemoryGroup closes the group of a killed supervisor.
func closeMemoryGroup(supervisor int) {
	if g, err := findMemoryGroups(); err == nil {
		(&memoryGroup{dir: filepath.Join(g.dir, fmt.Sprintf(groupName, supervisor))}).close()
	}
}

// sweepMemoryGroups removes the groups of supervisors that were killed together with their eca.
func sweepMemoryGroups() {
	g, err := findMemoryGroups()
	if err != nil {
		return
	}
	entries, _ := os.ReadDir(g.dir)
	for _, e := range entries {
		var supervisor int
		if _, err := fmt.Sscanf(e.Name(), groupName, &supervisor); err == nil && !Alive(supervisor) {
			_ = unix.Rmdir(filepath.Join(g.dir, e.Name())) // fails for a group with processes
		}
	}
}

// MemoryLimit returns how much memory a bounded child may use, in bytes. The error is the reason why
// there is no limit.
func (p *Pool) MemoryLimit() (int64, error) {
	if why := whyUnbounded(p != nil && p.supervisor != ""); why != "" {
		return 0, errors.New(why)
	}
	groups, err := findMemoryGroups()
	if err != nil {
		return 0, err
	}
	m, err := groups.open(os.Getpid()) // no supervisor has this process ID
	if err != nil {
		return 0, err
	}
	defer m.close()
	child, err := os.StartProcess(p.supervisor, []string{"eca", nothingArg}, &os.ProcAttr{Sys: m.attributes(&unix.SysProcAttr{})})
	if err != nil {
		return 0, fmt.Errorf("start a process in a control group of %s: %w", groups.dir, err)
	}
	_, err = child.Wait()
	return groups.limit, err
}

// attributes configures a process that is about to be started to start in the group.
func (m *memoryGroup) attributes(attr *unix.SysProcAttr) *unix.SysProcAttr {
	if m != nil {
		attr.UseCgroupFD, attr.CgroupFD = true, int(m.folder.Fd())
	}
	return attr
}

// Memory returns the resident memory of the processes of a group, in bytes. ok is false if it is
// unknown.
func Memory(group int) (size int64, ok bool) {
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		return 0, false
	}
	for _, path := range stats {
		data, err := os.ReadFile(path)
		if err != nil {
			continue // it has ended
		}
		// The name, in parentheses, may contain any characters; the fields after it are numbers.
		fields := bytes.Fields(data[bytes.LastIndexByte(data, ')')+1:])
		const groupField, pagesField = 2, 21
		if len(fields) <= pagesField || string(fields[groupField]) != strconv.Itoa(group) {
			continue
		}
		pages, err := strconv.ParseInt(string(fields[pagesField]), 10, 64)
		if err == nil {
			size, ok = size+pages*int64(os.Getpagesize()), true
		}
	}
	return size, ok
}
