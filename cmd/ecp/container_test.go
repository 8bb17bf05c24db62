package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// fakeEngine puts a fake docker before the real one in PATH. It records its calls, and runs a
// container's command in the folder that is mounted as its workspace.
func fakeEngine(t *testing.T, name string) (calls func() string) {
	t.Helper()
	isolateEnvironment(t)
	dir := t.TempDir()
	log := filepath.Join(dir, "calls")
	write(t, filepath.Join(dir, name), `#!/bin/sh
echo "$*" >> `+log+`
case $1 in
image) [ -e `+dir+`/have ] && exit 0; echo "Error: No such image"; exit 1 ;;
pull) case $3 in missing*) echo "manifest unknown"; exit 1 ;; esac; touch `+dir+`/have; exit 0 ;;
build) touch `+dir+`/have; exit 0 ;;
version) [ ! -e `+dir+`/down ] || { echo "Cannot connect to the daemon"; exit 1; }; echo 9.9; exit 0 ;;
rm) echo "Error: No such container: $3"; exit 1 ;;
run) ;;
*) exit 64 ;;
esac
shift
while :; do
  case $1 in
  --mount) case $2 in *target=/workspace) ws=${2#*source=}; ws=${ws%%,*} ;; esac; shift 2 ;;
  --env) case $2 in *=*) vars="$vars $2" ;; *) eval "vars=\"\$vars $2=\$$2\"" ;; esac; shift 2 ;;
  --rm|--init|--interactive) shift ;;
  --*) shift 2 ;;
  *) break ;;
  esac
done
shift
cd "$ws" && exec env -i PATH="$PATH" $vars ECP_WORKSPACE="$ws" HOME=/x/ecp-agent-x/home "$@"
`)
	if err := os.Chmod(filepath.Join(dir, name), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	return func() string {
		data, err := os.ReadFile(log)
		if err != nil {
			t.Fatal(err)
		}
		return string(data)
	}
}

// A container gets the workspace, its limits and the granted files, and no network. Graders run in
// another container. All containers are removed.
func TestContainers(t *testing.T) {
	for _, kind := range []string{"docker", "podman"} {
		t.Run(kind, func(t *testing.T) {
			calls := fakeEngine(t, kind)
			t.Setenv("AGENT_KEY", "key-77")
			t.Setenv("OTHER_KEY", "key-88")
			setup := "workspace: repo, tests: hidden, environment: {kind: " + kind + ", image: img, cpus: 1.5, memory_mb: 512, agent: {env: [AGENT_KEY], network: true, read: [repo]}}"
			m := manifest(t, writeScriptAgent(t, "echo $AGENT_KEY $OTHER_KEY > got.txt"), codingScenario(setup, `{type: command, run: "cat got.txt tests/t; echo $AGENT_KEY; env | grep -c KEY"}`)+codingScenario(strings.Replace(setup, "tests: hidden, ", "", 1), `{type: file, path: got.txt}`))
			write(t, filepath.Join(filepath.Dir(m), "repo", "a"), "x")
			write(t, filepath.Join(filepath.Dir(m), "hidden", "tests", "t"), "laid over\n")
			out, r := evaluateManifest(t, m)
			if text := reasons(r); len(r.Errors) > 0 || !strings.Contains(text, "key-77\nlaid over\n\n0") || strings.Contains(text, "key-88") {
				t.Errorf("exit %d: %s", out.code, text)
			}
			list := calls()
			var runs []string
			for line := range strings.Lines(list) {
				if strings.HasPrefix(line, "run ") {
					runs = append(runs, line)
				}
			}
			if len(runs) != 3 || strings.Count(list, "rm --force ecp-") != 3 || strings.Count(list, "pull --quiet img") != 1 {
				t.Fatalf("%s", list)
			}
			for _, want := range []string{"--cpus 1.5", "--memory 512m", "--memory-swap 512m", "--pids-limit 1024", "--security-opt no-new-privileges", "--cap-drop NET_RAW", "--stop-timeout 0 ", "--env AGENT_KEY ", "--env HTTP_PROXY= ", "target=/ecp/repo", "--interactive", "config", "img sh -c"} {
				if !strings.Contains(runs[0]+"config", want) {
					t.Errorf("no %s in %s", want, runs[0])
				}
			}
			user := "--user " // of docker, and of podman's root, for whom it refuses keep-id
			if kind == "podman" && os.Getuid() != 0 {
				user = "--userns keep-id "
			}
			if !strings.Contains(runs[0], user) || strings.Contains(runs[0], "--network none") || !strings.Contains(runs[1], "--network none") || strings.Contains(runs[1], "AGENT_KEY ") || strings.Contains(list, "key-77") {
				t.Errorf("%s", list)
			}
		})
	}
}

// replaceEngineCommand makes a command of the fake engine run other shell code.
func replaceEngineCommand(t *testing.T, command, does string) {
	t.Helper()
	path, err := exec.LookPath("docker")
	if err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	text := strings.Replace(string(data), "case $1 in\n", "case $1 in\n"+command+") "+does+" ;;\n", 1)
	if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
		t.Fatal(err)
	}
}

