package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/seed-dec29ce4/eca/internal/needs"
	"github.com/seed-dec29ce4/eca/internal/usage"
)

// pytest returns a Python that has pytest.
func pytest(t *testing.T) string {
	t.Helper()
	out, err := exec.Command("python3", "-c", "import pytest, sys; print(sys.executable)").Output()
	if err != nil {
		t.Skip("NOT TESTED: python3 with pytest is missing: pip install pytest")
	}
	return strings.TrimSpace(string(out))
}

// folderContainers puts a fake docker before the real one in PATH, each of whose containers is a
// copy of the folder image. Absolute paths in commands and copied scripts are mapped into it.
func folderContainers(t *testing.T, image string) (calls func() string) {
	t.Helper()
	dir := t.TempDir()
	write(t, filepath.Join(dir, "docker"), `#!/bin/sh
base=`+dir+`
echo "$*" >> $base/calls
map() { sed "s#\(^\|[^A-Za-z0-9_./-]\)/\(testbed\|tests\|ecp-agent\|ecp-changes\.diff\|logs\|ecp\|tmp\)\b#\1$here/\2#g"; }
up() { echo "ecp: the container is up"; exec sleep 1000; }
case $1 in
image|stop) exit 0 ;;
run) here=$base/$3; mkdir -p $here/tmp $here/logs/verifier $here/ecp; cp -a `+image+`/. $here/
  for word; do case $word in type=bind*) s=${word#*source=}; cp "${s%%,*}" $here/ecp/ ;; esac; done; up ;;
rm) [ -e $base/$3 ] || { echo "Error: No such container: $3"; exit 1; }; rm -rf $base/$3 ;;
cp) case $2 in
  -) here=$base/${3%%:*}; exec tar -C $here${3#*:} -xf - ;;
  *:*) here=$base/${2%%:*}; exec tar -C $here/$(dirname ${2#*:}) -cf - $(basename ${2#*:}) ;;
  *) here=$base/${3%%:*}; cp -r "$2" $here/tests && for f in $here/tests/*.sh; do map < $f > $f.new && mv $f.new $f; done ;;
  esac ;;
exec) shift
  while :; do case $1 in --interactive) shift ;; --env) vars="$vars $2"; shift 2 ;; --workdir|--user) shift 2 ;; *) break ;; esac; done
  here=$base/$1; cd $here/testbed
  if [ "$4" = pwd ]; then echo /testbed; exit 0; fi
  exec env -i PATH="$PATH" HOME=$here/tmp GIT_CONFIG_NOSYSTEM=1 PYTHONDONTWRITEBYTECODE=1 sh -c "$(printf '%s\n' "$4" | map)" ;;
*) exit 64 ;;
esac
`)
	return installDocker(t, dir)
}

// installDocker puts the script docker of a folder before the real one in PATH. calls returns what
// the script wrote into the file calls.
func installDocker(t *testing.T, dir string) (calls func() string) {
	t.Helper()
	if err := os.Chmod(filepath.Join(dir, "docker"), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	return func() string {
		data, err := os.ReadFile(filepath.Join(dir, "calls"))
		if err != nil {
			t.Fatal(err)
		}
		return string(data)
	}
}

// gitIn runs git in a folder and returns its output.
func gitIn(t *testing.T, dir string, args ...string) string {
	t.Helper()
	cmd := exec.Command(needs.Git(t), append([]string{"-c", "user.name=a", "-c", "user.email=a@b"}, args...)...)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("git %v: %v: %s", args, err, out)
	}
	return string(out)
}

// issue is an instance of SWE-bench.
type issue map[string]any

const modules = 3

