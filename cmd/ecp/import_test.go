package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// fakeContainer puts a fake docker before the real one in PATH. Its container is a folder, and
// paths of the container in commands are mapped into the folder.
func fakeContainer(t *testing.T) (calls func() string) {
	t.Helper()
	isolateEnvironment(t)
	dir := t.TempDir()
	write(t, filepath.Join(dir, "docker"), `#!/bin/sh
here=`+dir+`/container
echo "$*" >> `+dir+`/calls
up() { mkdir -p $here/work $here/logs/verifier; echo "ecp: the container is up"; exec sleep 1000; }
case $1 in
image) exit 0 ;;
run) case $* in *broken*) echo "no space left"; exit 125 ;; esac; for word; do case $word in type=bind*) s=${word#*source=}; mkdir -p $here/ecp; cp "${s%%,*}" $here/ecp/ ;; esac; done; up ;;
start) up ;;
stop) exit 0 ;;
rm) echo "Error: No such container: $3"; exit 1 ;;
cp) cp -r "$2" $here/tests ;;
exec) shift
  while :; do case $1 in --interactive) shift ;; --env) case $2 in *=*) vars="$vars $2" ;; *) eval "vars=\"\$vars $2=\$$2\"" ;; esac; shift 2 ;; --workdir|--user) shift 2 ;; *) break ;; esac; done
  line=$(printf %s "$4" | sed "s#/\(tests\|logs\|ecp\)\b#$here/\1#g")
  case $line in *" /tests"*|*" /logs"*) echo "a path of the machine: $line"; exit 64 ;; esac
  cd $here/work && exec env -i PATH="$PATH" HERE=$here $vars sh -c "$line" ;;
*) exit 64 ;;
esac
`)
	return installDocker(t, dir)
}

// task writes a task in Harbor's format. Its tests check the requested file, and a file that only
// exists if the container was kept.
func task(t *testing.T, dir, image, extra string) {
	t.Helper()
	write(t, filepath.Join(dir, "task.toml"), fmt.Sprintf("version = \"1.0\"\n[agent]\ntimeout_sec = 60\n[verifier]\ntimeout_sec = 60\n[environment]\ndocker_image = %q\nworkdir = \"/tmp\"\nallow_internet = false\n%s", image, extra))
	write(t, filepath.Join(dir, "instruction.md"), "Write hello into greeting.txt.\n")
	write(t, filepath.Join(dir, "tests", "test.sh"), `#!/bin/sh
echo "keys: $MY_KEY"
found=0
if [ "$(cat greeting.txt)" = hello ] && [ -e ../installed ]; then found=1; fi
echo $found > ${HERE}/logs/verifier/reward.txt
`)
}

// selfGradingAgent returns an agent that runs the given command, and then tries to grade itself.
func selfGradingAgent(t *testing.T, does string) string {
	t.Helper()
	return shellAgent(t, does+`; : > ../installed; mkdir -p $HERE/tests; echo 1 > $HERE/logs/verifier/reward.txt
    echo "echo 1 > $HERE/logs/verifier/reward.txt" > $HERE/tests/test.sh`)
}

// shellAgent is an agent for the shell in a container, which runs a command for its step.
func shellAgent(t *testing.T, does string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "agent.sh")
	write(t, path, `while read -r line; do
  id=${line#*\"id\":}; id=${id%%[,\}]*}
  case $line in
  *agent/initialize*) echo '{"jsonrpc":"2.0","id":'$id',"result":{"name":"sh","protocol_version":"1.0","capabilities":{}}}' ;;
  *agent/step*)
    `+does+`
    echo '{"jsonrpc":"2.0","id":'$id',"result":{"status":"done","public_output":"'$MY_KEY'"}}' ;;
  esac
done
`)
	return path
}

