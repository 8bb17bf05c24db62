package main

import (
	"bytes"
	"fmt"
	"maps"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/seed-dec29ce4/eca/ecp/report"
	"github.com/seed-dec29ce4/eca/internal/testkit"
)

// withReferenceRuntimes runs a test with each of the reference runtimes: 0.4, which sends no
// protocol version, and 0.10, which speaks 1.0.
func withReferenceRuntimes(t *testing.T, test func(t *testing.T, runtime []string)) {
	t.Helper()
	paths := filepath.SplitList(os.Getenv("ECA_ECP_RUNTIME"))
	if len(paths) == 0 {
		if exec.Command("python3", "-c", "import ecp_runtime").Run() != nil {
			t.Skip("NOT TESTED against the reference runtime: python3 -m venv DIR && DIR/bin/pip install -r .ci/python/requirements.txt, then ECA_ECP_RUNTIME=DIR/bin/ecp; the same with requirements-0.10.txt, then both paths with a colon between them")
		}
		test(t, []string{"python3", "-m", "ecp_runtime.cli"})
		return
	}
	for i, path := range paths {
		t.Run(fmt.Sprintf("reference %d", i+1), func(t *testing.T) {
			t.Log(path)
			test(t, []string{path})
		})
	}
}

// referencePython is the Python that has the reference's SDK.
func referencePython(t *testing.T, runtime []string) string {
	t.Helper()
	python := "python3"
	if len(runtime) == 1 {
		python = filepath.Join(filepath.Dir(runtime[0]), "python")
	}
	if exec.Command(python, "-c", "import ecp").Run() != nil {
		t.Skip("NOT TESTED against agents of the reference's SDK: DIR/bin/pip install -r .ci/python/requirements.txt")
	}
	return python
}

// speaks10 reports whether the reference installed for a Python speaks protocol 1.0.
func speaks10(t *testing.T, python string) bool {
	t.Helper()
	version, err := exec.Command(python, "-c", "import importlib.metadata as m; print(m.version('ecp-runtime'))").Output()
	if err != nil {
		t.Fatal(err)
	}
	return !strings.HasPrefix(string(version), "0.4.")
}

// sameVerdicts runs a manifest with both runtimes and compares all checks. It resets a server
// before each run, because the reference does not. The time limits are long.
func sameVerdicts(t *testing.T, runtime []string, manifest, target string) {
	t.Helper()
	checkConformance(t, target)
	cmd := exec.Command(runtime[0], append(runtime[1:], "run", "--manifest", manifest, "--json", "--timeout", "300", "--no-fail-on-error")...)
	cmd.Stderr = &bytes.Buffer{}
	text, err := cmd.Output()
	if err != nil {
		t.Fatalf("the reference: %v\n%s", err, cmd.Stderr)
	}
	theirs, err := report.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	if strings.HasPrefix(target, "http") {
		checkConformance(t, target)
	}
	_, ours := evaluateManifest(t, manifest, "--compat", "reference", "--timeout", "300")
	if diff := cmp.Diff(comparableChecks(theirs), comparableChecks(ours)); diff != "" || len(comparableChecks(ours)) == 0 {
		t.Errorf("theirs, ours: %s", diff)
	}
	if theirs.Passed != ours.Passed || theirs.Total != ours.Total {
		t.Errorf("counts: %d of %d, ours %d of %d", theirs.Passed, theirs.Total, ours.Passed, ours.Total)
	}
	if _, ours = evaluateManifest(t, manifest, "--timeout", "300"); ours.Passed != theirs.Passed {
		t.Errorf("without compat: %d, theirs %d", ours.Passed, theirs.Passed)
	}
}

// checkConformance requires that an agent passes the conformance checks.
func checkConformance(t *testing.T, target string) {
	t.Helper()
	if r := invoke(t, "conformance", "--target", target, "--timeout", "300"); r.code != 0 || !strings.Contains(r.out, "Conformance: 3/3 checks passed") {
		t.Errorf("exit %d: %s%s", r.code, r.out, r.err)
	}
}

// startServer starts a server on a port that the caller passes to it, and waits until it listens.
func startServer(t *testing.T, command func(port string) *exec.Cmd) (url string) {
	t.Helper()
	port := strconv.Itoa(testkit.FreePort(t))
	address := "127.0.0.1:" + port
	cmd := command(port)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	for end := time.Now().Add(2 * time.Minute); ; time.Sleep(20 * time.Millisecond) {
		if c, err := net.Dial("tcp", address); err == nil {
			_ = c.Close()
			return "http://" + address + "/ecp"
		}
		if time.Now().After(end) {
			t.Fatalf("%v does not listen at %s", cmd.Args, address)
		}
	}
}

// An agent made with the reference's SDK, as written by its init command, conforms, and gets the
// same verdicts as from the reference.
func TestReferenceInit(t *testing.T) { withReferenceRuntimes(t, testReferenceInit) }

func testReferenceInit(t *testing.T, runtime []string) {
	isolateEnvironment(t)
	python := referencePython(t, runtime)
	t.Chdir(t.TempDir())
	if out, err := exec.Command(runtime[0], append(runtime[1:], "init", "sdk")...).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	agent := python + " sdk/agent.py"
	data, err := os.ReadFile("sdk/manifest.yaml")
	if err != nil {
		t.Fatal(err)
	}
	write(t, "sdk/manifest.yaml", strings.Replace(string(data), "python sdk/agent.py", agent, 1))
	sameVerdicts(t, runtime, "sdk/manifest.yaml", agent)
}

