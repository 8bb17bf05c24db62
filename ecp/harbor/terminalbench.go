package harbor

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"

	"github.com/seed-dec29ce4/eca/internal/safeio"
)

// The files of a task of Terminal-Bench, the older form of Harbor's format.
const (
	olderTask    = "task.yaml"
	olderTests   = "run-tests.sh"
	olderCompose = "docker-compose.yaml"
)

// Default time limits of Terminal-Bench, in seconds.
const (
	defaultOlderAgent = 360
	defaultOlderTests = 60
)

// olderFile is the content of task.yaml. Fields of type any do not affect the result.
type olderFile struct {
	Instruction string   `yaml:"instruction"`
	AgentS      *float64 `yaml:"max_agent_timeout_sec"`
	TestsS      *float64 `yaml:"max_test_timeout_sec"`
	SameShell   bool     `yaml:"run_tests_in_same_shell"`

	AuthorName    any `yaml:"author_name"`
	AuthorEmail   any `yaml:"author_email"`
	Difficulty    any `yaml:"difficulty"`
	Category      any `yaml:"category"`
	Tags          any `yaml:"tags"`
	Parser        any `yaml:"parser_name"` // the exit code of the tests decides
	Asciinema     any `yaml:"disable_asciinema"`
	Estimated     any `yaml:"estimated_duration_sec"`
	ExpertMinutes any `yaml:"expert_time_estimate_min"`
	JuniorMinutes any `yaml:"junior_time_estimate_min"`
}

// readOlder reads a task of Terminal-Bench.
func readOlder(dir string) (t Task, err error) {
	t = Task{Dir: dir, Network: true, AgentS: defaultOlderAgent, TestsS: defaultOlderTests, Older: true}
	absDir, err := filepath.Abs(dir)
	if err != nil {
		return t, err
	}
	t.ID = filepath.Base(absDir)
	data, err := safeio.Read(filepath.Join(dir, olderTask), maxTaskFile)
	if err != nil {
		return t, err
	}
	var problems []error
	reject := func(refuse bool, name, why string) {
		if refuse {
			problems = append(problems, fmt.Errorf("%s: %s", filepath.Join(dir, name), why))
		}
	}
	var f olderFile
	if err := yaml.UnmarshalWithOptions(data, &f, yaml.DisallowUnknownField()); err != nil {
		reject(true, olderTask, yaml.FormatError(err, false, false))
	}
	t.Instruction = f.Instruction
	reject(strings.TrimSpace(f.Instruction) == "", olderTask, "instruction is empty")
	reject(f.SameShell, olderTask, "run_tests_in_same_shell: the tests cannot run in the agent's shell")
	for key, limit := range map[string]struct{ value, into *float64 }{"max_agent_timeout_sec": {f.AgentS, &t.AgentS}, "max_test_timeout_sec": {f.TestsS, &t.TestsS}} {
		if limit.value != nil {
			*limit.into = *limit.value
		}
		reject(!(*limit.into > 0 && *limit.into <= 1e7), olderTask, key+": it is not a number above 0")
	}
	reject(!exists(dir, olderTests), olderTests, "the file is missing")
	t.Dockerfile = "Dockerfile"
	switch {
	case exists(dir, olderCompose):
		for _, p := range t.applyCompose(filepath.Join(dir, olderCompose)) {
			reject(true, olderCompose, p.Error())
		}
	case exists(dir, "docker-compose.yml"):
		reject(true, "docker-compose.yml", "rename it to "+olderCompose)
	}
	reject(t.Image == "" && !exists(dir, t.Dockerfile), t.Dockerfile, "the file is missing")
	slices.SortFunc(problems, func(a, b error) int { return cmp.Compare(a.Error(), b.Error()) })
	return t, errors.Join(problems...)
}

func exists(dir, name string) bool {
	_, err := os.Lstat(filepath.Join(dir, filepath.FromSlash(name)))
	return err == nil
}

// applyCompose applies the settings of the only service of a compose file, and returns an error for each
// that a manifest cannot express.
func (t *Task) applyCompose(path string) (problems []error) {
	data, err := safeio.Read(path, maxTaskFile)
	if err != nil {
		return []error{err}
	}
	var f struct {
		Version  any                       `yaml:"version"`
		Services map[string]map[string]any `yaml:"services"`
	}
	if err := yaml.UnmarshalWithOptions(data, &f, yaml.DisallowUnknownField()); err != nil {
		return []error{errors.New(yaml.FormatError(err, false, false))}
	}
	if len(f.Services) != 1 {
		return []error{fmt.Errorf("it has %d services; only a task of one container can be imported", len(f.Services))}
	}
	for name, service := range f.Services {
		for _, key := range slices.Sorted(maps.Keys(service)) {
			if why := t.applySetting(key, service); why != "" {
				problems = append(problems, fmt.Errorf("services.%s.%s: %s", name, key, why))
			}
		}
	}
	return problems
}

