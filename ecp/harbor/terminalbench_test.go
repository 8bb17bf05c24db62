package harbor

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/seed-dec29ce4/eca/internal/testkit"
)

// compose is the compose file that tasks of Terminal-Bench have.
const compose = `services:
  client:
    build: {dockerfile: Dockerfile}
    image: ${T_BENCH_TASK_DOCKER_CLIENT_IMAGE_NAME}
    container_name: ${T_BENCH_TASK_DOCKER_CLIENT_CONTAINER_NAME}
    command: [ "sh", "-c", "sleep infinity" ]
    working_dir: /app
    environment:
      - TEST_DIR=${T_BENCH_TEST_DIR}
    volumes:
      - ${T_BENCH_TASK_LOGS_PATH}:${T_BENCH_CONTAINER_LOGS_PATH}
`

// writeTerminalBenchTask writes a task of Terminal-Bench with the given files; an empty text leaves a file out.
func writeTerminalBenchTask(t *testing.T, dir string, files map[string]string) string {
	t.Helper()
	all := map[string]string{
		"task.yaml": "instruction: |-\n  Do it.\ndifficulty: easy\ntags: [a]\nparser_name: pytest\nmax_agent_timeout_sec: 90\n", "Dockerfile": "FROM scratch\nCOPY data /data\n",
		"docker-compose.yaml": compose, "run-tests.sh": "pytest $TEST_DIR\n", "tests/test_outputs.py": "hidden", "solution.sh": "solution", "data/in": "data",
	}
	for name, text := range files {
		all[name] = text
	}
	for name, text := range all {
		if text == "" {
			continue
		}
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// A task of Terminal-Bench is copied, so that its image contains neither the tests nor the solution.
func TestTerminalBench(t *testing.T) {
	dir := testkit.TempDir(t)
	task := writeTerminalBenchTask(t, filepath.Join(dir, "tasks", "fix-it"), nil)
	tasks, err := Tasks(filepath.Join(dir, "tasks"))
	if err != nil {
		t.Fatal(err)
	}
	want := []Task{{Dir: task, ID: "fix-it", Instruction: "Do it.", Dockerfile: "Dockerfile", Workdir: "/app", Network: true, AgentS: 90, TestsS: 60, Older: true}}
	if diff := cmp.Diff(want, tasks); diff != "" {
		t.Error(diff)
	}
	out := filepath.Join(dir, "out")
	for range 2 { // replaced the second time
		if err := Copy(tasks, out, true); err != nil {
			t.Fatal(err)
		}
	}
	if err := Copy(tasks, out, false); err == nil || !strings.Contains(err.Error(), "--force") {
		t.Error(err)
	}
	var files []string
	if err := filepath.WalkDir(out, func(path string, e os.DirEntry, err error) error {
		if err == nil && !e.IsDir() {
			rel, _ := filepath.Rel(out, path)
			files = append(files, filepath.ToSlash(rel))
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	const base = "terminal-bench/fix-it/"
	if diff := cmp.Diff([]string{base + "environment/Dockerfile", base + "environment/data/in", base + "tests/run-tests.sh", base + "tests/test_outputs.py"}, files); diff != "" {
		t.Error(diff)
	}
	text, err := Manifest(tasks, out, Options{Name: "n", Target: "a", Engine: "docker"})
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"dockerfile: " + base + "environment/Dockerfile", "tests: " + base + "tests\n", "run: TEST_DIR=/tests bash /tests/run-tests.sh", "type: command", "timeout_s: 60", "workdir: /app"} {
		if !strings.Contains(string(text), want) {
			t.Errorf("no %q in %s", want, text)
		}
	}
	if err := Copy(tasks, filepath.Join(task, "out"), true); err == nil || !strings.Contains(err.Error(), "--out") {
		t.Error(err)
	}
}

// Settings that a manifest cannot express are refused by their file and key.
func TestTerminalBenchRefused(t *testing.T) {
	service := func(line string) map[string]string {
		return map[string]string{"docker-compose.yaml": compose + line + "\n"}
	}
	for name, c := range map[string]struct {
		files map[string]string
		want  string
	}{
		"no instruction":  {map[string]string{"task.yaml": "difficulty: easy"}, "task.yaml: instruction is empty"},
		"unknown key":     {map[string]string{"task.yaml": "instruction: x\nworld: 2"}, `task.yaml: [2:1] unknown field "world"`},
		"limit":           {map[string]string{"task.yaml": "instruction: x\nmax_agent_timeout_sec: -1"}, "task.yaml: max_agent_timeout_sec: "},
		"shell":           {map[string]string{"task.yaml": "instruction: x\nrun_tests_in_same_shell: true"}, "task.yaml: run_tests_in_same_shell: "},
		"no tests":        {map[string]string{"run-tests.sh": ""}, "run-tests.sh: the file is missing"},
		"no image":        {map[string]string{"Dockerfile": ""}, "Dockerfile: the file is missing"},
		"two services":    {service("  db: {image: postgres}"), "docker-compose.yaml: it has 2 services"},
		"privileged":      {service("    privileged: true"), "docker-compose.yaml: services.client.privileged: "},
		"entrypoint":      {service("    entrypoint: [serve]"), "services.client.entrypoint: "},
		"variable":        {map[string]string{"docker-compose.yaml": "services: {a: {build: ., environment: {A: 1}}}"}, `services.a.environment: a manifest cannot set variables such as "A"`},
		"command":         {map[string]string{"docker-compose.yaml": "services: {a: {build: ., command: serve}}"}, "services.a.command: "},
		"volume":          {map[string]string{"docker-compose.yaml": "services: {a: {build: ., volumes: [/etc:/etc]}}"}, "services.a.volumes: "},
		"other folder":    {map[string]string{"docker-compose.yaml": "services: {a: {build: ../b}}"}, "services.a.build: "},
		"build arguments": {map[string]string{"docker-compose.yaml": "services: {a: {build: {args: [A]}}}"}, "services.a.build: args: "},
		"other name":      {map[string]string{"docker-compose.yaml": "", "docker-compose.yml": compose}, "docker-compose.yml: rename it"},
		"top":             {map[string]string{"docker-compose.yaml": compose + "volumes: {}\n"}, "unknown field"},
	} {
		dir := writeTerminalBenchTask(t, filepath.Join(t.TempDir(), "task"), c.files)
		if _, err := Tasks(dir); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %s", name, err, c.want)
		}
	}
}
