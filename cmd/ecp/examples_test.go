package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/seed-dec29ce4/eca/ecp/report"
	"github.com/seed-dec29ce4/eca/internal/needs"
)

// isolateExceptGoCaches is isolateEnvironment for tests that run Go. isolateEnvironment sets HOME
// to a temporary directory, so the Go caches must be named explicitly.
func isolateExceptGoCaches(t *testing.T) {
	t.Helper()
	out, err := exec.Command("go", "env", "GOCACHE", "GOMODCACHE", "GOPATH").Output()
	if err != nil {
		t.Fatal(err)
	}
	isolateEnvironment(t)
	dirs := strings.Split(strings.TrimSpace(string(out)), "\n")
	t.Setenv("GOCACHE", dirs[0])
	t.Setenv("GOMODCACHE", dirs[1])
	t.Setenv("GOPATH", dirs[2])
}

// manifests returns the example manifests and the directories in which to run them.
func manifests(t *testing.T) map[string]string {
	t.Helper()
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	list := map[string]string{}
	for _, name := range []string{"quickstart", "bug-fix", "refusal", "tool-use", "chat"} {
		list[filepath.Join(root, "examples", name, "manifest.yaml")] = root
	}
	if _, err := exec.LookPath("python3"); err == nil {
		list[filepath.Join(root, "examples", "plain-agent", "manifest.yaml")] = filepath.Join(root, "examples", "plain-agent")
	} else {
		t.Log("NOT TESTED: plain-agent needs python3: apt-get install python3")
	}
	return list
}

// The examples that manifests lists pass, without a network and without a user's configuration.
func TestExamples(t *testing.T) {
	needs.Long(t)
	isolateExceptGoCaches(t)
	for path, dir := range manifests(t) {
		t.Run(filepath.Base(filepath.Dir(path)), func(t *testing.T) {
			t.Chdir(dir)
			if r := invoke(t, "validate", path); r.code != 0 || r.err != "" {
				t.Errorf("exit %d: %s", r.code, r.err)
			}
			out, r := evaluateManifest(t, path, "-j", "2", "--timeout", "600")
			if out.code != 0 || r.Passed == 0 {
				t.Errorf("exit %d: %s", out.code, out.err)
			}
		})
	}
}

// In the ten coding tasks, hidden tests find the two wrong answers of the scripted model.
func TestCodingTasks(t *testing.T) {
	needs.Long(t)
	needs.Program(t, "python3", "python3")
	isolateExceptGoCaches(t)
	needsSandbox(t)
	bin := t.TempDir()
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(root)
	for _, args := range [][]string{{"build", "-o", bin, "./cmd/eca"}, {"build", "testing", "reflect"}} {
		cmd := exec.Command("go", args...) // the second build is for the graders, which share the build cache
		if args[1] == "testing" {
			cmd.Env = append(os.Environ(), "GOFLAGS=", "CGO_ENABLED=0")
		}
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	t.Setenv("PATH", bin+":"+os.Getenv("PATH"))
	manifest := filepath.Join(root, "examples", "coding", "manifest.yaml")
	if r := invoke(t, "validate", manifest); r.code != 0 || r.err != "" {
		t.Errorf("exit %d: %s", r.code, r.err)
	}
	out, r := evaluateManifest(t, manifest, "-j", "2", "--timeout", "600")
	if out.code != exitFailed || len(r.Errors) > 0 || len(r.Scenarios) != 10 {
		t.Errorf("exit %d: %s", out.code, out.err)
	}
	for _, s := range r.Scenarios {
		wrong := s.Name == "Evicts what was used longest ago" || s.Name == "Splits lines of a table"
		if (s.Status == report.Failed) != wrong || !strings.HasPrefix(s.Diff, "diff --git a/") {
			t.Errorf("%s: %s\n%s", s.Name, s.Status, s.Diff)
		}
	}
}

// The reference runtime gives the same verdicts for the examples, check by check.
func TestExamplesReference(t *testing.T) { withReferenceRuntimes(t, testExamplesReference) }

func testExamplesReference(t *testing.T, runtime []string) {
	isolateExceptGoCaches(t)
	for path, dir := range manifests(t) {
		t.Run(filepath.Base(filepath.Dir(path)), func(t *testing.T) {
			t.Chdir(dir)
			cmd := exec.Command(runtime[0], append(runtime[1:], "run", "--manifest", path, "--json", "--timeout", "600")...)
			cmd.Stderr = os.Stderr
			text, err := cmd.Output()
			if err != nil {
				t.Fatalf("the reference: %v\n%s", err, text)
			}
			theirs, err := report.Parse(text)
			if err != nil {
				t.Fatal(err)
			}
			_, ours := evaluateManifest(t, path, "--compat", "reference", "--timeout", "600")
			if diff := cmp.Diff(comparableChecks(theirs), comparableChecks(ours)); diff != "" {
				t.Errorf("theirs, ours: %s", diff)
			}
			if theirs.Total != ours.Total || theirs.Passed != ours.Passed || theirs.Failed != ours.Failed || theirs.Manifest != ours.Manifest {
				t.Errorf("counts: %d of %d, ours %d of %d", theirs.Passed, theirs.Total, ours.Passed, ours.Total)
			}
			var keys map[string]any
			if err := json.Unmarshal(text, &keys); err != nil {
				t.Fatal(err)
			}
			if err := resolvedAt(t, filepath.Join(dir, schemaDir(dir)), "report.schema.json").Validate(keys); err != nil {
				t.Errorf("our schema refuses the reference's report: %v", err)
			}
		})
	}
}

// schemaDir returns the path of the schemas, relative to the directory in which an example is run.
func schemaDir(dir string) string {
	if filepath.Base(dir) == "plain-agent" {
		return "../../schema"
	}
	return "schema"
}

// comparableChecks returns all checks, with the fields that both runtimes report.
func comparableChecks(r *report.Report) (out []report.Check) {
	for _, s := range r.Scenarios {
		for _, st := range s.Steps {
			for _, c := range st.Checks {
				c.Votes, c.Error = nil, ""
				out = append(out, c)
			}
		}
	}
	return out
}