// If the command that creates a container is killed, the engine may still create it. The container is
// removed when it exists.
func TestContainerCreatedLate(t *testing.T) {
	calls := fakeEngine(t, "docker")
	replaceEngineCommand(t, "run", "sleep 100")
	count := filepath.Join(t.TempDir(), "count")
	replaceEngineCommand(t, "rm", `echo >> `+count+`; [ $(wc -l < `+count+`) -ge 3 ] || { echo "Error: No such container: $3"; exit 1; }; exit 0`)
	_, r := evaluateManifest(t, manifest(t, "x", codingScenario("environment: {kind: docker, image: img}", `{type: command, run: "true"}`)), "--timeout", "1")
	if list := calls(); len(r.Errors) != 1 || r.Errors[0].Kind != "timeout" || strings.Count(list, "rm --force ecp-") != 3 {
		t.Errorf("%+v\n%s", r.Errors, list)
	}
}

// Containers are removed also if the time of the attempt ends meanwhile, and again if that failed.
func TestContainersAreRemovedAfterTheLimit(t *testing.T) {
	calls := fakeEngine(t, "docker")
	removed := filepath.Join(t.TempDir(), "removed")
	replaceEngineCommand(t, "rm", `[ -e `+removed+`1 ] || { touch `+removed+`1; sleep 1; echo "Error: busy"; exit 1; }; sleep 1; touch `+removed+`; exit 0`)
	setup := "timeout_s: 2, environment: {kind: docker, image: img}"
	_, r := evaluateManifest(t, manifest(t, writeScriptAgent(t, "sleep 1.5"), codingScenario(setup, `{type: command, run: "true"}`)))
	if _, err := os.Stat(removed); err != nil || len(r.Errors) != 1 || r.Errors[0].Kind != "timeout" || strings.Contains(reasons(r), "cannot remove") {
		t.Errorf("%v, %+v\n%s\n%s", err, r.Errors, reasons(r), calls())
	}
}

// A failure of the engine is an error, not a failure of the agent.
func TestContainerEngineFailureIsAnError(t *testing.T) {
	fakeEngine(t, "docker")
	_, r := evaluateManifest(t, manifest(t, "true", codingScenario("environment: {kind: docker, image: missing:1}", `{type: command, run: "true"}`)))
	if len(r.Errors) != 1 || r.Errors[0].Kind != "environment" || !strings.Contains(r.Errors[0].Message, "docker pull: ") || !strings.Contains(r.Errors[0].Message, "manifest unknown") {
		t.Errorf("%+v", r.Errors)
	}
	_, r = evaluateManifest(t, manifest(t, writeScriptAgent(t, "true"), codingScenario("environment: {kind: docker, image: img}", `{type: command, run: "echo no space left; exit 125"}`)))
	if len(r.Errors) != 1 || r.Errors[0].Kind != "grader" || !strings.Contains(r.Errors[0].Message, "docker: no space left") {
		t.Errorf("%+v", r.Errors)
	}
	fakeEngine(t, "docker")
	replaceEngineCommand(t, "build", `seq 5000; echo "COPY failed: no such file"; exit 1`)
	broken := manifest(t, "true", codingScenario("environment: {kind: docker, dockerfile: image/Dockerfile}", `{type: command, run: "true"}`))
	write(t, filepath.Join(filepath.Dir(broken), "image", "Dockerfile"), "FROM scratch\n")
	if _, r = evaluateManifest(t, broken); len(r.Errors) != 1 || !strings.HasSuffix(r.Errors[0].Message, "COPY failed: no such file") {
		t.Errorf("%+v", r.Errors)
	}
	t.Setenv("PATH", "/nowhere")
	_, r = evaluateManifest(t, manifest(t, "true", codingScenario("environment: {kind: podman, image: x}", `{type: command, run: "true"}`)))
	if len(r.Errors) != 1 || r.Errors[0].Kind != "environment" || !strings.Contains(r.Errors[0].Message, "podman cannot be run") {
		t.Errorf("%+v", r.Errors)
	}
}