// Imported tasks run in their container, which is kept for their tests. Tests and rewards that the
// agent wrote do not count.
func TestImport(t *testing.T) {
	for does, passed := range map[string]int{"echo hello > greeting.txt": 1, "true": 0} {
		calls := fakeContainer(t)
		dir := t.TempDir()
		task(t, filepath.Join(dir, "tasks", "greet"), "img", "")
		agent := selfGradingAgent(t, does)
		t.Setenv("MY_KEY", "k-77")
		out := filepath.Join(dir, "out")
		if r := invoke(t, "import", "harbor", filepath.Join(dir, "tasks"), "-o", out, "--target", "sh /ecp/agent.sh", "--read", agent, "--env", "MY_KEY"); r.code != 0 || !strings.Contains(r.out, "1 tasks") {
			t.Fatalf("exit %d: %s", r.code, r.err)
		}
		run, r := evaluateManifest(t, filepath.Join(out, "manifest.yaml"))
		if len(r.Errors) > 0 || r.Passed != passed || r.Total != 1 || *r.Scenarios[0].Steps[0].Output != "k-77" {
			t.Errorf("%s: exit %d: %s", does, run.code, reasons(r))
		}
		if text := reasons(r); strings.Contains(text, "k-77") {
			t.Errorf("the tests have the agent's key: %s", text)
		}
		list := calls()
		if strings.Count(list, "run --name ecp-") != 1 || !strings.Contains(list, "--network none") || strings.Count(list, "stop -t 0 ecp-") != 1 || strings.Count(list, "rm --force ecp-") != 1 || strings.Contains(list, "k-77") {
			t.Error(list)
		}
		if stop, tests := strings.Index(list, "stop -t 0"), strings.Index(list, "\ncp "); stop > tests {
			t.Error("the tests were copied before the agent was stopped")
		}
	}
}

// Tasks of Terminal-Bench run too: the exit code of their tests is the verdict.
func TestImportTerminalBench(t *testing.T) {
	for does, passed := range map[string]int{"echo hello > greeting.txt": 1, "true": 0} {
		calls := fakeContainer(t)
		dir := t.TempDir()
		task := filepath.Join(dir, "greet")
		for name, text := range map[string]string{
			"task.yaml": "instruction: Write hello into greeting.txt.\nmax_agent_timeout_sec: 60\n", "Dockerfile": "FROM img\n",
			"docker-compose.yaml": "services:\n  client:\n    build: .\n    command: [sh, -c, sleep infinity]\n",
			"run-tests.sh":        "[[ $(cat greeting.txt) = $(cat $TEST_DIR/expected) ]]\n", "tests/expected": "hello\n", "solution.sh": "true\n",
		} {
			write(t, filepath.Join(task, name), text)
		}
		out := filepath.Join(dir, "out")
		if r := invoke(t, "import", "harbor", task, "-o", out, "--target", "sh /ecp/agent.sh", "--read", shellAgent(t, does)); r.code != 0 || !strings.Contains(r.out, "1 tasks") {
			t.Fatalf("exit %d: %s", r.code, r.err)
		}
		run, r := evaluateManifest(t, filepath.Join(out, "manifest.yaml"))
		if len(r.Errors) > 0 || r.Passed != passed || r.Total != 1 {
			t.Errorf("%s: exit %d: %s", does, run.code, reasons(r))
		}
		if list := calls(); !strings.Contains(list, "\ncp "+filepath.Join(out, "terminal-bench", "greet", "tests")) {
			t.Error(list)
		}
	}
}

// A container that does not start is an error of its attempt, and so is a missing reward.
func TestImportErrors(t *testing.T) {
	fakeContainer(t)
	dir := t.TempDir()
	task(t, filepath.Join(dir, "tasks", "broken"), "broken", "")
	task(t, filepath.Join(dir, "tasks", "silent"), "img", "")
	write(t, filepath.Join(dir, "tasks", "silent", "tests", "test.sh"), "#!/bin/sh\necho nothing to say\n")
	out := filepath.Join(dir, "out")
	if r := invoke(t, "import", "harbor", filepath.Join(dir, "tasks"), "-o", out, "--target", "sh /ecp/agent.sh", "--read", selfGradingAgent(t, "true")); r.code != 0 {
		t.Fatal(r.err)
	}
	run, r := evaluateManifest(t, filepath.Join(out, "manifest.yaml"))
	if text := reasons(r); run.code != exitError || len(r.Errors) != 2 || !strings.Contains(text, "environment: environment: docker run: no space left") || !strings.Contains(text, "it wrote no reward. It printed 'nothing to say") {
		t.Errorf("exit %d: %s", run.code, text)
	}
}