// applySetting applies a setting of a compose service, or returns why a manifest cannot express it.
func (t *Task) applySetting(key string, service map[string]any) (why string) {
	value := service[key]
	text, _ := value.(string)
	switch key {
	case "container_name", "expose":
	case "build":
		return t.applyBuild(value)
	case "image":
		if service["build"] == nil { // otherwise it only names the image that is built
			t.Image = text
		}
	case "working_dir":
		if t.Workdir = text; !strings.HasPrefix(text, "/") {
			return "it is not an absolute path"
		}
	case "command":
		if command := strings.Join(words(value), " "); !slices.Contains([]string{"sleep infinity", "sh -c sleep infinity", "bash -c sleep infinity", "tail -f /dev/null"}, command) {
			return "the container has no command of its own; start programs in run-tests.sh"
		}
	case "environment":
		for _, w := range words(value) {
			if name, v, _ := strings.Cut(w, "="); name != "TEST_DIR" || v != "${T_BENCH_TEST_DIR}" && v != "/tests" {
				return fmt.Sprintf("a manifest cannot set variables such as %q; set them in the image or in run-tests.sh", name)
			}
		}
	case "volumes":
		for _, w := range words(value) {
			if !strings.HasPrefix(w, "${T_BENCH_") { // folders of Terminal-Bench for logs
				return fmt.Sprintf("%q: no folder of this machine can be mounted", w)
			}
		}
	default:
		return "a manifest cannot express it"
	}
	return ""
}

// applyBuild applies the setting "build" of a compose service, or returns why a manifest cannot express
// it.
func (t *Task) applyBuild(value any) (why string) {
	folder, _ := value.(string)
	if settings, ok := value.(map[string]any); ok {
		for key, value := range settings {
			text, _ := value.(string)
			switch key {
			case "context":
				folder = text
			case "dockerfile":
				t.Dockerfile = text
			default:
				return key + ": a manifest cannot express it"
			}
		}
	}
	if path := filepath.Clean(filepath.FromSlash(folder)); path != "." || t.Dockerfile != filepath.Base(t.Dockerfile) {
		return "the build context and the Dockerfile must be in the task's own folder"
	}
	return ""
}

// words returns the elements of a setting that is a list, a table or one string.
func words(value any) (out []string) {
	switch v := value.(type) {
	case []any:
		for _, w := range v {
			out = append(out, fmt.Sprint(w))
		}
	case map[string]any:
		for name, w := range v {
			out = append(out, fmt.Sprintf("%s=%v", name, w))
		}
	default:
		out = strings.Fields(fmt.Sprint(v))
	}
	return out
}

// copyDir is the folder in the manifest's folder for the copy of a task of Terminal-Bench.
func (t *Task) copyDir() string { return filepath.Join("terminal-bench", t.ID) }

// Copy copies the files of tasks of Terminal-Bench to the manifest's folder dir. They cannot stay
// where they are: the Dockerfile's folder contains the tests, so the agent would see them in the image.
func Copy(tasks []Task, dir string, replace bool) error {
	for _, t := range tasks {
		if !t.Older {
			continue
		}
		to := filepath.Join(dir, t.copyDir())
		if exists(to, "") && !replace {
			return fmt.Errorf("%s exists; --force replaces it", to)
		}
		if inside, err := within(t.Dir, to); err != nil || inside {
			return errors.Join(err, fmt.Errorf("%s is in the task's own folder %s; name another folder with --out", to, t.Dir))
		}
		if err := t.copyTo(to); err != nil {
			return fmt.Errorf("copy the task %s: %w", t.Dir, err)
		}
	}
	return nil
}

// within reports whether path is dir or below it.
func within(dir, path string) (bool, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return false, err
	}
	path, err = filepath.Abs(path)
	if err != nil {
		return false, err
	}
	rel, err := filepath.Rel(dir, path)
	return err == nil && filepath.IsLocal(rel), nil
}

// copyTo writes the build context to environment/, and the tests to tests/.
func (t *Task) copyTo(to string) error {
	if err := os.RemoveAll(to); err != nil {
		return err
	}
	image, tests := filepath.Join(to, "environment"), filepath.Join(to, "tests")
	entries, err := os.ReadDir(t.Dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		from, into := filepath.Join(t.Dir, e.Name()), filepath.Join(image, e.Name())
		switch e.Name() {
		case olderTask, olderCompose, "solution.sh", "solution.yaml", "solution":
			continue
		case olderTests:
			into = filepath.Join(tests, e.Name())
		case "tests":
			into = tests
		}
		if err := copyTree(from, into); err != nil {
			return err
		}
	}
	return nil
}

// copyTree copies a file, a link or a folder.
func copyTree(from, to string) error {
	info, err := os.Lstat(from)
	if err != nil {
		return err
	}
	if info.IsDir() {
		return os.CopyFS(to, os.DirFS(from))
	}
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return err
	}
	if info.Mode()&os.ModeSymlink != 0 {
		target, err := os.Readlink(from)
		if err != nil {
			return err
		}
		return os.Symlink(target, to)
	}
	data, err := safeio.Read(from, maxTaskFile)
	if err != nil {
		return err
	}
	return os.WriteFile(to, data, info.Mode().Perm())
}
