package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/seed-dec29ce4/eca/internal/needs"
	"github.com/seed-dec29ce4/eca/internal/testkit"
)

// eachEngine runs a test with each engine that works here and has the image busybox: once in a
// workspace, and once in the image's own files. extra is what the environment of a scenario needs for
// the second form.
func eachEngine(t *testing.T, test func(t *testing.T, engine, extra string)) {
	t.Helper()
	needs.Long(t)
	found := false
	for _, engine := range []string{"docker", "podman"} {
		if exec.Command(engine, "image", "inspect", "busybox").Run() != nil {
			continue
		}
		found = true
		for name, extra := range map[string]string{"workspace": "", "image": "in_image: true, "} {
			t.Run(engine+" "+name, func(t *testing.T) {
				isolateEnvironment(t)
				t.Chdir(t.TempDir()) // podman leaves the file oom in its working directory
				test(t, engine, extra)
			})
		}
	}
	if !found {
		t.Skip("NOT TESTED: docker or podman with the image busybox is needed: docker pull busybox (without a registry: docker import FILE busybox, with a tar that has /bin/sh and the programs of a static busybox)")
	}
}

// engineScenario is a scenario in a container with an agent that shellAgent wrote.
func engineScenario(engine, extra, agent, name, input, checks string) string {
	return fmt.Sprintf("  - name: %s\n    steps:\n      - input: %s\n        constraints:\n          timeout_s: 300\n          scenario: {environment: {kind: %s, image: busybox, memory_mb: 64, %sagent: {read: [%q], env: [MY_KEY]}}}\n          checks: [%s]\n",
		name, input, engine, extra, agent, checks)
}

// An attempt that uses up the memory of its container is an error, also if a grader does; the others
// are not affected.
func TestContainerMemoryIsUsedUp(t *testing.T) {
	const hoard = "a=xxxxxxxxxxxxxxxx; while :; do a=$a$a; done"
	eachEngine(t, func(t *testing.T, engine, extra string) {
		t.Setenv("MY_KEY", "x")
		agent := shellAgent(t, "case $line in *hoard*) "+hoard+" ;; esac")
		all := ""
		for _, s := range [][3]string{{"a", "x", "true"}, {"b", "hoard", "true"}, {"c", "x", hoard}, {"d", "x", "true"}} {
			all += engineScenario(engine, extra, agent, s[0], s[1], fmt.Sprintf("{type: command, run: %q}", s[2]))
		}
		_, r := evaluateManifest(t, manifest(t, "sh /ecp/"+filepath.Base(agent), all), "-j", "2")
		if r.Counts.Passed != 2 || r.Counts.Error != 2 || len(r.Errors) != 2 || r.Errors[0].Scenario != "b" || r.Errors[1].Scenario != "c" {
			t.Errorf("%+v: %s", r.Counts, reasons(r))
		}
		for _, e := range r.Errors {
			if !strings.Contains(e.Message, "no more memory") {
				t.Error(e.Message)
			}
		}
	})
}

// An agent in a container finds none of the hidden tests, of the manifest, of what another attempt
// has written, or of the caller's variables.
func TestContainerHidesFiles(t *testing.T) {
	eachEngine(t, func(t *testing.T, engine, extra string) {
		const canary = "canary-4711"
		t.Setenv("MY_KEY", "x")
		t.Setenv("OTHER_KEY", canary)
		agent := shellAgent(t, `found=$(grep -rl canary-47[1]1 /workspace /ecp /tests /tmp /home /root /etc /logs /proc/self/mountinfo /proc/[0-9]*/environ 2>/dev/null)
    MY_KEY="$(env | grep -c canary-47[1]1) $(echo $found)"; mkdir -p "$HOME" 2>/dev/null; echo canary-"4711" > ./left 2>/dev/null; echo canary-"4711" > /tmp/left`)
		dir := filepath.Dir(agent)
		write(t, filepath.Join(dir, "hidden", "t"), canary)
		setup := "tests: hidden, environment: {kind: " + engine + ", image: busybox, " + extra + "agent: {read: [agent.sh], env: [MY_KEY]}}"
		path := filepath.Join(dir, "manifest.yaml")
		write(t, path, "# "+canary+"\nmanifest_version: v1\nname: test\ntarget: sh /ecp/agent.sh\nscenarios:\n"+codingScenario(setup, `{type: command, run: "cat t /tests/t 2>/dev/null | grep -q canary"}`))
		_, r := evaluateManifest(t, path, "--repeat", "3", "-j", "2")
		if len(r.Errors) > 0 || r.Passed != r.Total || r.Total != 3 {
			t.Fatalf("%d of %d: %s", r.Passed, r.Total, reasons(r))
		}
		for _, a := range r.Scenarios[0].Attempts {
			if said := strings.TrimSpace(*a.Steps[0].Output); said != "0" {
				t.Errorf("the agent found: %s", said)
			}
		}
	})
}