// repository makes a repository with a bug in each of its modules, and the instances that mend one
// each. The first has the columns of new data sets, the others those of older ones.
func repository(t *testing.T, python string) (image string, list []issue) {
	t.Helper()
	image = t.TempDir()
	dir := filepath.Join(image, "testbed")
	for i := range modules {
		write(t, filepath.Join(dir, fmt.Sprintf("m%d.py", i)), "# Arithmetic.\n\n\ndef twice(x):\n    return x + x\n\n\ndef half(x):\n    return x * 2\n\n\ndef name():\n    return 'm'\n")
		write(t, filepath.Join(dir, fmt.Sprintf("test_m%d.py", i)), fmt.Sprintf("import pytest\nimport m%d as m\n\n\ndef test_twice():\n    assert m.twice(2) == 4\n", i))
	}
	gitIn(t, dir, "init", "-q")
	gitIn(t, dir, "add", "-A")
	gitIn(t, dir, "commit", "-q", "-m", "first")
	base := strings.TrimSpace(gitIn(t, dir, "rev-parse", "HEAD"))
	for i := range modules {
		module, test := fmt.Sprintf("m%d.py", i), fmt.Sprintf("test_m%d.py", i)
		edit(t, filepath.Join(dir, module), "x * 2", "x / 2")
		gold := gitIn(t, dir, "diff")
		gitIn(t, dir, "checkout", "-q", ".")
		edit(t, filepath.Join(dir, test), "== 4\n", "== 4\n\n\n@pytest.mark.parametrize('x', [4, 6], ids=['four and', 'six'])\ndef test_half(x):\n    assert m.half(x) == x // 2\n")
		write(t, filepath.Join(dir, fmt.Sprintf("test_new%d.py", i)), fmt.Sprintf("import m%d\n\n\ndef test_new():\n    assert m%d.half(2) == 1\n", i, i))
		gitIn(t, dir, "add", "-A")
		tests := gitIn(t, dir, "diff", "--cached")
		gitIn(t, dir, "reset", "-q", "--hard")
		fails := []string{test + "::test_half[four", test + "::test_half[six]", fmt.Sprintf("test_new%d.py::test_new", i)}
		in := issue{"instance_id": fmt.Sprintf("acme__calc-%d", i), "repo": "acme/calc", "base_commit": base, "problem_statement": "half doubles in " + module, "patch": gold, "test_patch": tests, "FAIL_TO_PASS": fails, "PASS_TO_PASS": `["` + test + `::test_twice"]`, "hints_text": "look at half", "version": "1"}
		if i == 0 {
			in["image"], in["log_parser"], in["eval_type"] = "calc:1", "parse_log_pytest_v2", "pass_and_fail"
			in["eval_script"] = "#!/bin/bash\nset -uxo pipefail\ncd /testbed\ngit checkout " + base + " " + test + "\ngit apply -v - <<'EOF_1'\n" + tests + "EOF_1\n: '>>>>> Start Test Output'\n" + python + " -m pytest -rA -p no:cacheprovider " + strings.Join([]string{test, fmt.Sprintf("test_new%d.py", i)}, " ") + "\n: '>>>>> End Test Output'\ngit checkout " + base + " " + test + "\n"
		}
		list = append(list, in)
	}
	return image, list
}

func edit(t *testing.T, path, old, text string) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil || !strings.Contains(string(data), old) {
		t.Fatal(path, err)
	}
	write(t, path, strings.Replace(string(data), old, text, 1))
}

func jsonLines[T any](t *testing.T, rows []T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "instances.jsonl")
	var b strings.Builder
	for _, r := range rows {
		data, err := json.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		b.Write(append(data, '\n'))
	}
	write(t, path, b.String())
	return path
}

// importInstances writes a manifest and returns its path.
func importInstances(t *testing.T, python, source string, args ...string) string {
	t.Helper()
	out := t.TempDir()
	args = append([]string{"import", "swebench", source, "-o", out, "--image-template", "acme/{id}:latest", "--log-parser", "parse_log_pytest", "--test-command", python + " -m pytest -rA -p no:cacheprovider {files}"}, args...)
	if r := invoke(t, args...); r.code != 0 {
		t.Fatal(r.err)
	}
	return filepath.Join(out, "manifest.yaml")
}

