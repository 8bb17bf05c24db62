package harbor

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// writeTask writes a task with the files of a plain one and the given files; an empty text removes a
// file.
func writeTask(t *testing.T, dir string, files map[string]string) string {
	t.Helper()
	all := map[string]string{"task.toml": "version = \"1.0\"\n", "instruction.md": "Do it.\n", "environment/Dockerfile": "FROM scratch\n", "tests/test.sh": "#!/bin/sh\n"}
	for name, text := range files {
		all[name] = text
	}
	for name, text := range all {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if text == "" {
			continue
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// A task's keys become keys of the manifest.
func TestTasks(t *testing.T) {
	dir := t.TempDir()
	writeTask(t, filepath.Join(dir, "a"), nil)
	writeTask(t, filepath.Join(dir, "b"), map[string]string{"environment/Dockerfile": "", "task.toml": `
schema_version = "1.4"
artifacts = ["/app/out"]
[task]
name = "org/b"
version = "2"
keywords = ["x"]
authors = [{name = "n", email = "e"}]
[metadata]
anything = {goes = ["here"]}
[agent]
timeout_sec = 90.5
[verifier]
timeout_sec = 30
[environment]
docker_image = "img:1"
cpus = 2
memory = "2G"
storage_mb = 100
workdir = "/app"
allow_internet = false
`})
	if err := os.MkdirAll(filepath.Join(dir, "no task"), 0o755); err != nil {
		t.Fatal(err)
	}
	got, err := Tasks(dir)
	if err != nil {
		t.Fatal(err)
	}
	want := []Task{
		{Dir: filepath.Join(dir, "a"), ID: "a", Instruction: "Do it.\n", Dockerfile: "environment/Dockerfile", Network: true, AgentS: 3600, TestsS: 600, Notes: []string{"agent.timeout_sec is missing; the agent has 3600 seconds"}},
		{Dir: filepath.Join(dir, "b"), ID: "org/b", Instruction: "Do it.\n", Image: "img:1", Workdir: "/app", CPUs: 2, MemoryMB: 2048, AgentS: 90.5, TestsS: 30, Notes: []string{"environment.storage is not bounded", "artifacts are not kept"}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	one, err := Tasks(filepath.Join(dir, "b"))
	if err != nil || len(one) != 1 || one[0].ID != "org/b" {
		t.Errorf("%+v, %v", one, err)
	}
}

// A task without a version, and with empty lists of what a manifest cannot express, is imported.
func TestDefaults(t *testing.T) {
	dir := writeTask(t, t.TempDir(), map[string]string{"task.toml": "[agent]\nallowed_hosts = []\n[verifier]\ncollect = []\nallowed_hosts = []\n[verifier.env]\n[environment]\nmcp_servers = []\nallowed_hosts = []\n[environment.env]\n"})
	if tasks, err := Tasks(dir); err != nil || len(tasks) != 1 || !tasks[0].Network {
		t.Errorf("%+v, %v", tasks, err)
	}
}

// A setting that a manifest cannot express is refused by its key.
func TestRefusedKeys(t *testing.T) {
	for text, want := range map[string]string{
		"version = \"2.0\"":     "schema_version: \"2.0\"",
		"[agent]\nuser = \"x\"": "agent.user: ",
		"[agent]\nnetwork_mode = \"allowlist\"\nallowed_hosts = [\"x\"]": "agent.network_mode: \"allowlist\"",
		"[verifier]\nallowed_hosts = [\"x\"]":                            "verifier.allowed_hosts: ",
		"[verifier]\nnetwork_mode = \"no-network\"":                      "verifier.network_mode: agent and tests",
		"[verifier]\nuser = 0":                                           "verifier.user: ",
		"[verifier.env]\nA = \"${A}\"":                                   "verifier.env: ",
		"[environment.env]\nA = \"1\"":                                   "environment.env: ",
		"[verifier]\nenvironment_mode = \"separate\"":                    "verifier.environment_mode: ",
		"[verifier.environment]\ndocker_image = \"x\"":                   "verifier.environment_mode: ",
		"[[verifier.collect]]\ncommand = \"x\"":                          "verifier.collect: ",
		"[environment]\ngpus = 1":                                        "environment.gpus: ",
		"[environment.tpu]\nkind = \"x\"":                                "environment.tpu: ",
		"[environment]\nos = \"windows\"":                                "environment.os: ",
		"[environment]\nworkdir = \"app\"":                               "environment.workdir: ",
		"[environment]\nmemory = \"lots\"":                               "environment.memory: ",
		"[environment]\nmemory = \"5X\"":                                 "environment.memory: ",
		"[environment]\nmemory_mb = 0":                                   "environment.memory_mb: ",
		"[environment]\ncpus = -1":                                       "environment.cpus: ",
		"[agent]\ntimeout_sec = nan":                                     "agent.timeout_sec: ",
		"[environment.healthcheck]\ncommand = \"x\"":                     "environment.healthcheck: ",
		"[[environment.mcp_servers]]\nname = \"x\"":                      "environment.mcp_servers: ",
		"[environment]\nskills_dir = \"x\"":                              "environment.skills_dir: ",
		"[[steps]]\nname = \"x\"":                                        "steps: ",
		"[environment]\nmemroy_mb = 5":                                   "environment.memroy_mb: unknown key",
		"[environment":                                                   "toml: ",
	} {
		if !strings.HasPrefix(text, "version") {
			text = "version = \"1.0\"\n" + text
		}
		dir := writeTask(t, t.TempDir(), map[string]string{"task.toml": text + "\n"})
		if _, err := Tasks(dir); err == nil || !strings.Contains(err.Error(), filepath.Join(dir, "task.toml")+": "+want) {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
}

// Files that a manifest cannot use are refused too.
func TestRefusedFiles(t *testing.T) {
	for name, c := range map[string]struct {
		files map[string]string
		want  string
	}{
		"no tests":       {map[string]string{"tests/test.sh": ""}, "tests/test.sh is missing"},
		"no instruction": {map[string]string{"instruction.md": ""}, "instruction.md"},
		"blank":          {map[string]string{"instruction.md": " \n"}, "instruction.md is empty"},
		"no image":       {map[string]string{"environment/Dockerfile": ""}, "environment/Dockerfile is missing"},
		"compose":        {map[string]string{"environment/docker-compose.yaml": "services:"}, "several containers"},
		"trajectory":     {map[string]string{"trajectory.json": "{}"}, "trajectory.json"},
		"ignored":        {map[string]string{".harborignore": "x"}, ".harborignore"},
	} {
		dir := t.TempDir()
		writeTask(t, filepath.Join(dir, "task"), c.files)
		if _, err := Tasks(dir); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := Tasks(t.TempDir()); err == nil || !strings.Contains(err.Error(), "has no task.toml or task.yaml") {
		t.Error(err)
	}
	dir := t.TempDir()
	for _, name := range []string{"a", "b"} {
		writeTask(t, filepath.Join(dir, name), map[string]string{"task.toml": "version = \"1.0\"\n[task]\nname = \"same\"\n"})
	}
	if _, err := Tasks(dir); err == nil || !strings.Contains(err.Error(), "are both called \"same\"") {
		t.Error(err)
	}
}

// Any task.toml is read or refused.
func FuzzParse(f *testing.F) {
	f.Add("version = \"1.0\"\n[environment]\nmemory = \"2G\"\n")
	f.Add("[[steps]]\n")
	f.Fuzz(func(t *testing.T, text string) {
		parsed, problems := parse(text)
		if len(problems) > 0 {
			return
		}
		if task := parsed.task(); task.AgentS <= 0 || task.TestsS <= 0 || task.MemoryMB < 0 || task.CPUs < 0 {
			t.Errorf("%+v of %q", task, text)
		}
	})
}