// A cancelled run leaves no container after 10 seconds, and other runs of the worker continue.
func TestCancelEndsContainers(t *testing.T) {
	eachEngine(t, func(t *testing.T, engine, extra string) {
		t.Setenv("MY_KEY", "x")
		dir := filepath.Join(t.TempDir(), "keys")
		r := invoke(t, "cluster", "keys", dir)
		trust := regexp.MustCompile(`--trust (U\w+)`).FindStringSubmatch(r.out)
		if r.code != 0 || trust == nil {
			t.Fatalf("exit %d: %s%s", r.code, r.out, r.err)
		}
		a := testkit.NewAuthority(t, "cluster")
		address, _ := startNATS(t, filepath.Join(dir, "accounts.conf"), a)
		as := func(role string, args ...string) []string {
			return append(args, "--nats", "tls://"+address, "--tls-ca", a.File(), "--nkey", filepath.Join(dir, role+".nk"))
		}
		agent := shellAgent(t, "case $line in *long*) trap '' TERM; (trap '' TERM; sleep 900 & sleep 900) & sleep 900 ;; *) sleep 1 ;; esac")
		mark := fmt.Sprintf("agent-%d.sh", time.Now().UnixNano())
		if err := os.Rename(agent, filepath.Join(filepath.Dir(agent), mark)); err != nil {
			t.Fatal(err)
		}
		agent = filepath.Join(filepath.Dir(agent), mark)
		submit := func(input string) string {
			all := ""
			for i := range 4 {
				all += engineScenario(engine, extra, agent, fmt.Sprint(input, i), input, `{type: command, run: "true"}`)
			}
			r := invoke(t, as("controller", "submit", manifest(t, "sh /ecp/"+mark, all))...)
			if r.code != 0 {
				t.Fatalf("exit %d: %s", r.code, r.err)
			}
			return strings.TrimSpace(r.out)
		}
		long := submit("long")
		start(t, as("worker", "ecp", "worker", "--trust", trust[1], "--env", engine, "-j", "3")...)
		watched := make(chan result, 1)
		go func() { watched <- invoke(t, as("controller", "watch", long)...) }()
		var label string
		waitUntil(t, time.Minute, "two containers", func() bool {
			labels := labelsOf(engine, mark)
			for l := range labels {
				label = l
			}
			return labels[label] >= 2
		})
		other := submit("other")
		began := time.Now()
		if r := invoke(t, as("controller", "cluster", "cancel", long)...); r.code != 0 {
			t.Fatalf("exit %d: %s", r.code, r.err)
		}
		waitUntil(t, 10*time.Second, "no container of the cancelled run", func() bool { return labelsOf(engine, mark)[label] == 0 })
		t.Logf("the containers were gone after %v", time.Since(began).Round(time.Millisecond))
		<-watched
		if r := invoke(t, as("controller", "watch", other)...); r.code != 0 || !strings.Contains(r.err+r.out, "scenarios: 4 passed") {
			t.Errorf("exit %d: %s%s", r.code, r.out, r.err)
		}
		if labels := labelsOf(engine, mark); len(labels) > 0 {
			t.Errorf("containers are left: %v", labels)
		}
	})
}

// labelsOf counts the containers of each run that mention a text, for example a mounted file.
func labelsOf(engine, text string) map[string]int {
	out := map[string]int{}
	ids, err := exec.Command(engine, "ps", "--all", "--quiet", "--filter", "label=ecp.run").Output()
	if err != nil || len(strings.Fields(string(ids))) == 0 {
		return out
	}
	data, _ := exec.Command(engine, append([]string{"inspect"}, strings.Fields(string(ids))...)...).Output() // some may be gone
	var containers []json.RawMessage
	if json.Unmarshal(data, &containers) != nil {
		return out
	}
	for _, c := range containers {
		var known struct {
			Config struct{ Labels map[string]string }
		}
		if json.Unmarshal(c, &known) == nil && strings.Contains(string(c), text) {
			out[known.Config.Labels["ecp.run"]]++
		}
	}
	return out
}

// waitUntil waits until a condition holds.
func waitUntil(t *testing.T, limit time.Duration, what string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(limit); !holds(); time.Sleep(200 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("after %v: still waiting for %s", limit, what)
		}
	}
}