// So do agents of all the shapes that the SDK supports, on both transports.
func TestReferenceSDK(t *testing.T) { withReferenceRuntimes(t, testReferenceSDK) }

func testReferenceSDK(t *testing.T, runtime []string) {
	isolateEnvironment(t)
	python := referencePython(t, runtime)
	agent, err := filepath.Abs("testdata/sdk-agent.py")
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("no_proxy", "127.0.0.1")
	url := startServer(t, func(port string) *exec.Cmd { return exec.Command(python, agent, "http", port) })
	for shape, target := range map[string]string{
		"class": python + " " + agent + " class", "async": python + " " + agent + " async", "text": python + " " + agent + " text", "http": url,
	} {
		t.Run(shape, func(t *testing.T) {
			sameVerdicts(t, runtime, manifest(t, target, scenario("a", has("hello")+`, {type: text_match, condition: equals, value: "1: hello – 日本 😀"}, {type: text_match, field: evaluation_context, condition: contains, value: heard}, {type: text_match, field: private_thought, condition: regex, pattern: "^heard \\w+$"}, {type: tool_usage, tool_name: remember, arguments: {text: hello}}, {type: tool_usage, tool_name: rest}, {type: tool_usage, tool_name: other}, {type: tool_usage, arguments: {text: 1}}, {type: tool_usage, tool_name: other, arguments: {a: [true, null, 1.5, "it's"]}}`, "hello")+
				scenario("b", "{type: text_match, condition: contains, value: What}", "pause", "nothing")), target)
		})
	}
	// Their failures are errors with their own messages. Only the reference is blocked by the
	// output of a verbose agent.
	_, r := evaluateManifest(t, manifest(t, python+" "+agent+" loud", scenario("a", has("hello"), "hello")+scenario("b", has("x"), "fail")+scenario("c", has("1: x"), "x")), "--timeout", "300")
	if got := statuses(r); !slices.Equal(got, []string{"passed", "error", "passed"}) || !strings.Contains(r.Errors[0].Message, "RuntimeError: it was told to") {
		t.Errorf("%v: %+v", got, r.Errors)
	}
}

// The examples of the reference's repository conform too, and get the same verdicts, if they need
// no packages other than the SDK.
func TestReferenceExamples(t *testing.T) { withReferenceRuntimes(t, testReferenceExamples) }

func testReferenceExamples(t *testing.T, runtime []string) {
	python := referencePython(t, runtime)
	dir := os.Getenv("ECA_ECP_EXAMPLES")
	if dir == "" {
		t.Skip("NOT TESTED against the examples of the reference: git clone --branch v0.4.0 https://github.com/evaluation-context-protocol/ecp DIR, then ECA_ECP_EXAMPLES=DIR/examples")
	}
	isolateEnvironment(t)
	agents, err := filepath.Glob(filepath.Join(dir, "*", "agent.py"))
	if err != nil || len(agents) < 5 {
		t.Fatalf("%d examples in %s, %v", len(agents), dir, err)
	}
	t.Chdir(filepath.Dir(dir)) // the directory that their manifests are run from
	t.Setenv("no_proxy", "127.0.0.1")
	known := 0
	for _, agent := range agents {
		name := filepath.Base(filepath.Dir(agent))
		source, err := os.ReadFile(agent)
		if err != nil {
			t.Fatal(err)
		}
		if out, err := exec.Command(python, "-c", imports, agent).CombinedOutput(); err != nil {
			t.Logf("NOT TESTED: %s needs %s", name, out)
			continue
		}
		known++
		targets := map[string]string{}
		if strings.Contains(string(source), "serve(") {
			targets["stdio"] = python + " " + agent
		}
		if strings.Contains(string(source), "serve_http(") {
			targets["http"] = startServer(t, func(port string) *exec.Cmd {
				cmd := exec.Command(python, agent)
				cmd.Env = append(os.Environ(), "ECP_TRANSPORT=http", "ECP_HTTP_PORT="+port)
				return cmd
			})
		}
		text, err := os.ReadFile(filepath.Join(filepath.Dir(agent), "manifest.yaml"))
		if err != nil {
			t.Fatal(err)
		}
		for _, transport := range slices.Sorted(maps.Keys(targets)) {
			t.Run(name+" "+transport, func(t *testing.T) {
				path := filepath.Join(t.TempDir(), "manifest.yaml")
				write(t, path, retarget(t, string(text), targets[transport]))
				sameVerdicts(t, runtime, path, targets[transport])
			})
		}
	}
	if known < 5 {
		t.Errorf("only %d examples could be run", known)
	}
}

// imports prints the missing modules of a program.
const imports = `
import ast, importlib.util, sys
missing = set()
for node in ast.walk(ast.parse(open(sys.argv[1], encoding="utf-8").read())):
    names = [a.name for a in node.names] if isinstance(node, ast.Import) else [node.module] if isinstance(node, ast.ImportFrom) else []
    missing |= {n.split(".")[0] for n in names if importlib.util.find_spec(n.split(".")[0]) is None}
if missing:
    sys.exit(", ".join(sorted(missing)))
`

// retarget replaces the target of a manifest.
func retarget(t *testing.T, text, target string) string {
	t.Helper()
	var out strings.Builder
	found := false
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "target:") {
			line, found = fmt.Sprintf("target: %q\n", target), true
		}
		out.WriteString(line)
	}
	if !found {
		t.Fatal("the manifest has no target")
	}
	return out.String()
}
