// Package harbor reads tasks in Harbor's format (a folder with task.toml, instruction.md,
// environment/ and tests/) or in the older format of Terminal-Bench (task.yaml), and turns them into
// scenarios of a manifest.
//
// Guarantees: settings that affect the result but cannot be expressed in a manifest are errors with
// the file, the key and the reason. Task.Notes lists other settings that are ignored. The package
// runs no programs, and writes nothing but the copies that Copy makes.
package harbor

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/BurntSushi/toml"

	"github.com/seed-dec29ce4/eca/internal/safeio"
)

// Task is one task, reduced to what a manifest can express.
type Task struct {
	Dir         string // as passed to Tasks, or below it
	ID          string
	Instruction string
	Image       string // empty if there is a Dockerfile
	Dockerfile  string // relative to Dir
	Workdir     string
	CPUs        float64
	MemoryMB    int64
	Network     bool
	AgentS      float64 // time limit of the agent, in seconds
	TestsS      float64 // time limit of the tests, in seconds
	Older       bool    // in Terminal-Bench's format
	Notes       []string
}

// Default time limits, in seconds. Harbor itself has no default limit for the agent.
const (
	defaultAgent = 3600
	defaultTests = 600
)

// Tasks reads a task's folder, or a folder of tasks. The error lists all problems.
func Tasks(dir string) (tasks []Task, err error) {
	dirs := []string{dir}
	if !isTask(dir) {
		entries, err := os.ReadDir(dir)
		if err != nil {
			return nil, err
		}
		dirs = nil
		for _, e := range entries {
			if d := filepath.Join(dir, e.Name()); isTask(d) {
				dirs = append(dirs, d)
			}
		}
		if len(dirs) == 0 {
			return nil, fmt.Errorf("%s has no task.toml or task.yaml, and no folder with one", dir)
		}
	}
	var problems []error
	seen := map[string]string{}
	for _, d := range dirs {
		t, err := readTask(d)
		if err == nil && seen[t.ID] != "" {
			err = fmt.Errorf("%s and %s are both called %q", seen[t.ID], d, t.ID)
		}
		if err != nil {
			problems = append(problems, err)
			continue
		}
		seen[t.ID] = d
		tasks = append(tasks, t)
	}
	return tasks, errors.Join(problems...)
}

// isTask reports whether a folder is a task.
func isTask(dir string) bool { return exists(dir, newerTask) || exists(dir, olderTask) }

// newerTask describes a task in Harbor's format.
const newerTask = "task.toml"

// maxTaskFile limits the size of a file of a task, in bytes.
const maxTaskFile = 1 << 30

// taskFile is the content of task.toml. Fields of type any are only tested for presence.
type taskFile struct {
	Schema  string `toml:"schema_version"`
	Version string `toml:"version"`
	Task    struct {
		Name                                    string
		Version, Description, Keywords, Authors any
	}
	Metadata map[string]any
	Source   any
	Agent    struct {
		Timeout *float64 `toml:"timeout_sec"`
		User    any
		Network string `toml:"network_mode"`
		Hosts   []any  `toml:"allowed_hosts"`
	}
	Verifier struct {
		Timeout     *float64 `toml:"timeout_sec"`
		User        any
		Network     string         `toml:"network_mode"`
		Hosts       []any          `toml:"allowed_hosts"`
		Env         map[string]any `toml:"env"`
		Mode        string         `toml:"environment_mode"`
		Environment any
		Collect     []any
	}
	Environment struct {
		Image       string   `toml:"docker_image"`
		Build       any      `toml:"build_timeout_sec"`
		CPUs        *float64 `toml:"cpus"`
		MemoryMB    *int64   `toml:"memory_mb"`
		Memory      string
		StorageMB   any `toml:"storage_mb"`
		Storage     any
		GPUs        int64 `toml:"gpus"`
		TPU         any   `toml:"tpu"`
		OS          string
		Workdir     string
		Network     string `toml:"network_mode"`
		Hosts       []any  `toml:"allowed_hosts"`
		Internet    *bool  `toml:"allow_internet"`
		Healthcheck any
		MCP         []any          `toml:"mcp_servers"`
		Skills      string         `toml:"skills_dir"`
		Env         map[string]any `toml:"env"`
	}
	Solution  any
	Artifacts []any
	Steps     []any
	Strategy  any `toml:"multi_step_reward_strategy"`
}