// The solutions of instances are resolved; empty patches, and ones that break, skip or hide tests,
// are not.
func TestPredictions(t *testing.T) {
	needs.Long(t)
	python := pytest(t)
	isolateEnvironment(t)
	image, list := repository(t, python)
	calls := folderContainers(t, image)
	source := jsonLines(t, list)
	_, r := evaluateManifest(t, importInstances(t, python, source, "--predictions", "gold"), "-j", "2")
	if len(r.Errors) > 0 || r.Passed != modules || r.Total != modules {
		t.Errorf("solutions: %s", reasons(r))
	}
	if c := calls(); !strings.Contains(c, "acme/acme_1776_calc-1:latest") || strings.Count(c, "\nrun --name") != 2*modules || strings.Count(c, "rm --force ") < 2*modules {
		t.Error(c)
	}
	gold := list[0]["patch"].(string)
	newFile := func(name string, lines ...string) string {
		return fmt.Sprintf("diff --git a/%s b/%[1]s\nnew file mode 100644\n--- /dev/null\n+++ b/%[1]s\n@@ -0,0 +1,%d @@\n+%s\n", name, len(lines), strings.Join(lines, "\n+"))
	}
	for name, c := range map[string]struct{ patch, want string }{
		"empty":    {" \n", "the patch is empty"},
		"skipped":  {gold + newFile("conftest.py", "import pytest", "def pytest_runtest_setup(item):", "    if 'half' in item.name: pytest.skip('no')"), "2 of 3 tests do not pass: test_m0.py::test_half[four"},
		"breaks":   {gold + newFile("conftest.py", "import m0", "m0.twice = lambda x: 0"), "1 of 1 tests passed before: test_m0.py::test_twice"},
		"ends":     {gold + newFile("conftest.py", "def pytest_sessionfinish(session, exitstatus):", "    session.exitstatus = 3"), "the tests exited with 3 although no test failed"},
		"no tests": {gold + newFile("conftest.py", "import os", "os._exit(0)"), "the log has no result of a test"},
		"unsuited": {strings.ReplaceAll(gold, "m0.py", "gone.py"), "the patch cannot be applied"},
		"fuzz":     {strings.Replace(gold, "# Arith", "# Other", 1), ""},
		"moved":    {strings.NewReplacer("@@ -6", "@@ -2", "@@ -7", "@@ -3").Replace(gold), ""},
	} {
		rows := []issue{{"instance_id": "acme__calc-0", "model_name_or_path": "m", "model_patch": c.patch}}
		_, r := evaluateManifest(t, importInstances(t, python, source, "--predictions", jsonLines(t, rows)))
		text := reasons(r)
		if len(r.Errors) > 0 || r.Total != 1 || (r.Passed == 1) != (c.want == "") || !strings.Contains(text, c.want) {
			t.Errorf("%s: %s", name, text)
		}
	}
}

// The changes of an agent are applied unchanged in a fresh container, also if the agent changed git's
// files or the tests in its own container.
func TestInstancesWithAgents(t *testing.T) {
	needs.Long(t)
	python := pytest(t)
	isolateEnvironment(t)
	image, list := repository(t, python)
	folderContainers(t, image)
	source := jsonLines(t, list[1:2])
	const mend = "sed -i 's#x [*] 2#x / 2#' m1.py; printf 'a\\000b' > bin.dat; rm m2.py; "
	for name, c := range map[string]struct {
		does string
		want string
	}{
		"mends":     {mend, ""},
		"commits":   {mend + "git add -A; git -c user.name=a -c user.email=b commit -qm x", ""},
		"no git":    {mend + "rm -rf .git", ""},
		"fake git":  {mend + "rm -rf .git; git init -q; git add -A; git -c user.name=a -c user.email=b commit -qm x", ""},
		"tests":     {"printf 'def test_half(): pass\\n' > test_m1.py; git config core.hooksPath hooks", "3 of 3 tests do not pass"},
		"does less": {":", "the patch is empty"},
	} {
		saved, patches := filepath.Join(t.TempDir(), "out.json"), filepath.Join(t.TempDir(), "patches.jsonl")
		out, r := evaluateManifest(t, importInstances(t, python, source, "--target", "sh ../ecp/agent.sh", "--read", shellAgent(t, "case $line in *half\\ doubles*) "+c.does+" ;; esac")), "--json-out", saved)
		text := reasons(r)
		if len(r.Errors) > 0 || (r.Passed == 1) != (c.want == "") || !strings.Contains(text, c.want) {
			t.Errorf("%s: exit %d: %s", name, out.code, text)
		}
		diff := r.Scenarios[0].Diff
		if c.want == "" && (!strings.Contains(diff, "+    return x / 2\n") || !strings.Contains(diff, "GIT binary patch") || !strings.Contains(diff, "deleted file mode 100644") || strings.Count(diff, "diff --git") != 3) {
			t.Errorf("%s: the report's diff: %s", name, diff)
		}
		if name != "mends" {
			continue
		}
		// The exported patch gets the same verdict.
		if r := invoke(t, "export", "swebench", saved, "-o", patches, "--model", "m"); r.code != 0 {
			t.Error(r.err)
		}
		if _, again := evaluateManifest(t, importInstances(t, python, source, "--predictions", patches)); again.Passed != 1 || len(again.Errors) > 0 {
			t.Errorf("exported: %s", reasons(again))
		}
	}
}