// A Dockerfile is built once, with its folder as context.
func TestContainersFromDockerfile(t *testing.T) {
	calls := fakeEngine(t, "docker")
	setup := "environment: {kind: docker, dockerfile: image/Dockerfile}"
	m := manifest(t, writeScriptAgent(t, "true"), codingScenario(setup, `{type: status, status: done}`)+codingScenario(setup, `{type: status, status: done}`))
	write(t, filepath.Join(filepath.Dir(m), "image", "Dockerfile"), "FROM scratch\n")
	if out, r := evaluateManifest(t, m, "-j", "2"); r.Passed != 2 {
		t.Errorf("exit %d: %s", out.code, reasons(r))
	}
	if list := calls(); strings.Count(list, "build --quiet --tag ecp/") != 1 || !strings.Contains(list, "--file "+filepath.Dir(m)+"/image/Dockerfile "+filepath.Dir(m)+"/image\n") {
		t.Error(list)
	}
}

// ecp doctor lists the available environments.
func TestDoctorKnowsEnvironments(t *testing.T) {
	fakeEngine(t, "docker")
	if r := invoke(t, "doctor"); !strings.Contains(r.out, "Environment local: ") || !strings.Contains(r.out, "docker:            version 9.9\n") {
		t.Error(r.out)
	}
	dir, _, _ := strings.Cut(os.Getenv("PATH"), ":")
	write(t, filepath.Join(dir, "down"), "")
	if r := invoke(t, "doctor"); !strings.Contains(r.out, "docker:            not usable: Cannot connect to the daemon\n") {
		t.Error(r.out)
	}
	t.Setenv("PATH", "/nowhere")
	if r := invoke(t, "doctor"); !strings.Contains(r.out, "podman:            not found\n") {
		t.Error(r.out)
	}
}

// With a running engine, the same is done with real containers.
func TestRealContainers(t *testing.T) {
	isolateEnvironment(t)
	if out, err := exec.Command("docker", "image", "inspect", "busybox").CombinedOutput(); err != nil {
		t.Skipf("NOT TESTED: docker with the image busybox is needed: docker pull busybox (%s)", strings.TrimSpace(string(out)))
	}
	m := manifest(t, "sh /ecp/agent.sh", codingScenario("workspace: repo, tests: hidden, environment: {kind: docker, image: busybox, agent: {read: [agent.sh]}}", `{type: command, run: "sh tests/t"}`))
	dir := filepath.Dir(m)
	write(t, filepath.Join(dir, "repo", "a"), "x")
	write(t, filepath.Join(dir, "hidden", "tests", "t"), "grep -q 42 answer.txt\n")
	script, err := os.ReadFile(strings.TrimPrefix(writeScriptAgent(t, "echo 42 > answer.txt"), "sh "))
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, "agent.sh"), strings.Replace(string(script), "*/ecp-agent-*/home", "/tmp", 1))
	if out, r := evaluateManifest(t, m, "--timeout", "120"); r.Passed != 1 {
		t.Errorf("exit %d: %s", out.code, reasons(r))
	}
}