// readTask reads one task.
func readTask(dir string) (t Task, err error) {
	path := filepath.Join(dir, newerTask)
	if !exists(dir, newerTask) {
		return readOlder(dir)
	}
	data, err := safeio.Read(path, maxTaskFile)
	if err != nil {
		return t, err
	}
	f, problems := parse(string(data))
	t = f.task()
	t.Dir = dir
	if t.ID == "" {
		t.ID = filepath.Base(dir)
	}
	problems = append(problems, t.checkFiles(dir)...)
	for i, p := range problems {
		problems[i] = fmt.Errorf("%s: %w", path, p)
	}
	return t, errors.Join(problems...)
}

// parse reads task.toml and returns the settings that a manifest cannot express.
func parse(text string) (f taskFile, problems []error) {
	meta, err := toml.Decode(text, &f)
	if err != nil {
		return f, []error{err}
	}
	for _, key := range meta.Undecoded() {
		if slices.Contains([]string{"metadata", "source", "solution"}, key[0]) || len(key) > 2 && key[0] == "task" && key[1] == "authors" {
			continue // these tables do not affect the result
		}
		problems = append(problems, fmt.Errorf("%s: unknown key", key))
	}
	return f, append(problems, f.unsupported()...)
}

// unsupported lists settings that a manifest cannot express or enforce.
func (f *taskFile) unsupported() (out []error) {
	reject := func(refuse bool, key, why string) {
		if refuse {
			out = append(out, fmt.Errorf("%s: %s", key, why))
		}
	}
	version := f.Schema
	if version == "" {
		version = f.Version
	}
	reject(!slices.Contains([]string{"", "1.0", "1.1", "1.2", "1.3", "1.4"}, version), "schema_version", fmt.Sprintf("%q must be 1.0 to 1.4", version))
	for key, mode := range map[string]string{"agent": f.Agent.Network, "verifier": f.Verifier.Network, "environment": f.Environment.Network} {
		reject(!slices.Contains([]string{"", "public", "no-network"}, mode), key+".network_mode", fmt.Sprintf("%q cannot be enforced; use no-network or public", mode))
	}
	reject(len(f.Agent.Hosts) > 0, "agent.allowed_hosts", "access cannot be limited to single hosts")
	reject(len(f.Verifier.Hosts) > 0, "verifier.allowed_hosts", "access cannot be limited to single hosts")
	reject(len(f.Environment.Hosts) > 0, "environment.allowed_hosts", "access cannot be limited to single hosts")
	reject(f.network(f.Agent.Network) != f.network(f.Verifier.Network), "verifier.network_mode", "agent and tests share a container, and so its network")
	const user = "programs run as the image's own user"
	reject(f.Agent.User != nil, "agent.user", user)
	reject(f.Verifier.User != nil, "verifier.user", user)
	const values = "a manifest cannot set variables; set them in the image or in tests/test.sh"
	reject(len(f.Verifier.Env) > 0, "verifier.env", values)
	reject(len(f.Environment.Env) > 0, "environment.env", values)
	reject(f.Verifier.Mode != "" && f.Verifier.Mode != "shared" || f.Verifier.Environment != nil, "verifier.environment_mode", "tests run in the agent's container (shared)")
	reject(len(f.Verifier.Collect) > 0, "verifier.collect", "no command can run between the agent and the tests")
	reject(f.Environment.GPUs > 0, "environment.gpus", "containers get no GPU")
	reject(f.Environment.TPU != nil, "environment.tpu", "containers get no TPU")
	reject(f.Environment.OS != "" && f.Environment.OS != "linux", "environment.os", fmt.Sprintf("%q is not linux", f.Environment.OS))
	reject(f.Environment.Workdir != "" && !strings.HasPrefix(f.Environment.Workdir, "/"), "environment.workdir", "it is not an absolute path")
	reject(f.Environment.Healthcheck != nil, "environment.healthcheck", "waiting for services is not supported")
	reject(len(f.Environment.MCP) > 0, "environment.mcp_servers", "agents use their own MCP servers")
	reject(f.Environment.Skills != "", "environment.skills_dir", "agents use their own skills")
	reject(len(f.Steps) > 0 || f.Strategy != nil, "steps", "a task with several instructions cannot be imported")
	if _, err := f.memory(); err != nil {
		out = append(out, err)
	}
	for key, v := range map[string]*float64{"agent.timeout_sec": f.Agent.Timeout, "verifier.timeout_sec": f.Verifier.Timeout, "environment.cpus": f.Environment.CPUs} {
		reject(v != nil && !(*v > 0 && *v <= 1e7), key, "it is not a number above 0")
	}
	slices.SortFunc(out, func(a, b error) int { return strings.Compare(a.Error(), b.Error()) })
	return out
}