// The grader swebench needs a fresh container of an image.
func TestSWEBenchRefused(t *testing.T) {
	fakeContainer(t)
	const grader = "{type: swebench, run: x, parser: parse_log_gotest, fail_to_pass: [a]}"
	for want, c := range map[string][2]string{
		"needs an environment with in_image": {"environment: {kind: docker, image: x}", grader},
		"swebench in a new one":              {"environment: {kind: docker, image: x, in_image: true}", grader + ", {type: command, run: x}"},
		"must be one of parse_log_":          {"environment: {kind: docker, image: x, in_image: true}", strings.Replace(grader, "gotest", "tap", 1)},
	} {
		if r := invoke(t, "run", manifest(t, "true", codingScenario(c[0], c[1]))); r.code == 0 || !strings.Contains(r.err, want) {
			t.Errorf("%v: exit %d: %s", c, r.code, r.err)
		}
	}
}

// A patch that the report has cut is not exported as if it were whole; the file with the whole is.
func TestExportNeedsTheWholePatch(t *testing.T) {
	isolateEnvironment(t)
	dir := t.TempDir()
	r := `{"schema_version": 4, "total": 1, "passed": 1, "target": "a b", "scenarios": [{"name": "x y", "scenario_id": "x", "diff": "diff --git a/a b/a\n... 5 more bytes; use --artifacts DIR to keep the whole diff\n"FILE}]}`
	path := filepath.Join(dir, "r.json")
	write(t, path, strings.Replace(r, "FILE", "", 1))
	if out := invoke(t, "export", "swebench", path); out.code != exitError || !strings.Contains(out.err, "--artifacts DIR") || out.out != "" {
		t.Errorf("exit %d: %s%s", out.code, out.err, out.out)
	}
	write(t, filepath.Join(dir, "whole"), "diff <a>\n")
	write(t, path, strings.Replace(r, "FILE", `, "diff_file": "`+filepath.Join(dir, "whole")+`"`, 1))
	const want = `{"instance_id":"x","model_name_or_path":"a b","model_patch":"diff <a>\n"}` + "\n"
	if out := invoke(t, "export", "swebench", path); out.code != 0 || out.out != want {
		t.Errorf("exit %d: %s%s", out.code, out.err, out.out)
	}
	write(t, path, strings.Replace(r, `"diff": "diff --git a/a b/a\n... 5 more bytes; use --artifacts DIR to keep the whole diff\n"FILE`, `"diff": ""`, 1))
	if out := invoke(t, "export", "swebench", path); out.code != 0 || !strings.Contains(out.err, "all predictions are empty") || !strings.Contains(out.out, `"model_patch":""`) {
		t.Errorf("exit %d: %s%s", out.code, out.err, out.out)
	}
	if out := invoke(t, "export", "csv", path); out.code != usage.ExitCode {
		t.Errorf("exit %d: %s", out.code, out.err)
	}
}