// A failed import leaves nothing, and an existing manifest stays.
func TestImportRefused(t *testing.T) {
	isolateEnvironment(t)
	dir := t.TempDir()
	task(t, filepath.Join(dir, "good"), "img", "")
	task(t, filepath.Join(dir, "bad"), "img", "gpus = 2\n")
	out := filepath.Join(dir, "out")
	for want, args := range map[string][]string{
		"environment.gpus: ":            {"harbor", dir, "-o", out, "--target", "x"},
		"has no task.toml":              {"harbor", filepath.Join(dir, "good", "tests"), "-o", out, "--target", "x"},
		"the format must be harbor or":  {"other", dir, "-o", out, "--target", "x"},
		"--predictions is for swebench": {"harbor", filepath.Join(dir, "good"), "-o", out, "--predictions", "gold"},
		"leave --target out":            {"swebench", dir, "-o", out, "--target", "x", "--predictions", "gold"},
		"is not a task repository":      {"swebench", dir, "-o", out, "--target", "x"},
		"--out and --target":            {"harbor", dir, "-o", out},
		"--engine must be docker or":    {"harbor", dir, "-o", out, "--target", "x", "--engine", "local"},
		"is not a valid variable name":  {"harbor", filepath.Join(dir, "good"), "-o", out, "--target", "x", "--env", "A=b"},
	} {
		r := invoke(t, append([]string{"import"}, args...)...)
		if _, err := os.Stat(out); r.code == 0 || !strings.Contains(r.err, want) || err == nil {
			t.Errorf("%v: exit %d: %s", args, r.code, r.err)
		}
	}
	write(t, filepath.Join(out, "manifest.yaml"), "mine")
	if r := invoke(t, "import", "harbor", filepath.Join(dir, "good"), "-o", out, "--target", "x"); r.code != exitError || !strings.Contains(r.err, "--force replaces it") {
		t.Errorf("exit %d: %s", r.code, r.err)
	}
}

// Graders of a workspace are refused for an image.
func TestInImageRefused(t *testing.T) {
	fakeContainer(t)
	for setup, want := range map[string]string{
		"environment: {kind: local, in_image: true}":                                      "in_image are only for docker and podman",
		"environment: {kind: docker, image: x, workdir: /a}":                              "needs in_image",
		"environment: {kind: docker, image: x, in_image: true, workdir: a}":               "is an absolute path",
		"workspace: {}, environment: {kind: docker, image: x, in_image: true}":            "leave one of them out",
		"environment: {kind: docker, image: x, in_image: true, graders: {network: true}}": "the same network",
		"environment: {kind: docker, image: x, in_image: true, agent: {network: false}}":  "the grader file cannot read the workspace",
	} {
		if r := invoke(t, "run", manifest(t, "true", codingScenario(setup, "{type: file, path: x}"))); r.code == 0 || !strings.Contains(r.err, want) {
			t.Errorf("%s: exit %d: %s", setup, r.code, r.err)
		}
	}
}

// With a container engine, the same is done with real containers.
func TestImportIntoRealContainers(t *testing.T) {
	isolateEnvironment(t)
	engine := ""
	for _, name := range []string{"docker", "podman"} {
		if exec.Command(name, "image", "inspect", "busybox").Run() == nil {
			engine = name
		}
	}
	if engine == "" {
		t.Skip("NOT TESTED: docker or podman with the image busybox is needed: docker pull busybox")
	}
	for does, passed := range map[string]int{"echo hello > greeting.txt; (sleep 1000 &)": 1, "true": 0} {
		dir := t.TempDir()
		task(t, filepath.Join(dir, "greet"), "busybox", "")
		t.Setenv("MY_KEY", "k-77")
		out := filepath.Join(dir, "out")
		if r := invoke(t, "import", "harbor", filepath.Join(dir, "greet"), "-o", out, "--target", "sh /ecp/agent.sh", "--read", selfGradingAgent(t, does), "--env", "MY_KEY", "--engine", engine); r.code != 0 {
			t.Fatal(r.err)
		}
		run, r := evaluateManifest(t, filepath.Join(out, "manifest.yaml"))
		if len(r.Errors) > 0 || r.Passed != passed || r.Total != 1 || *r.Scenarios[0].Steps[0].Output != "k-77" || strings.Contains(reasons(r), "k-77") {
			t.Errorf("%s: exit %d: %s", does, run.code, reasons(r))
		}
	}
}