// network reports whether programs have network access. own is the network_mode of the agent or the
// verifier; if it is empty, the settings of the environment apply.
func (f *taskFile) network(own string) bool {
	if own == "" {
		own = f.Environment.Network
	}
	if own == "" && f.Environment.Internet != nil {
		return *f.Environment.Internet
	}
	return own != "no-network"
}

// memory returns the memory limit in MiB, or 0 without a limit. Older tasks have values such as 2G.
func (f *taskFile) memory() (int64, error) {
	if f.Environment.MemoryMB != nil {
		if *f.Environment.MemoryMB <= 0 {
			return 0, errors.New("environment.memory_mb: it is not a number above 0")
		}
		return *f.Environment.MemoryMB, nil
	}
	text := f.Environment.Memory
	if text == "" {
		return 0, nil
	}
	var n int64
	var unit string
	if _, err := fmt.Sscanf(text, "%d%s", &n, &unit); err != nil || n <= 0 || n > 1<<20 {
		return 0, fmt.Errorf("environment.memory: %.20q is not like 2G or 512M", text)
	}
	switch strings.ToUpper(unit) {
	case "G", "GB", "GI", "GIB":
		return n << 10, nil
	case "M", "MB", "MI", "MIB":
		return n, nil
	}
	return 0, fmt.Errorf("environment.memory: %.20q is not like 2G or 512M", text)
}

// task copies the settings that a manifest can express.
func (f *taskFile) task() Task {
	t := Task{ID: f.Task.Name, Image: f.Environment.Image, Workdir: f.Environment.Workdir, Network: f.network(f.Agent.Network), AgentS: defaultAgent, TestsS: defaultTests}
	t.MemoryMB, _ = f.memory() // refused reports the error
	if f.Environment.CPUs != nil {
		t.CPUs = *f.Environment.CPUs
	}
	if f.Verifier.Timeout != nil {
		t.TestsS = *f.Verifier.Timeout
	}
	if f.Agent.Timeout != nil {
		t.AgentS = *f.Agent.Timeout
	} else {
		t.Notes = append(t.Notes, fmt.Sprintf("agent.timeout_sec is missing; the agent has %d seconds", defaultAgent))
	}
	if f.Environment.StorageMB != nil || f.Environment.Storage != nil {
		t.Notes = append(t.Notes, "environment.storage is not bounded")
	}
	if len(f.Artifacts) > 0 {
		t.Notes = append(t.Notes, "artifacts are not kept")
	}
	return t
}

// checkFiles checks the files next to task.toml, and reads the instruction.
func (t *Task) checkFiles(dir string) (out []error) {
	has := func(name string) bool { return exists(dir, name) }
	data, err := safeio.Read(filepath.Join(dir, "instruction.md"), maxTaskFile)
	if t.Instruction = string(data); err != nil {
		out = append(out, err)
	} else if strings.TrimSpace(t.Instruction) == "" {
		out = append(out, errors.New("instruction.md is empty"))
	}
	if !has("tests/test.sh") {
		out = append(out, errors.New("tests/test.sh is missing"))
	}
	for _, name := range []string{"environment/docker-compose.yaml", "environment/docker-compose.yml"} {
		if has(name) {
			out = append(out, fmt.Errorf("%s: a task of several containers cannot be imported", name))
		}
	}
	if has("trajectory.json") {
		out = append(out, errors.New("trajectory.json: agents begin without a prior conversation"))
	}
	if has(".harborignore") {
		out = append(out, errors.New(".harborignore: all of tests/ is used; remove the files that it names"))
	}
	if t.Image == "" {
		if t.Dockerfile = "environment/Dockerfile"; !has(t.Dockerfile) {
			out = append(out, errors.New("environment/Dockerfile is missing, and there is no environment.docker_image"))
		}
	}
	return out
}
